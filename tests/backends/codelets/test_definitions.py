"""Scalar functions, combiners and rules for indices agree with their second definitions."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import Any, get_args

import numpy as np
import pytest
from tile_programs import Case

from abele.backends.codelets.conversion import compute_dtype, float_limits
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS, ScalarFunction
from abele.dialects.abele import Plan
from abele.dialects.dtypes import ELEMENTS, STORED, numpy_dtype
from abele.dialects.scalar_functions import COMBINERS, FUNCTIONS
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.space import AxisMap, Dim, Division, Outside, Space, identity_map
from abele.ir.support.number_kinds import is_floating, whole_limits

from . import definitions
from .definitions import ANY_ZERO, APPROXIMATE, as_integer
from .test_numerics import run

DTYPES = sorted((numpy_dtype(each) for each in ELEMENTS if each not in STORED), key=str)
ONLY_STORED = sorted((numpy_dtype(each) for each in ELEMENTS if each in STORED), key=str)
PARAMETERS: dict[str, tuple[tuple[float, ...], ...]] = {
    "leaky_relu": ((0.5,), (-2.0,), (0.1,)),
    "clip": ((-1.0, 2.0), (0.5, 6.25), (2.0, -2.0)),
    "scaled_mul": ((1.0,), (4.0,), (64.0,)),
    "scale": ((-1.0,), (3.0,), (0.1,)),
    "shift": ((-1.0,), (5.0,), (0.3,)),
    "random_bits": ((0.0,), (16777215.0,)),
    "to_nearest": ((11.0, -14.0, 65504.0, 0.0), (4.0, -7.0, 240.0, 1.0), (5.0, 1.0, 248.0, 2.0)),
    "drawn": ((11.0, -14.0, 65504.0, 0.0), (4.0, -7.0, 240.0, 1.0), (5.0, 1.0, 248.0, 2.0)),
    "by_word": ((11.0, -14.0, 65504.0, 0.0), (4.0, 3.0, 57344.0, 1.0)),
    "stochastic": ((3.0, 11.0, -14.0, 65504.0, 0.0), (4.0, 3.0, -15.0, 57344.0, 1.0)),
    "to_code": ((5.0, 1.0), (4.0, -7.0), (11.0, -14.0)),
    "from_code": ((5.0, 1.0), (4.0, -7.0), (11.0, -14.0)),
    "packed_mul": ((4.0,), (8.0,), (2.0,)),
    "power": ((2.0,), (1.0,), (-1.0,), (3.0,), (300.0,), (-2.0,), (-3.0,), (0.5,), (-0.75,)),
}
MOST_POINTS = 1000
ORDINARY = (0.0, 1.0, 0.5, 1.5, 2.0, 3.0, 7.0, 10.0)


def test_every_function_combiner_and_rule_has_a_second_definition():
    assert set(definitions.FLOATS) == set(FUNCTIONS)
    assert set(definitions.INTEGERS) == set(FUNCTIONS)
    assert set(definitions.COMBINERS) == set(COMBINERS)
    assert set(definitions.OUTSIDE) == set(get_args(Outside))
    assert set(definitions.DIVISION) == set(get_args(Division))
    assert set(PARAMETERS) == {name for name, known in FUNCTIONS.items() if known.parameters}


def numbers(dtype: np.dtype[Any]) -> np.ndarray:
    """Special and ordinary numbers of a dtype."""
    if dtype == np.bool_:
        return np.array([False, True])
    if not is_floating(dtype):
        limits = whole_limits(dtype)
        near = (limits.min, limits.min + 1, limits.max - 1, limits.max)
        small = range(max(-8, limits.min), min(9, limits.max))
        return np.array(sorted({*near, *small, int(limits.max) // 3}), dtype)
    known = float_limits(dtype)
    some = (
        *ORDINARY,
        known.largest,
        known.smallest_normal,
        known.smallest_subnormal,
        1 + 2 * known.roundoff,
        math.inf,
    )
    return np.array([*some, *(-x for x in some), math.nan], np.float64).astype(dtype)


def rounded(values: list[float], dtype: np.dtype[Any]) -> np.ndarray:
    """Numbers rounded to the dtype that functions are computed in, then to their own."""
    with np.errstate(all="ignore"):
        return np.array(values, np.float64).astype(compute_dtype(dtype)).astype(dtype)


def problem(function: ScalarFunction, dtype: np.dtype[Any]) -> str | None:
    """Where a function of a dtype differs from its second definition; None if nowhere."""
    for parameters in PARAMETERS.get(function.name, ((),)):
        kinds = [np.dtype(np.bool_)] * function.values
        kinds += [dtype] * (function.arity - function.values)
        # Of five operands there are millions.
        columns = [numbers(k)[:: 1 if i < 3 else 9] for i, k in enumerate(kinds)]
        points = list(product(*columns))
        # Of three operands there are thousands. The step shares no factor with their numbers.
        points = points[:: 1 if len(points) <= MOST_POINTS else 13 * -(-len(points) // 50_000)]
        operands = [np.array(column, k) for column, k in zip(zip(*points), kinds, strict=True)]
        found = function.apply(parameters, *operands)
        table = compare_floats if is_floating(dtype) else compare_integers
        wrong = table(function, dtype, parameters, operands, found)
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            given = ", ".join(str(operand[at]) for operand in operands)
            return f"{function.name}({given}) of {dtype} with {parameters} is {found[at]}"
    return None


def compare_floats(
    function: ScalarFunction,
    dtype: np.dtype[Any],
    parameters: tuple[float, ...],
    operands: list[np.ndarray],
    found: np.ndarray,
) -> np.ndarray:
    computing = compute_dtype(dtype)
    constants = [float(computing.type(p)) for p in parameters]
    columns = zip(*(operand.astype(np.float64).tolist() for operand in operands), strict=True)
    exact = [definitions.FLOATS[function.name](*point, *constants) for point in columns]
    if function.boolean:
        return found != np.array(exact)
    ulps = APPROXIMATE.get(function.name, 0)
    limits = float_limits(computing)
    slack = [
        ulps * (2 * limits.roundoff * abs(x) + limits.smallest_subnormal) if ulps else 0.0
        for x in exact
    ]
    finite = [s if math.isfinite(s) else 0.0 for s in slack]
    low = rounded([x - s for x, s in zip(exact, finite, strict=True)], dtype)
    high = rounded([x + s for x, s in zip(exact, finite, strict=True)], dtype)
    found, low, high = (each.astype(np.float64) for each in (found, low, high))
    is_right = (low <= found) & (found <= high) | np.isnan(low) & np.isnan(found)
    if function.name not in ANY_ZERO and not ulps:
        is_right &= (np.signbit(low) == np.signbit(found)) | np.isnan(found)
    return ~is_right


def compare_integers(
    function: ScalarFunction,
    dtype: np.dtype[Any],
    parameters: tuple[float, ...],
    operands: list[np.ndarray],
    found: np.ndarray,
) -> np.ndarray:
    columns = zip(*(operand.tolist() for operand in operands), strict=True)
    columns = [tuple(map(int, point)) for point in columns]
    exact = [definitions.INTEGERS[function.name](*point, *parameters) for point in columns]
    if function.boolean:
        return found != np.array(exact)
    computing = compute_dtype(dtype)
    whole = [as_integer(x, computing) for x in exact]
    if dtype == np.bool_:
        return found != np.array([x != 0 for x in whole])
    # Large integers go through float64, where a last bit may differ before it is truncated.
    slack = [abs(x) >> 48 if isinstance(e, float) else 0 for x, e in zip(whole, exact, strict=True)]
    pairs = zip(found.tolist(), whole, slack, strict=True)
    return np.array([abs(a - b) > s for a, b, s in pairs])


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_scalar_function_agrees_with_its_second_definition(name: str, dtype: np.dtype[Any]):
    assert problem(SCALAR_FUNCTIONS[name], dtype) is None


@pytest.mark.parametrize("dtype", ONLY_STORED, ids=str)
@pytest.mark.parametrize("name", [name for name, known in FUNCTIONS.items() if known.stored])
def test_elements_that_are_only_stored_keep_their_values(name: str, dtype: np.dtype[Any]):
    assert problem(SCALAR_FUNCTIONS[name], dtype) is None


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind == "i"], ids=str)
def test_a_division_of_integers_that_rounds_down_is_found(dtype: np.dtype[Any]):
    def rounds_down(parameters: Any, arrays: Any, out: Any, computing: Any) -> None:
        a, b = arrays
        out[...] = np.where(b == 0, 0, np.floor_divide(a, b))

    wrong = replace(SCALAR_FUNCTIONS["div"], kernel=rounds_down)
    with np.errstate(all="ignore"):
        assert str(problem(wrong, dtype)).startswith("div(-")


# Combiners


def reduced(combiner: str, values: np.ndarray) -> Any:
    """What a combiner makes of the values of a dtype, on one tile."""
    (n,) = values.shape
    space = Space(
        (Dim("i", 1), Dim("k", n, "reduction")),
        (identity_map((0, 1), (1, n)),),
        (identity_map((0,), (1,)),),
    )
    case = Case(
        Structure(space, Body("identity", combiner)), Plan((1, 1)), (values.dtype,) * 2, 1, 0
    )
    return run(case, [values[None]])[0]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize(
    "combiner", sorted(set(COMBINERS) - {"last"})
)  # It only updates an operand.
def test_a_combiner_agrees_with_its_second_definition(combiner: str, dtype: np.dtype[Any]):
    some = numbers(dtype)
    runs = [some[at : at + length] for length in (1, 2, 5) for at in range(len(some) - length + 1)]
    for values in runs:
        if combiner == "pick":
            # At most one value may have bits that are not zero.
            kept = np.arange(len(values)) == len(values) // 2
            values = np.where(kept, values, np.zeros_like(values))
        with np.errstate(all="ignore"):
            found = reduced(combiner, values)
        if not is_floating(dtype):
            exact = int(definitions.COMBINERS[combiner](values.astype(object).tolist()))
            whole = as_integer(exact, compute_dtype(dtype))
            assert found == (whole != 0 if dtype == np.bool_ else whole), values
            continue
        exact = float(definitions.COMBINERS[combiner](values.astype(np.float64).tolist()))
        if (
            not np.isfinite(rounded([exact], dtype)[0])
            or np.abs(values.astype(np.float64)).max() > 1e3
        ):
            # Where sums and products overflow on the way depends on their order.
            if combiner in ("max", "min", "pick"):
                np.testing.assert_array_equal(float(found), float(rounded([exact], dtype)[0]))
            continue
        size = np.abs(values.astype(np.float64))
        scale = {"sum": size.sum(), "prod": abs(exact)}.get(combiner, 0.0)
        limits = float_limits(dtype)
        slack = (len(values) + 1) * limits.roundoff * scale + limits.smallest_subnormal
        assert abs(float(found) - exact) <= (slack if combiner in ("sum", "prod") else 0), values


# Rules for indices


@pytest.mark.parametrize("outside", get_args(Outside))
@pytest.mark.parametrize("division", get_args(Division))
def test_a_rule_for_indices_agrees_with_its_second_definition(division: Division, outside: Outside):
    numerators = np.arange(-30, 31)
    for size, divisor in product((1, 2, 3, 7), (1, 2, 3, 5)):
        axis = AxisMap(size, ((0, 1),), 0, divisor, division, outside)
        found = axis.resolve(numerators).tolist()
        for numerator, index in zip(numerators.tolist(), found, strict=True):
            quotient = definitions.DIVISION[division](numerator, divisor)
            expected = -1 if quotient is None else definitions.OUTSIDE[outside](quotient, size)
            assert index == expected, (numerator, size, divisor)
