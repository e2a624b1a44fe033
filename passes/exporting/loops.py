"""Loops over elements, and a program of another dialect that runs them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.along import Along
from ...dialects.dtypes import numpy_dtype
from ...ir.conversion import Patterns
from ...ir.refusals import ThoroughConversion
from .reads import Shapes, Shown, Terms
from .terms import Algebra, Term


@dataclass(frozen=True)
class Counted:
    """A number that a point has by itself: a sum of multiples of loops, and an offset."""

    terms: Terms
    offset: int
    element: Attribute


Read = Shown | Counted
"""What a point reads."""

Compute = Callable[[Algebra, Sequence[Term]], Term]
"""A function of what a point reads."""


@dataclass(frozen=True)
class Loops:
    """Loops over elements, as each dialect runs them.

    Attributes:
        sizes: the number of iterations of each loop.
        reads: what a point reads.
        compute: the value of a point.
        results: the loops that are the axes of the result; the others are merged.
        element: the type of the result's elements in nn.
        combiner: merges points: sum, prod, max, min or last; None if no loop is merged.
        begins: the elements that merging begins with, of the result's type; None for the combiner's
            identity.
    """

    sizes: tuple[int, ...]
    reads: tuple[Read, ...]
    compute: Compute
    results: tuple[int, ...]
    element: Attribute
    combiner: str | None = None
    begins: SSAValue | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result."""
        return tuple(self.sizes[d] for d in self.results)


@dataclass(frozen=True)
class Gathered:
    """Rows of a table, which an operand of indices names.

    Attributes:
        table: read along loops, of which `row` is none of the result's.
        index: counted from the front or the back.
        from_front: whether all indices are counted from the front.
    """

    sizes: tuple[int, ...]
    table: Shown
    row: int
    index: Shown
    results: tuple[int, ...]
    from_front: bool

    def counted(self, to: Algebra, index: Term) -> Term:
        """An index, counted from the front, as an integer of at least 32 bits."""
        narrow = numpy_dtype(index.element).itemsize < 4
        wide = to.cast(index, i64) if narrow else index
        if self.from_front:
            return wide
        behind = to.primitive("add", wide, to.like(self.sizes[self.row], wide))
        return to.select(to.compare("less", wide, to.like(0, wide)), behind, wide)


class Export(ThoroughConversion, Shapes):
    """A program in another dialect, while it is made.

    Attributes:
        values: the new value of each old one.
        emitted: the value of each operation that was added, by block and what it computes.
    """

    def __init__(self, patterns: Patterns[Any], to: str) -> None:
        super().__init__(patterns, to)
        self.values: dict[SSAValue, SSAValue] = {}
        self.emitted: dict[tuple[object, ...], SSAValue] = {}

    @abstractmethod
    def loops(self, loops: Loops) -> SSAValue:
        """The result of loops."""

    @abstractmethod
    def gathered(self, rows: Gathered) -> SSAValue | None:
        """The rows of a table; None if the dialect has no such operation for these axes."""

    def product(self, left: Shown, right: Shown, loops: Loops) -> SSAValue | None:
        """The sums of products of two operands; None if the dialect has no operation for them."""
        return None

    def windows(self, shown: Shown, loops: Loops) -> SSAValue | None:
        """What is left of windows that are merged; None if the dialect has no operation for it."""
        return None

    @abstractmethod
    def running(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A scan along an axis of more than one element."""

    @abstractmethod
    def ordered(self, value: SSAValue, element: Attribute, axis: int, along: Along) -> SSAValue:
        """A sort along an axis of more than one element: the elements, or their indices as i32."""

    def emit(self, op: Operation) -> SSAValue:
        """Add an operation without effects, and return its first result.

        If an equal one is in the block already, its result is returned instead.
        """
        if op.regions:
            return self.add(op, op.name.rpartition(".")[2]).results[0]
        assert not op.attributes, "two operations may differ in these"
        parts = op.name, tuple(op.operands), frozenset(op.properties.items()), op.results[0].type
        key = self.block, *parts
        if key in self.emitted:
            op.erase()
        else:
            self.emitted[key] = self.add(op, op.name.rpartition(".")[2]).results[0]
        return self.emitted[key]
