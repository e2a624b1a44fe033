"""The arguments of a codelet: the cells of one shape class, all at once."""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.structured import Body
from ...ir.support.strided import as_strided
from .calls import Array
from .stamps import Stamp


@dataclass(frozen=True)
class SumWords:
    """A stochastic rounding of what cells merge, and what its random words are made of.

    Attributes:
        parameters: the key, and the type to which sums are rounded, as for the scalar function.
        numbers: the column, the row, and two words of the step, as views of the cells' shape.
    """

    parameters: tuple[float, ...]
    numbers: tuple[Array, ...]


@dataclass(frozen=True)
class Cells:
    """All cells of one shape class, as views with one axis per cut and one per dimension.

    Attributes:
        body: the computation at each point.
        operands: those of the body, then those of its chain.
        operands, result: (parts of the class..., dimensions...), all of one shape; an array has
            stride 0 along dimensions that it does not depend on.
        merged: the axes of the reduction dimensions.
        stamps: the stamps of the operands' variables, where they are known.
        relations: for each relation of the space, the index that each point reaches, of the shape
            of the views.
        axis_sizes: for each relation, the size of the axis of its index.
        whole: the axis of the dimension that a scan or sort goes along, else -1.
        further: the results after the first.
        positions: for each position that the body reads, its value at each point.
        order: the dimensions of the space, in the order of the views' last axes.
        words: the rounding of narrow sums, or of updated elements; None if it is to nearest.
    """

    body: Body
    operands: tuple[Array, ...]
    result: Array
    merged: tuple[int, ...]
    stamps: tuple[Stamp | None, ...] = ()
    relations: tuple[Array, ...] = ()
    axis_sizes: tuple[int, ...] = ()
    whole: int = -1
    further: tuple[Array, ...] = ()
    positions: tuple[Array, ...] = ()
    order: tuple[int, ...] = ()
    words: SumWords | None = None

    @property
    def results(self) -> tuple[Array, ...]:
        """All results."""
        return (self.result, *self.further)

    @property
    def own_operands(self) -> int:
        """Number of operands without those of the chain."""
        return self.body.function_arity + len(self.relations) + self.body.begun_with

    @property
    def result_once(self) -> Array:
        """The result with one element along the reduction dimensions."""
        return self.once(self.result)

    def once(self, array: Array) -> Array:
        """An array that does not depend on the reduction dimensions, cut to one element along each
        of them.
        """
        shape = [1 if d in self.merged else n for d, n in enumerate(array.shape)]
        return as_strided(array, shape, array.strides)
