"""Every stated meaning of a scalar function gives what NumPy computes."""

from __future__ import annotations

from itertools import product
from math import copysign, inf, isfinite, isinf, nan
from random import Random

import numpy as np
import pytest

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.dialects.scalar_functions import FUNCTIONS
from abele.dialects.scalar_meanings import BASIC, DEFINITIONS, LAWS, UNKNOWN, has_meaning
from abele.ir.element_types import dtype_named
from abele.tools.proving.scalars.evaluate import values_of
from abele.tools.proving.scalars.ieee import Bits
from abele.tools.proving.scalars.library import z3
from abele.tools.proving.scalars.reals import Reals, value_in, whole_in
from abele.tools.proving.scalars.types import TRUTH, is_float, limits
from abele.tools.proving.scalars.unfold import unfolded
from abele.tools.proving.terms import Apply, Const, Term, Var

SOLVER = z3.Solver()
_ = SOLVER.check()
NOTHING = SOLVER.model()
"""A model without values: every formula here is a constant."""

FLOATS = (0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 3.0, 1e-3, inf, -inf, nan)
SOME = 24
"""Combinations of several operands for each test."""
PARAMETERS = {
    "scale": ((3.0,), (-0.5,), (0.0,)),
    "shift": ((2.0,), (-0.75,)),
    "leaky_relu": ((0.5,), (-2.0,)),
    "clip": ((-1.5, 2.5), (0.0, 6.0), (-inf, 3.0)),
    "power": ((0.0,), (1.0,), (2.0,), (3.0,), (-1.0,), (-2.0,), (0.5,), (0.25,), (-0.75,)),
    "scaled_mul": ((0.125,),),
    "packed_mul": ((4.0,),),
}
STATED = sorted(name for name in FUNCTIONS if name not in LAWS and name not in UNKNOWN)
"""The functions that a solver computes at known operands."""


sample = Random(5).sample


def _points(dtype: str) -> tuple[float, ...]:
    if is_float(dtype):
        return FLOATS
    low, high = limits(dtype)
    near = (0, 1, 2, 3, 7, 8, -1, -2, -5, low, low + 1, high, high - 1)
    return tuple(dict.fromkeys(value for value in near if low <= value <= high))


def _applied(name: str, dtype: str, values: tuple[float, ...], parameters: tuple[float, ...]):
    """The function of constants, and of variables at the same values."""
    function = FUNCTIONS[name]
    kinds = [TRUTH if i < function.values else dtype for i in range(function.arity)]
    result = TRUTH if function.boolean else dtype
    known: list[Term] = [Const(v, kind) for v, kind in zip(values, kinds, strict=True)]
    unknown = [Var(f"x{i}", kind) for i, kind in enumerate(kinds)]
    points = {
        each: np.array([value]).astype(dtype_named(each.dtype))
        for each, value in zip(unknown, values, strict=True)
    }
    computed = values_of(Apply(name, tuple(unknown), result, parameters), points, 1)[0]
    return Apply(name, tuple(known), result, parameters), computed


def _cases(name: str, dtype: str):
    """Operands and parameters: all single operands, and some of all combinations of several."""
    function = FUNCTIONS[name]
    numbers = function.arity - function.values
    choices = [*product(*[(0, 1)] * function.values, *[_points(dtype)] * numbers)]
    chosen = choices if numbers == 1 else sample(choices, min(len(choices), SOME))
    for parameters in PARAMETERS.get(name, ((),)):
        for values in chosen:
            yield values, parameters


def _is_same(a: float, b: float, name: str) -> bool:
    if a != a or b != b:
        return a != a and b != b
    if isinf(a) or isinf(b):
        return a == b
    if a == 0.0 == b:
        # Of zeros with different signs, either may be the larger one.
        ties = name in ("max", "min", "relu", "clip")
        return ties or copysign(1.0, a) == copysign(1.0, b)
    return abs(a - b) <= 2.0**-40 * max(abs(a), abs(b))


@pytest.mark.parametrize("name", STATED)
def test_the_meaning_of_a_function_of_real_numbers_is_what_numpy_computes(name: str):
    for values, parameters in _cases(name, "f64"):
        if name in ("mod", "fmod", *BITWISE) or name == "packed_mul":
            continue
        term, computed = _applied(name, "f64", values, parameters)
        reading = Reals(finite=False)
        formula = reading.formula(unfolded(term))
        if reading.calls:
            continue
        stated = (
            value_in(NOTHING, formula)
            if is_float(term.dtype)
            else whole_in(NOTHING, formula, term.dtype)
        )
        assert _is_same(float(computed), stated, name), (values, parameters, computed, stated)


BITWISE = tuple(name for name in FUNCTIONS if name.startswith(("bitwise", "shift_")))


@pytest.mark.parametrize("name", STATED)
def test_the_meaning_of_a_function_of_bits_is_what_numpy_computes(name: str):
    for values, parameters in _cases(name, "f32"):
        term, computed = _applied(name, "f32", values, parameters)
        reading = Bits()
        formula = z3.simplify(reading.formula(unfolded(term, to_the_bit=True)))
        if reading.opaque:
            continue
        if not is_float(term.dtype):
            assert bool(z3.is_true(formula)) == bool(computed), (values, parameters)
            continue
        known = z3.simplify(reading.float_constant(float(computed), "f32"))
        zeros = name in ("max", "min", "relu", "clip") and computed == 0
        same = z3.fpEQ(formula, known) if zeros else formula == known
        assert z3.is_true(z3.simplify(same)), (values, parameters, computed, formula)


@pytest.mark.parametrize("dtype", ["i8", "ui16", "ui64", "i1"])
@pytest.mark.parametrize("name", STATED)
def test_the_meaning_of_a_function_of_integers_is_what_numpy_computes(name: str, dtype: str):
    for values, parameters in _cases(name, dtype):
        term, computed = _applied(name, dtype, values, parameters)
        reading = Bits()
        formula = reading.formula(unfolded(term))
        if reading.opaque:
            continue
        stated = whole_in(NOTHING, z3.simplify(formula), term.dtype)
        assert stated == int(computed), (values, parameters, computed, stated)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        *(("f32", each) for each in ("i8", "ui8", "i32", "i64", "i1", "f16", "f64")),
        *((each, "f32") for each in ("i8", "ui8", "i32", "i1", "f16", "f64")),
        *(("i32", each) for each in ("i8", "ui8", "ui32", "i64", "i1")),
        *(("i1", each) for each in ("i8", "ui64")),
    ],
)
def test_a_cast_is_what_numpy_computes(source: str, target: str):
    points = (*_points(source), *((1e6, -300.0, 70000.0, 3e9, -3e38) if is_float(source) else ()))
    for value in points:
        with np.errstate(over="ignore"):
            operand = np.array([value]).astype(dtype_named(source))
        value = operand[0].item()
        variable = Var("x", source)
        cast = Apply("identity", (variable,), target)
        computed = values_of(cast, {variable: operand}, 1)[0]
        formula = z3.simplify(Bits().formula(Apply("identity", (Const(value, source),), target)))
        if is_float(target):
            known = z3.simplify(Bits().float_constant(float(computed), target))
            assert formula.eq(known), (value, computed, formula)
        else:
            assert whole_in(NOTHING, formula, target) == int(computed), (value, computed)


@pytest.mark.parametrize("name", sorted(LAWS))
def test_the_laws_of_a_function_hold_for_what_numpy_computes(name: str):
    laws, function = LAWS[name], SCALAR_FUNCTIONS[name]

    def f(values: np.ndarray) -> np.ndarray:
        return function.apply((), np.asarray(values, np.float64))

    for at, value in laws.at:
        (computed,) = f(np.array([at]))
        assert computed == pytest.approx(value, nan_ok=True), at
    low, high = laws.domain
    inside = np.sort(np.random.default_rng(3).uniform(max(low, -6.0), min(high, 6.0), 300))
    made = f(inside)
    assert np.isfinite(made).all()
    far = 1e-12 * np.maximum(1.0, np.abs(made))
    assert (made >= laws.bounds[0] - far).all()
    assert (made <= laws.bounds[1] + far).all()
    if laws.direction:
        assert (np.diff(made) * laws.direction >= -far[1:]).all()
    for beyond in (low - 0.5, high + 0.5):
        if isfinite(beyond):
            assert np.isnan(f(np.array([beyond]))[0])
    assert np.isnan(f(np.array([nan]))[0])
    if laws.parity:
        assert np.allclose(f(-inside), laws.parity * made, rtol=1e-12, atol=0)
        if laws.parity < 0:
            assert np.signbit(f(np.array([-0.0]))[0])
    if laws.inverse:
        inverse = SCALAR_FUNCTIONS[laws.inverse]
        given = np.random.default_rng(4).uniform(*_moderate(laws.inverse), 300)
        assert np.allclose(f(inverse.apply((), given)), given, rtol=1e-9, atol=1e-9)
    if laws.turns_sums:
        assert np.allclose(f(inside[:-1] + inside[1:]), made[:-1] * made[1:])


def _moderate(name: str) -> tuple[float, float]:
    low, high = LAWS[name].domain
    return max(low, -3.0), min(high, 3.0)


def test_a_meaning_is_stated_for_every_function_or_the_reason_why_there_is_none():
    for name in FUNCTIONS:
        assert has_meaning(name, whole=True) or has_meaning(name, whole=False) or name in UNKNOWN
    assert not BASIC & set(DEFINITIONS)
    assert not set(DEFINITIONS) & set(LAWS)
