"""A program of tensors as steps: spaces, maps and bodies, whose numbers may be polynomials.

The same classes hold a program at the sizes of its types, where each number is a constant, and a
program of any size.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...backends.reference.operation import parts_of
from ...dialects import nn
from ...dialects.structured import Body, Composite, Movement, Reinterpretation, Structured
from ...ir.geometry.space import AccessMap, AxisMap, Division, Rule, Space
from .bodies import Undecided, is_float
from .indices import Poly

Change: TypeAlias = "Callable[[Poly], Poly]"
"""Replaces one number."""


@dataclass(frozen=True)
class Axis:
    """One axis of a map, as AxisMap, whose size and offset may be polynomials."""

    size: Poly
    terms: tuple[tuple[int, int], ...]
    offset: Poly
    divisor: int
    division: Division
    outside: Rule

    def mapped(self, change: Change) -> Axis:
        """The axis with a function applied to its numbers."""
        return replace(self, size=change(self.size), offset=change(self.offset))


@dataclass(frozen=True)
class View:
    """The addressing of a tensor, as AccessMap."""

    axes: tuple[Axis, ...]
    fill: float

    @property
    def shape(self) -> tuple[Poly, ...]:
        """The viewed shape."""
        return tuple(axis.size for axis in self.axes)

    def mapped(self, change: Change) -> View:
        """The view with a function applied to its numbers."""
        return replace(self, axes=tuple(each.mapped(change) for each in self.axes))


@dataclass(frozen=True)
class Coordinate:
    """A number that the body reads from the place of a point: start + coefficient * dimension."""

    operand: int
    terms: tuple[tuple[int, int], ...]
    start: Poly

    def mapped(self, change: Change) -> Coordinate:
        """The coordinate with a function applied to its number."""
        return replace(self, start=change(self.start))


@dataclass(frozen=True)
class Points:
    """A space, as Space, whose sizes may be polynomials."""

    sizes: tuple[Poly, ...]
    operands: tuple[View, ...]
    result: View
    coordinates: tuple[Coordinate, ...] = ()

    def mapped(self, change: Change) -> Points:
        """The space with a function applied to its numbers."""
        return Points(
            tuple(map(change, self.sizes)),
            tuple(each.mapped(change) for each in self.operands),
            self.result.mapped(change),
            tuple(each.mapped(change) for each in self.coordinates),
        )


Kind: TypeAlias = Literal["leaf", "constant", "computed", "moved", "reshaped"]


@dataclass(frozen=True)
class Step:
    """One tensor of a program.

    Attributes:
        kind: leaf: nothing computes it. constant: all its elements are `value`.
        name: of the leaf or the operation.
        operands: the numbers of the steps that it reads.
        spaces: one for a step that computes, and one per operand for a step that moves.
    """

    kind: Kind
    name: str
    operands: tuple[int, ...]
    shape: tuple[Poly, ...]
    dtype: str
    spaces: tuple[Points, ...] = ()
    body: Body | None = None
    value: float = 0.0

    def mapped(self, change: Change) -> Step:
        """The step with a function applied to its numbers."""
        return replace(
            self,
            shape=tuple(map(change, self.shape)),
            spaces=tuple(each.mapped(change) for each in self.spaces),
        )


@dataclass(frozen=True)
class Steps:
    """Both sides of a rule as one list of steps.

    Attributes:
        left, right: the numbers of the steps that are the results of each side.
    """

    steps: tuple[Step, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    def mapped(self, change: Change) -> Steps:
        """The steps with a function applied to every number, in a fixed order."""
        return replace(self, steps=tuple(each.mapped(change) for each in self.steps))

    def numbers(self) -> list[Poly]:
        """Every number, in the order of `mapped`."""
        found: list[Poly] = []
        self.mapped(lambda number: (found.append(number), number)[1])
        return found

    def skeleton(self) -> Steps:
        """The steps without their numbers."""
        nothing = Poly()
        return self.mapped(lambda _: nothing)

    def with_numbers(self, numbers: Sequence[Poly]) -> Steps:
        """The steps with other numbers, in the order of `mapped`."""
        rest: Iterator[Poly] = iter(numbers)
        return self.mapped(lambda _: next(rest))

    def normal(self) -> Steps:
        """The steps, of constant numbers, without what the numbers make meaningless.

        Dimensions of one point have no terms, and no rule says what an index means that no point
        reaches.
        """
        return replace(self, steps=tuple(map(_normal_step, self.steps)))


def _normal_step(step: Step) -> Step:
    return replace(step, spaces=tuple(map(_normal_points, step.spaces)))


def _normal_points(points: Points) -> Points:
    sizes = [each.constant or 0 for each in points.sizes]

    def terms_of(terms: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
        return tuple((d, c) for d, c in terms if sizes[d] != 1)

    def axis(each: Axis) -> Axis:
        kept, offset, size = terms_of(each.terms), each.offset.constant, each.size.constant
        assert offset is not None
        assert size is not None
        low = offset + sum(min(c * (sizes[d] - 1), 0) for d, c in kept)
        high = offset + sum(max(c * (sizes[d] - 1), 0) for d, c in kept)
        plain = low >= 0 and high // each.divisor < size and each.division != "exact"
        return replace(each, terms=kept, outside="none" if plain else each.outside)

    def view(each: View) -> View:
        axes = tuple(map(axis, each.axes))
        # A fill that is never read says nothing.
        filled = any(each.outside == "fill" or each.division == "exact" for each in axes)
        return View(axes, each.fill if filled else 0.0)

    return Points(
        points.sizes,
        tuple(map(view, points.operands)),
        view(points.result),
        tuple(replace(each, terms=terms_of(each.terms)) for each in points.coordinates),
    )


# From operations


def _axis(axis: AxisMap) -> Axis:
    return Axis(
        Poly.of(axis.size),
        axis.terms,
        Poly.of(axis.offset),
        axis.divisor,
        axis.division,
        axis.outside,
    )


def _view(access: AccessMap) -> View:
    return View(tuple(map(_axis, access.axes)), access.fill)


def _points(space: Space) -> Points:
    coordinates: list[Coordinate] = []
    for each in space.coordinates:
        (axis,) = each.access.axes
        start = Poly.of(axis.offset + each.first)
        coordinates.append(Coordinate(each.operand, axis.terms, start))
    return Points(
        tuple(map(Poly.of, space.sizes)),
        tuple(map(_view, space.operands)),
        _view(space.results[0]),
        tuple(coordinates),
    )


@dataclass
class Reader:
    """Reads operations as steps. Raises Undecided for operations without a meaning.

    Attributes:
        names: the names of the values that nothing computes.
    """

    names: Mapping[SSAValue, str]
    steps: list[Step] = field(default_factory=list[Step])
    _known: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])

    def of(self, value: SSAValue) -> int:
        """The number of the step that is a value."""
        if value not in self._known:
            if value in self.names:
                self._known[value] = self._add("leaf", self.names[value], (), value)
            elif isinstance(value.owner, Block):
                raise Undecided("a value comes from outside the pattern")
            else:
                self._operation(value.owner)
        return self._known[value]

    def _add(
        self, kind: Kind, name: str, operands: tuple[int, ...], made: SSAValue, **more: Any
    ) -> int:
        shape, dtype = shape_and_dtype(made)
        sizes = tuple(map(Poly.of, shape))
        self.steps.append(Step(kind, name, operands, sizes, dtype, **more))
        return len(self.steps) - 1

    def _operation(self, op: Operation) -> None:
        for kind, read in _READERS.items():
            if isinstance(op, kind):
                read(self, op)
                return
        raise Undecided(f"{op.name} has no space, no moves and no parts")

    def constant(self, op: Operation) -> None:
        """Read a constant."""
        assert isinstance(op, nn.ConstantOp)
        array = op.value.array
        bits = np.ascontiguousarray(array).reshape(-1).view(f"V{array.itemsize}")
        if not array.size or not bool(np.all(bits == bits[0])):
            raise Undecided("the elements of a constant differ")
        as_kind = float if is_float(shape_and_dtype(op.result)[1]) else int
        value = as_kind(array.reshape(-1)[0])
        self._known[op.result] = self._add("constant", op.name, (), op.result, value=value)

    def computed(self, op: Operation) -> None:
        """Read an operation with a space and a body."""
        assert isinstance(op, Structured)
        structure = op.structure()
        space, body = structure.space, structure.body
        if body.along is not None or body.member_kinds:
            what = body.along.name if body.along is not None else body.combiner
            raise Undecided(f"{op.name} computes {what}, which is no sum and no extreme")
        if space.relations or body.updates or body.combiner in ("pick", "last"):
            raise Undecided(f"{op.name} reads where an operand of indices says")
        operands = tuple(map(self.of, op.operands))
        result = op.results[0]
        self._known[result] = self._add(
            "computed", op.name, operands, result, spaces=(_points(space),), body=body
        )

    def moved(self, op: Operation) -> None:
        """Read an operation that moves elements."""
        assert isinstance(op, Movement)
        spaces = tuple(map(_points, op.moves()))
        operands = tuple(map(self.of, op.operands))
        result = op.results[0]
        self._known[result] = self._add("moved", op.name, operands, result, spaces=spaces)

    def reshaped(self, op: Operation) -> None:
        """Read an operation that only changes the shape."""
        result = op.results[0]
        self._known[result] = self._add("reshaped", op.name, (self.of(op.operands[0]),), result)

    def composed(self, op: Operation) -> None:
        """Read the parts of an operation."""
        block, arguments = parts_of(op)
        for arg, i in zip(block.args, arguments, strict=True):
            self._known[arg] = self.of(op.operands[i])
        end = block.last_op
        assert end is not None
        for result, value in zip(op.results, end.operands, strict=True):
            self._known[result] = self.of(value)


_READERS: dict[type[Any], Callable[[Reader, Operation], None]] = {
    nn.ConstantOp: Reader.constant,
    Structured: Reader.computed,
    Movement: Reader.moved,
    Reinterpretation: Reader.reshaped,
    Composite: Reader.composed,
}
"""How an operation is read, by its kind."""
READABLE = tuple(_READERS)
"""The kinds of operations that can be read."""


def shape_and_dtype(value: SSAValue) -> tuple[tuple[int, ...], str]:
    """The sizes and the element type of a tensor."""
    if not isinstance(value.type, TensorType):
        raise Undecided(f"a value of type {value.type} is no tensor")
    type_ = cast("TensorType[Attribute]", value.type)
    return tuple(type_.get_shape()), str(type_.element_type)


def read_steps(
    left: Sequence[SSAValue], right: Sequence[SSAValue], names: Mapping[SSAValue, str]
) -> Steps:
    """Both sides of a rule as steps. Raises Undecided.

    Args:
        names: the names of the values that both sides read.
    """
    reader = Reader(names)
    first = tuple(map(reader.of, left))
    second = tuple(map(reader.of, right))
    return Steps(tuple(reader.steps), first, second)
