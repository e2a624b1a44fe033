"""Error bounds of one operation whose operands have errors already.

`structure.py` bounds the error of one operation on exact operands. Here each operand v has an error
e: it is at most e away from the exact value. The function is evaluated at the ends of all
intervals v - e .. v + e, on whole arrays, and its largest deviation there is added to the error.
That is an upper bound for functions that are monotone, convex or concave in each operand. Where an
interval may contain a pole, or nothing is known about the function, the error is infinite: any
value is correct there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...dialects.along import Along
from ...dialects.dtypes import dtype_named
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Structure
from ...ir.geometry.space import AccessMap, Space
from ...ir.support.number_kinds import is_floating, is_whole, whole_limits
from ..codelets.chain import chaining_dtype
from ..codelets.conversion import Doubles, converted, float_limits
from ..codelets.scalar import ScalarFunction, scalar_function
from ..codelets.whole import sequence
from .cells import deviation_of_cells, of_result
from .combiners import combined_deviation
from .coordinates import with_coordinates
from .gather import Array, gathered, whole_box
from .moves import evaluate_moves
from .structure import evaluate_structure, structure_value

LARGEST_EXACT = 2.0**52
"""Integers below this magnitude are exact in float64, and so are their neighbours."""

SLACK = 1.001
"""Factor on an error bound that covers errors of second order."""

Errors = Doubles


def no_error(array: Array) -> Errors:
    """The error of an exact value: zero everywhere."""
    return np.zeros(array.shape)


def moved_error(
    moves: Sequence[Space] | None, errors: Sequence[Errors], shape: Sequence[int]
) -> Errors:
    """The errors of a movement's result: they move with the elements, and padding has no error."""
    if moves is None:
        return errors[0].reshape(shape)
    if not any(error.any() for error in errors):
        return np.zeros(shape)
    plain = [replace(m, operands=tuple(replace(a, fill=0.0) for a in m.operands)) for m in moves]
    viewed = plain[0].results[0].shape
    made = evaluate_moves(plain, list(errors), viewed, np.dtype(np.float64))
    return made.reshape(shape)


@dataclass(frozen=True)
class Bounded:
    """The error bound of a result, element by element, and the exact result where it is known.

    A correct machine is within error of the exact result. Two correct machines may be twice as far
    apart.

    Attributes:
        exact: the result in float64, not rounded; None if an operand has an error.
    """

    error: Errors
    exact: Array | None = None


def bounded_structure(
    structure: Structure,
    operands: Sequence[Array],
    errors: Sequence[Errors],
    result: Array,
    evaluated: tuple[Array, Errors] | None = None,
    number: int = 0,
) -> Bounded:
    """The error bound of a result of a structured operation.

    The bound is infinite where any value is correct. For integers and truth values, it is more than
    0 where another value may be correct.

    Args:
        operands: the values that the operation has read.
        errors: the error of each operand.
        result: the value that the operation has computed; the bound has its shape.
        evaluated: the result of evaluate_structure for the operands, if it has been called already.
        number: the index of the result.
    """
    dtype, shape = result.dtype, result.shape
    if structure.body.member_kinds:
        return _bounded_combined(structure, operands, errors, result, number)
    if structure.body.signature is not None:
        evaluated = evaluated or evaluate_structure(
            structure, operands, dtype, shape, result=number
        )
        structure = of_result(structure, number)
    if structure.space.coordinates:
        # Coordinates have no errors.
        exact = [np.zeros(())] * len(structure.space.coordinates)
        every = structure.with_coordinates(errors, exact)
        structure, operands = with_coordinates(structure, operands, dtype)
        errors = [np.broadcast_to(e, a.shape) for e, a in zip(every, operands, strict=True)]
    with np.errstate(all="ignore"):
        if not any(error.any() for error in errors):
            value, local = evaluated or evaluate_structure(structure, operands, dtype, shape)
            if is_exact(structure, operands, value, local, result):
                return Bounded(np.zeros(shape))
            bound = _infinite_outside_domain(structure, operands, local, dtype, shape)
            certain = _is_certain(structure, value) | _is_cast_to_infinity(structure, value, dtype)
            return Bounded(np.where(certain, 0.0, bound), value)
        error = _propagated_error(structure, operands, errors, result, evaluated)
        return Bounded(error.reshape(shape))


def structure_error(
    structure: Structure,
    operands: Sequence[Array],
    errors: Sequence[Errors],
    result: Array,
    number: int = 0,
) -> Errors:
    """The error of bounded_structure."""
    return bounded_structure(structure, operands, errors, result, number=number).error


def _bounded_combined(
    structure: Structure,
    operands: Sequence[Array],
    errors: Sequence[Errors],
    result: Array,
    number: int,
) -> Bounded:
    """The error bound of a result of a combiner of several values."""
    dtype, shape = result.dtype, result.shape
    value, local = evaluate_structure(structure, operands, dtype, shape, result=number)
    if not any(error.any() for error in errors):
        certain = is_floating(dtype) & np.isnan(value)
        return Bounded(np.where(certain, 0.0, local), value)
    moved = combined_deviation(structure, operands, errors, number).reshape(shape)
    error = local * SLACK + moved * SLACK
    if not is_floating(dtype):
        error = np.where(error > 0, np.ceil(error), 0.0)
    else:
        limits = float_limits(dtype)
        error = error + np.where(moved > 0, 2 * limits.roundoff * (np.abs(value) + moved), 0.0)
        reached = np.isfinite(value) & (np.abs(value) + error >= limits.largest)
        error = np.where(reached & (moved > 0), np.inf, error)
    return Bounded(np.where(np.isnan(error), np.inf, error))


def _is_certain(structure: Structure, value: Array) -> Array:
    """Where every correct machine gives the same NaN or infinity as value.

    If the exact operands give NaN, every order of evaluation and every dtype gives NaN. An infinity
    is certain only if nothing is summed or multiplied on the way, and the sign of a zero does not
    decide about it. If a chain follows, nothing is certain: the value before the chain may be
    rounded to a number for which the chain is defined.
    """
    body = structure.body
    if body.then or not is_floating(value.dtype):
        return np.zeros(value.shape, bool)
    function = FUNCTIONS[body.function]
    unsure = function.poles or function.positive or not function.ends_decide or body.signature
    merged = body.combiner if body.along is None else body.along.name
    if merged in ("sum", "prod") or unsure:
        return np.isnan(value)
    return ~np.isfinite(value)


def _is_cast_to_infinity(
    structure: Structure, value: Array, dtype: np.dtype[Any], error: Errors | float = 0.0
) -> Array:
    """Where a cast, in a group too, surely rounds a number to infinity, anywhere within its error.

    Args:
        value: the number before it is rounded.
    """
    body = structure.body
    others = body.then or body.combiner or body.along or body.function != "identity"
    if others or not is_floating(dtype):
        return np.zeros(value.shape, bool)
    limits = float_limits(dtype)
    reach = np.abs(value) - np.reshape(error, value.shape if np.ndim(error) else ())
    return reach > limits.largest * (1 + 2 * limits.roundoff)


def _infinite_outside_domain(
    structure: Structure,
    operands: Sequence[Array],
    local: Errors,
    dtype: np.dtype[Any],
    shape: Sequence[int],
) -> Errors:
    """The bound local, but infinite where a chain turns a finite number into NaN.

    A number may round to 0 in one run and to less than 0 in another. Its logarithm is then -inf in
    one run and NaN in the other.
    """
    if not (structure.body.then and np.isnan(local).any()):
        return local
    own = structure.unchained
    before, _ = evaluate_structure(own, operands[: len(own.space.operands)], dtype, tuple(shape))
    return np.where(np.isnan(local) & np.isfinite(before), np.inf, local)


def is_exact(
    structure: Structure, operands: Sequence[Array], value: Array, local: Errors, result: Array
) -> bool:
    """Whether every order of summation gives the same bits, because all numbers are small integers.

    The error bound of a sum of k numbers is k u times the sum of their magnitudes, where u is the
    unit roundoff. If it is less than 0.5, every partial sum is an integer that the dtype represents
    exactly.

    Args:
        value, local: the result of evaluate_structure for the operands.
        result: the value, rounded.
    """
    body = structure.body
    if body.signature is not None and local.any():
        return False
    stages = ((stage.function, stage.parameters) for stage in body.then)
    for function, parameters in ((body.function, body.parameters), *stages):
        if not FUNCTIONS[function].whole or any(
            p != round(p) for p in parameters if np.isfinite(p)
        ):
            return False
    return (
        bool((local < 0.5).all())
        and all(_is_whole(each) for each in (*operands, value))
        and np.array_equal(converted(value, result.dtype), result)
    )


def _is_whole(array: Array) -> bool:
    if not is_floating(array.dtype):
        return True
    wide = array.astype(np.float64, copy=False)
    return bool((np.isfinite(wide) & (wide == np.rint(wide))).all())


# Operands with errors


def _propagated_error(
    structure: Structure,
    operands: Sequence[Array],
    errors: Sequence[Errors],
    result: Array,
    evaluated: tuple[Array, Errors] | None,
) -> Errors:
    """The error of a result, in its viewed shape, if an operand has an error."""
    body, space = structure.body, structure.space
    own = structure.unchained
    count = len(own.space.operands)
    before = (
        chaining_dtype(*(a.dtype for a in operands), result.dtype) if body.then else result.dtype
    )
    views = [a.reshape(m.shape) for a, m in zip(operands, space.operands, strict=True)]
    operand_errors = [e.reshape(m.shape) for e, m in zip(errors, space.operands, strict=True)]
    shape = space.results[0].shape
    if evaluated is None or body.then:
        # The stages of a chain are bounded further below, from the value before the chain.
        evaluated = evaluate_structure(own, views[:count], before, shape)
    value, local = (each.reshape(shape) for each in evaluated)
    deviation = _operand_deviation(own, views[:count], operand_errors[:count], before)
    error = local * SLACK + deviation.reshape(shape)
    if 0 in space.sizes:
        return np.where(np.isnan(error), np.inf, error)
    extras = list(zip(views[count:], operand_errors[count:], space.operands[count:], strict=True))
    if body.then:
        # Where a value may overflow before the chain, its stages may or may not make it finite
        # again, so nothing is known about the result.
        reached = np.abs(value) + error >= float_limits(before).largest
        error = np.where(reached & np.isfinite(value), np.inf, error)
    elif is_floating(before):
        # Near the largest finite number, one correct run may overflow where another does not.
        edge = np.abs(np.abs(value) - float_limits(before).largest)
        error = np.where((edge <= error) & np.isfinite(value), np.inf, error)
        error = np.where(_is_cast_to_infinity(own, value, before, deviation), 0.0, error)
    values, value_errors = [value], [error]
    elements = body.chained_elements
    if elements[0] == "i1":
        values, value_errors = [value != 0], [np.minimum(np.ceil(error), 1.0)]
    for stage, element in zip(body.then, elements[1:], strict=True):
        function = scalar_function(stage.function)
        taken, extras = extras[: stage.extras], extras[stage.extras :]
        further = [_in_result_shape(_points(a, access, space), space) for a, _, access in taken]
        further_errors = [
            _in_result_shape(_points(e, replace(access, fill=0.0), space), space)
            for _, e, access in taken
        ]
        arrays = stage.arguments(values, further)
        each = stage.arguments(value_errors, further_errors)
        made, deviation = (
            _cast_corners(stage.element, arrays[0], each[0])
            if stage.element
            else _corners(function, stage.parameters, arrays, each)
        )
        u = float_limits(before).roundoff
        condition = function.condition(stage.parameters, *arrays, roundoff=u, result=made)
        tiny = float_limits(before).smallest_normal
        if stage.element or made.dtype == np.bool_ or function.selects:
            # Conversions, truth values and choices are not rounded.
            error = deviation
        else:
            reached = np.abs(made) + deviation >= float_limits(before).largest
            error = np.where(reached, np.inf, (u * condition + tiny) * SLACK + deviation)
            error = error + 2 * u * np.abs(made)
        if element == "i1":
            made, error = made != 0, np.minimum(np.ceil(error), 1.0)
        if any(np.isinf(e).any() for e in each):
            error = np.where(np.logical_or.reduce([np.isinf(e) for e in each]), np.inf, error)
        value = made
        values.append(value)
        value_errors.append(error)
    if body.then and is_floating(result.dtype):
        limits = float_limits(result.dtype)
        error = error + limits.roundoff * (np.abs(value) + error) + limits.smallest_subnormal
    if is_whole(result.dtype):
        error = np.where(error > 0, np.ceil(error), 0.0)
        if all(is_whole(a.dtype) for a in operands):
            # Beyond its limits, an integer wraps to the other end of its range.
            low, high = whole_limits(result.dtype)
            near = (value - error < low) | (value + error > high)
            error = np.where((error > 0) & near, np.inf, error)
    return np.where(np.isnan(error), np.inf, error)


def _operand_deviation(
    own: Structure, operands: Sequence[Array], errors: Sequence[Errors], dtype: np.dtype[Any]
) -> Errors:
    """The largest change of the result that the operands' errors can cause, in its viewed shape."""
    space, body = own.space, own.body
    shape = space.results[0].shape
    if not any(error.any() for error in errors):
        return np.zeros(shape)
    if 0 in space.sizes:
        return np.zeros(shape)
    if body.signature is not None:
        return deviation_of_cells(own, errors, whole=not is_floating(dtype))
    if body.along is not None:
        return _deviation_along(own, operands[0], errors[0])
    if space.relations:
        return _deviation_of_lookup(own, operands[body.function_arity :], errors)
    known = FUNCTIONS[body.function]
    if not known.bounds_intervals or any(errors[i].any() for i in known.by_bits):
        return np.full(shape, np.inf)
    if any(is_whole(a.dtype) and not (np.abs(_wide(a)) < LARGEST_EXACT).all() for a in operands):
        return np.full(shape, np.inf)
    numbers = all(a.dtype != np.bool_ for a in operands)
    if numbers and body.is_product:
        return _deviation_of_products(own, operands, errors)
    points = [_points(a, m, space) for a, m in zip(operands, space.operands, strict=True)]
    operand_errors = [
        _points(e, replace(m, fill=0.0), space) for e, m in zip(errors, space.operands, strict=True)
    ]
    function = scalar_function(body.function)
    # A function with a float result may be computed in a group, which keeps its operand in float32.
    may_be_kept = body.combiner is None and is_floating(dtype)
    made, deviation = _corners(
        function, body.parameters, points, operand_errors, may_be_kept=may_be_kept
    )
    if body.combiner is None:
        return _in_result_shape(deviation, space)
    kept = {axis.terms[0][0] for axis in space.results[0].axes if axis.terms}
    reduced = tuple(d for d in range(len(space.dims)) if d not in kept)
    made = np.broadcast_to(made, space.sizes)
    deviation = np.broadcast_to(deviation, space.sizes)
    merged = _COMBINED_DEVIATION[body.combiner](made, deviation, reduced)
    return _in_result_shape(np.expand_dims(merged, reduced), space)


def _sum(made: Array, deviation: Errors, axes: tuple[int, ...]) -> Errors:
    return deviation.sum(axes)


def _extreme(made: Array, deviation: Errors, axes: tuple[int, ...]) -> Errors:
    return deviation.max(axes, initial=0.0)


def _prod(made: Array, deviation: Errors, axes: tuple[int, ...]) -> Errors:
    size = np.abs(made)
    return (size + deviation).prod(axes) * SLACK - size.prod(axes)


_COMBINED_DEVIATION: dict[str, Callable[[Array, Errors, tuple[int, ...]], Errors]] = {
    "sum": _sum,
    "max": _extreme,
    "min": _extreme,
    "prod": _prod,
    "pick": _extreme,
}
"""The deviation of a reduction over axes, from the values and their deviations, by combiner."""


def _deviation_of_lookup(
    own: Structure, given: Sequence[Array], errors: Sequence[Errors]
) -> Errors:
    """The deviation of rows that indices name.

    For sums, it is the sum of the errors; for replaced rows, that of the last update; else the
    largest.

    An index with an error may name any row.

    Args:
        given: the indices, and the operand that updates begin with.
    """
    space, body = own.space, own.body
    shape, wide = space.results[0].shape, np.dtype(np.float64)
    row, *indices = errors[: 1 + len(space.relations)]
    if any(e.any() for e in indices) or body.function != "identity" or body.combiner == "prod":
        return np.full(shape, np.inf)
    operands = (replace(space.operands[0], fill=0.0), *space.operands[1:])
    merged = replace(body, combiner=body.combiner if body.combiner in ("sum", "last") else "max")
    plain = Structure(replace(space, operands=operands), merged)
    begun = errors[1 + len(space.relations) :]
    indexed = given[: len(space.relations)]
    return np.maximum(structure_value(plain, [row, *indexed, *begun], wide, shape), 0.0)


def _deviation_along(own: Structure, operand: Array, error: Errors) -> Errors:
    """The deviation of a scan or a sort along the whole dimension."""
    space, along = own.space, own.body.along
    assert along is not None
    if not is_floating(operand.dtype):
        return np.full(space.results[0].shape, np.inf)
    (d,) = space.of_kind("whole")
    values, errors = (
        np.moveaxis(np.broadcast_to(_points(a, m, space), space.sizes), d, -1)
        for a, m in (
            (_wide(operand), space.operands[0]),
            (error, replace(space.operands[0], fill=0.0)),
        )
    )
    wide = np.dtype(np.float64)
    made: Errors
    match along.name:
        case "sum":
            made = sequence(along, errors, wide)
        case "prod":
            size = np.abs(values)
            reach = sequence(along, size + errors, wide) * SLACK
            made = reach - sequence(along, size, wide)
        case "max" | "min":
            made = sequence(Along("max", along.reverse), errors, wide)
        case "sort":
            # If each element is within e of another, the same holds once both are sorted.
            made = np.broadcast_to(errors.max(-1, keepdims=True, initial=0.0), errors.shape)
        case _:
            made = _disorder(values, errors, along.reverse)
    return _in_result_shape(np.moveaxis(made, -1, d), space)


def _disorder(values: Array, errors: Errors, reverse: bool) -> Errors:
    """Infinite where elements with overlapping intervals may be sorted in either order.

    The arrays are in the order of the operand; the result is in sorted order.
    """
    low, high = values - errors, values + errors
    order = np.argsort(low, axis=-1, kind="stable")
    low = np.take_along_axis(low, order, -1)
    high = np.take_along_axis(high, order, -1)
    errors = np.take_along_axis(errors, order, -1)
    # Overlapping intervals form a group. Its elements may change places if one of them has an
    # error; equal elements without errors keep their order.
    reached = np.maximum.accumulate(high, axis=-1)
    begins = np.ones(low.shape, bool)
    begins[..., 1:] = low[..., 1:] > reached[..., :-1]
    group = np.cumsum(begins.reshape(-1)) - 1
    is_open = np.bincount(group, errors.reshape(-1) > 0) > 0
    is_open &= np.bincount(group) > 1
    made = is_open[group].reshape(low.shape)
    # An element with an infinite error may be anywhere.
    lost = (errors > 0) & ~np.isfinite(low + high)
    made = np.where(made | lost.any(-1, keepdims=True), np.inf, 0.0)
    return made[..., ::-1] if reverse else made


def _deviation_of_products(
    own: Structure, operands: Sequence[Array], errors: Sequence[Errors]
) -> Errors:
    """The deviation of a sum of products.

    It is the sum of (|a| + e)(|b| + f) - |a||b| for factors a, b with errors e, f.
    """
    size = [np.abs(a.astype(np.float64)) for a in operands]
    plain = Structure(
        replace(own.space, operands=tuple(replace(m, fill=0.0) for m in own.space.operands)),
        own.body,
    )
    wide, shape = np.dtype(np.float64), own.space.results[0].shape
    reach = [a + e for a, e in zip(size, errors, strict=True)]
    first = structure_value(plain, reach, wide, shape)
    second = structure_value(plain, size, wide, shape)
    if all(is_whole(a.dtype) for a in operands):
        return first - second
    return first - second + 1e-14 * np.where(np.isfinite(first), first, 0.0)


def _corners(
    function: ScalarFunction,
    parameters: tuple[float, ...],
    arrays: Sequence[Array],
    errors: Sequence[Errors],
    *,
    may_be_kept: bool = False,
) -> tuple[Array, Errors]:
    """A function of arrays in float64, and its largest deviation at the ends of the intervals.

    The ends of all operands are combined, so the function is evaluated at the corners of a box.

    Args:
        may_be_kept: whether another correct run may keep operands in a wider type. An infinite
            narrow float may then stand for any number from the largest of its type upwards.
    """
    wide = [_wide(a) for a in arrays]
    # Integers with errors are computed with as floats, which do not wrap.
    made = function.apply(parameters, *wide)
    made = made if made.dtype == np.bool_ else made.astype(np.float64, copy=False)
    inexact = [i for i, e in enumerate(errors) if e.any()]
    if not inexact:
        return made, np.zeros(made.shape)
    if function.steepest is not None:
        return made, np.zeros(made.shape) + function.steepest * sum(errors)
    ends = list(wide)
    for axis, i in enumerate(inexact):
        # Evaluate all corners at once: the two ends of each operand lie along a leading axis of
        # their own.
        at_ends = [_end(wide[i], errors[i], sign) for sign in (-1.0, 1.0)]
        if may_be_kept and is_floating(arrays[i].dtype):
            largest = float_limits(arrays[i].dtype).largest
            overflown = np.isinf(wide[i]) & (errors[i] > 0)
            low, high = at_ends
            at_ends = [
                np.where(overflown & (wide[i] > 0), largest, low),
                np.where(overflown & (wide[i] < 0), -largest, high),
            ]
        both = np.stack(at_ends)
        between = len(inexact) - 1 - axis + made.ndim - wide[i].ndim
        ends[i] = both.reshape((2, *(1,) * between, *wide[i].shape))
    there = function.apply(parameters, *ends)
    same = (there == made) | ((there != there) & (made != made))
    distance = np.abs(there.astype(np.float64, copy=False) - made.astype(np.float64, copy=False))
    distance = np.where(same, 0.0, np.where(np.isnan(distance), np.inf, distance))
    deviation = distance.max(tuple(range(len(inexact))))
    if function.meets:
        # Two operands may be equal inside their intervals and at no end.
        distance = np.abs(wide[0].astype(np.float64) - wide[1].astype(np.float64))
        reach = errors[0] + errors[1]
        jump = 1.0 if function.boolean else np.abs(wide[-1]) + errors[-1]
        deviation = np.where((distance <= reach) & (reach > 0), jump, deviation)
    for i in inexact:
        reach = wide[i] - errors[i] if i in function.positive else np.abs(wide[i]) - errors[i]
        if i in function.poles or i in function.positive:
            deviation = np.where((reach <= 0) & (errors[i] > 0), np.inf, deviation)
    for i in inexact:
        deviation = np.where(np.isposinf(errors[i]), np.inf, deviation)
    if function.selects and 0 not in inexact:
        # Only the error of the selected operand counts.
        taken = np.where(arrays[0], errors[1], errors[2])
        deviation = np.where(np.broadcast_to(taken, deviation.shape) == 0, 0.0, deviation)
    return made, deviation


def _cast_corners(element: str, array: Array, error: Errors) -> tuple[Array, Errors]:
    """Like _corners, for a cast: it is monotone, except a cast to truth values."""
    dtype = dtype_named(element)

    def cast(values: Array) -> Array:
        return converted(converted(values, dtype), np.dtype(np.float64))

    array = array.astype(np.float64)
    with np.errstate(all="ignore"):
        made = cast(array)
        ends = [np.abs(cast(array + sign * error) - made) for sign in (-1.0, 1.0)]
        deviation = np.maximum(*(np.where(error > 0, each, 0.0) for each in ends))
    if element == "i1":
        deviation = np.where((error > 0) & (np.abs(array) <= error), 1.0, deviation)
    return made, np.where(np.isnan(deviation) | np.isinf(error), np.inf, deviation)


def _wide(array: Array) -> Array:
    return array if array.dtype == np.bool_ else array.astype(np.float64)


def _end(array: Array, error: Errors, sign: float) -> Array:
    """The lower (sign -1) or upper (sign 1) ends of the intervals around an array."""
    if array.dtype == np.bool_:
        return np.where(error > 0, sign > 0, array)
    return array + sign * error


def _points(array: Array, access: AccessMap, space: Space) -> Array:
    """The element of an operand that each point of a space reads, with one axis per dimension."""
    return gathered(array, access, whole_box(space.sizes))


def _in_result_shape(points: Array, space: Space) -> Array:
    """Values at the points of a space, one axis per dimension, reordered to the result's viewed
    shape.
    """
    axes = space.results[0].axes
    kept = [axis.terms[0][0] for axis in axes if axis.terms]
    rest = [d for d in range(points.ndim) if d not in kept]
    moved = points.transpose([*kept, *rest])
    sizes = [points.shape[axis.terms[0][0]] if axis.terms else 1 for axis in axes]
    return np.broadcast_to(moved.reshape(sizes), space.results[0].shape)
