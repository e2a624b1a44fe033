"""Indices as expressions: they state in Python code where an operator reads and writes.

y, x = nn.dim("y", 16), nn.dim("x", 16) k = nn.dim("k", 3, "reduction") nn.at(image, 2 * y + k - 1,
x)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from ...ir.geometry.space import (
    AccessMap,
    AxisMap,
    Dim,
    Division,
    Kind,
    Position,
    Rule,
    coordinate,
    rule_text,
)
from .base import Shape, axis_map, shape_of

Coefficients = tuple[tuple[Dim, int], ...]
"""The dimensions of an expression, each with its coefficient."""


@dataclass(frozen=True)
class Index:
    """An index along an axis: an affine expression of the dimensions of an iteration space.

    Indices can be added, subtracted, multiplied by integers, and divided: `i // 2` rounds down,
    `i.exactly(2)` names no element where a remainder is left. `i.outside("fill")` sets the rule for
    indices outside the tensor: fill, edge, reflect or wrap, or a `Table` of the elements that the
    indices after the last one stand for. A division must come last, except that a rule may follow
    it. Raises ValueError for an expression that no access map can express.
    """

    terms: Coefficients = ()
    offset: int = 0
    divisor: int = 1
    division: Division = "floor"
    rule: Rule = "none"

    @property
    def dim(self) -> Dim:
        """The dimension that this index consists of. Raises ValueError for any other expression."""
        if self._is_final or self.offset or [c for _, c in self.terms] != [1]:
            raise ValueError(f"index {self}; need a dimension alone")
        return self.terms[0][0]

    @property
    def _is_final(self) -> bool:
        return self.divisor != 1 or self.rule != "none"

    def __add__(self, other: Index | int) -> Index:
        """The sum of two indices."""
        more = _index(other)
        if self._is_final or more._is_final:
            raise ValueError(f"{self} + {more}: a division and a rule come last")
        total: dict[Dim, int] = {}
        for d, coefficient in (*self.terms, *more.terms):
            total[d] = total.get(d, 0) + coefficient
        return Index(tuple((d, c) for d, c in total.items() if c), self.offset + more.offset)

    def __mul__(self, factor: int) -> Index:
        """An index times an integer."""
        if self._is_final:
            raise ValueError(f"{self} * {factor}: a division and a rule come last")
        terms = tuple((d, c * factor) for d, c in self.terms if factor)
        return Index(terms, self.offset * factor)

    __radd__ = __add__
    __rmul__ = __mul__

    def __neg__(self) -> Index:
        """An index times -1."""
        return self * -1

    def __sub__(self, other: Index | int) -> Index:
        """The difference of two indices."""
        return self + -_index(other)

    def __rsub__(self, other: Index | int) -> Index:
        """The difference of two indices."""
        return _index(other) + -self

    def __floordiv__(self, divisor: int) -> Index:
        """An index divided by an integer, rounded down."""
        return self._divided(divisor, "floor")

    def exactly(self, divisor: int) -> Index:
        """An index divided by an integer; no element where that leaves a remainder."""
        return self._divided(divisor, "exact")

    def _divided(self, divisor: int, division: Division) -> Index:
        if self._is_final:
            raise ValueError(f"{self} divided by {divisor}: need one division, before the rule")
        return replace(self, divisor=divisor, division=division)

    def outside(self, rule: Rule) -> Index:
        """The same index, with a rule for where it is outside the tensor."""
        return replace(self, rule=rule)

    def axis(self, size: int, dims: Sequence[Dim]) -> AxisMap:
        """The map of an axis of this size, over these dimensions."""
        number = {d: i for i, d in enumerate(dims)}
        terms = [(number[d], c) for d, c in self.terms]
        return axis_map(
            size,
            dims,
            terms,
            self.offset,
            divisor=self.divisor,
            division=self.division,
            outside=self.rule,
        )

    def coordinate(self, operand: int, dims: Sequence[Dim]) -> Position:
        """The value of this index at each point, as an operand of a body.

        Raises ValueError for a division or a rule.
        """
        if self._is_final:
            raise ValueError(f"coordinate {self}; need an affine expression alone")
        number = {d: i for i, d in enumerate(dims)}
        terms = [(number[d], c) for d, c in self.terms]
        return coordinate(operand, terms, self.offset, [d.size for d in dims])

    def __str__(self) -> str:
        """The expression, in the syntax of printed spaces."""
        parts = [d.name if c == 1 else f"{c} * {d.name}" for d, c in self.terms]
        text = " + ".join([*parts, *([str(self.offset)] if self.offset or not parts else [])])
        text += f" {self.division}div {self.divisor}" if self.divisor != 1 else ""
        return text if self.rule == "none" else f"{text} {rule_text(self.rule)}"


def dim(name: str, size: int, kind: Kind = "parallel") -> Index:
    """A dimension of an iteration space, as an index.

    Args:
        kind: parallel, reduction or whole.
    """
    return Index(((Dim(name, size, kind), 1),))


def _index(given: Index | int) -> Index:
    return given if isinstance(given, Index) else Index((), given)


@dataclass(frozen=True)
class At:
    """An operand, and the indices at which it is read.

    Attributes:
        view: the shape in which the tensor is indexed, row-major; its own shape by default.
        pad: the value of elements that do not exist.
    """

    value: SSAValue
    indices: tuple[Index, ...]
    view: Shape
    pad: float = 0.0

    def access(self, dims: Sequence[Dim]) -> AccessMap:
        """The access map over these dimensions."""
        axes = zip(self.indices, self.view, strict=True)
        return AccessMap(tuple(index.axis(size, dims) for index, size in axes), self.pad)


def at(
    value: SSAValue, *indices: Index | int, view: Sequence[int] | None = None, pad: float = 0.0
) -> At:
    """An operand, read at these indices, one for each axis. See At.

    Raises ValueError if the number of indices differs from the number of axes.
    """
    shape = shape_of(value) if view is None else tuple(view)
    if len(indices) != len(shape):
        raise ValueError(
            f"{len(indices)} indices of a tensor viewed as {list(shape)}; need one for each axis"
        )
    return At(value, tuple(map(_index, indices)), shape, pad)


def dims_of(*groups: Sequence[Index]) -> tuple[Dim, ...]:
    """The dimensions that indices name, in the order in which they appear.

    Raises ValueError if two of them have one name.
    """
    found = dict.fromkeys(d for group in groups for index in group for d, _ in index.terms)
    names = [d.name for d in found]
    for name in names:
        if names.count(name) > 1:
            raise ValueError(f"two dimensions are named {name}")
    return tuple(found)
