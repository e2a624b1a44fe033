"""Operators of nn that merge points into several values, as loops of another dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from xdsl.dialects.builtin import i32
from xdsl.ir import Attribute, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn
from ...dialects.combiners import Extreme
from ...ir.geometry.space import Position
from ...ir.refusals import Uncovered
from .loops import Compute, Counted, Read
from .operator import Operator, within
from .reads import Shown
from .terms import Algebra, Term, computing


def several(operator: Operator, results: tuple[int, ...]) -> list[SSAValue]:
    """The results of an operator whose combiner makes several values of the points."""
    body = operator.structure.body
    combiner = body.tuple_combiner
    assert combiner is not None
    (read,) = operator.reads()
    if isinstance(combiner, Extreme):
        return _extreme(operator, combiner, read, results)
    kinds = {"moments": _moments, "exp_sum": _exp_sum}
    return kinds[combiner.name](operator, read, results)


def _places(operator: Operator) -> tuple[list[Counted], Position | None]:
    """The index of a point along each axis of the tensor in which positions count."""
    found = [each for each in operator.structure.space.positions if not each.is_coordinate]
    if not found:
        return [], None
    axes = found[0].access.axes
    if any(axis.divisor != 1 for axis in axes):
        raise Uncovered("positions that are divided")
    return [operator.counted(axis, i32) for axis in axes], found[0]


def _valid(
    operator: Operator, to: Algebra, given: Sequence[Term], position: Position | None
) -> Term | None:
    """Whether a point lies in the tensor in which positions count; None if all do."""
    holds: Term | None = None
    if position is None:
        return None
    for term, axis in zip(given, position.access.axes, strict=True):
        if axis.is_plain(tuple(max(n, 1) for n in operator.sizes)):
            continue
        inside = within(to, term, axis.size)
        holds = inside if holds is None else to.primitive("and", holds, inside)
    return holds


def _extreme(
    operator: Operator, combiner: Extreme, read: Read, results: tuple[int, ...]
) -> list[SSAValue]:
    element = operator.element
    kind = computing(element)
    away = operator.away(results)
    places, position = _places(operator)
    assert position is not None
    name = "max" if combiner.largest else "min"
    lowest = identity_of(name, kind)

    def number(to: Algebra, given: Sequence[Term]) -> Term:
        value = to.cast(given[0], kind)
        if not combiner.nan_wins:
            value = to.select(to.is_nan(value), to.number(lowest, kind), value)
        valid = _valid(operator, to, given[1:], position)
        return value if valid is None else to.select(valid, value, to.number(lowest, kind))

    value = operator.looped([read, *places], number, results, kind, name if away else None)
    first = not combiner.last
    none = (1 << 31) - 1 if first else -1

    def place(to: Algebra, given: Sequence[Term]) -> Term:
        x, best = number(to, given[:-1]), given[-1]
        hit = to.compare("equal", x, best)
        lost = to.primitive("and", to.is_nan(x), to.is_nan(best))
        hit = to.primitive("or", hit, lost)
        valid = _valid(operator, to, given[1:-1], position)
        hit = hit if valid is None else to.primitive("and", hit, valid)
        at = to.number(0, i32)
        for term, axis in zip(given[1:-1], position.access.axes, strict=True):
            at = to.primitive("add", to.primitive("mul", at, to.number(axis.size, i32)), term)
        at = to.primitive("add", at, to.number(position.first, i32))
        return to.select(hit, at, to.number(none, i32))

    best = operator.over(value, results, kind)
    merging = ("min" if first else "max") if away else None
    index = operator.looped([read, *places, best], place, results, i32, merging)
    made = operator.looped([best], lambda to, g: to.cast(g[0], element), results, element)
    return [made if kind != element else value, index]


def _moments(operator: Operator, read: Read, results: tuple[int, ...]) -> list[SSAValue]:
    elements = [nn.element_of(each) for each in operator.op.results]
    kind = computing(elements[0])
    places, position = _places(operator)
    away = operator.away(results)
    merging = "sum" if away else None

    def counted(to: Algebra, given: Sequence[Term]) -> Term:
        valid = _valid(operator, to, given, position)
        return to.number(1, kind) if valid is None else to.cast(valid, kind)

    def share(to: Algebra, given: Sequence[Term]) -> Term:
        # The mean of large numbers is in range, but their sum may not be.
        value, valid = to.cast(given[0], kind), _valid(operator, to, given[1:-1], position)
        value = value if valid is None else to.select(valid, value, to.number(0, kind))
        return mean(to, (value, given[-1]))

    def mean(to: Algebra, given: Sequence[Term]) -> Term:
        some = to.primitive("max", given[1], to.number(1, kind))
        return to.primitive("div", given[0], some)

    def squared(to: Algebra, given: Sequence[Term]) -> Term:
        away_by = to.primitive("sub", to.cast(given[0], kind), given[-1])
        value = to.primitive("mul", away_by, away_by)
        valid = _valid(operator, to, given[1:-1], position)
        return value if valid is None else to.select(valid, value, to.number(0, kind))

    def looped(reads: Sequence[Read], compute: Compute, combiner: str | None) -> Shown:
        made = operator.looped(reads, compute, results, kind, combiner)
        return operator.over(made, results, kind)

    # The loops of the operand, so that all points are counted.
    count = looped([*places, read], lambda to, g: counted(to, g[: len(places)]), merging)
    average = looped([read, *places, count], share, merging)
    total = looped([read, *places, average], squared, merging)
    return _stored(operator, [average, looped([total, count], mean, None)], elements, results)


def _stored(
    operator: Operator,
    made: Sequence[Shown],
    elements: Sequence[Attribute],
    results: tuple[int, ...],
) -> list[SSAValue]:
    """Results in the types that they have in nn."""
    return [
        each.value
        if each.element == element
        else operator.looped([each], lambda to, g, e=element: to.cast(g[0], e), results, element)
        for each, element in zip(made, elements, strict=True)
    ]


def _exp_sum(operator: Operator, read: Read, results: tuple[int, ...]) -> list[SSAValue]:
    elements = [nn.element_of(each) for each in operator.op.results]
    wide, kind = map(computing, elements)
    away = operator.away(results)

    def number(to: Algebra, given: Sequence[Term]) -> Term:
        return to.cast(given[0], wide)

    def power(to: Algebra, given: Sequence[Term]) -> Term:
        x, most = to.cast(given[0], kind), to.cast(given[1], kind)
        above = to.compare("equal", x, to.number(-inf, kind))
        return to.select(
            above, to.number(0, kind), to.primitive("exp", to.primitive("sub", x, most))
        )

    most = operator.looped([read], number, results, wide, "max" if away else None)
    seen = operator.over(most, results, wide)
    total = operator.looped([read, seen], power, results, kind, "sum" if away else None)
    return _stored(operator, [seen, operator.over(total, results, kind)], elements, results)
