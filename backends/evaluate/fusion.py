"""What a machine that nobody watches need not do: bytes that no result depends on.

A variable that one operation writes and one other reads holds, between the two, what the program
says only if somebody looks. Where the operation that reads it is known not to need all of it, less
is written:

- partials are merged where they lie, and only what comes of them is gathered (see reduce_scatter);
- of an operand that is brought to many tiles alike, sums of products read the first replica alone.

Such variables lie where the host finds them soonest (see arena).

Results are the same to the bit, and so is all that outlives the superstep that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.program import Variable, verify_use
from ...ir.upstream import ModuleOp
from ..codelets.calls import Call, Scratch
from ..codelets.fast_products import Products
from .arena import near, times_named
from .bind import copy_calls_of, vertices_calls_of
from .blocks import Blocks
from .reduce_scatter import bind_reduce_scatter


class Fusion:
    """Finds, superstep by superstep, the operations that go together, and binds them.

    unseen: the variables that nobody sees, and where they lie. blocks: where all variables lie.
    """

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, Variable],
        blocks: Mapping[str, Blocks],
        scratch: Scratch,
    ) -> None:
        self._variables = variables
        self.unseen = near(module, variables, blocks)
        named = times_named(module)
        self._read_once = {name for name in self.unseen if named[name] == 2}
        self.blocks = {**blocks, **self.unseen}
        self._scratch = scratch
        self._makers: dict[str, list[Call]] = {}

    def calls(self, step: exchange.SuperstepOp) -> dict[Operation, list[Call]]:
        """The calls of a superstep's vertices, and of moves that depend on who reads what they
        bring, by operation.

        Supersteps are asked for in the order of the program, each once.
        Raises VerifyException for an operation that does not suit its variables.
        """
        found: dict[Operation, list[Call]] = {}
        ops = list(step.body.block.ops)
        moves = {op.destination: op for op in ops if isinstance(op, exchange.MoveOp)}
        for op in ops:
            if isinstance(op, exchange.ComputeOp):
                brought = [moves[n] for n in op.sources if n in moves and n in self._read_once]
                found.update(self._merging(op, brought) or self._reading(op, brought))
                self._makers[op.destination] = found[op]
        return found

    def _merging(
        self, op: exchange.ComputeOp, brought: list[exchange.MoveOp]
    ) -> dict[Operation, list[Call]]:
        """The calls of vertices that merge what is gathered for them, and of that move."""
        for move in brought:
            if op.sources[0] != move.destination or len(move.sources) > 1 or move.spaces:
                continue
            verify_use(move, self._variables)
            verify_use(op, self._variables)
            (partials,) = move.sources
            making = self._makers.get(partials, ()) if partials in self._read_once else ()
            calls = bind_reduce_scatter(move, op, self.blocks, self._scratch, making)
            if calls is not None:
                return {move: calls[0], op: calls[1]}
        return {}

    def _reading(
        self, op: exchange.ComputeOp, brought: list[exchange.MoveOp]
    ) -> dict[Operation, list[Call]]:
        """The calls of vertices, and of the moves whose first replicas are all that they read."""
        known = (self._variables, self.blocks, self._scratch)
        separate = vertices_calls_of(op, *known)
        once = [m for m in brought if self.blocks[m.destination].layout.replica_dims]
        if not once or not _are_products(separate):
            return {op: separate}
        shared = vertices_calls_of(
            op, *known, alike={op.sources.index(move.destination) for move in once}
        )
        if not _are_products(shared):
            return {op: separate}
        moves = {move: copy_calls_of(move, *known, with_replicas=False) for move in once}
        return {op: shared, **moves}


def _are_products(calls: list[Call]) -> bool:
    """Whether all are compiled sums of products, which add in the same order whatever they share.

    Others may add in an order that depends on what is alike.
    """
    return all(isinstance(call, Products) for call, _ in calls)
