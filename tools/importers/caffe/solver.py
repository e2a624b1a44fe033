"""How a solver of Caffe trains: options of the pass train, and a schedule of the learning rate."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import StringAttr

from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ....ir.well_known import ASKED, SCHEDULE
from ....passes.gradients.factors import Factors, write_factors
from ....passes.gradients.optimizers import Numbers, check_numbers
from .fields import Fields
from .layer_node import Scope

NETS = ("net", "train_net", "net_param", "train_net_param")
"""The fields of a solver that name the network to train, or hold it."""

OLD_TYPES = ("SGD", "Nesterov", "AdaGrad", "RMSProp", "AdaDelta", "Adam")
"""The types of solvers in the order of their old numbers."""

OLD_NAMES = tuple(each.upper() for each in OLD_TYPES)

OPTIMIZERS: Mapping[str, tuple[str, Mapping[str, str]]] = {
    "SGD": ("sgd", {"momentum": "momentum"}),
    "Nesterov": ("sgd", {"momentum": "momentum"}),
    "AdaGrad": ("adagrad", {"delta": "epsilon"}),
    "AdaDelta": ("adadelta", {"delta": "epsilon", "momentum": "alpha"}),
    "RMSProp": ("rmsprop", {"delta": "epsilon", "rms_decay": "alpha"}),
    "Adam": ("adam", {"delta": "epsilon", "momentum": "beta1", "momentum2": "beta2"}),
}
"""The optimisers of the pass train by the type of a solver, and which number is which of theirs."""

DEFAULTS = {"momentum": 0.0, "momentum2": 0.999, "delta": 1e-8, "rms_decay": 0.99}
"""The defaults of a solver's numbers."""

POLICIES: Mapping[str, Sequence[str]] = {
    "fixed": (),
    "step": ("gamma",),
    "exp": ("gamma",),
    "inv": ("gamma", "power"),
    "multistep": ("gamma",),
    "poly": ("power",),
    "sigmoid": (),
}
"""The policies of the learning rate, with the numbers that each reads and that are 0 or more."""


@dataclass
class Training:
    """How a program is trained.

    Attributes:
        options: of the pass train, as text; None if nothing asks for training.
        schedule: of the learning rate; "" for a constant one.
        factors: of the learning rate and the weight decay of states.
    """

    options: str | None
    schedule: str = ""
    factors: Mapping[str, Factors] = field(default_factory=dict[str, Factors])

    def write(self, module: ModuleOp) -> None:
        """Record on a module how it is trained."""
        write_factors(module, self.factors)
        if self.options is not None:
            module.attributes[ASKED] = StringAttr(self.options)
        if self.schedule:
            module.attributes[SCHEDULE] = StringAttr(self.schedule)


def training_of(solver: Fields | None, scope: Scope, has_loss: bool) -> Training:
    """The training that a solver asks for, or a network with losses.

    Raises InputError for a solver whose training abele does not do, and for one whose network has
    no loss.
    """
    if not scope.program.training:
        return Training(None)
    if solver is None:
        return Training("loss=given" if has_loss else None, "", scope.factors)
    if not has_loss:
        raise InputError(f"{solver.place}: the network has no layer with a loss; need one")
    options = {"loss": "given", **_optimizer(solver)}
    if solver.integer("iter_size", 1, 1) > 1:
        options["micro-batches"] = str(solver.integer("iter_size"))
    clip = solver.number("clip_gradients", -1.0)
    if clip > 0.0:
        options["clip-norm"] = repr(clip)
    schedule = _schedule(solver)
    if schedule:
        options["schedule"] = "true"
    text = " ".join(f"{name}={value}" for name, value in options.items())
    return Training(text, schedule, scope.factors)


def _optimizer(solver: Fields) -> dict[str, str]:
    """The options that say how weights follow their gradients."""
    type_ = solver.text("type", "SGD")
    if solver.has("solver_type"):
        old = solver.choice("solver_type", OLD_NAMES, "SGD")
        type_ = OLD_TYPES[OLD_NAMES.index(old)]
    if type_ not in OPTIMIZERS:
        raise solver.bad("type", f"is {type_[:60]!r}; need one of {', '.join(OPTIMIZERS)}")
    if solver.text("regularization_type", "L2") != "L2":
        raise solver.bad("regularization_type", "need L2")
    rate = solver.number("base_lr", -1.0)
    if rate < 0.0:
        raise solver.bad("base_lr", "missing, or less than 0")
    name, own = OPTIMIZERS[type_]
    numbers = {**own, "weight_decay": "weight_decay"}
    options = {"optimizer": name, "learning-rate": repr(rate)}
    if type_ in ("SGD", "Nesterov") and solver.number("momentum"):
        # In Caffe, what momentum keeps has the learning rate of its step in it.
        options["rate-in-momentum"] = "true"
        if type_ == "Nesterov":
            options["nesterov"] = "true"
    for given, option in numbers.items():
        value = solver.number(given, DEFAULTS.get(given, 0.0))
        try:
            check_numbers(name, replace(Numbers(), **{option: value}))
        except InputError as error:
            raise solver.bad(given, str(error)) from None
        if value or given in DEFAULTS:
            options[option.replace("_", "-")] = repr(value)
    return options


def _schedule(solver: Fields) -> str:
    """The schedule of the learning rate, as `abele train --schedule` takes it; "" if constant."""
    policy = solver.text("lr_policy", "fixed")
    gamma, power = solver.number("gamma"), solver.number("power")
    step = solver.integer("stepsize", 0, 0)
    last = solver.integer("max_iter", 0, 0)
    if policy not in POLICIES:
        raise solver.bad("lr_policy", f"is {policy[:60]!r}; need one of {', '.join(POLICIES)}")
    for each in POLICIES[policy]:
        if solver.number(each) < 0.0:
            raise solver.bad(each, f"is {solver.number(each):g}; need 0 or more")
    if policy == "step":
        if step < 1:
            raise solver.bad("stepsize", "missing; lr_policy step needs it")
        return f"step:{step}:{gamma!r}"
    if policy == "exp":
        return f"exp:{gamma!r}"
    if policy == "inv":
        return f"inv:{gamma!r}:{power!r}"
    if policy == "multistep":
        edges = solver.integers("stepvalue")
        return ":".join(["multistep", repr(gamma), *map(str, edges)]) if edges else ""
    if policy == "poly":
        if last < 1:
            raise solver.bad("max_iter", "missing; lr_policy poly needs it")
        return f"poly:{power!r}:{last}"
    return f"sigmoid:{gamma!r}:{step}" if policy == "sigmoid" else ""
