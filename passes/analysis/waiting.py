"""The waits of the values of a block: long times between two of their reads.

%a defined, read, read      the first stay: from here on %a waits ...
 :
%a read, read               ... until here, where the second stay begins
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import Block, Operation, SSAValue, Use

from ...dialects import nn
from ...dialects.structured import Reinterpretation
from ...ir.xdsl.around import in_block

TIMELESS = (nn.LoadOp, nn.ConstantOp, Reinterpretation)
"""Operations that compute nothing. They take no time."""

LONG_WAIT_DIVISOR = 2
"""A wait is long if it is at least the longest wait of its value, divided by this.

A value that every layer reads, such as a mask, waits about equally long in each of them. If only
the longest wait ended, the other layers would stay as full. Chosen by trial, as bytes of the
fullest tile and cycles after `recompute`. The mask of a transformer of four layers on tiny:32: with
1, 143,616 bytes and 836,284 cycles; with 2, 143,104 and 837,812; with 4, the same. Every tanh of a
training step of eight convolutions on tiny:16: with 1, 63,744 and 972,967; with 2, 60,224 and
1,055,649; with 4, 40,000 and 1,354,995, because values are then also computed again for readers
close by.
"""


@dataclass(frozen=True)
class Reader:
    """A use of a value or of a reshape of it.

    Attributes:
        at: the index, in the block, of the operation that reads it or contains the reading
            operation.
    """

    use: Use
    at: int


@dataclass(frozen=True, eq=False)
class Moments:
    """The operations of a block in order, and the time at which each runs.

    Attributes:
        ops: the operations when this object was made.
        times: for each operation, the number of earlier operations of the block that compute
            something, (ops,); nested operations do not count.
        index: the index of each operation in ops; an operation inserted later has the index of the
            operation with which it runs.
    """

    block: Block
    ops: tuple[Operation, ...]
    times: tuple[int, ...]
    index: dict[Operation, int]

    def readers(self, value: SSAValue) -> Iterator[Reader]:
        """The readers of a value itself, in no particular order; reshapes are not readers."""
        for use in value.uses:
            outer = in_block(use.operation, self.block)
            if outer is not None and not self._reshapes(use.operation):
                yield Reader(use, self.index[outer])

    def readers_in_any_shape(self, value: SSAValue) -> Iterator[Reader]:
        """The readers of a value and of its reshapes, in no particular order."""
        yield from self.readers(value)
        for use in value.uses:
            if self._reshapes(use.operation):
                yield from self.readers_in_any_shape(use.operation.results[0])

    def _reshapes(self, op: Operation) -> bool:
        return isinstance(op, Reinterpretation) and op.parent is self.block

    def stays(
        self, readers: Iterable[Reader], hasty: Collection[Operation] = ()
    ) -> list[list[Reader]]:
        """The readers of one value in order, cut at each long wait.

        A wait is long if something is computed meanwhile and it is at least half as long as the
        longest.

        Args:
            hasty: readers before which the first stay also ends after a shorter wait.
        """
        ordered = sorted(readers, key=lambda each: each.at)
        ends = self.ends([r.at for r in ordered], [r.use.operation in hasty for r in ordered])
        return [ordered[a:b] for a, b in pairwise((0, *ends))]

    def ends(self, at: Sequence[int], hasty: Sequence[bool]) -> list[int]:
        """The number of readers up to the end of each stay of a value; [0] without readers.

        Args:
            at: the index of each reader, in order.
            hasty: whether the first stay also ends before that reader after a shorter wait.
        """
        waits = [self.times[b] - self.times[a] for a, b in pairwise(at)]
        longest = max(waits, default=0)
        found: list[int] = []
        for i, wait in enumerate(waits, 1):
            ends = not found and hasty[i]
            if wait > 1 and (ends or LONG_WAIT_DIVISOR * wait >= longest):
                found.append(i)
        return [*found, len(at)]


def moments(block: Block) -> Moments:
    """The moments of a block as it is now."""
    ops = tuple(block.ops)
    return Moments(block, ops, tuple(_times(ops)), {op: i for i, op in enumerate(ops)})


def _times(ops: Sequence[Operation]) -> Iterator[int]:
    time = 0
    for op in ops:
        yield time
        time += not isinstance(op, TIMELESS)
