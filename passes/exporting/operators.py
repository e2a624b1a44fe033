"""Operators of nn as loops of another dialect: from the space and the body alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import i1, i32
from xdsl.ir import Attribute, Operation, SSAValue

from ...backends.reference.identities import identity_of
from ...dialects import nn
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.geometry.space import AccessMap
from ...ir.refusals import Uncovered
from .loops import Export, Loops
from .merging import merged
from .operator import Operator, result_of, same
from .several import several
from .terms import Algebra, Term, computing


def converted_structured(op: Operation, new: Export) -> None:
    """Convert an operation that has a space and a body."""
    assert isinstance(op, Structured)
    structure = op.structure()
    shapes = [nn.shape_of(each) for each in op.results]
    if all(0 in shape for shape in shapes):
        # A loop without iterations that no operand bounds would lose its size on the way back, and
        # an axis of no elements may have no loop.
        for result, shape in zip(op.results, shapes, strict=True):
            new.values[result] = _without_elements(shape, nn.element_of(result), new)
        return
    made = _results_of(Operator(op, structure, new))
    for result, value, shape in zip(op.results, made, shapes, strict=True):
        new.values[result] = new.reshaped(value, shape)


def _without_elements(shape: tuple[int, ...], element: Attribute, new: Export) -> SSAValue:
    """A tensor without elements."""
    return new.filled(shape, False if element == i1 else 0, element)


def converted_movement(op: Operation, new: Export) -> None:
    """Convert an operation that moves the elements of one operand."""
    assert isinstance(op, Movement)
    spaces = op.moves()
    if len(spaces) != 1:
        raise Uncovered("elements of several operands are moved")
    (space,) = spaces
    result = op.results[0]
    sizes = space.sizes
    element, shape = nn.element_of(result), nn.shape_of(result)
    if 0 in shape:
        new.values[result] = _without_elements(shape, element, new)
        return
    operand = op.operands[0]
    shown = new.shown(new.values[operand], nn.shape_of(operand), element, space.operands[0], sizes)
    loops = Loops(sizes, (shown,), same, _plain(space.results[0], sizes), element)
    new.values[result] = new.reshaped(result_of(loops, new), shape)


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


def _results_of(operator: Operator) -> list[SSAValue]:
    """The results, each with an axis for each loop of more than one iteration."""
    body, space = operator.structure.body, operator.structure.space
    if body.signature is not None:
        raise Uncovered("only abele computes a codelet")
    results = _plain(space.results[0], operator.sizes)
    if body.along is not None:
        return [_scanned(operator, results)]
    if body.tuple_combiner is not None:
        return several(operator, results)
    own = operator.structure.own_places
    reads = operator.reads()
    if body.combiner is None:
        return [operator.looped(reads, operator.whole(own), results, operator.element)]
    value, kind = merged(operator, reads[:own], results)
    if not body.then and kind == operator.element:
        return [value]
    first = operator.over(value, results, kind)
    return [operator.looped([first, *reads[own:]], operator.staged, results, operator.element)]


def _scanned(operator: Operator, results: tuple[int, ...]) -> SSAValue:
    """The result of a scan or a sort."""
    body, space = operator.structure.body, operator.structure.space
    along, reads = body.along, operator.reads()
    assert along is not None
    (whole,) = space.of_kind("whole")
    kind = computing(operator.element)
    if along.sorts:
        kind = nn.element_of(operator.op.operands[0])

    def number(to: Algebra, given: Sequence[Term]) -> Term:
        return to.cast(operator.function(to, given, kind), kind)

    plain = body.function == "identity" and nn.element_of(operator.op.operands[0]) == kind
    value = operator.looped(reads, same if plain else number, results, kind)
    if operator.sizes[whole] != 1:
        sequence = operator.new.ordered if along.sorts else operator.new.running
        value = sequence(value, kind, results.index(whole), along)
    elif along.exclusive or along.name == "sort_indices":
        first = 0 if along.sorts else identity_of(along.name, kind)
        shape = [operator.sizes[d] for d in results]
        value = operator.new.filled(shape, first, i32 if along.sorts else kind)
    if along.name == "sort_indices":
        kind = i32
    if kind == operator.element and not body.then:
        return value
    seen = operator.over(value, results, kind)
    return operator.looped([seen], operator.staged, results, operator.element)
