"""What a machine that nobody watches need not do: bytes that no result depends on.

A variable that one operation writes and one other reads holds, between the two, what the program
says only if somebody looks. Where the operation that reads it is known not to need all of it, less
is written:

- partials are merged where they lie, and only what comes of them is gathered (see reduce_scatter);
- of an operand that is brought to many tiles alike, kernels read the first replica alone.

Such variables lie where the host finds them soonest (see arena). Of what is there from the start
and stays, weights, kernels read the first replica alone, too: where nothing else reads them, the
others are not written.

Results are the same to the bit, and so is all that outlives the superstep that reads it.
"""

from __future__ import annotations

from collections.abc import Mapping

from xdsl.ir import Operation

from ...dialects import exchange
from ...dialects.program import Copy, HostInput, Variable, Vertices, verify_use
from ...ir.upstream import ModuleOp
from ..codelets.calls import Call, Scratch
from ..codelets.numerics import BoundVertices
from ..evaluate.bind import bound_vertices, copy_calls_of
from ..evaluate.blocks import Blocks
from .arena import times_named
from .reduce_scatter import bind_reduce_scatter


class Fusion:
    """Finds, superstep by superstep, the operations that go together, and binds them.

    unseen: the variables that nobody sees, and where they lie (see arena.near). blocks: where all
    variables lie. kept: those with an initial value that nothing writes to nor lies upon. spared:
    those of them of which first replicas alone are needed, once the calls of all supersteps have
    been asked for.
    """

    def __init__(
        self,
        module: ModuleOp,
        variables: Mapping[str, Variable],
        blocks: Mapping[str, Blocks],
        unseen: Mapping[str, Blocks],
        scratch: Scratch,
    ) -> None:
        self._variables = variables
        named = times_named(module)
        self._read_once = {name for name in unseen if named[name] == 2}
        written = {
            op.writes.string_value()
            for op in module.walk()
            if isinstance(op, (Copy, HostInput, Vertices))
        }
        self.kept = {
            name
            for name, variable in variables.items()
            if variable.initial is not None and name not in written and _is_alone(blocks[name])
        }
        self.spared = set(self.kept)
        self.blocks = {**blocks, **unseen}
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
            merging = bind_reduce_scatter(
                move, op, self.blocks, self._scratch, making, self._kept_sources(op)
            )
            if merging is not None:
                moving, bound = merging
                self._note(op, bound)
                return {move: moving, op: bound.calls}
        return {}

    def _reading(
        self, op: exchange.ComputeOp, brought: list[exchange.MoveOp]
    ) -> dict[Operation, list[Call]]:
        """The calls of vertices, and of the moves whose first replicas are all that they read."""
        known = (self._variables, self.blocks, self._scratch)
        moves = {
            op.sources.index(move.destination): move
            for move in brought
            if self.blocks[move.destination].layout.replica_dims
        }
        bound = bound_vertices(op, *known, alike=self._kept_sources(op) | set(moves))
        self._note(op, bound)
        found = {
            move: copy_calls_of(move, *known, with_replicas=False)
            for i, move in moves.items()
            if i in bound.spared
        }
        return {op: bound.calls, **found}

    def _kept_sources(self, op: exchange.ComputeOp) -> set[int]:
        """The operands that nothing writes to once the program runs."""
        return {i for i, name in enumerate(op.sources) if name in self.kept}

    def _note(self, op: exchange.ComputeOp, bound: BoundVertices) -> None:
        """Note which operands need all of their replicas."""
        self.spared -= {name for i, name in enumerate(op.sources) if i not in bound.spared}


def _is_alone(blocks: Blocks) -> bool:
    """Whether no other variable is known to have bytes in common with one."""
    stamp = blocks.placed.stamp
    return stamp is not None and stamp.is_alone
