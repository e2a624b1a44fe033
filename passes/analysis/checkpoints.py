"""PopART's schedule of checkpoints: which values of a forward phase are kept.

Source: popart/src/recompute.cpp (getStandardCheckpoints). The N operations of the forward phase, in
order, are cut into intervals of K, K - 1, ..., 1 operations, with K = 0.75 (sqrt(2 N) - 1), and
then into single operations. In each interval, the values that the rest of the phase needs at the
place where these take the fewest bytes are kept. All others are computed again.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from math import isqrt, prod

from xdsl.ir import Block, Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.phases import FORWARD, Phases
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations

SQRT = "sqrt"
"""The name of the schedule."""

SHARE = 0.75
"""The share of sqrt(2 N) - 1 operations in the first interval. Source: as above."""


def between_checkpoints(module: ModuleOp) -> Iterator[Operation]:
    """The operations of the forward phase whose values the schedule does not keep.

    Each block has a schedule of its own.

    Args:
        module: with groups as single operations.
    """
    phases = Phases.of(module)
    blocks: dict[Block, list[Operation]] = {}
    for op in operations(module):
        if isinstance(op, Structured | Movement) and phases.phase(op) == FORWARD:
            assert op.parent is not None
            blocks.setdefault(op.parent, []).append(op)
    for block, ops in blocks.items():
        yield from _left_out(block, ops)


def _left_out(block: Block, ops: Sequence[Operation]) -> Iterator[Operation]:
    """The operations of one block whose values are not kept."""
    index = {op: i for i, op in enumerate(block.ops)}
    places = [index[op] for op in ops]
    # The backward phase reads nearly all values; what counts is what the rest of this phase needs.
    phase = set(places)
    ends = [max((at for at in _uses(op, index) if at in phase), default=-1) for op in ops]
    sizes = [sum(map(_bytes, op.results)) for op in ops]
    kept: set[int] = set()
    for first, last in _intervals(len(ops)):
        live = {at: [i for i in range(at + 1) if ends[i] > places[at]] for at in range(first, last)}
        best = min(live, key=lambda at: sum(sizes[i] for i in live[at]))
        kept.update(live[best])
    yield from (op for i, op in enumerate(ops) if i not in kept)


def _intervals(count: int) -> Iterator[tuple[int, int]]:
    """The first operation of each interval, and the one behind its last."""
    longest = int(SHARE * (isqrt(2 * count) - 1))
    lengths = [*range(longest, 0, -1)]
    ends = [*accumulate(lengths, initial=0)]
    yield from ((a, b) for a, b in pairwise(ends) if b <= count)
    yield from ((at, at + 1) for at in range(min(ends[-1], count), count))


def _uses(op: Operation, index: dict[Operation, int]) -> Iterator[int]:
    """The index of each operation that reads a result, perhaps through reshapes."""
    for value in op.results:
        for use in value.uses:
            outer: Operation | None = use.operation
            while outer is not None and outer not in index:
                outer = outer.parent_op()
            if outer is not None:
                yield index[outer]
                if isinstance(outer, Reinterpretation):
                    yield from _uses(outer, index)


def _bytes(value: SSAValue) -> int:
    return prod(nn.shape_of(value)) * numpy_dtype(nn.element_of(value)).itemsize
