"""A block of a program of stablehlo, to which random operations are added."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any, TypeAlias, TypeVar

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    TensorType,
    bf16,
    f16,
    f32,
    f64,
    i1,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from .....dialects import nn, stablehlo
from .....dialects.chlo import CHLO
from .....dialects.dense import dense_of_array
from .....dialects.dtypes import ELEMENTS, STORED, element_type, numpy_dtype
from .....ir.provenance import named
from .....ir.support.number_kinds import is_floating
from .....ir.upstream import isa
from ....driver.arrays import Array
from ..sketch import Data
from ..values import values_of

T = TypeVar("T")

Kinds: TypeAlias = "tuple[Attribute, ...]"
"""Element types to choose from. One that is listed twice is drawn twice as often."""

Properties: TypeAlias = Mapping[str, Attribute]

_NARROW = tuple(each for each in ELEMENTS if each in STORED)
_HAS_NO_ZERO = np.dtype("float8_e8m0fnu")

NARROW_FLOATS: Kinds = tuple(
    each for each in _NARROW if is_floating(numpy_dtype(each)) and numpy_dtype(each) != _HAS_NO_ZERO
)
"""Floats of 8 bits and fewer, which tiles only store. The one that has no zero is no number that
functions of elements compute with."""

NARROW_INTEGERS: Kinds = tuple(each for each in _NARROW if not is_floating(numpy_dtype(each)))
"""Integers of fewer than 8 bits."""


def _unsigned(bits: int) -> Attribute:
    return element_type(np.dtype(f"u{bits // 8}"))


WIDE_FLOATS: Kinds = (*[f32] * 8, f16, f16, bf16, f64)
INTEGERS: Kinds = (*[i32] * 4, _unsigned(32), i8, _unsigned(8), i16, i64, _unsigned(64))
FLOATS: Kinds = (*WIDE_FLOATS * 2, *NARROW_FLOATS)
SIGNED: Kinds = (*FLOATS, *[i32] * 6, i8, i16, i64)
NUMBERS: Kinds = (*FLOATS, *INTEGERS, *NARROW_INTEGERS)
TRUTHS: Kinds = (i1,)
ALL: Kinds = (*NUMBERS, i1, i1, i1)
INDICES: Kinds = (i32, i32, i32, i64, i8, _unsigned(32))
"""The element types of the operands of operations."""

CLASSES: Mapping[str, type[Operation]] = {
    op.name: op for op in (*stablehlo.STABLEHLO.operations, *CHLO.operations, func.CallOp)
}
"""The operations of the level, by name."""

SHARED, ADAPTED = 0.75, 0.5
"""How often an operand is an existing value of its type, and how often it is made of an existing
value of another type."""

TWICE = 0.1
"""How often an operation reads one value as both of two operands."""

CONSTANT = 0.15
"""How often an operand that no existing value becomes is a constant."""

MOST_ELEMENTS = 256
"""The most elements of a value."""

LATEST = 4
"""How many of the latest values are chosen from, most of the time."""


@dataclass
class Shared:
    """What all blocks of a program share.

    Attributes:
        sizes: the sizes of axes. There are few, so that shapes meet.
        add_any: adds any operation to a block.
        functions: besides @main.
        states: what the program keeps between runs, by name.
        stored: the names of the states that the program stores a value in.
    """

    random: Random
    sizes: tuple[int, ...]
    data: Data
    add_any: Callable[[Draft], None]
    functions: list[func.FuncOp] = field(default_factory=list[func.FuncOp])
    states: dict[str, nn.StateOp] = field(default_factory=dict[str, "nn.StateOp"])
    stored: set[str] = field(default_factory=set[str])
    made: int = 0


class Draft:
    """A block that is drawn.

    Attributes:
        values: the values that operations may read.
        depth: the number of regions around the block.
    """

    def __init__(
        self,
        shared: Shared,
        block: Block,
        values: Sequence[SSAValue] = (),
        depth: int = 0,
        argument: Callable[[Attribute], SSAValue] | None = None,
        most_axes: int = 3,
    ) -> None:
        """Begin with a block.

        Args:
            most_axes: of a new value.
            argument: adds an argument of a type to @main; None if the block cannot read such
                arguments.
        """
        self.shared = shared
        self.block = block
        self.values = [*values, *block.args]
        self.depth = depth
        self.argument = argument
        self.most_axes = most_axes
        self.random = shared.random

    # Choosing

    def chance(self, share: float) -> bool:
        """True as often as that."""
        return self.random.random() < share

    def choice(self, some: Sequence[T]) -> T:
        """One of several."""
        return self.random.choice(some)

    def some(self, count: int, least: int = 0) -> list[int]:
        """Some of the numbers below a count, in order."""
        return sorted(
            self.random.sample(range(count), self.random.randint(min(least, count), count))
        )

    def shape(self, least: int = 0, most: int = 3) -> tuple[int, ...]:
        """A new shape."""
        axes = min(self.random.randint(least, most), self.most_axes)
        found = [self.choice(self.shared.sizes) for _ in range(axes)]
        while prod(found) > MOST_ELEMENTS:
            found[found.index(max(found))] = 2
        return tuple(found)

    # Values

    def array(self, shape: Sequence[int], element: Attribute) -> Array:
        """The elements of a new constant."""
        seed = self.random.randrange(1 << 16)
        return values_of(tuple(shape), numpy_dtype(element), seed, self.shared.data)

    def constant(self, array: Any, element: Attribute) -> SSAValue:
        """A constant that no other operation reads by chance."""
        found = np.asarray(array).astype(numpy_dtype(element))
        return self.put(stablehlo.ConstantOp(found))[0]

    def new(self, type_: Attribute) -> SSAValue:
        """A new value of a type: an argument of @main, or a constant."""
        if self.argument is not None and not self.chance(CONSTANT):
            found = self.argument(type_)
        else:
            found = self.put(stablehlo.ConstantOp(self.array(*kind_of(type_))))[0]
        self.values.append(found)
        return found

    def value(self, kinds: Sequence[Attribute], least: int = 0, most: int = 3) -> SSAValue:
        """A value whose elements have one of the types, with so many axes.

        The latest values are likelier, so that operations follow one another.
        """
        fits = [v for v in self.values if least <= len(nn.shape_of(v)) <= most]
        typed = [v for v in fits if nn.element_of(v) in kinds]
        if typed and self.chance(SHARED):
            return self.choice(typed[-LATEST:] if self.chance(SHARED) else typed)
        element = self.choice(kinds)
        if fits and self.chance(ADAPTED):
            return self.converted(self.choice(fits[-LATEST:]), element)
        return self.new(nn.tensor(self.shape(least, most), element))

    def another(self, value: SSAValue) -> SSAValue:
        """A value of the same type, to be read beside the given one. It is seldom the same value,
        because mistakes in functions of two values seldom show there: a - a is 0."""
        if self.chance(TWICE):
            return value
        return self.of(nn.shape_of(value), nn.element_of(value), besides=value)

    def of(
        self, shape: Sequence[int], element: Attribute, besides: SSAValue | None = None
    ) -> SSAValue:
        """A value of a type.

        Args:
            besides: a value that it is not.
        """
        type_ = nn.tensor(shape, element)
        others = [v for v in self.values if v is not besides]
        alike = [v for v in others if v.type == type_]
        if alike and self.chance(SHARED):
            return self.choice(alike[-LATEST:])
        made = self._adapted(others, tuple(shape), element) if self.chance(ADAPTED) else None
        return self.new(type_) if made is None else made

    def _adapted(
        self, values: Sequence[SSAValue], shape: tuple[int, ...], element: Attribute
    ) -> SSAValue | None:
        """One of some values in another type; None if no value becomes it."""
        some = [
            v
            for v in values
            if nn.shape_of(v) == shape
            or (nn.element_of(v) == element and prod(nn.shape_of(v)) in (1, prod(shape)))
        ]
        if not some:
            return None
        found = self.choice(some[-LATEST:])
        if nn.shape_of(found) == shape:
            return self.converted(found, element)
        type_ = nn.tensor(shape, element)
        if prod(nn.shape_of(found)) == prod(shape):
            return self.add("stablehlo.reshape", [found], [type_])[0]
        if nn.shape_of(found):
            found = self.add("stablehlo.reshape", [found], [nn.tensor((), element)])[0]
        axes = {"broadcast_dimensions": integers([])}
        return self.add("stablehlo.broadcast_in_dim", [found], [type_], axes)[0]

    def numbers(self, value: SSAValue) -> SSAValue:
        """A value with 0 in place of NaN, which has no place in an order."""
        if not is_floating(numpy_dtype(nn.element_of(value))) or self.shared.data != "special":
            return value
        truth = nn.tensor(nn.shape_of(value), i1)
        how = {"comparison_direction": stablehlo.ComparisonDirectionAttr("EQ")}
        there = self.add("stablehlo.compare", [value, value], [truth], how)[0]
        zeros = self.constant(np.zeros(nn.shape_of(value)), nn.element_of(value))
        return self.add("stablehlo.select", [there, value, zeros], [value.type])[0]

    def converted(self, value: SSAValue, element: Attribute) -> SSAValue:
        """A value with elements of another type."""
        if nn.element_of(value) == element:
            return value
        type_ = nn.tensor(nn.shape_of(value), element)
        return self.add("stablehlo.convert", [value], [type_])[0]

    # Building

    def add(
        self,
        name: str,
        operands: Sequence[SSAValue],
        types: Sequence[Attribute],
        properties: Properties | None = None,
        regions: Sequence[Region] = (),
    ) -> Sequence[SSAValue]:
        """Add an operation, and return its results, which later operations may read."""
        op = CLASSES[name].create(
            operands=operands,
            result_types=types,
            properties=dict(properties or {}),
            regions=regions,
        )
        self.values += self.put(op)
        return op.results

    def put(self, op: Operation) -> Sequence[SSAValue]:
        """Add an operation that is made already, and return its results, which no later operation
        reads by chance."""
        self.shared.made += 1
        op.location = named(f"op{self.shared.made}")
        self.block.add_op(op)
        return op.results

    def end(self, values: Sequence[SSAValue]) -> None:
        """End the block of a region."""
        self.block.add_op(stablehlo.ReturnOp(*values))

    def inside(
        self, types: Sequence[Attribute] = (), *, closed: bool = False, scalars: bool = False
    ) -> Draft:
        """A new block below this one.

        Args:
            types: of its arguments.
            closed: whether it cannot read values from outside.
            scalars: whether, besides, its values have no axes.
        """
        block = Block(arg_types=types)
        if closed or scalars:
            most = 0 if scalars else self.most_axes
            return Draft(self.shared, block, (), self.depth + 1, most_axes=most)
        return Draft(self.shared, block, self.values, self.depth + 1, self.argument)

    def region(self) -> Region:
        """The region of the block."""
        return Region(self.block)


def kind_of(type_: Attribute) -> tuple[tuple[int, ...], Attribute]:
    """The shape and the element type of a type of tensors."""
    assert isa(type_, TensorType[Attribute])
    return type_.get_shape(), type_.element_type


Draw: TypeAlias = Callable[[Draft, str], object]
"""Adds an operation of a name, and whatever it needs."""


def integers(values: Sequence[int]) -> Attribute:
    """A property that is a list of integers."""
    return DenseArrayBase.from_list(i64, list(values))


def flags(values: Sequence[bool]) -> Attribute:
    """A property that is a list of truth values."""
    return DenseArrayBase.from_list(i1, [int(each) for each in values])


def pairs(values: Sequence[tuple[int, int]]) -> Attribute:
    """A property that is a list of pairs of integers."""
    return dense_of_array(np.array(values, np.int64).reshape(-1, 2))


def number(value: int, bits: int = 64) -> Attribute:
    """A property that is an integer."""
    return IntegerAttr(value, bits)


def tensor_like(value: SSAValue, shape: Sequence[int] | None = None) -> Attribute:
    """The type of a value, perhaps with another shape."""
    return nn.tensor(nn.shape_of(value) if shape is None else shape, nn.element_of(value))


def scalar_like(value: SSAValue) -> Attribute:
    """The type of one element of a value."""
    return tensor_like(value, ())
