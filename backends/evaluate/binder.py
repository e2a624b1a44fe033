"""The binder makes the calls of a program's operations when a machine loads the program.

This one makes the NumPy calls that define every byte. Another binder may keep variables elsewhere
and make other calls, as long as it leaves the same results.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.steps import Arrival, Copy, Departure, Superstep, Vertices
from ...ir.geometry.blocks import Memory
from ...ir.upstream import ModuleOp
from ..codelets.calls import Array, Call, Scratch
from ..codelets.stamps import History
from ..tile_rows import row_bytes
from .bind import calls_of_copy, calls_of_vertices
from .blocks import Blocks, read_blocks, write_blocks

Give = Callable[[Arrival], Array]
"""Returns the tensor that comes from outside: from the host, or from remote memory."""

Take = Callable[[Departure, Array], None]
"""Gives values to the host or to remote memory, in their variable's viewed shape."""


class Binder:
    """Makes the calls of a program's operations, once per machine.

    Attributes:
        blocks: where each variable is stored.
        hidden: the variables whose values cannot be read, because they are not complete.
        keeps_all_bytes: whether the memory of the tiles holds all bytes that the program defines.
    """

    keeps_all_bytes = True

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, exchange.VariableOp],
        blocks: Mapping[str, Blocks],
        history: History,
    ) -> None:
        del module, history
        self.variables = variables
        self.blocks = blocks
        self.hidden: frozenset[str] = frozenset()
        self.scratch = Scratch()

    @staticmethod
    def memory(tiles: int, bytes_per_tile: int) -> Memory:
        """Zeroed memory of all tiles: uint8[tiles, row].

        Raises MemoryError if the host has too little.
        """
        return np.zeros((tiles, row_bytes(bytes_per_tile)), np.uint8)

    def bind(
        self, steps: Sequence[Superstep], give: Give, take: Take
    ) -> dict[Operation, list[Call]]:
        """The calls of each operation of the supersteps.

        Raises VerifyException for an operation that does not suit its variables.

        Args:
            steps: in program order.
        """
        found: dict[Operation, list[Call]] = {}
        for step in steps:
            found.update(self.superstep(step))
            for op in step.body.block.ops:
                if isinstance(op, Arrival):
                    found[op] = self.input(op, give)
                elif isinstance(op, Departure):
                    found[op] = self.output(op, take)
        return found

    def superstep(self, step: Superstep) -> dict[Operation, list[Call]]:
        """The calls of a superstep's moves and vertices."""
        known = self.variables, self.blocks, self.scratch
        found: dict[Operation, list[Call]] = {}
        for op in step.body.block.ops:
            if isinstance(op, Copy):
                found[op] = calls_of_copy(op, *known)
            elif isinstance(op, Vertices):
                found[op] = calls_of_vertices(op, *known)
        return found

    def input(self, op: Arrival, give: Give) -> list[Call]:
        """The calls that write a tensor from outside into its variable."""

        def write(blocks: Blocks) -> None:
            write_blocks(give(op), blocks)

        return [(write, (self.blocks[op.destination],))]

    def output(self, op: Departure, take: Take) -> list[Call]:
        """The calls that give the value of a variable to the outside."""

        def read(blocks: Blocks) -> None:
            take(op, read_blocks(blocks))

        return [(read, (self.blocks[op.source],))]

    def load(self, name: str, values: NDArray[np.generic]) -> None:
        """Write a variable's initial value."""
        write_blocks(values, self.blocks[name])
