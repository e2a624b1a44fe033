"""Operators of nn as loops of another dialect: from the space and the body alone."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import inf, prod
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat, i1, i32, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn
from ...dialects.along import Along
from ...dialects.combiners import Extreme
from ...dialects.coordinates import coordinate_dtypes
from ...dialects.dtypes import dtype_named, element_type, numpy_dtype
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Movement, Reinterpretation, Stage, Structure, Structured
from ...ir.conversion import Patterns
from ...ir.geometry.space import AccessMap, AxisMap, Position
from ...ir.refusals import ThoroughConversion, Uncovered
from ..analysis.value_ranges import never_zero
from .functions import apply, cast_operands
from .indices import are_from_front
from .reads import Shapes, Shown, Terms
from .terms import Algebra, Term, computing


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


def converted_structured(op: Operation, new: Export) -> None:
    """Convert an operation that has a space and a body."""
    assert isinstance(op, Structured)
    structure = op.structure()
    shapes = [nn.shape_of(each) for each in op.results]
    made = _Operator(op, structure, new).results()
    for result, value, shape in zip(op.results, made, shapes, strict=True):
        new.values[result] = new.reshaped(value, shape)


def converted_movement(op: Operation, new: Export) -> None:
    """Convert an operation that moves the elements of one operand."""
    assert isinstance(op, Movement)
    spaces = op.moves()
    if len(spaces) != 1:
        raise Uncovered("elements of several operands are moved")
    (space,) = spaces
    result = op.results[0]
    sizes = space.sizes
    element = nn.element_of(result)
    operand = op.operands[0]
    shown = new.shown(new.values[operand], nn.shape_of(operand), element, space.operands[0], sizes)
    loops = Loops(sizes, (shown,), _same, _plain(space.results[0], sizes), element)
    new.values[result] = new.reshaped(_looped(loops, new), nn.shape_of(result))


def converted_reinterpretation(op: Operation, new: Export) -> None:
    """Convert an operation that gives a tensor another shape."""
    assert isinstance(op, Reinterpretation)
    old = cast("Operation", op)
    new.values[old.results[0]] = new.reshaped(
        new.values[old.operands[0]], nn.shape_of(old.results[0])
    )


def _plain(access: AccessMap, sizes: Sequence[int]) -> tuple[int, ...]:
    """The loops of more than one iteration that are the axes of a result."""
    found: list[int] = []
    for axis in access.axes:
        terms = [d for d, _ in axis.terms if sizes[d] != 1]
        if len(terms) > 1 or axis.offset or any(c != 1 for _, c in axis.terms):
            raise Uncovered("a part of a result is written")
        found += terms
    return tuple(found)


def _looped(loops: Loops, new: Export) -> SSAValue:
    """The result of loops. Where they only move elements into their order, there may be none."""
    if loops.combiner is None and len(loops.reads) == 1 and loops.compute is _same:
        (read,) = loops.reads
        if (
            isinstance(read, Shown)
            and read.loops == loops.results
            and read.element == loops.element
        ):
            return read.value
    return new.loops(loops)


def _same(_: Algebra, given: Sequence[Term]) -> Term:
    return given[0]


@dataclass
class _Operator:
    """One operator while it is converted."""

    op: Operation
    structure: Structure
    new: Export
    sizes: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.sizes = self.structure.space.sizes

    @property
    def element(self) -> Attribute:
        """The element type of the first result."""
        return nn.element_of(self.op.results[0])

    def results(self) -> list[SSAValue]:
        """The results, each with an axis for each loop of more than one iteration."""
        body, space = self.structure.body, self.structure.space
        results = _plain(space.results[0], self.sizes)
        if body.along is not None:
            return [self._scanned(results)]
        if body.tuple_combiner is not None:
            return self._several(results)
        own = self.structure.own_places
        reads = self._reads()
        if body.combiner is None:
            value = self._looped(reads, self._whole(own), results, self.element)
            return [value]
        merged = self._merged(reads[:own], results)
        if not body.then and merged[1] == self.element:
            return [merged[0]]
        shape = tuple(self.sizes[d] for d in results)
        first = Shown(
            merged[0], shape, tuple(((d, 1),) for d in results), (0,) * len(results), merged[1]
        )
        compute = self._staged
        return [self._looped([first, *reads[own:]], compute, results, self.element)]

    # What points read

    def _reads(self) -> list[Read]:
        """What each place of the body reads: operands, and coordinates in between."""
        space = self.structure.space
        operands = [
            self._shown(value, access)
            for value, access in zip(self.op.operands, space.operands, strict=True)
        ]
        dtypes = [
            numpy_dtype(nn.element_of(each)) for each in (*self.op.operands, self.op.results[0])
        ]
        kinds = coordinate_dtypes(self.structure, dtypes)
        counted = [
            self._counted(each.access.axes[0], element_type(dtype), each.first)
            for each, dtype in zip(space.coordinates, kinds, strict=True)
        ]
        return self.structure.with_coordinates(cast("list[Read]", operands), counted)

    def _shown(self, value: SSAValue, access: AccessMap) -> Shown:
        shape, element = nn.shape_of(value), nn.element_of(value)
        made = self.new.shown(self.new.values[value], shape, element, access, self.sizes)
        filled = any(axis.outside == "fill" for axis in access.axes)
        return replace(made, never_zero=not filled and never_zero(value))

    def _counted(self, axis: AxisMap, element: Attribute, first: int = 0) -> Counted:
        terms = tuple((d, c) for d, c in axis.terms if self.sizes[d] != 1)
        return Counted(terms, axis.offset + first, element)

    def _looped(
        self,
        reads: Sequence[Read],
        compute: Compute,
        results: tuple[int, ...],
        element: Attribute,
        combiner: str | None = None,
        begins: SSAValue | None = None,
    ) -> SSAValue:
        """The result of loops over the space, without the loops of one iteration."""
        loops = Loops(self.sizes, tuple(reads), compute, results, element, combiner, begins)
        return _looped(loops, self.new)

    # What points compute

    def _function(self, to: Algebra, given: Sequence[Term], element: Attribute) -> Term:
        """The body's function, in the type that it is computed in.

        Args:
            element: of the sum, or of the result.
        """
        body = self.structure.body
        known = FUNCTIONS[body.function]
        if body.function == "bitcast":
            return to.bits(given[0], self.element)
        if known.stored and body.function == "identity":
            return given[0]
        truths, numbers = given[: known.values], given[known.values :]
        kinds = [each.element for each in numbers if each.element != i1]
        if not known.boolean and body.combiner is not None and not isinstance(element, AnyFloat):
            kinds = [element, *kinds] if kinds and element != i1 else kinds
        kind = computing(kinds[0]) if kinds else (numbers[0].element if numbers else element)
        numbers = cast_operands(to, body.function, numbers, kind)
        return apply(to, body.function, body.parameters, [*truths, *numbers])

    def _whole(self, own: int) -> Compute:
        """The function and the stages of a body that merges nothing."""

        def compute(to: Algebra, given: Sequence[Term]) -> Term:
            first = self._function(to, given[:own], self.element)
            return self._stages(to, first, given[own:])

        body = self.structure.body
        if body.function == "identity" and not body.then and not self.structure.space.coordinates:
            operand = self.op.operands[0]
            if nn.element_of(operand) == self.element:
                return _same
        return compute

    def _staged(self, to: Algebra, given: Sequence[Term]) -> Term:
        return self._stages(to, given[0], given[1:])

    def _stages(self, to: Algebra, first: Term, further: Sequence[Term]) -> Term:
        """The chain of a body, and the cast to the result's type."""
        stages = self.structure.body.then
        if not stages:
            return to.cast(first, self.element)
        kind = self._chain_element(first, further)
        rest = list(further)
        values = [first if first.is_truth else to.cast(first, kind)]
        for i, stage in enumerate(stages):
            own, rest = rest[: stage.extras], rest[stage.extras :]
            given = stage.arguments(values, own)
            values.append(_stage(to, stage, given, kind, last=i == len(stages) - 1))
        return to.cast(values[-1], self.element)

    def _chain_element(self, first: Term, further: Sequence[Term]) -> Attribute:
        """The type that a chain computes in: that of a float, if there is one."""
        for each in (first, *further):
            if each.is_float:
                return computing(each.element)
        return self.element if self.element != i1 else first.element

    # Merging

    def _merged(
        self, reads: Sequence[Read], results: tuple[int, ...]
    ) -> tuple[SSAValue, Attribute]:
        """The merged values, and the type of their elements."""
        body, space = self.structure.body, self.structure.space
        assert body.combiner is not None
        kind = self._sum_element(reads)
        arity = body.function_arity
        begun = reads[self.structure.own_places - body.begun_with :] if body.resumes else ()
        found = self._found_rows(reads, results)
        if found is not None:
            return found, reads[0].element
        merging = tuple(d for d, n in enumerate(self.sizes) if n != 1 and d not in results)
        combiner = body.combiner
        if combiner == "pick":
            combiner = "max" if kind == i1 else "sum"
        related = reads[arity : arity + len(space.relations)]
        axes = [each.axis for each in space.relations]
        tests = [self._counted(axis, i32) for axis in axes]

        def compute(to: Algebra, given: Sequence[Term]) -> Term:
            value = to.cast(self._function(to, given[:arity], kind), kind)
            for k, axis in enumerate(axes):
                index, place = given[arity + k], given[arity + len(axes) + k]
                holds = _holds(to, index, place, axis)
                value = to.select(holds, value, to.number(identity_of(combiner, kind), kind))
            return value

        if combiner == "last":
            return self._replaced(reads, results, axes, tests), kind
        start = None
        if begun:
            start = self._looped(begun, lambda to, given: to.cast(given[0], kind), results, kind)
        used = [*reads[:arity], *related, *tests]
        if not merging and start is None:
            return self._looped(used, compute, results, kind), kind
        loops = Loops(self.sizes, tuple(used), compute, results, kind, combiner, start)
        known = self._known(used, loops) if start is None else None
        return self.new.loops(loops) if known is None else known, kind

    def _known(self, used: Sequence[Read], loops: Loops) -> SSAValue | None:
        """What an operation of the dialect for products or windows makes; None if there is none."""
        shown = [each for each in used if isinstance(each, Shown)]
        read = {d for each in shown for terms in each.axes for d, _ in terms}
        if len(shown) < len(used) or not {d for d, n in enumerate(self.sizes) if n != 1} <= read:
            return None
        body = self.structure.body
        if (body.function, loops.combiner, len(used)) == ("mul", "sum", 2):
            made = self.new.product(shown[0], shown[1], loops)
            if made is not None:
                return made
        return self.new.windows(shown[0], loops) if len(used) == 1 else None

    def _sum_element(self, reads: Sequence[Read]) -> Attribute:
        """The type of what is merged: that of the result, or of the chain's first value."""
        body = self.structure.body
        if not body.then:
            return computing(self.element)
        if body.function == "identity" or not FUNCTIONS[body.function].boolean:
            kinds = [each.element for each in reads[: body.function_arity] if each.element != i1]
            if kinds and isinstance(kinds[0], AnyFloat):
                return computing(kinds[0])
            return computing(self.element) if kinds else i1
        return i1

    def _replaced(
        self,
        reads: Sequence[Read],
        results: tuple[int, ...],
        axes: Sequence[AxisMap],
        tests: Sequence[Counted],
    ) -> SSAValue:
        """A table of which elements are replaced by the last update that names them.

        The number of the last update that names an element is found first, and then the update. So
        the order in which a dialect runs loops makes no difference.
        """
        body, kind = self.structure.body, self.element
        arity = body.function_arity
        away = [d for d, n in enumerate(self.sizes) if n != 1 and d not in results]
        related = reads[arity : arity + len(axes)]
        strides = [prod(self.sizes[e] for e in away[i + 1 :]) for i in range(len(away))]
        number = Counted(tuple(zip(away, strides, strict=True)), 0, i32)

        def which(to: Algebra, given: Sequence[Term]) -> Term:
            found = given[0]
            for k, axis in enumerate(axes):
                holds = _holds(to, given[1 + k], given[1 + len(axes) + k], axis)
                found = to.select(holds, found, to.number(-1, i32))
            return found

        merging = "max" if away else None
        last = self._looped([number, *related, *tests], which, results, i32, merging)
        at = self._over(last, results, i32)

        def chosen(to: Algebra, given: Sequence[Term]) -> Term:
            value = to.cast(self._function(to, given[:arity], kind), kind)
            hit = to.compare("equal", given[arity], given[arity + 1])
            none = to.number(identity_of("sum", kind), kind)
            return to.select(hit, value, none)

        merging = ("max" if kind == i1 else "sum") if away else None
        update = self._looped([*reads[:arity], number, at], chosen, results, kind, merging)
        begun = reads[self.structure.own_places - 1]

        def either(to: Algebra, given: Sequence[Term]) -> Term:
            named = to.compare("greater_equal", given[0], to.number(0, i32))
            return to.select(named, given[1], to.cast(given[2], kind))

        return self._looped([at, self._over(update, results, kind), begun], either, results, kind)

    def _over(self, value: SSAValue, results: tuple[int, ...], element: Attribute) -> Shown:
        """An earlier result, read along its loops."""
        shape = tuple(self.sizes[d] for d in results)
        axes = tuple(((d, 1),) for d in results)
        return Shown(value, shape, axes, (0,) * len(results), element)

    def _found_rows(self, reads: Sequence[Read], results: tuple[int, ...]) -> SSAValue | None:
        """The rows of a table that indices name, if the operator only looks them up."""
        body, space = self.structure.body, self.structure.space
        if (body.function, body.combiner) != ("identity", "pick") or len(space.relations) != 1:
            return None
        axis, (table, index) = space.relations[0].axis, reads[:2]
        plain = axis.offset == 0 and axis.divisor == 1 and [c for _, c in axis.terms] == [1]
        if not plain or not isinstance(table, Shown) or not isinstance(index, Shown):
            return None
        row = axis.terms[0][0]
        loops = table.loops
        if loops is None or row not in loops or row in results or index.loops is None:
            return None
        if self.sizes[row] != axis.size:
            return None
        from_front = are_from_front(self.op.operands[1])
        return self.new.gathered(Gathered(self.sizes, table, row, index, results, from_front))

    # Combiners of several values

    def _several(self, results: tuple[int, ...]) -> list[SSAValue]:
        body = self.structure.body
        combiner = body.tuple_combiner
        assert combiner is not None
        (read,) = self._reads()
        if isinstance(combiner, Extreme):
            return self._extreme(combiner, read, results)
        kinds = {"moments": self._moments, "exp_sum": self._exp_sum}
        return kinds[combiner.name](read, results)

    def _places(self) -> tuple[list[Counted], Position | None]:
        """The index of a point along each axis of the tensor in which positions count."""
        found = [each for each in self.structure.space.positions if not each.is_coordinate]
        if not found:
            return [], None
        axes = found[0].access.axes
        if any(axis.divisor != 1 for axis in axes):
            raise Uncovered("positions that are divided")
        return [self._counted(axis, i32) for axis in axes], found[0]

    def _valid(self, to: Algebra, given: Sequence[Term], position: Position | None) -> Term | None:
        """Whether a point lies in the tensor in which positions count; None if all do."""
        holds: Term | None = None
        if position is None:
            return None
        for term, axis in zip(given, position.access.axes, strict=True):
            if axis.is_plain(tuple(max(n, 1) for n in self.sizes)):
                continue
            inside = _within(to, term, axis.size)
            holds = inside if holds is None else to.primitive("and", holds, inside)
        return holds

    def _extreme(self, combiner: Extreme, read: Read, results: tuple[int, ...]) -> list[SSAValue]:
        element = self.element
        kind = computing(element)
        away = [d for d, n in enumerate(self.sizes) if n != 1 and d not in results]
        places, position = self._places()
        assert position is not None
        name = "max" if combiner.largest else "min"
        lowest = identity_of(name, kind)

        def number(to: Algebra, given: Sequence[Term]) -> Term:
            value = to.cast(given[0], kind)
            if not combiner.nan_wins:
                value = to.select(to.is_nan(value), to.number(lowest, kind), value)
            valid = self._valid(to, given[1:], position)
            return value if valid is None else to.select(valid, value, to.number(lowest, kind))

        value = self._looped([read, *places], number, results, kind, name if away else None)
        first = not combiner.last
        none = (1 << 31) - 1 if first else -1

        def place(to: Algebra, given: Sequence[Term]) -> Term:
            x, best = number(to, given[:-1]), given[-1]
            hit = to.compare("equal", x, best)
            lost = to.primitive("and", to.is_nan(x), to.is_nan(best))
            hit = to.primitive("or", hit, lost)
            valid = self._valid(to, given[1:-1], position)
            hit = hit if valid is None else to.primitive("and", hit, valid)
            at = to.number(0, i32)
            for term, axis in zip(given[1:-1], position.access.axes, strict=True):
                at = to.primitive("add", to.primitive("mul", at, to.number(axis.size, i32)), term)
            at = to.primitive("add", at, to.number(position.first, i32))
            return to.select(hit, at, to.number(none, i32))

        best = self._over(value, results, kind)
        merging = ("min" if first else "max") if away else None
        index = self._looped([read, *places, best], place, results, i32, merging)
        made = self._looped([best], lambda to, g: to.cast(g[0], element), results, element)
        return [made if kind != element else value, index]

    def _moments(self, read: Read, results: tuple[int, ...]) -> list[SSAValue]:
        elements = [nn.element_of(each) for each in self.op.results]
        kind = computing(elements[0])
        places, position = self._places()
        away = [d for d, n in enumerate(self.sizes) if n != 1 and d not in results]
        merging = "sum" if away else None

        def counted(to: Algebra, given: Sequence[Term]) -> Term:
            valid = self._valid(to, given, position)
            return to.number(1, kind) if valid is None else to.cast(valid, kind)

        def share(to: Algebra, given: Sequence[Term]) -> Term:
            # The mean of large numbers is in range, but their sum may not be.
            value, valid = to.cast(given[0], kind), self._valid(to, given[1:-1], position)
            value = value if valid is None else to.select(valid, value, to.number(0, kind))
            return mean(to, (value, given[-1]))

        def mean(to: Algebra, given: Sequence[Term]) -> Term:
            some = to.primitive("max", given[1], to.number(1, kind))
            return to.primitive("div", given[0], some)

        def squared(to: Algebra, given: Sequence[Term]) -> Term:
            away_by = to.primitive("sub", to.cast(given[0], kind), given[-1])
            value = to.primitive("mul", away_by, away_by)
            valid = self._valid(to, given[1:-1], position)
            return value if valid is None else to.select(valid, value, to.number(0, kind))

        def looped(reads: Sequence[Read], compute: Compute, combiner: str | None) -> Shown:
            made = self._looped(reads, compute, results, kind, combiner)
            return self._over(made, results, kind)

        # The loops of the operand, so that all points are counted.
        count = looped([*places, read], lambda to, g: counted(to, g[: len(places)]), merging)
        average = looped([read, *places, count], share, merging)
        total = looped([read, *places, average], squared, merging)
        return self._stored([average, looped([total, count], mean, None)], elements, results)

    def _stored(
        self, made: Sequence[Shown], elements: Sequence[Attribute], results: tuple[int, ...]
    ) -> list[SSAValue]:
        """Results in the types that they have in nn."""
        return [
            each.value
            if each.element == element
            else self._looped([each], lambda to, g, e=element: to.cast(g[0], e), results, element)
            for each, element in zip(made, elements, strict=True)
        ]

    def _exp_sum(self, read: Read, results: tuple[int, ...]) -> list[SSAValue]:
        elements = [nn.element_of(each) for each in self.op.results]
        wide, kind = map(computing, elements)
        away = [d for d, n in enumerate(self.sizes) if n != 1 and d not in results]

        def number(to: Algebra, given: Sequence[Term]) -> Term:
            return to.cast(given[0], wide)

        def power(to: Algebra, given: Sequence[Term]) -> Term:
            x, most = to.cast(given[0], kind), to.cast(given[1], kind)
            above = to.compare("equal", x, to.number(-inf, kind))
            return to.select(
                above, to.number(0, kind), to.primitive("exp", to.primitive("sub", x, most))
            )

        most = self._looped([read], number, results, wide, "max" if away else None)
        seen = self._over(most, results, wide)
        total = self._looped([read, seen], power, results, kind, "sum" if away else None)
        return self._stored([seen, self._over(total, results, kind)], elements, results)

    # Scans and sorts

    def _scanned(self, results: tuple[int, ...]) -> SSAValue:
        """The result of a scan or a sort."""
        body, space = self.structure.body, self.structure.space
        along, reads = body.along, self._reads()
        assert along is not None
        (whole,) = space.of_kind("whole")
        kind = computing(self.element)
        if along.sorts:
            kind = nn.element_of(self.op.operands[0])

        def number(to: Algebra, given: Sequence[Term]) -> Term:
            return to.cast(self._function(to, given, kind), kind)

        plain = body.function == "identity" and nn.element_of(self.op.operands[0]) == kind
        value = self._looped(reads, _same if plain else number, results, kind)
        if self.sizes[whole] != 1:
            sequence = self.new.ordered if along.sorts else self.new.running
            value = sequence(value, kind, results.index(whole), along)
        elif along.exclusive or along.name == "sort_indices":
            first = 0 if along.sorts else identity_of(along.name, kind)
            shape = [self.sizes[d] for d in results]
            value = self.new.filled(shape, first, i32 if along.sorts else kind)
        if along.name == "sort_indices":
            kind = i32
        if kind == self.element and not body.then:
            return value
        seen = self._over(value, results, kind)
        return self._looped([seen], self._staged, results, self.element)


def _stage(
    to: Algebra, stage: Stage, given: Sequence[Term], kind: Attribute, *, last: bool
) -> Term:
    """The value of a stage.

    Args:
        kind: the type that the chain computes in.
    """
    known = FUNCTIONS[stage.function]
    truths = [to.cast(each, i1) for each in given[: known.values]]
    numbers = list(given[known.values :])
    logical = stage.function.startswith("logical_")
    if stage.element:
        kept = element_type(dtype_named(stage.element))
        found = to.cast(numbers[0], kept)
        return found if last or kept == i1 else to.cast(found, kind)
    if logical:
        numbers = [to.cast(each, i1) for each in numbers]
    elif not (stage.function in ("identity", "select") and all(n.is_truth for n in numbers)):
        numbers = cast_operands(to, stage.function, numbers, kind)
    return apply(to, stage.function, stage.parameters, [*truths, *numbers])


def _within(to: Algebra, place: Term, size: int) -> Term:
    """Whether an index lies on an axis."""
    above = to.compare("greater_equal", place, to.like(0, place))
    return to.primitive("and", above, to.compare("less", place, to.like(size, place)))


def _holds(to: Algebra, index: Term, place: Term, axis: AxisMap) -> Term:
    """Whether an index names the place of a point. Negative ones count from the end."""
    if axis.divisor != 1:
        raise Uncovered("indices along an axis that is divided")
    wide = to.cast(index, i64 if numpy_dtype(index.element).itemsize > 4 else i32)
    behind = to.primitive("add", wide, to.like(axis.size, wide))
    front = to.select(to.compare("less", wide, to.like(0, wide)), behind, wide)
    at = to.cast(place, wide.element)
    holds = to.compare("equal", front, at)
    return (
        holds if axis.outside == "none" else to.primitive("and", holds, _within(to, at, axis.size))
    )
