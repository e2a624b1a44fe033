"""What a codelet works on: the cells of one shape class, all at once."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.lib.stride_tricks import as_strided

from ...dialects.structured import Body
from .calls import Array


@dataclass(frozen=True)
class Cells:
    """All cells of one shape class, through views with an axis a cut and an axis a dimension.

    body: what happens at each point. operands, result: (parts of the class..., dimensions...), of
    one shape; an array has stride 0 along dimensions that it does not depend on.
    merged: axes of the reduction dimensions.
    """

    body: Body
    operands: tuple[Array, ...]
    result: Array
    merged: tuple[int, ...]

    @property
    def result_once(self) -> Array:
        """The result with one element along the reduction dimensions."""
        shape = [1 if d in self.merged else n for d, n in enumerate(self.result.shape)]
        return as_strided(self.result, shape, self.result.strides)
