"""What a machine that nobody watches need not do: bytes that no result depends on.

A variable that one operation writes and one other reads holds, between the two, what the program
says only if somebody looks. Where the operation that reads it is known not to need all of it, less
is written:

- partials are merged where they lie, and only what comes of them is gathered (see reduce_scatter);
- of an operand that is brought to many tiles alike, sums of products read the first replica alone.

Results are the same to the bit, and so is all that outlives the superstep that reads it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from itertools import chain

from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.program import Variable, verify_use
from ...ir.symbols import symbols_named
from ...ir.upstream import ModuleOp
from ..codelets.calls import Call, Scratch
from ..codelets.fast_products import Products
from ..codelets.numerics import bind_vertices
from .blocks import Blocks, bind_copy
from .reduce_scatter import bind_reduce_scatter


class Fusion:
    """Finds, superstep by superstep, the operations that go together, and binds them."""

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, Variable],
        blocks: Mapping[str, Blocks],
        scratch: Scratch,
    ) -> None:
        self._variables = variables
        self._blocks = blocks
        self._scratch = scratch
        self._named = Counter(name for op in module.walk() for name in symbols_named(op))
        self._makers: dict[str, list[Call]] = {}

    def calls(self, step: exchange.SuperstepOp) -> dict[Operation, list[Call]]:
        """The calls of operations of a superstep that go together with others, by operation.

        Supersteps are asked for in the order of the program, each once.
        """
        found: dict[Operation, list[Call]] = {}
        moves = {
            op.destination: op for op in step.body.block.ops if isinstance(op, exchange.MoveOp)
        }
        for op in step.body.block.ops:
            if not isinstance(op, exchange.ComputeOp):
                continue
            verify_use(op, self._variables)
            brought = [
                moves[name] for name in op.sources if name in moves and self._is_between(name)
            ]
            for move in brought:
                verify_use(move, self._variables)
            calls = self._merging(op, brought) or self._reading_once(op, brought)
            found.update(calls)
            if op in calls:
                self._makers[op.destination] = calls[op]
        return found

    def made(self, op: exchange.ComputeOp, calls: list[Call]) -> None:
        """Say what writes a variable, of operations that are bound alone."""
        self._makers[op.destination] = calls

    def _is_between(self, name: str) -> bool:
        """Whether a variable is what one operation leaves to another, and nobody else's."""
        return self._named[name] == 2 and self._variables[name].initial is None

    def _merging(
        self, op: exchange.ComputeOp, brought: list[exchange.MoveOp]
    ) -> dict[Operation, list[Call]]:
        """The calls of vertices that merge what is gathered for them, and of that move."""
        for move in brought:
            if op.sources[0] != move.destination or len(move.sources) > 1 or move.spaces:
                continue
            (partials,) = move.sources
            calls = bind_reduce_scatter(
                self._blocks[partials],
                self._blocks[move.destination],
                op.structure(),
                op.plan.data,
                [self._blocks[name].placed for name in op.sources],
                self._blocks[op.destination].placed,
                self._scratch,
                self._makers.get(partials, ()) if self._is_between(partials) else (),
            )
            if calls is not None:
                return {move: calls[0], op: calls[1]}
        return {}

    def _reading_once(
        self, op: exchange.ComputeOp, brought: list[exchange.MoveOp]
    ) -> dict[Operation, list[Call]]:
        """The calls of sums of products whose operands come in one replica, and of these moves."""
        once = [m for m in brought if self._blocks[m.destination].layout.replica_dims]
        if not once:
            return {}
        alike = {op.sources.index(move.destination) for move in once}
        separate, shared = (
            bind_vertices(
                op.structure(),
                op.plan.data,
                [self._blocks[name].placed for name in op.sources],
                self._blocks[op.destination].placed,
                self._scratch,
                alike=which,
            )
            for which in (set[int](), alike)
        )
        # Others may add in an order that depends on what is alike.
        if not all(isinstance(call, Products) for call, _ in chain(separate, shared)):
            return {}
        found: dict[Operation, list[Call]] = {op: shared}
        for move in once:
            sources = [self._blocks[name] for name in move.sources]
            target = self._blocks[move.destination]
            found[move] = bind_copy(
                sources, move.spaces, target, self._scratch, with_replicas=False
            )
        return found
