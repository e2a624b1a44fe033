"""Add the gradients of an output to a program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.func import FuncOp
from xdsl.ir import SSAValue

from ..dialects.levels import NN
from ..ir.edit import Edit, source_at
from ..ir.phases import keep_forward_names
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .gradients.control_flow import Flow
from .gradients.emit import Emitter
from .gradients.loads import load_in_front
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
from .gradients.reverse import Backward, module_of
from .gradients.way import is_float

PREFIX = "grad."
"""The prefix of the name of a gradient; the name of the input or state follows."""


@dataclass(frozen=True)
class Differentiate(ModulePass):
    """Add results to @main: the gradients of an output with respect to inputs and states. nn -> nn.

    If the output has several elements, these are the gradients of their sum. Each becomes a result
    `grad.NAME`. Composites between the output and the inputs that have no gradient of their own are
    decomposed, and groups are dropped.

        %0 = nn.square %x                     %0 = nn.square %x
        func.return %0                        %1 = nn.scale %x by 2.0
                                              %2 = nn.mul %ones, %1
                                              func.return %0, %2

    Attributes:
        loss: the name of the output; the first one of floats if it is empty.
        of: names of inputs and states; all of floats if it is empty.
        recompute: whether the gradient of a loop computes the values of an iteration again from its
            initial values, instead of keeping them.
    """

    name = "differentiate"
    takes = NN
    skips_other_levels = True

    loss: str = ""
    of: tuple[str, ...] = ()
    recompute: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module.

        Raises InputError for unknown names, and for an operation without a gradient between the
        loss and an input.
        """
        main = entry_of(op)
        if main is None:
            return
        floats = {name: value for name, value in outputs_of(main).items() if is_float(value)}
        if not floats:
            raise InputError("differentiate: no output is of floats, so none has a gradient")
        loss = self.loss or next(iter(floats))
        chosen("output of floats", loss, floats)
        if may_rewrite():
            keep_forward_names(op)
            drop_groups(op)
            with Edit(source_at("load states in front", load_in_front), main) as edit:
                load_in_front(op, edit)
            add_gradients(main, loss, _sources(main, self.of), recompute=self.recompute)


def _sources(main: FuncOp, names: Sequence[str]) -> dict[str, list[SSAValue]]:
    """The values of inputs and states by name."""
    known = {name: [value] for name, value in inputs_of(main).items() if is_float(value)}
    for name, loads in states_of(main).items():
        known.setdefault(name, []).extend(loads)
    for name in names:
        chosen("input or state of floats", name, known)
    return {name: known[name] for name in names or known}


def add_gradients(
    main: FuncOp, loss: str, sources: dict[str, list[SSAValue]], *, recompute: bool = False
) -> None:
    """Let a function also return the gradients of an output.

    Args:
        loss: the output's name.
        sources: the values of each input and state, by name.
    """
    every = [value for values in sources.values() for value in values]
    decompose_on_the_way(main, every, [outputs_of(main)[loss]])
    value = outputs_of(main)[loss]
    with Edit(source_at("differentiate", add_gradients), main) as edit:
        emit = Emitter(edit, end_of(main), end_of(main))
        seed = emit.ones_like(value)
        found = Backward(emit, Flow(module_of(main.body.block), recompute)).run(
            main.body.block, every, [(value, seed)]
        )
        # Loops were replaced by loops that keep values for their gradients, so look the sources up
        # again.
        results = outputs_of(main)
        for name, values in sources.items():
            parts = [found[each] for each in values if each in found]
            emit.source = end_of(main)
            total = emit.add(parts) if parts else emit.zeros_like(values[0])
            results[PREFIX + name] = total
        rename_results(main, results, edit)
