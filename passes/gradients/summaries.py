"""The rule of reductions that merge several values at once: moments, sums of powers, extremes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from operator import add

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.combiners import Extreme
from ...dialects.slopes import ZERO, Term, call
from ...dialects.structured import Body, Structure, Structured
from ...ir.blob import Blob
from ...ir.geometry.space import AccessMap, AxisMap, Space
from .emit import Emitter, points
from .structured import Read, computed, differentiated, merged, share, with_calls_at_points

A = Term("a")
"""An element that is merged."""

Passed = tuple[Term, Mapping[str, SSAValue]]
"""The gradient of an element as an expression, and the values it reads: one per result element."""


def summarized(
    emit: Emitter, op: Operation, gradients: Sequence[SSAValue | None]
) -> dict[int, SSAValue]:
    """The gradient of the operand of a reduction that merges several values at once."""
    assert isinstance(op, Structured)
    kind = op.structure().body.tuple_combiner
    assert kind is not None
    if isinstance(kind, Extreme):
        # The index has no gradient.
        assert gradients[0] is not None
        return {0: _extreme(emit, op, kind, gradients[0])}
    term, values = RULES[kind.name](emit, op, gradients)
    return {0: _at_elements(emit, op, term, values)}


def _moments(emit: Emitter, op: Operation, gradients: Sequence[SSAValue | None]) -> Passed:
    """The slopes of n elements: 1 / n for the mean, and 2 (a - mean) / n for the variance."""
    of_mean, of_variance = gradients
    count = _count(emit, op)
    parts: list[Term] = []
    values: dict[str, SSAValue] = {}
    if of_mean is not None:
        values["m"] = _over(emit, of_mean, count, 1.0)
        parts.append(Term("m"))
    if of_variance is not None:
        values |= {"mean": op.results[0], "v": _over(emit, of_variance, count, 2.0)}
        parts.append((A - Term("mean")) * Term("v"))
    return reduce(add, parts), values


def _count(emit: Emitter, op: Operation) -> int | SSAValue:
    """The number of elements that each result element merges; a value if the numbers differ."""
    space = _structure(op).space
    partly = _partly_outside(op)
    merged_points = prod(space.dims[d].size for d in space.of_kind("reduction"))
    if not partly:
        return max(merged_points, 1)
    like = op.operands[0]
    ones = emit.constant(1.0, like, [axis.size for axis in partly])
    counted = Space(space.dims, (), space.results[:1])
    found = merged(emit, counted, Body("identity", "sum"), [(ones, AccessMap(partly))], ())
    # Where nothing is merged, nothing is passed back, so dividing by 1 is as good as any number.
    return emit(nn.MaxOp(found, emit.constant(1.0, like)))


def _over(emit: Emitter, gradient: SSAValue, count: int | SSAValue, factor: float) -> SSAValue:
    """The quotient factor * gradient / count."""
    if isinstance(count, int):
        return emit(nn.ScaleOp(gradient, factor / count))
    scaled = gradient if factor == 1.0 else emit(nn.ScaleOp(gradient, factor))
    return emit(nn.DivOp(scaled, emit.reshaped(count, nn.shape_of(gradient))))


def _exp_sum(emit: Emitter, op: Operation, gradients: Sequence[SSAValue | None]) -> Passed:
    """The slope of the sum is exp(a - max). The maximum lowers the sum, which is subtracted where a
    = max.
    """
    of_largest, of_sum = gradients
    largest, total = op.results
    parts: list[Term] = []
    values: dict[str, SSAValue] = {"y": largest}
    owed = of_largest
    if of_sum is not None:
        values["s"] = of_sum
        parts.append(call("exp", A - Term("y")) * Term("s"))
        lost = emit(nn.MulOp(total, of_sum))
        owed = emit(nn.NegOp(lost) if owed is None else nn.SubOp(owed, lost))
    assert owed is not None
    space = _structure(op).space
    at = space.results[0]
    element = (op.operands[0], space.operands[0])
    plain = Space(space.dims, (), (at,))
    values["g"], _ = share(emit, plain, element, {"y": (largest, at), "g": (owed, at)}, ())
    parts.append(call("match", A, Term("y"), Term("g")))
    return reduce(add, parts), values


RULES: dict[str, Callable[[Emitter, Operation, Sequence[SSAValue | None]], Passed]] = {
    "moments": _moments,
    "exp_sum": _exp_sum,
}
"""The gradient of an element, by combiner."""


def _at_elements(
    emit: Emitter, op: Operation, term: Term, values: Mapping[str, SSAValue]
) -> SSAValue:
    """The gradient of the operand: for each element, the sum over the points that read it."""
    operand, structure = op.operands[0], _structure(op)
    shape = nn.shape_of(operand)
    if isinstance(op, nn.SummarizeOp):
        axes = nn.values_of(op.axes)
        kept = [1 if i in axes else n for i, n in enumerate(shape)]
        spread = {name: emit.reshaped(value, kept) for name, value in values.items()}
        return emit.expanded(emit.term(term, {"a": operand, **spread}), shape)
    (access,), at = structure.space.operands, structure.space.results[0]
    space = Space(structure.space.dims, (access,), (at,))
    reads: dict[str, Read] = {name: (value, at) for name, value in values.items()}
    reads["a"] = (operand, access)
    reads.setdefault("g", next(iter(reads.values())))
    inside = _inside(emit, op)
    if inside is not None:
        reads["inside"] = inside
        term = call("select", Term("inside"), term, ZERO)
    name = with_calls_at_points(emit, space, term, reads).name
    return emit.transpose(space, access, shape, "identity", (), [reads[name]], 0)


def _extreme(emit: Emitter, op: Operation, kind: Extreme, gradient: SSAValue) -> SSAValue:
    """The gradient of an extreme's value, which is that of a maximum or minimum."""
    own, operand = _structure(op).space, op.operands[0]
    (access,) = own.operands
    space = Space(own.dims, (access,), own.results[:1])
    body = Body("identity", "max" if kind.largest else "min")
    partly = _partly_outside(op)
    if not partly or (_is_read_there(op) and access.fill == body.identity):
        structure = Structure(space, body)
        return differentiated(emit, structure, [operand], op.results[0], gradient, [0])[0]
    # Points outside must not equal the extreme.
    inside = _mask(emit, partly)
    every, at_points = points(space, space.results[0])
    never = emit.constant(body.identity, operand)
    given = [inside, (operand, access), (never, AccessMap(()))]
    value = computed(emit, every, at_points, "select", (), given)
    structure = Structure(Space(own.dims, (at_points,), own.results[:1]), body)
    passed = differentiated(emit, structure, [value], op.results[0], gradient, [0])[0]
    return emit.transpose(
        space, access, nn.shape_of(operand), "identity", (), [(passed, at_points)], 0
    )


def _structure(op: Operation) -> Structure:
    assert isinstance(op, Structured)
    return op.structure()


def _partly_outside(op: Operation) -> tuple[AxisMap, ...]:
    """The axes of position tensors that some points lie outside of."""
    space = _structure(op).space
    return tuple(
        axis
        for each in space.positions
        for axis in each.access.axes
        if not (axis.is_plain(space.sizes) or _always_reached(axis, space.sizes))
    )


def _always_reached(axis: AxisMap, sizes: tuple[int, ...]) -> bool:
    low, high = axis.numerators(sizes)
    whole = axis.division == "floor" or axis.divisor == 1
    return whole and low >= 0 and high // axis.divisor < axis.size


def _inside(emit: Emitter, op: Operation) -> Read | None:
    """Whether each point contributes; None if every point that reads an element does."""
    partly = _partly_outside(op)
    return None if not partly or _is_read_there(op) else _mask(emit, partly)


def _is_read_there(op: Operation) -> bool:
    """Whether points outside the position tensors also lie outside the operand."""
    return set(_partly_outside(op)) <= set(_structure(op).space.operands[0].axes)


def _mask(emit: Emitter, axes: Sequence[AxisMap]) -> Read:
    """Whether points lie inside a tensor.

    Args:
        axes: those of its axes that points may lie outside of.
    """
    ones = Blob(np.broadcast_to(np.array(True), tuple(axis.size for axis in axes)))
    return emit(nn.ConstantOp(ones)), AccessMap(tuple(axes))
