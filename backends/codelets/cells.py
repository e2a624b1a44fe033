"""What a codelet works on: the cells of one shape class, all at once."""

from __future__ import annotations

from dataclasses import dataclass

from numpy.lib.stride_tricks import as_strided

from ...dialects.structured import Body
from .calls import Array
from .fast import Stamp


@dataclass(frozen=True)
class Cells:
    """All cells of one shape class, through views with an axis a cut and an axis a dimension.

    body: what happens at each point. operands, those of the chain last, and result: (parts of the
    class..., dimensions...), of one shape; an array has stride 0 along dimensions that it does not
    depend on. merged: axes of the reduction dimensions. shared: the operands with stride 0 also
    where a cut only makes replicas of them. stamps: of the operands' variables, where known.
    """

    body: Body
    operands: tuple[Array, ...]
    result: Array
    merged: tuple[int, ...]
    shared: tuple[Array, ...] = ()
    stamps: tuple[Stamp | None, ...] = ()

    @property
    def result_once(self) -> Array:
        """The result with one element along the reduction dimensions."""
        return self.once(self.result)

    def once(self, array: Array) -> Array:
        """One element along the reduction dimensions of an array that does not depend on them."""
        shape = [1 if d in self.merged else n for d, n in enumerate(array.shape)]
        return as_strided(array, shape, array.strides)
