"""The binder that makes compiled calls."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.constraints import verify_use
from ...dialects.steps import Arrival, Copy, Departure, Superstep, Vertices
from ...ir.upstream import ModuleOp
from ..codelets.calls import Array, Call
from ..codelets.stamps import History
from ..evaluate.bind import generators_of, routes_of
from ..evaluate.binder import Binder, Give, Take
from ..evaluate.blocks import Blocks, dense_blocks
from .copies import HostScratch, bind_copy
from .vertices import BoundVertices, bind_vertices


class FastBinder(Binder):
    """Makes compiled calls, which write the same bytes as NumPy calls. Needs numba."""

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, exchange.VariableOp],
        blocks: Mapping[str, Blocks],
        history: History,
    ) -> None:
        super().__init__(module, variables, blocks, history)
        self.scratch = HostScratch()

    def superstep(self, step: Superstep) -> dict[Operation, list[Call]]:
        """The calls of a superstep's moves and vertices."""
        found: dict[Operation, list[Call]] = {}
        for op in step.body.block.ops:
            if isinstance(op, Copy):
                found[op] = self.move(op)
            elif isinstance(op, Vertices):
                found[op] = self.vertices(op).calls
        return found

    def move(self, op: Copy, with_replicas: bool = True) -> list[Call]:
        """The calls of a move.

        Args:
            with_replicas: as for bind_copy.
        """
        verify_use(op, self.variables)
        sources = [self.blocks[name] for name in op.sources]
        routes = routes_of(op, self.variables, self.blocks)
        return bind_copy(sources, *routes, self.scratch, with_replicas or op.own is not None)

    def vertices(self, op: Vertices, equal: frozenset[int] = frozenset()) -> BoundVertices:
        """The calls of a vertex set.

        Args:
            equal: as for bind_vertices.
        """
        verify_use(op, self.variables)
        operands = [self.blocks[name].placed for name in op.sources]
        result, *further = (self.blocks[name].placed for name in op.destinations)
        return bind_vertices(
            *(op.structure(), op.plan.data, operands, result, self.scratch),
            equal=equal,
            further=further,
            generators=generators_of(op, self.variables, self.blocks),
        )

    def input(self, op: Arrival, give: Give) -> list[Call]:
        """The calls that copy a tensor from outside into its variable, through a separate array."""
        blocks = self.blocks[op.destination]
        held = np.empty(blocks.layout.shape, blocks.placed.dtype)

        def fill(held: Array) -> None:
            np.copyto(held, give(op).reshape(held.shape))

        return [(fill, (held,)), *bind_copy([dense_blocks(held)], None, blocks, self.scratch)]

    def output(self, op: Departure, take: Take) -> list[Call]:
        """The calls that copy a variable's value into an array, and give that to the outside."""
        blocks = self.blocks[op.source]
        if not blocks.layout.is_partition:
            return super().output(op, take)
        held = np.empty(blocks.layout.shape, blocks.placed.dtype)
        calls = bind_copy([blocks], None, dense_blocks(held), self.scratch)
        return [*calls, (take, (op, held))]
