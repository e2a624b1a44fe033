"""Random operations of nn.compute: spaces with every kind of map, and bodies that fit them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType, f16, f32, i1, i32
from xdsl.ir import Attribute

from ...ir.geometry.space import (
    AccessMap,
    AxisMap,
    Dim,
    Division,
    Kind,
    Outside,
    Position,
    Relation,
    Rule,
    Space,
    coordinate,
)
from ...ir.geometry.table import Table
from ..along import SCANS, SORTS, Along
from ..combiners import TUPLE_COMBINERS
from ..scalar_functions import ARITHMETIC, FUNCTIONS, chainable
from ..structured import Body, Narrow, Stage, Structure
from .base import Shape, axis_map, tensor
from .wanted import Wanted

RULES: tuple[Outside, ...] = ("fill", "edge", "reflect", "wrap")
SIZES = (1, 2, 3, 4, 5, 7)
PADS = (0.0, 0.0, 0.0, 1.0, -2.0)
Drawn = tuple[Structure, tuple[TensorType[Attribute], ...], tuple[TensorType[Attribute], ...]]
"""A structure, the types of the operands, and those of the results; () if they are inferred."""


def random_table(random: Random, size: int) -> Table:
    """A table for an axis of so many elements."""
    places = random.choice((1, 2, 3, 5, 8))
    return Table.of(np.array([random.randrange(-1, size) for _ in range(places)]))


@dataclass
class _Drawing:
    """The structure drawn so far.

    Attributes:
        first: the type that one operand must have, until it is used.
        sizes: the sizes of axes and dimensions.
        element: the element type to compute with.
        reads_coordinates: whether the function may read coordinates.
    """

    random: Random
    sizes: Sequence[int]
    element: Attribute
    first: TensorType[Attribute] | None
    dims: list[Dim] = field(default_factory=list[Dim])
    maps: list[AccessMap] = field(default_factory=list[AccessMap])
    types: list[TensorType[Attribute]] = field(default_factory=list[TensorType[Attribute]])
    coordinates: list[Position] = field(default_factory=list[Position])
    reads_coordinates: bool = False

    def chance(self, share: float) -> bool:
        """True with this probability."""
        return self.random.random() < share

    def add_dims(self, count: int, kind: Kind) -> None:
        """Add dimensions, some of them as long as an axis of the first operand."""
        shape = () if self.first is None else tuple(self.first.get_shape())
        for _ in range(count):
            alike = shape and self.chance(0.6)
            size = self.random.choice(shape if alike else self.sizes)
            self.dims.append(Dim(f"{kind[0]}{len(self.dims)}", size, kind))

    def of_kind(self, *kinds: Kind) -> list[int]:
        """The dimensions of these kinds."""
        return [d for d, dim in enumerate(self.dims) if dim.kind in kinds]

    def axis(self, size: int | None, dims: Sequence[int]) -> AxisMap:
        """A random map of an axis over some of these dimensions.

        Args:
            size: None for any.
        """
        random = self.random
        plain = [d for d in dims if size in (None, self.dims[d].size)]
        if plain and self.chance(0.5):
            d = random.choice(plain)
            return axis_map(self.dims[d].size, self.dims, [(d, 1)])
        count = min(len(dims), random.choice((0, 1, 1, 1, 2)))
        terms = [(d, random.choice((1, 1, 2, 3, -1, -2))) for d in random.sample(dims, count)]
        divisor = random.choice((1, 1, 1, 2, 3))
        division: Division = random.choice(("exact", "floor"))
        offset = random.choice((0, 0, 1, 2, -1, -3))
        found = AxisMap(1, tuple(terms), offset, divisor)
        sizes = tuple(max(dim.size, 1) for dim in self.dims)
        low, high = found.numerators(sizes)
        if size is None:
            # Either an axis that needs no rule for outside elements, or a shorter or longer one.
            offset -= min(low, 0)
            size = max(0, (high - min(low, 0)) // divisor + random.choice((1, 1, 1, 0, 2, 3, -1)))
            size = min(size, 64) or 1
            low, high = low - min(low, 0), high - min(low, 0)
        inside = low >= 0 and high // divisor < size
        rule: Rule = "none"
        if (division == "exact" and divisor > 1) or not inside or self.chance(0.1):
            rule = random.choice(RULES) if size else "fill"
            if size and rule == "fill":
                # A generator of its own keeps all other draws as they are.
                own = Random(f"{size} {terms} {offset} {high}")
                if own.random() < 0.4:
                    rule = random_table(own, size)
                    # Half of these maps reach the table alone.
                    offset += own.choice((0, size * divisor - low))
        return axis_map(
            size, self.dims, terms, offset, divisor=divisor, division=division, outside=rule
        )

    def operand(
        self, element: Attribute, dims: Sequence[int], pads: Sequence[float] = PADS
    ) -> None:
        """Add an operand that depends on some of these dimensions."""
        if self.first is not None and self.first.element_type == element and self.chance(0.7):
            shape: list[int] | None = list(self.first.get_shape())
            axes = [self.axis(n, dims) for n in shape]
            self.first = None
        else:
            some = self.random.sample(dims, self.random.randint(0, min(3, len(dims))))
            axes = [self.axis(None, [d, *dims]) for d in some]
            shape = self.joined([axis.size for axis in axes])
        pad = self.random.choice(pads) if any(a.outside != "none" for a in axes) else 0.0
        self.maps.append(AccessMap(tuple(axes), pad))
        self.types.append(tensor(shape, element))

    def add_coordinate(self, operand: int, dims: Sequence[int]) -> None:
        """Make an operand of the body a coordinate over some of these dimensions."""
        some = self.random.sample(dims, min(len(dims), self.random.choice((1, 1, 2))))
        terms = [(d, self.random.choice((1, 1, -1, 2))) for d in some]
        sizes = [dim.size for dim in self.dims]
        start = self.random.choice((0, 0, 1, -2))
        self.coordinates.append(coordinate(operand, terms, start, sizes))

    def joined(self, shape: Sequence[int]) -> list[int]:
        """A shape of which this one is a view: two of its axes may be merged."""
        made = list(shape)
        if len(made) > 1 and self.chance(0.2):
            at = self.random.randrange(len(made) - 1)
            made[at : at + 2] = [made[at] * made[at + 1]]
        return made

    def result(self) -> AccessMap:
        """The map of the result, with its axes in any order."""
        kept = self.of_kind("parallel", "whole")
        self.random.shuffle(kept)
        return AccessMap(tuple(axis_map(self.dims[d].size, self.dims, [(d, 1)]) for d in kept))

    def function(self) -> Body:
        """A random function of the body, and its operands."""
        random = self.random
        # Half of the functions take every type; their results show where an element is wrong.
        plain = [name for name, each in FUNCTIONS.items() if each.whole and each.ends_decide]
        known = tuple(FUNCTIONS) if self.chance(0.5) else plain
        mathematics = FUNCTIONS[random.choice(known)]
        for i in range(mathematics.arity):
            is_truth = i < mathematics.values
            if self.reads_coordinates and not is_truth and self.chance(0.25):
                self.add_coordinate(i, range(len(self.dims)))
            else:
                self.operand(i1 if is_truth else self.element, range(len(self.dims)))
        samples = mathematics.samples or tuple(
            tuple(random.choice((0.5, 1.0, -2.0)) for _ in range(mathematics.parameters))
            for _ in range(1)
        )
        return Body(mathematics.name, None, random.choice(samples))

    def stages(self) -> tuple[Stage, ...]:
        """Random stages, and their further operands."""
        made: list[Stage] = []
        if not isinstance(self.element, AnyFloat) or not self.chance(0.25):
            return ()
        for _ in range(self.random.choice((1, 1, 2))):
            mathematics = FUNCTIONS[self.random.choice(_OF_FLOATS)]
            parameters = mathematics.samples or ((0.5,) * mathematics.parameters,)
            at = self.random.choice(mathematics.chain)
            made.append(Stage(mathematics.name, self.random.choice(parameters), at))
            for _ in range(mathematics.arity - 1):
                kept = self.of_kind("parallel", "whole")
                if self.chance(0.25):
                    self.add_coordinate(len(self.maps) + len(self.coordinates), kept)
                else:
                    self.operand(self.element, kept)
        return tuple(made)


_OF_FLOATS = sorted(
    name for name in chainable() if not FUNCTIONS[name].boolean and not FUNCTIONS[name].selects
)
"""The functions that may follow, whose operands and results are floats."""


def _pointwise(drawing: _Drawing) -> Structure:
    drawing.add_dims(drawing.random.choice((0, 1, 2, 2, 3)), "parallel")
    drawing.reads_coordinates = True
    body = drawing.function()
    stages = () if FUNCTIONS[body.function].boolean else drawing.stages()
    return _structure(drawing, Body(body.function, None, body.parameters, stages))


def _merging(drawing: _Drawing) -> Structure:
    drawing.add_dims(drawing.random.choice((0, 1, 2, 2, 3)), "parallel")
    drawing.add_dims(drawing.random.choice((1, 1, 2)), "reduction")
    combiner = drawing.random.choice(ARITHMETIC)
    # Most functions of truth values give other numbers, and partials stored as truth values lose
    # them.
    if drawing.element == i1 or drawing.chance(0.5):
        drawing.operand(drawing.element, range(len(drawing.dims)))
        return _structure(drawing, Body("identity", combiner, (), drawing.stages()))
    body = drawing.function()
    stages = () if FUNCTIONS[body.function].boolean else drawing.stages()
    return _structure(drawing, Body(body.function, combiner, body.parameters, stages))


def _contraction(drawing: _Drawing) -> Structure:
    drawing.add_dims(drawing.random.choice((1, 2, 2, 3)), "parallel")
    drawing.add_dims(drawing.random.choice((1, 1, 2)), "reduction")
    for _ in range(2):
        drawing.operand(drawing.element, range(len(drawing.dims)), (0.0,))
    stages = drawing.stages()
    narrow = Narrow() if drawing.element == f16 and drawing.chance(0.2) else None
    return _structure(drawing, Body("mul", "sum", (), stages, narrow=narrow))


def _sequence(drawing: _Drawing) -> Structure:
    drawing.add_dims(drawing.random.choice((0, 1, 2)), "parallel")
    drawing.add_dims(1, "whole")
    drawing.operand(drawing.element, range(len(drawing.dims)))
    name = drawing.random.choice((*SCANS, *SORTS))
    exclusive = name in SCANS and drawing.chance(0.5)
    along = Along(name, drawing.chance(0.5), exclusive)
    return _structure(drawing, Body("identity", along=along))


def _summary(drawing: _Drawing) -> Structure:
    drawing.add_dims(drawing.random.choice((0, 1, 2)), "parallel")
    drawing.add_dims(drawing.random.choice((1, 2)), "reduction")
    combiner = TUPLE_COMBINERS[drawing.random.choice(sorted(TUPLE_COMBINERS))]
    pads = PADS if combiner.reads_position or combiner.fill is None else (combiner.fill,)
    drawing.operand(drawing.element, range(len(drawing.dims)), pads)
    body = Body("identity", combiner.name)
    axes: list[AxisMap] = []
    for d in drawing.of_kind("reduction"):
        size = drawing.dims[d].size
        # Some points may lie outside the tensor in which positions are counted.
        short = max(1, size - drawing.random.choice((0, 0, 1)))
        axes.append(axis_map(short, drawing.dims, [(d, 1)], outside="fill"))
    return _structure(
        drawing, body, positions=(Position(AccessMap(tuple(axes))),) * body.position_count
    )


def _lookup(drawing: _Drawing) -> Structure:
    """A gather or a scatter: the table's row is a reduction or parallel dimension that must equal
    an index.
    """
    gathers = drawing.chance(0.5)
    drawing.add_dims(drawing.random.choice((0, 1, 2)), "parallel")
    drawing.add_dims(1, "reduction" if gathers else "parallel")
    row = len(drawing.dims) - 1
    if not gathers:
        drawing.add_dims(drawing.random.choice((1, 1, 2)), "reduction")
    others = [d for d in range(len(drawing.dims)) if d != row]
    size, random = drawing.dims[row].size, drawing.random
    drawing.operand(drawing.element, others + [row] * gathers)
    indexed = random.sample(others, random.randint(0, min(2, len(others))))
    axes = tuple(axis_map(drawing.dims[d].size, drawing.dims, [(d, 1)]) for d in indexed)
    drawing.maps.append(AccessMap(axes))
    drawing.types.append(tensor([axis.size for axis in axes], i32))
    combiner = "pick" if gathers and drawing.chance(0.6) else random.choice(ARITHMETIC)
    relation = Relation(axis_map(size, drawing.dims, [(row, 1)]), 1)
    return _structure(drawing, Body("identity", combiner), (relation,))


def _structure(
    drawing: _Drawing,
    body: Body,
    relations: tuple[Relation, ...] = (),
    positions: tuple[Position, ...] = (),
) -> Structure:
    results = (drawing.result(),) * body.result_count
    every = (*positions, *drawing.coordinates)
    space = Space(tuple(drawing.dims), tuple(drawing.maps), results, relations, every)
    return Structure(space, body)


KINDS: tuple[Callable[[_Drawing], Structure], ...] = (
    *(_pointwise, _pointwise, _pointwise, _merging, _merging, _contraction, _contraction),
    *(_sequence, _summary, _lookup),
)


def random_structure(wanted: Wanted) -> Drawn:
    """A random structure. It may not fit its operands; the verifier decides.

    Returned result types are () if they can be inferred.
    """
    random, first = wanted.random, wanted.first
    numbers = [each for each in wanted.elements if each != i1] or [f32, f32, f16, i32]
    element = random.choice(numbers) if first is None else first.element_type
    drawing = _Drawing(random, wanted.sizes or SIZES, element, first)
    structure = random.choice(KINDS)(drawing)
    return structure, tuple(drawing.types), _results(drawing, structure)


def _results(drawing: _Drawing, structure: Structure) -> tuple[TensorType[Attribute], ...]:
    """Result types that differ from the inferred ones."""
    body, element = structure.body, drawing.element
    if body.result_count > 1 or FUNCTIONS[body.function].boolean or not drawing.chance(0.3):
        return ()
    shape: Shape = tuple(drawing.joined(structure.space.results[0].shape))
    if body.along is not None and body.along.name == "sort_indices":
        return (tensor(shape, i32),)
    is_cast = body.function == "identity" and not body.combiner and not body.along and not body.then
    if is_cast and drawing.chance(0.6):
        return (tensor(shape, drawing.random.choice((f32, f16, i32, i1))),)
    if body.combiner in ("sum", "prod") and element == f16 and not body.then:
        return (tensor(shape, f32),)
    is_product = (body.function, body.combiner) == ("mul", "sum")
    if is_product and not isinstance(element, AnyFloat) and element != i1:
        return (tensor(shape, i32),)
    return (tensor(shape, element),)
