"""The binder for a machine without observers: it writes no byte that no result depends on.

Only an observer could see a value between the operation that writes it and the one that reads it.
If the reader does not need all of the value, less is written:

- partials are merged in place, and only their totals are gathered (see reduce_scatter);
- of an operand that is copied to many tiles, kernels read the first replica only;
- a copy of a copy reads the source of the first copy (see passed_on).

Such variables are stored where the host accesses them fastest (see arena). Weights are loaded
before the program starts and never written. Kernels read their first replica only, and if nothing
else reads them, the other replicas are not written.

Results, and all values that outlive the superstep that reads them, are equal to the bit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.constraints import verify_use
from ...dialects.steps import Copy, Superstep, Vertices, written
from ...ir.geometry.blocks import Memory
from ...ir.upstream import ModuleOp
from ..codelets.calls import Array, Call
from ..codelets.stamps import History
from ..evaluate.binder import Give, Take
from ..evaluate.blocks import Blocks, filling
from ..tile_rows import row_bytes
from .arena import arena_blocks, lives_of, prolonged, times_named
from .copies import bind_copy, is_routed
from .fast import FastBinder
from .passed_on import Reading, passed_on
from .reduce_scatter import bind_reduce_scatter
from .tile_memory import copy_all, copying, tile_memory

EARLY_BYTES = 1 << 20
"""Weights of at least this many bytes are written while calls are bound."""


class FusedBinder(FastBinder):
    """Makes compiled calls that write only the bytes that results depend on. Needs numba."""

    keeps_all_bytes = False

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, exchange.VariableOp],
        blocks: Mapping[str, Blocks],
        history: History,
    ) -> None:
        super().__init__(module, variables, blocks, history)
        own = self.unseen(module, variables)
        lives = lives_of(module, own)
        self._passed = passed_on(module, lives, partial(_is_routed, blocks))
        later = {name: reading.sources for name, reading in self._passed.items()}
        temporary = arena_blocks([*prolonged(lives, later).values()], blocks)
        history.set_apart({i for i, name in enumerate(variables) if name in temporary})
        self.hidden = frozenset(temporary)
        self.blocks = {**blocks, **temporary}
        times = times_named(module)
        self._read_once = {name for name in temporary if times[name] == 2}
        changed = written(module)
        self._weights = {
            name
            for name, variable in own.items()
            if variable.initial is not None and name not in changed and _is_alone(blocks[name])
        }
        # The weights of which the first replica suffices. Weights are removed from it as calls are
        # bound.
        self._in_part = set(self._weights)
        self._written_early: set[str] = set()
        self._writers: dict[str, list[Call]] = {}

    def unseen(
        self, module: ModuleOp, variables: Mapping[str, exchange.VariableOp]
    ) -> Mapping[str, exchange.VariableOp]:
        """The variables of which only the bytes that fused calls read must be written: all of
        them."""
        del module
        return variables

    @staticmethod
    def memory(tiles: int, bytes_per_tile: int) -> Memory:
        """Zeroed memory of all tiles, uint8[tiles, row]. Untouched pages take no memory.

        Raises MemoryError if the host has too little.
        """
        return tile_memory(tiles, row_bytes(bytes_per_tile))

    def bind(
        self, steps: Sequence[Superstep], give: Give, take: Take
    ) -> dict[Operation, list[Call]]:
        """The calls of each operation of the supersteps.

        Meanwhile, another thread writes the first replicas of large weights. No other variable
        shares bytes with them, so the order does not matter.
        Raises VerifyException for an operation that does not suit its variables.

        Args:
            steps: in program order.
        """
        early = {
            name: filling(variable.initial.array, self.blocks[name], with_replicas=False)
            for name, variable in self.variables.items()
            if variable.initial is not None
            and name in self._weights
            and variable.initial.array.nbytes >= EARLY_BYTES
        }
        with copying([pair for pairs in early.values() for pair in pairs]):
            calls = super().bind(steps, give, take)
        self._written_early = set(early)
        return calls

    def load(self, name: str, values: NDArray[np.generic]) -> None:
        """Write a variable's initial value; of a weight, only the replicas that are read."""
        if name in self._written_early:
            self._written_early.discard(name)
            if name in self._in_part:
                return
        copy_all(self.writing(name, values))

    def writing(self, name: str, values: NDArray[np.generic]) -> list[tuple[Array, Array]]:
        """Pairs of a target and a source array: copying each writes a variable's initial value."""
        return filling(values, self.blocks[name], with_replicas=name not in self._in_part)

    def move(self, op: Copy, with_replicas: bool = True) -> list[Call]:
        """The calls of a move; none if its destination is passed on."""
        verify_use(op, self.variables)
        if op.destination in self._passed:
            return []
        if op.own is not None:
            return super().move(op)
        reading = Reading.of(op, self._passed)
        assert reading is not None
        sources = [self.blocks[name] for name in reading.sources]
        target = self.blocks[op.destination]
        return bind_copy(sources, reading.spaces, target, self.scratch, with_replicas)

    def superstep(self, step: Superstep) -> dict[Operation, list[Call]]:
        """The calls of a superstep's moves and vertices.

        Must be called for the supersteps in program order, once each.
        Raises VerifyException for an operation that does not suit its variables.
        """
        return self.fused(list(step.body.block.ops))

    def fused(self, ops: Sequence[Operation]) -> dict[Operation, list[Call]]:
        """The calls of the moves and vertices among these operations of a superstep."""
        found: dict[Operation, list[Call]] = {}
        moves = {op.destination: op for op in ops if isinstance(op, Copy)}
        for op in ops:
            if isinstance(op, Vertices):
                operands = [moves[n] for n in op.sources if n in moves and n in self._read_once]
                found.update(self._merging(op, operands) or self._reading(op, operands))
                self._writers.update(dict.fromkeys(op.destinations, found[op]))
        for op in ops:
            if isinstance(op, Copy) and op not in found:
                found[op] = self.move(op)
        return found

    def _merging(self, op: Vertices, operands: list[Copy]) -> dict[Operation, list[Call]]:
        """The calls of vertices that merge partials, and of the move that gathers the partials.

        {} for other vertices.
        """
        for move in operands:
            if op.sources[0] != move.destination or len(move.sources) > 1 or move.spaces:
                continue
            (partials,) = move.sources
            if partials in self._passed:
                continue
            verify_use(move, self.variables)
            verify_use(op, self.variables)
            writers = self._writers.get(partials, ()) if partials in self._read_once else ()
            merging = bind_reduce_scatter(
                move, op, self.blocks, self.scratch, writers, self._weights_of(op)
            )
            if merging is not None:
                moving, bound = merging
                self._note(op, bound.read_once)
                return {move: moving, op: bound.calls}
        return {}

    def _reading(self, op: Vertices, operands: list[Copy]) -> dict[Operation, list[Call]]:
        """The calls of vertices, and of the moves of which they read the first replicas only."""
        moves = {
            op.sources.index(move.destination): move
            for move in operands
            if self.blocks[move.destination].layout.replica_dims
        }
        bound = self.vertices(op, equal=self._weights_of(op) | set(moves))
        self._note(op, bound.read_once)
        found = {
            move: self.move(move, with_replicas=False)
            for i, move in moves.items()
            if i in bound.read_once
        }
        return {op: bound.calls, **found}

    def _weights_of(self, op: Vertices) -> frozenset[int]:
        """The operands that are weights, which are not written once the program runs."""
        return frozenset(i for i, name in enumerate(op.sources) if name in self._weights)

    def _note(self, op: Vertices, read_once: frozenset[int]) -> None:
        """Record the weights of which all replicas are read."""
        self._in_part -= {name for i, name in enumerate(op.sources) if i not in read_once}


def _is_routed(blocks: Mapping[str, Blocks], reading: Reading, destination: str) -> bool:
    """Whether a copy with this reading takes routes."""
    return is_routed(
        [blocks[name] for name in reading.sources], reading.spaces, blocks[destination]
    )


def _is_alone(blocks: Blocks) -> bool:
    """Whether no other variable shares bytes with this one."""
    stamp = blocks.placed.stamp
    return stamp is not None and stamp.is_alone
