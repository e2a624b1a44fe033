"""A binder that makes the calls of each operation in a chosen way, to find wrong kernels.

If a run of compiled calls gives wrong bytes, runs in which some operations are NumPy calls instead
show which operations are to blame.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import ClassVar

from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.steps import Arrival, Copy, Departure, Superstep, Sync, Vertices
from ...ir.symbols import referenced_symbols
from ...ir.upstream import ModuleOp
from ..codelets.calls import Call, Scratch
from ..evaluate.bind import calls_of_copy, calls_of_vertices
from ..evaluate.binder import Binder, Give, Take
from .fast import FastBinder
from .fusion import FusedBinder


class CallKind(Enum):
    """How the calls of an operation are made: by NumPy, compiled, or compiled and fused."""

    NUMPY = "NumPy's calls"
    COMPILED = "compiled calls that write every byte"
    FUSED = "compiled calls that write only what is read"


CallKindOf = Callable[[Operation], CallKind]
"""Returns the way of an operation that moves, computes, or exchanges tensors with the host."""


class MixedBinder(FusedBinder):
    """Makes the calls of each operation in a chosen way.

    Fused operations leave bytes unwritten only in variables that no other operation names.
    """

    way_of: ClassVar[CallKindOf]

    def unseen(
        self, module: ModuleOp, variables: Mapping[str, exchange.VariableOp]
    ) -> Mapping[str, exchange.VariableOp]:
        """The variables that only fused operations name."""
        seen = {
            name
            for step in module.walk()
            if isinstance(step, Superstep)
            for op in step.body.block.ops
            if not isinstance(op, Sync) and self._way(op) is not CallKind.FUSED
            for name in referenced_symbols(op)
        }
        return {name: op for name, op in variables.items() if name not in seen}

    def superstep(self, step: Superstep) -> dict[Operation, list[Call]]:
        """The calls of a superstep's moves and vertices."""
        ops = [op for op in step.body.block.ops if not isinstance(op, Sync)]
        found = self.fused([op for op in ops if self._way(op) is CallKind.FUSED])
        known = self.variables, self.blocks
        for op in ops:
            match self._way(op), op:
                case CallKind.NUMPY, Copy():
                    found[op] = calls_of_copy(op, *known, Scratch())
                case CallKind.NUMPY, Vertices():
                    found[op] = calls_of_vertices(op, *known, Scratch())
                case CallKind.COMPILED, Copy():
                    found[op] = FastBinder.move(self, op)
                case CallKind.COMPILED, Vertices():
                    found[op] = self.vertices(op).calls
                case _:
                    pass
        return found

    def input(self, op: Arrival, give: Give) -> list[Call]:
        """The calls that write a tensor from outside into its variable."""
        kind = Binder if self._way(op) is CallKind.NUMPY else FastBinder
        return kind.input(self, op, give)

    def output(self, op: Departure, take: Take) -> list[Call]:
        """The calls that give a variable's value to the outside."""
        kind = Binder if self._way(op) is CallKind.NUMPY else FastBinder
        return kind.output(self, op, take)

    def _way(self, op: Operation) -> CallKind:
        return type(self).way_of(op)


def mixed_binder(way_of: CallKindOf) -> type[MixedBinder]:
    """A binder that makes the calls of each operation in the way that `way_of` returns."""
    return type("MixedBinder", (MixedBinder,), {"way_of": staticmethod(way_of)})
