"""Cases of the chains kernel: sizes and operands around the edges of vectors, rows and saved
values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

from ....dialects.dtypes import dtype_named
from ....dialects.structured import Body, Stage
from ...codelets.calls import Array, Call, address
from ...codelets.conversion import convert_into, converted
from ...codelets.scalar import scalar_function
from ..chains import MERGED_SPAN, MERGES, SPAN_OF_UNIT, merge_call, points_call
from ..kernels.tables import CHAIN_VECTORS, LANES, SAVED_PLACES
from .comparing import (
    NO_CALL,
    ONE_UNIT,
    Battery,
    Differs,
    compare,
    filled,
    make,
    need,
    numbers,
    room,
    unit_count,
)

F32, F16 = np.dtype(np.float32), np.dtype(np.float16)

MERGE: Mapping[str, np.ufunc] = {
    "sum": np.add,
    "prod": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
}
"""How NumPy merges two values, by combiner."""

KINDS: Mapping[str, tuple[np.dtype[Any], int]] = {
    "floats": (F32, 1),
    "one float": (F32, 0),
    "every second float": (F32, 2),
    "every third float": (F32, 3),
    "floats in reverse": (F32, -1),
    "halves": (F16, 1),
    "one half": (F16, 0),
    "every second half": (F16, 2),
}
"""Kinds of operands: the dtype, and the distance from one element of a row to the next, in
elements.
"""

LENGTHS = (1, 2, 7, LANES - 1, LANES, LANES + 1, 2 * LANES + 5)
"""Elements of a row: less than a vector, whole vectors, and vectors with a tail."""


def expected_of(
    body: Body,
    points: Sequence[Sequence[Array]],
    then: Sequence[Stage],
    extras: Sequence[Array],
    result: Array,
) -> None:
    """Compute with NumPy's scalar functions what points_call computes, into `result`."""

    def applied(function: str, parameters: tuple[float, ...], inputs: Sequence[Array]) -> Array:
        out = np.empty(result.shape, np.float32)
        found = scalar_function(function)
        given = (a if a.dtype.kind == "u" else a.astype(np.float32) for a in inputs)
        return found.apply(parameters, *given, out=out)

    with np.errstate(all="ignore"):
        value = applied(body.function, body.parameters, points[0])
        for inputs in points[1:]:
            merge = MERGE[body.combiner or ""]
            value = merge(value, applied(body.function, body.parameters, inputs))
        values, rest = [value], list(extras)
        for stage in then:
            further, rest = rest[: stage.extras], rest[stage.extras :]
            inputs = stage.arguments(values, further)
            made = applied(stage.function, stage.parameters, inputs)
            if stage.element:
                made = converted(converted(made, dtype_named(stage.element)), F32)
            values.append(made)
        convert_into(values[-1], result)


def check(
    case: str,
    body: Body,
    points: Sequence[Sequence[Array]],
    result: Array,
    then: Sequence[Stage] = (),
    extras: Sequence[Array] = (),
    in_units: bool = False,
) -> None:
    """Compute a body at points, and its chain, with kernels and with NumPy, and compare.

    Args:
        result: an array from `room`.
        in_units: whether to run the units of work one by one.
    """
    wanted = filled(result, result.strides, address(result) % 64)
    expected_of(body, points, then, extras, wanted)
    call = _call(case, body, points, then, extras, result)
    need(case, not in_units or unit_count([call]) > 1, ONE_UNIT)
    make([call], in_units)
    compare(case, result, wanted)


def _call(
    case: str,
    body: Body,
    points: Sequence[Sequence[Array]],
    then: Sequence[Stage],
    extras: Sequence[Array],
    result: Array,
) -> Call:
    """The compiled call. Raises Differs if there is none."""
    call = points_call(body, points, then, extras, result)
    if call is None:
        raise Differs(f"{case}: {NO_CALL}")
    return call


def operand(seed: int, shape: Sequence[int], kind: str = "floats", rare: int = 0) -> Array:
    """An operand of some kind, with a gap of three elements after each row."""
    dtype, step = KINDS[kind]
    row = (abs(step) * shape[-1] + 3) * dtype.itemsize
    strides = [step * dtype.itemsize]
    for n in reversed(shape[1:]):
        strides.insert(0, row)
        row *= n
    repeats = [1 if step == 0 else n for n, step in zip(shape, strides, strict=True)]
    return np.broadcast_to(filled(numbers(seed, repeats, dtype, rare), strides), shape)


def lengths_of_rows() -> int:
    """Rows of all lengths up to three vectors, few and many of them."""
    lengths = [*range(1, LANES + 2), 2 * LANES - 1, 2 * LANES, 2 * LANES + 1]
    lengths += [SPAN_OF_UNIT - 1, SPAN_OF_UNIT + 1]
    heights = [*range(1, CHAIN_VECTORS + 2), 2 * CHAIN_VECTORS + 1]
    # Every length with every second height, and every height with every second length.
    pairs = [
        (rows, length)
        for i, rows in enumerate(heights)
        for j, length in enumerate(lengths)
        if (i + j) % 2
    ]
    for rows, length in pairs:
        a, b = operand(1, (rows, length)), operand(2, (rows, length))
        result = room((rows, length), F32, (4 * length + 12, 4))
        check(f"{rows} rows of {length}", Body("add"), [(a, b)], result)
    return len(pairs)


def kinds_of_operands() -> int:
    """Each operation with each kind of operand on both sides, and each kind of result."""
    functions = "add", "sub", "mul", "div", "max", "min"
    results = [kind for kind in KINDS if "one" not in kind]
    count = 0
    for left, right in product(KINDS, KINDS):
        function, length = functions[count % len(functions)], LENGTHS[count % len(LENGTHS)]
        rows, kind = 1 + count % (CHAIN_VECTORS + 2), results[count % len(results)]
        a, b = operand(3, (rows, length), left, 30), operand(4, (rows, length), right, 30)
        dtype, step = KINDS[kind]
        unit = dtype.itemsize
        result = room((rows, length), dtype, (unit * (abs(step) * length + 3), unit * step))
        case = f"{function} of {left} and {right} to {kind}, {rows} rows of {length}"
        check(case, Body(function), [(a, b)], result)
        count += 1
    return count


def operations() -> int:
    """Each function that kernels compute in steps, of rare numbers, in rows of some lengths."""
    bodies = [Body(name) for name in ("add", "sub", "mul", "div", "max", "min")]
    bodies += [Body(name) for name in ("relu", "neg", "square", "reciprocal", "round")]
    bodies += [Body("clip", None, (-0.5, 0.75)), Body("clip", None, (0.0, -0.0))]
    bodies += [Body("scale", None, (0.3,)), Body("shift", None, (-1.5,))]
    for body, length in product(bodies, LENGTHS):
        shape = CHAIN_VECTORS + 1, length
        operands = [operand(5 + i, shape, rare=3) for i in range(body.function_arity)]
        check(f"{body.function} of {length}", body, [operands], room(shape, F32))
    return len(bodies) * len(LENGTHS)


def merged_points() -> int:
    """Sums, products and extremes of few and of many points, of each kind of operand."""
    count = 0
    few = product(("sum", "prod", "max", "min"), ("mul", "identity", "sub"), (2, 3, 9))
    many = (("sum", "mul", n) for n in (127, 128, 129, 257, 601))
    for combiner, function, terms in (*few, *many, ("max", "identity", 300), ("min", "sub", 129)):
        rows, length = 1 + count % (CHAIN_VECTORS + 2), LENGTHS[count % len(LENGTHS)]
        body = Body(function, combiner)
        whole = [numbers(7 + i, (terms, rows, length)) for i in range(body.function_arity)]
        points = [[a[i] for a in whole] for i in range(terms)]
        case = f"{combiner} of {terms} of {function}, {rows} rows of {length}"
        check(case, body, points, room((rows, length), F32))
        count += 1
    for combiner, left, right in _pairs():
        rows, length = 1 + count % (CHAIN_VECTORS + 2), LENGTHS[count % len(LENGTHS)]
        body = Body("mul" if right else "identity", combiner)
        sides = [side for side in (left, right) if side]
        points = [
            [operand(9 + 2 * i + j, (rows, length), side) for j, side in enumerate(sides)]
            for i in range(3)
        ]
        case = f"{combiner} of 3 of {' times '.join(sides)}, {rows} rows of {length}"
        check(case, body, points, room((rows, length), F32))
        count += 1
    return count


def _pairs() -> Iterator[tuple[str, str, str]]:
    """A combiner, a kind of operand, and a kind of factor or None.

    All pairs of kinds occur in sums, and each pair with one other combiner.
    """
    others = [each for each in MERGES if each != "sum"]
    for i, (left, right) in enumerate(product(KINDS, (*KINDS, ""))):
        yield "sum", left, right
        yield others[i % len(others)], left, right


SWISH = (
    *(Stage("shift", (3.0,)), Stage("clip", (0.0, 6.0)), Stage("mul", reads=(0, 2))),
    *(Stage("square"), Stage("sub", reads=(3, 4)), Stage("square", reads=(0,))),
    *(Stage("shift", (1.0,)), Stage("div", reads=(5, 7)), Stage("add", reads=(8, 8))),
)
"""Hard swish of x, less its square, over one more than the square of x, twice."""

OPERANDS_OF_STAGES = (
    *(Stage("add"), Stage("mul"), Stage("sub", at=1), Stage("max"), Stage("min")),
    *(Stage("div"), Stage("sub"), Stage("div", at=1)),
)
"""Stages that each read one further operand."""

SIX_SAVED = tuple(
    [Stage("shift", (float(i),)) for i in range(1, SAVED_PLACES)]
    + [Stage("add", reads=(i, SAVED_PLACES - 1 + i)) for i in range(SAVED_PLACES - 1)]
)
"""Stages that save as many values as kernels can, and add them up."""


def chains_of_stages() -> int:
    """Stages that read the value before them, further operands, and values of earlier stages."""
    count = 0
    for stages, length, rows in product(
        (SWISH, OPERANDS_OF_STAGES, SIX_SAVED), LENGTHS, (1, CHAIN_VECTORS - 1, CHAIN_VECTORS + 1)
    ):
        shape = rows, length
        extras = [
            operand(20 + i, shape, [*KINDS][(i + count) % len(KINDS)])
            for i in range(sum(stage.extras for stage in stages))
        ]
        case = f"{stages[0].function} and {len(stages) - 1} stages, {rows} rows of {length}"
        x = operand(19, shape)
        check(case, Body("identity"), [(x,)], room(shape, F32), stages, extras)
        count += 1
    return count


def results_in_place() -> int:
    """Results that are written over an operand, or close to it."""
    count = 0
    for length, rows in product(LENGTHS, (1, CHAIN_VECTORS + 1)):
        for which, name in enumerate(("first", "second")):
            found, wanted = (filled(numbers(30, (rows, length))) for _ in range(2))
            other = numbers(31, (rows, length))
            case = f"{rows} rows of {length} over the {name} operand"
            points = [_ordered(found, other, which)]
            make([_call(case, Body("sub"), points, (), (), found)])
            expected_of(Body("sub"), [_ordered(wanted, other, which)], (), (), wanted)
            compare(case, found, wanted)
            count += 1
    return count


def _ordered(own: Array, other: Array, which: int) -> Sequence[Array]:
    return (other, own) if which else (own, other)


def several_dimensions() -> int:
    """Arrays of three to five dimensions that cannot be viewed with fewer."""
    shapes = (3, 4, 17), (2, 9, 5), (2, 3, 2, 19), (3, 1, 3, 33), (2, 2, 3, 2, 7)
    for shape in shapes:
        rank = len(shape)
        a = operand(40, shape)
        b = np.broadcast_to(numbers(41, [n if d % 2 else 1 for d, n in enumerate(shape)]), shape)
        c = numbers(42, shape[::-1]).transpose(range(rank)[::-1])
        result = room(shape, F32, [step + 4 * 5 for step in a.strides[:-1]] + [4])
        then = Stage("mul"), Stage("sub")
        check(f"{list(shape)}", Body("add"), [(a, b)], result, then, [c, a[..., ::-1]])
    return len(shapes)


def shared_work() -> int:
    """Many rows, and long rows, in units that threads share, in any order."""
    shapes = (8 * SPAN_OF_UNIT + 3, 37), (5, 40 * SPAN_OF_UNIT + 7)
    for shape, in_units in product(shapes, (False, True)):
        a, b = operand(50, shape), operand(51, shape, "halves")
        case = f"{shape[0]} rows of {shape[1]}" + ", by units" * in_units
        body = Body("add")
        check(case, body, [(a, b)], room(shape, F32), (Stage("relu"),), (), in_units)
    return 2 * len(shapes)


def merged_rows() -> int:
    """Rows at arbitrary places that are merged into others, as partials are."""
    lengths = 1, LANES - 1, LANES + 1, MERGED_SPAN - 1, MERGED_SPAN + 5
    heights, counts = (1, CHAIN_VECTORS - 1, CHAIN_VECTORS + 1, 3 * CHAIN_VECTORS), (1, 2, 3, 129)
    cases = 0
    for combiner, length, rows, count in product(MERGE, lengths, heights, counts):
        if length * rows * count > 1 << 14:
            continue
        partials = numbers(60, (count, rows, length + 2))
        result, wanted = (room((rows, length), F32) for _ in range(2))
        total = partials[0, :, :length]
        with np.errstate(all="ignore"):
            for each in partials[1:, :, :length]:
                total = MERGE[combiner](total, each)
        wanted[...] = total
        starts = address(partials) + np.arange(rows) * partials.strides[1]
        offsets = np.arange(count) * partials.strides[0]
        results = address(result) + np.arange(rows) * result.strides[0]
        memory = partials, result
        call = merge_call(MERGES[combiner], starts, offsets, results, length, memory)
        make([call], in_units=bool(cases % 2))
        compare(f"{combiner} of {count} times {rows} rows of {length}", result, wanted)
        cases += 1
    return cases


BATTERY: Battery = {
    "lengths of rows": lengths_of_rows,
    "kinds of operands": kinds_of_operands,
    "operations": operations,
    "merged points": merged_points,
    "chains of stages": chains_of_stages,
    "results in place": results_in_place,
    "several dimensions": several_dimensions,
    "shared work": shared_work,
    "merged rows": merged_rows,
}
