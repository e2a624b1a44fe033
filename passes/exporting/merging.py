"""Operators of nn that merge points, as loops of another dialect."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from xdsl.dialects.builtin import AnyFloat, i1, i32, i64
from xdsl.ir import Attribute, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects.dtypes import numpy_dtype
from ...dialects.scalar_functions import FUNCTIONS
from ...ir.geometry.space import AxisMap
from ...ir.refusals import Uncovered
from .indices import are_from_front
from .loops import Counted, Gathered, Loops, Read
from .operator import Operator, within
from .reads import Shown
from .terms import Algebra, Term, computing


def merged(
    operator: Operator, reads: Sequence[Read], results: tuple[int, ...]
) -> tuple[SSAValue, Attribute]:
    """The merged values, and the type of their elements."""
    body, space = operator.structure.body, operator.structure.space
    assert body.combiner is not None
    kind = _sum_element(operator, reads)
    arity = body.function_arity
    begun = reads[operator.structure.own_places - body.begun_with :] if body.resumes else ()
    found = _found_rows(operator, reads, results)
    if found is not None:
        return found, reads[0].element
    merging = operator.away(results)
    combiner = body.combiner
    if combiner == "pick":
        combiner = "max" if kind == i1 else "sum"
    related = reads[arity : arity + len(space.relations)]
    axes = [each.axis for each in space.relations]
    tests = [operator.counted(axis, i32) for axis in axes]

    def compute(to: Algebra, given: Sequence[Term]) -> Term:
        value = to.cast(operator.function(to, given[:arity], kind), kind)
        for k, axis in enumerate(axes):
            index, place = given[arity + k], given[arity + len(axes) + k]
            holds = _holds(to, index, place, axis)
            value = to.select(holds, value, to.number(identity_of(combiner, kind), kind))
        return value

    if combiner == "last":
        return _replaced(operator, reads, results, axes, tests), kind
    start = None
    if begun:
        start = operator.looped(begun, lambda to, given: to.cast(given[0], kind), results, kind)
    used = [*reads[:arity], *related, *tests]
    if not merging and start is None:
        return operator.looped(used, compute, results, kind), kind
    loops = Loops(operator.sizes, tuple(used), compute, results, kind, combiner, start)
    known = _known(operator, used, loops) if start is None else None
    return operator.new.loops(loops) if known is None else known, kind


def _known(operator: Operator, used: Sequence[Read], loops: Loops) -> SSAValue | None:
    """What an operation of the dialect for products or windows makes; None if there is none."""
    shown = [each for each in used if isinstance(each, Shown)]
    read = {d for each in shown for terms in each.axes for d, _ in terms}
    if len(shown) < len(used) or not {d for d, n in enumerate(operator.sizes) if n != 1} <= read:
        return None
    body = operator.structure.body
    if (body.function, loops.combiner, len(used)) == ("mul", "sum", 2):
        made = operator.new.product(shown[0], shown[1], loops)
        if made is not None:
            return made
    return operator.new.windows(shown[0], loops) if len(used) == 1 else None


def _sum_element(operator: Operator, reads: Sequence[Read]) -> Attribute:
    """The type of what is merged: that of the result, or of the chain's first value."""
    body = operator.structure.body
    if not body.then:
        return computing(operator.element)
    if body.function == "identity" or not FUNCTIONS[body.function].boolean:
        kinds = [each.element for each in reads[: body.function_arity] if each.element != i1]
        if kinds and isinstance(kinds[0], AnyFloat):
            return computing(kinds[0])
        return computing(operator.element) if kinds else i1
    return i1


def _replaced(
    operator: Operator,
    reads: Sequence[Read],
    results: tuple[int, ...],
    axes: Sequence[AxisMap],
    tests: Sequence[Counted],
) -> SSAValue:
    """A table of which elements are replaced by the last update that names them.

    The number of the last update that names an element is found first, and then the update. So
    the order in which a dialect runs loops makes no difference.
    """
    body, kind = operator.structure.body, operator.element
    arity = body.function_arity
    away = operator.away(results)
    related = reads[arity : arity + len(axes)]
    strides = [prod(operator.sizes[e] for e in away[i + 1 :]) for i in range(len(away))]
    number = Counted(tuple(zip(away, strides, strict=True)), 0, i32)

    def which(to: Algebra, given: Sequence[Term]) -> Term:
        found = given[0]
        for k, axis in enumerate(axes):
            holds = _holds(to, given[1 + k], given[1 + len(axes) + k], axis)
            found = to.select(holds, found, to.number(-1, i32))
        return found

    merging = "max" if away else None
    last = operator.looped([number, *related, *tests], which, results, i32, merging)
    at = operator.over(last, results, i32)

    def chosen(to: Algebra, given: Sequence[Term]) -> Term:
        value = to.cast(operator.function(to, given[:arity], kind), kind)
        hit = to.compare("equal", given[arity], given[arity + 1])
        none = to.number(identity_of("sum", kind), kind)
        return to.select(hit, value, none)

    merging = ("max" if kind == i1 else "sum") if away else None
    update = operator.looped([*reads[:arity], number, at], chosen, results, kind, merging)
    begun = reads[operator.structure.own_places - 1]

    def either(to: Algebra, given: Sequence[Term]) -> Term:
        named = to.compare("greater_equal", given[0], to.number(0, i32))
        return to.select(named, given[1], to.cast(given[2], kind))

    return operator.looped([at, operator.over(update, results, kind), begun], either, results, kind)


def _found_rows(
    operator: Operator, reads: Sequence[Read], results: tuple[int, ...]
) -> SSAValue | None:
    """The rows of a table that indices name, if the operator only looks them up."""
    body, space = operator.structure.body, operator.structure.space
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
    if operator.sizes[row] != axis.size:
        return None
    from_front = are_from_front(operator.op.operands[1])
    return operator.new.gathered(Gathered(operator.sizes, table, row, index, results, from_front))


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
        holds if axis.outside == "none" else to.primitive("and", holds, within(to, at, axis.size))
    )
