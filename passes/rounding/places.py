"""The place of each element of a tensor, as two whole numbers that float32 holds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from operator import mul

from xdsl.dialects.builtin import f32
from xdsl.ir import Block, SSAValue

from ...dialects import nn
from ...ir.edit import Edit
from ...ir.provenance import named
from ...ir.upstream import InsertPoint

MOST_COLUMNS = 1 << 24
"""The whole numbers from 0 that float32 holds without a gap."""

Place = tuple[SSAValue, SSAValue]


@dataclass
class Places:
    """The places of the elements of tensors, computed once for each shape in a block.

    They are tensors that a plan reads as coordinates, so that nothing stores them.
    """

    found: dict[tuple[Block, tuple[int, ...]], Place] = field(
        default_factory=dict[tuple[Block, tuple[int, ...]], Place]
    )

    def of(self, block: Block, shape: Sequence[int], edit: Edit) -> Place:
        """The column and the row of each element of a shape.

        The last axes are numbered in row-major order, as many as float32 can count: that is the
        column. The row numbers the others.
        """
        key = block, tuple(shape)
        if key not in self.found:
            column, row = place_steps(shape)
            self.found[key] = (
                _counted(block, shape, column, edit),
                _counted(block, shape, row, edit),
            )
        return self.found[key]


def place_steps(shape: Sequence[int]) -> tuple[list[int], list[int]]:
    """What one more along each axis adds to the column, and what it adds to the row."""
    sizes = list(accumulate(reversed(shape), mul, initial=1))
    last = sum(size <= MOST_COLUMNS for size in sizes[1:])
    first = len(shape) - last
    column = [*reversed(sizes[:-1])][first:]
    row = [*accumulate(reversed(shape[1:first]), mul, initial=1)][::-1] if first else []
    return [0] * first + column, row + [0] * last


def _counted(block: Block, shape: Sequence[int], steps: Sequence[int], edit: Edit) -> SSAValue:
    made = nn.IotaOp(nn.tensor(shape, f32), steps)
    made.location = named("rounding")
    first = block.first_op
    assert first is not None
    edit.insert(made, InsertPoint.before(first))
    return made.result
