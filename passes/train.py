"""Turn a program that computes an output into one that does a step of training."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    BoolAttr,
    DictionaryAttr,
    FloatAttr,
    IntegerAttr,
    StringAttr,
    UnitAttr,
    f32,
    f64,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ..dialects import nn
from ..dialects.dtypes import STORED
from ..dialects.levels import NN
from ..dialects.settable import listed_names
from ..ir.blob import Blob
from ..ir.edit import Edit, source_at
from ..ir.phases import UPDATE, keep_forward_names
from ..ir.provenance import named, place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.support.suggestions import suggestion
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from ..ir.well_known import FIXED, SCHEDULE, TRAINED, UPDATED
from .gradients.choices import DEFAULT_LOSS, DEFAULT_OPTIMIZER
from .gradients.control_flow import Flow, function_of
from .gradients.emit import Emitter
from .gradients.factors import Factors, read_factors
from .gradients.iteration_rows import widened
from .gradients.loads import load_in_front
from .gradients.loss_scale import STATE as LOSS_SCALE
from .gradients.loss_scale import LossScale, Scaling
from .gradients.losses import (
    LOSSES,
    REDUCTIONS,
    Settings,
    Tensor,
    counted,
    is_ignored,
    reduced,
)
from .gradients.micro_batches import MicroBatches, read_axes
from .gradients.optimizers import OPTIMIZERS, Numbers, Update, check_numbers, clip_factor
from .gradients.program import (
    chosen,
    decompose_on_the_way,
    drop_groups,
    end_of,
    entry_of,
    inputs_of,
    outputs_of,
    rename_results,
    states_of,
)
from .gradients.reverse import Backward
from .gradients.several_steps import repeat_steps
from .gradients.unit_scaling import UnitScaling, first_exponent
from .gradients.way import is_float
from .replicas.written import SHARED

LOSS = "loss"
"""The name of the result that is the loss."""

RATE = "learning_rate"
"""The name of the input that is the learning rate, if the host gives it at each step."""

UNBIASED = "train.unbiased"
"""The prefix of the names of states that hold 1 - beta^t, of f32."""

SETTINGS = "abele.training"
"""The attribute of a module of a training program: what the host needs to know of its training.

loss, learning_rate, output, target, steps: as of the pass. inside: whether the loss reads the
operand of the softmax or sigmoid that makes the output. For labels also classes, the number of
classes, and optionally ignored, the label of ignored positions. With loss scaling also loss_scale.
rates is the schedule of the learning rate that the model asks for, if it does.
"""


@dataclass(frozen=True)
class Train(ModulePass, Settings, Numbers):
    """Turn a program into a step of training: forward, backward, and the update of its weights.

    The program gets an input for the target, unless it computes its loss itself, and returns the
    loss instead of its outputs. Its weights are its states of floats, except those that the
    module's attribute abele.fixed lists. The weights and the states of the optimiser are updated in
    place. A softmax or sigmoid that makes the output becomes part of the loss. Batch normalisations
    use the statistics of the batch instead of the running ones, and update these, unless they are
    frozen. Some losses and optimisers read further options. nn -> nn.

    Attributes:
        loss: what is minimised; given for an output that is the loss itself, without a target.
        optimizer: how weights follow their gradients.
        output: the name of the output that the loss reads; the first one if it is empty.
        target: the name of the new input.
        reduction: the loss of a batch is the mean or the sum of its losses, or they are returned
            one by one, and their sum is minimised.
        learning_rate: how far a step goes. The module's attribute abele.factors may give weights
            factors of it, and of the weight decay.
        schedule: the host gives the learning rate at each step, as the input learning_rate.
        freeze: patterns of the names of states that are not trained.
        clip_norm: the largest norm of all gradients together; 0 for none.
        loss_scale: the power of two by which gradients are larger while they are computed, so that
            float16 holds small ones.
        scaling: whether that scale stays, or is the first one of a scale that follows the largest
            gradients; or unit, for a power of two of each gradient that follows from shapes,
            without a loss scale.
        batch_statistics: the weight of a batch's statistics in the update of the running ones.
        batch_groups: the number of equal groups of samples, such as those of replicas. A batch
            normalisation uses the statistics of each group; the running ones follow their means.
        outputs: whether the program also returns its outputs.
        update: whether the weights are updated; if not, the program computes as it does after
            training, also returns its loss, and the host sets its weights.
        micro_batches: how many batches of the program a step takes, one after the other; their
            gradients are summed, and the weights are updated once.
        batch_axes: with micro_batches, the axis of the samples of an input, as INPUT:AXIS, where it
            is not the first; INPUT:none for an input that is the same for all samples.
        shard: what several chips share instead of holding it whole: optimizer, for what an
            optimiser keeps and the updates of weights (replicated tensor sharding); "" leaves it to
            the planner.
        recompute: whether the backward pass of a loop computes the values of an iteration again
            from its initial values, instead of keeping them.
        steps: how many steps a run takes, one after the other; each input and each result then has
            a first axis of steps.
    """

    name = "train"
    takes = NN
    skips_other_levels = True

    loss: str = DEFAULT_LOSS
    optimizer: str = DEFAULT_OPTIMIZER
    output: str = ""
    target: str = "target"
    reduction: str = "mean"
    learning_rate: float = 0.01
    schedule: bool = False
    freeze: tuple[str, ...] = ()
    clip_norm: float = 0.0
    loss_scale: float = 1.0
    scaling: Scaling = "static"
    batch_statistics: float = 0.1
    batch_groups: int = 1
    outputs: bool = False
    update: bool = True
    micro_batches: int = 1
    batch_axes: tuple[str, ...] = ()
    shard: Literal["", "optimizer"] = ""
    recompute: bool = False
    steps: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module.

        Raises InputError for options that do not fit each other or the program, and for an
        operation without a gradient between the loss and a weight.
        """
        self.check()
        main = entry_of(op)
        if main is None or not may_rewrite():
            return
        keep_forward_names(op)
        if self.shard:
            op.attributes[SHARED] = UnitAttr()
        drop_groups(op)
        with Edit(source_at("train", Train.apply), main) as edit:
            _Step(self, op, main, edit).run()
            if self.steps > 1:
                repeat_steps(main, edit, self.steps)

    def check(self) -> None:
        """Raise InputError for options that do not fit each other."""
        for what, given, known in (
            ("loss", self.loss, tuple(LOSSES)),
            ("optimizer", self.optimizer, tuple(OPTIMIZERS)),
            ("reduction", self.reduction, REDUCTIONS),
        ):
            if given not in known:
                raise InputError(f"no {what} {given!r}{suggestion(given, known)}")
        check_numbers(self.optimizer, self)
        classes = LOSSES[self.loss].has_classes
        for each, default in (("ignore_index", None), ("label_smoothing", 0.0)):
            if getattr(self, each) != default and not classes:
                raise InputError(f"loss {self.loss} has no {each}; its target has no classes")
        for each in ("blank", "labels"):
            if getattr(self, each) and self.loss != "ctc":
                raise InputError(f"loss {self.loss} has no {each}; loss ctc has")
        if self.labels < 0:
            raise InputError(f"labels {self.labels}; need 0 or more")
        if not 0.0 <= self.label_smoothing < 1.0:
            raise InputError(
                f"label_smoothing {self.label_smoothing:g}; need 0 or more, and less than 1"
            )
        for each in ("delta", "clip_norm", "learning_rate", "batch_statistics"):
            value, least = getattr(self, each), "more than 0" if each == "delta" else "0 or more"
            if not (value > 0 if each == "delta" else value >= 0):
                raise InputError(f"{each} {value:g}; need {least}")
        for each in ("micro_batches", "steps", "batch_groups"):
            if getattr(self, each) < 1:
                raise InputError(f"{each} {getattr(self, each)}; need 1 or more")
        _ = self.scale
        if self.batch_axes and self.micro_batches == 1:
            raise InputError("batch_axes without micro_batches; need both, or neither")

    @property
    def scale(self) -> LossScale:
        """The scale of the loss. Raises InputError for one that cannot be."""
        return LossScale(self.loss_scale, self.scaling)


def _samples(value: SSAValue, axis: int | None) -> int:
    """The number of samples of an input; 0 if it has no axis for them."""
    shape = nn.shape_of(value)
    return shape[axis] if axis is not None and axis < len(shape) else 0


@dataclass
class _Step:
    """The construction of one training program."""

    options: Train
    module: ModuleOp
    main: FuncOp
    edit: Edit

    def run(self) -> None:
        options, main = self.options, self.main
        load_in_front(self.module, self.edit)
        loads = self._trained()
        every = [value for values in loads.values() for value in values]
        results = outputs_of(main)
        name = options.output or next(iter(results), "")
        chosen("output", name, results)
        if options.update:
            self._normalise_by_batches(set(loads))
        kind = LOSSES[options.loss]
        output = outputs_of(main)[name]
        if not is_float(output) or nn.element_of(output) in STORED:
            raise InputError(
                f"output {name!r} is {output.type}; a loss reads floats that can be computed with"
            )
        emit = Emitter(self.edit, end_of(main), end_of(main), LOSS)
        if isinstance(output.owner, Operation):
            emit.source = output.owner
        read = widened(emit, kind.reads(output))
        parts = self._parts(name, output)
        target = (
            self._input(options.target, kind.target(read, options)) if kind.has_target else None
        )
        self._describe(name, read, kind.reads(output) is not output)
        loss = self._loss(emit, read, target, parts)
        self._return(loss)
        if not options.update:
            if parts is not None:
                self._over_parts(parts, loads, {})
            self._list(loads, states_of(main))
            return
        decompose_on_the_way(main, every, [loss])
        loss = outputs_of(main)[LOSS]
        emit = Emitter(self.edit, end_of(main), end_of(main))
        scale = options.scale.load(emit)
        flow, unit = Flow(self.module, options.recompute), None
        if options.scale.is_unit:
            unit = UnitScaling(main.body.block)
            given = unit.begin(emit, loss, self._first_exponent(read))
        else:
            given = options.scale.given(emit, loss, scale)
        found = Backward(emit, flow, unit).run(main.body.block, every, [(loss, given)])
        gradients: dict[str, SSAValue] = {}
        exponents: dict[str, int] = {}
        for state, values in loads.items():
            emit.source = values[0].owner if isinstance(values[0].owner, Operation) else main
            passed = [found[each] for each in values if each in found]
            if passed and unit is not None:
                passed = unit.aligned(emit, passed)
                exponents[state] = unit.exponent(passed[0])
            if passed:
                gradients[state] = emit.add(passed)
            if passed and nn.element_of(values[0]) in STORED:
                raise InputError(
                    f"weight {state!r} has elements {nn.element_of(values[0])}, which are only "
                    "stored; freeze it, or give it a type to compute in"
                )
        if not gradients:
            raise InputError("train: the loss depends on no weight that is trained")
        if parts is not None:
            gradients = self._over_parts(parts, loads, gradients)
        self._update(loads, gradients, scale, exponents)

    def _first_exponent(self, read: SSAValue) -> int:
        """The exponent of the gradient of the loss, with unit scaling."""
        options, shape = self.options, nn.shape_of(read)
        classes = shape[1] if LOSSES[options.loss].has_classes else 1
        # A mean over labels that count divides by their number, which no shape tells.
        is_counted = options.ignore_index is not None and options.reduction == "mean"
        positions = prod(shape) // classes * options.micro_batches if is_counted else 1
        return first_exponent(classes, positions)

    def _describe(self, output: str, read: SSAValue, inside: bool) -> None:
        """Record on the module what the host needs to know: see SETTINGS."""
        options = self.options
        found: dict[str, Attribute] = {
            "loss": StringAttr(options.loss),
            "learning_rate": FloatAttr(options.learning_rate, f64),
            "output": StringAttr(output),
            "target": StringAttr(options.target if LOSSES[options.loss].has_target else ""),
            "inside": BoolAttr.from_bool(inside),
            "steps": IntegerAttr(options.steps, i64),
        }
        if LOSSES[options.loss].has_classes:
            found["classes"] = IntegerAttr(nn.shape_of(read)[1], i64)
            if options.ignore_index is not None:
                found["ignored"] = IntegerAttr(options.ignore_index, i64)
        rates = self.module.attributes.pop(SCHEDULE, None)
        if rates is not None and options.schedule:
            found["rates"] = rates
        if not (options.scale.is_none or options.scale.is_unit):
            found["loss_scale"] = FloatAttr(options.loss_scale, f64)
        self.module.attributes[SETTINGS] = DictionaryAttr(found)

    def _list(self, trained: Iterable[str], updated: Iterable[str]) -> None:
        """Record on the module which states are weights, and which states change."""
        # The host may set more states than a step changes, such as the places of blocks.
        changed = (*updated, *(listed_names(self.module, UPDATED) or ()))
        for attribute, names in ((TRAINED, trained), (UPDATED, changed)):
            self.module.attributes[attribute] = ArrayAttr(map(StringAttr, dict.fromkeys(names)))

    # Micro-batches

    def _parts(self, name: str, output: SSAValue) -> MicroBatches | None:
        """The parts of a batch, after cutting the inputs; None if the batch is taken as a whole."""
        options, shape = self.options, nn.shape_of(output)
        axes = read_axes(options.batch_axes, inputs_of(self.main))
        if options.micro_batches == 1:
            return None
        size = shape[0] if shape else 0
        if not shape and not LOSSES[options.loss].has_target:
            given = inputs_of(self.main).items()
            size = next(filter(None, (_samples(v, axes.get(n, 0)) for n, v in given)), 0)
        if not size:
            raise InputError(f"micro_batches: output {name!r} is one number; need a batch of them")
        for op in self.module.walk():
            if isinstance(op, nn.StoreOp) and op.parent is not self.main.body.block:
                raise InputError(
                    f"micro_batches: {op.name} at {place(op)} is in a loop, a branch or a called "
                    "function, so its state is not carried from part to part; move it out"
                )
        parts = MicroBatches(self.main, self.edit, options.micro_batches, size)
        parts.cut(axes)
        return parts

    def _loss(
        self, emit: Emitter, read: SSAValue, target: SSAValue | None, parts: MicroBatches | None
    ) -> SSAValue:
        """The loss of the batch; of one part, its contribution to that loss."""
        options, kind = self.options, LOSSES[self.options.loss]
        if parts is None or target is None:
            losses = kind.build(emit, read, read if target is None else target, options)
            return reduced(emit, losses, options.reduction, 1 if parts is None else parts.count)
        whole, target = parts.cut_input(target)
        losses = kind.build(emit, read, target, options)
        count = None
        if options.ignore_index is not None and options.reduction == "mean":
            count = counted(emit, is_ignored(emit, whole, options.ignore_index), losses.values)
        return reduced(emit, losses, options.reduction, parts.count, count)

    def _over_parts(
        self,
        parts: MicroBatches,
        loads: dict[str, list[SSAValue]],
        gradients: dict[str, SSAValue],
    ) -> dict[str, SSAValue]:
        """Compute gradients and results in a loop over the parts of the batch."""
        results = outputs_of(self.main)
        of_samples = [
            name
            for name, value in results.items()
            if nn.shape_of(value)[:1] == (parts.size,)
            and (name != LOSS or self.options.reduction == "none")
        ]
        others = [name for name in results if name not in of_samples and name != LOSS]
        whole = [] if LOSS in of_samples else [LOSS]
        sums, joined, last = parts.run(
            [
                *((results[name], None) for name in whole),
                *((gradient, loads[name][0]) for name, gradient in gradients.items()),
            ],
            [results[name] for name in of_samples],
            [results[name] for name in others],
        )
        made = dict(
            zip((*whole, *of_samples, *others), (*sums[: len(whole)], *joined, *last), strict=True)
        )
        rename_results(self.main, {name: made[name] for name in results}, self.edit)
        return dict(zip(gradients, sums[len(whole) :], strict=True))

    def _trained(self) -> dict[str, list[SSAValue]]:
        """The states to train, each with the values that are loaded from it."""
        known = states_of(self.main)
        for pattern in self.options.freeze:
            try:
                matches = any(re.search(pattern, name) for name in known)
            except re.error as error:
                raise InputError(f"freeze {pattern!r}: {error}; need a pattern") from None
            if not matches:
                raise InputError(
                    f"freeze {pattern!r}: no weight has such a name; there is "
                    f"{', '.join(known) or 'none'}"
                )
        stored = {
            each.state.string_value() for each in self.module.walk() if isinstance(each, nn.StoreOp)
        }
        fixed = {*(listed_names(self.module, FIXED) or ())}
        return {
            name: values
            for name, values in known.items()
            if name not in stored | self._statistics() | fixed
            and not any(re.search(pattern, name) for pattern in self.options.freeze)
        }

    def _statistics(self) -> set[str]:
        """The states that normalisations read as means and variances, also through calls."""
        norms = [op for op in self.module.walk() if isinstance(op, nn.BatchNormOp)]
        calls = [op for op in self.module.walk() if isinstance(op, CallOp)]
        values = [value for op in norms for value in (op.mean, op.variance)]
        # The list grows during this loop.
        for value in values:
            if isinstance(value, BlockArgument):
                values += [
                    call.operands[value.index]
                    for call in calls
                    if function_of(self.module, call) is value.block.parent_op()
                ]
        owners = (value.owner for value in values)
        return {each.state.string_value() for each in owners if isinstance(each, nn.LoadOp)}

    def _input(self, name: str, type_: Tensor) -> SSAValue:
        """A new input of the program."""
        main = self.main
        names = [*inputs_of(main)]
        if name in names:
            raise InputError(f"the program has an input {name!r} already; choose another name")
        value = main.body.block.insert_arg(type_, len(main.args))
        value.location = named(name)
        main.update_function_type()
        main.properties.pop("arg_names", None)
        main.attributes["arg_names"] = ArrayAttr(map(StringAttr, (*names, name)))
        return value

    def _return(self, loss: SSAValue) -> None:
        """Return the loss, and the outputs if they are asked for."""
        results = outputs_of(self.main)
        if self.options.outputs and LOSS in results:
            raise InputError(
                f"the program has an output {LOSS!r} already; need another name for it"
            )
        rename_results(
            self.main, {LOSS: loss, **(results if self.options.outputs else {})}, self.edit
        )

    # Batch normalisation

    def _normalise_by_batches(self, trained: set[str]) -> None:
        """Replace running statistics by those of the batch, and update the running ones."""
        part = self.options.batch_statistics
        for op in tuple(self.module.walk()):
            if not isinstance(op, nn.BatchNormOp) or part == 0.0:
                continue
            if op.parent is not self.main.body.block:
                raise InputError(
                    f"{op.name} at {place(op)} is in a loop, a branch or a called function, where "
                    "running statistics are not updated; move it out, or use batch_statistics 0"
                )
            loads = (op.mean.owner, op.variance.owner)
            if not all(isinstance(each, nn.LoadOp) for each in loads):
                continue
            scale = op.scale.owner
            if isinstance(scale, nn.LoadOp) and scale.state.string_value() not in trained:
                # A frozen normalisation stays as it is.
                continue
            op = self._in_groups(op)
            emit = Emitter(self.edit, op, op, "statistics")
            shape = nn.shape_of(op.image)
            axes = [0, *range(2, len(shape))]
            count = int(np.prod([shape[i] for i in axes]))
            if count < 2:
                raise InputError(
                    f"{op.name} at {place(op)}: a batch of one value per channel has no variance; "
                    "use a larger batch, or batch_statistics 0"
                )
            made = nn.SummarizeOp(widened(emit, op.image), "moments", axes)
            emit.insert(made)
            unbiased = emit(nn.ScaleOp(made.results[1], count / (count - 1)))
            for i, (load, new) in enumerate(
                zip(loads, (made.results[0], unbiased), strict=True), 3
            ):
                assert isinstance(load, nn.LoadOp)
                old = load.result
                own = nn.element_of(old)
                new = self._mean_of_groups(emit, new)
                if nn.element_of(new) != own:
                    new = emit(nn.CastOp(new, own))
                kept = emit(nn.ScaleOp(old, 1.0 - part))
                value = emit(nn.AddOp(kept, emit(nn.ScaleOp(new, part))))
                store = nn.StoreOp(value, load.state.string_value())
                emit.insert(store)
                batch = made.results[i - 3]
                if nn.element_of(batch) != own:
                    batch = emit(nn.CastOp(batch, own))
                self.edit.set_operand(op, i, batch)

    def _in_groups(self, op: nn.BatchNormOp) -> nn.BatchNormOp:
        """A batch normalisation in which each group of samples has channels of its own."""
        groups, image = self.options.batch_groups, op.image
        count, channels, *sizes = nn.shape_of(image)
        if groups == 1:
            return op
        if count % groups:
            raise InputError(
                f"{op.name} at {place(op)}: batch_groups {groups} of {count} samples; need a "
                "number that divides them"
            )
        places = range(3, 3 + len(sizes))
        emit = Emitter(self.edit, op, op, "groups")
        apart = emit.reshaped(image, (groups, count // groups, channels, *sizes))
        turned = emit(nn.TransposeOp(apart, (1, 0, 2, *places)))
        together = emit.reshaped(turned, (count // groups, groups * channels, *sizes))

        def repeated(value: SSAValue) -> SSAValue:
            return emit.reshaped(emit.expanded(value, (groups, channels)), (groups * channels,))

        scale, bias = repeated(op.scale), repeated(op.bias)
        # The statistics of the batch replace the last two.
        made = nn.BatchNormOp(together, scale, bias, scale, scale, epsilon=op.epsilon.value.data)
        made.location = op.location
        self.edit.insert(made, InsertPoint.before(op))
        apart = emit.reshaped(made.result, (count // groups, groups, channels, *sizes))
        turned = emit(nn.TransposeOp(apart, (1, 0, 2, *places)))
        self.edit.replace(op, [emit.reshaped(turned, nn.shape_of(image))])
        return made

    def _mean_of_groups(self, emit: Emitter, value: SSAValue) -> SSAValue:
        """The mean over all groups, for each channel."""
        groups = self.options.batch_groups
        if groups == 1:
            return value
        (channels,) = nn.shape_of(value)
        apart = emit.reshaped(value, (groups, channels // groups))
        return emit(nn.ScaleOp(emit(nn.ReduceOp(apart, "sum", [0])), 1.0 / groups))

    # Updates

    def _update(
        self,
        loads: dict[str, list[SSAValue]],
        gradients: dict[str, SSAValue],
        loss_scale: SSAValue | None,
        exponents: dict[str, int],
    ) -> None:
        """Update the weights at the end of the program; `update-early` decides where that is.

        Args:
            exponents: of the powers of two of gradients, with unit scaling.
        """
        block = self.main.body.block
        rate: float | SSAValue = self.options.learning_rate
        if self.options.schedule:
            rate = self._input(RATE, nn.tensor((), f32))
        states = self.options.scale.states
        if loss_scale is not None:
            emit = Emitter(self.edit, end_of(self.main), end_of(self.main), "loss_scale")
            following = self.options.scale.next(emit, list(gradients.values()), loss_scale)
            emit.insert(nn.StoreOp(following, LOSS_SCALE))
        if not self.options.scale.is_none:
            for name, gradient in gradients.items():
                source = loads[name][0].owner
                assert isinstance(source, Operation)
                emit = Emitter(self.edit, end_of(self.main), source, UPDATE)
                gradients[name] = self.options.scale.divided(
                    emit, gradient, loss_scale, exponents.get(name, 0)
                )
        if self.options.clip_norm:
            emit = Emitter(self.edit, end_of(self.main), end_of(self.main), "clip")
            factor = clip_factor(emit, list(gradients.values()), self.options.clip_norm)
            for name, gradient in gradients.items():
                own = factor
                if nn.element_of(factor) != nn.element_of(gradient):
                    own = emit(nn.CastOp(factor, nn.element_of(gradient)))
                gradients[name] = emit(nn.MulOp(gradient, own))
        known: dict[float, SSAValue] = {}

        def whole(beta: float) -> SSAValue:
            """The value of 1 - beta^t at step t, computed at the beginning of the program.

            It is kept as a state, c = beta * c + (1 - beta), which loses no digits.
            """
            if beta not in known:
                first = block.first_op
                assert first is not None
                emit = Emitter(self.edit, first, self.main, "unbiased")
                state = f"{UNBIASED}.{len(known)}"
                states[state] = np.zeros((), np.float32)
                load = nn.LoadOp(state, nn.tensor((), f32))
                emit.insert(load)
                known[beta] = emit(nn.ShiftOp(emit(nn.ScaleOp(load.result, beta)), 1.0 - beta))
                emit.insert(nn.StoreOp(known[beta], state))
            return known[beta]

        readers: dict[SSAValue, Operation] = {}
        for op in block.walk():
            for value in op.operands:
                readers.setdefault(value, op)
        factors = read_factors(self.module)
        for name, gradient in gradients.items():
            weight = next(each for each in loads[name] if each in readers)
            emit = Emitter(self.edit, end_of(self.main), readers[weight], f"{name}/{UPDATE}")
            own: float | SSAValue = rate
            if isinstance(rate, SSAValue) and nn.element_of(weight) != f32:
                own = emit(nn.CastOp(rate, nn.element_of(weight)))
            own, numbers = self._of_weight(emit, own, factors.get(name, Factors()))
            update = Update(emit, weight, gradient, name, own, whole, numbers)
            new = OPTIMIZERS[self.options.optimizer].build(update)
            for state, value in (*update.stores.items(), (name, new)):
                emit.insert(nn.StoreOp(value, state))
            states |= update.new_states
        self._declare(states)
        stored = [op.state.string_value() for op in block.ops if isinstance(op, nn.StoreOp)]
        self._list(gradients, stored)

    def _of_weight(
        self, emit: Emitter, rate: float | SSAValue, factors: Factors
    ) -> tuple[float | SSAValue, Numbers]:
        """The learning rate and the numbers of a weight with factors of its own."""
        if factors.rate != 1.0:
            is_value = isinstance(rate, SSAValue)
            rate = emit(nn.ScaleOp(rate, factors.rate)) if is_value else rate * factors.rate
        decay = self.options.weight_decay * factors.decay
        return rate, replace(self.options, weight_decay=decay)

    def _declare(self, states: dict[str, np.ndarray]) -> None:
        taken = {each.sym_name.data for each in self.module.ops if isinstance(each, nn.StateOp)}
        for name, array in states.items():
            if name in taken:
                raise InputError(f"the program has a state {name!r} already; it is trained already")
            made = nn.StateOp(name, Blob(array))
            made.location = named(name)
            first = self.module.body.block.first_op
            assert first is not None
            self.edit.insert(made, InsertPoint.before(first))
