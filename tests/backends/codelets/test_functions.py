"""Functions of abele's own are right to half a unit in the last place, and the same everywhere."""

import math
from collections.abc import Callable
from hashlib import sha256

import numpy as np
import pytest
from numpy.polynomial import Chebyshev, Polynomial

from abele.backends.codelets import functions
from abele.backends.codelets.functions import PROGRAMS, RIGHT_ANGLES, SEQUENCES
from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.codelets.sequences import NumpyProgram, sequence
from abele.tools.testing.all_floats import wrong

EDGES = np.array(
    [0.0, -0.0, 1, -1, 0.5, 2, -2, 3, 88.7, 88.8, -103.9, -104.1, 2.0**24, 2.0**30, 1e-45, -1e-45]
    + [np.finfo(np.float32).max, np.finfo(np.float32).tiny, np.inf, -np.inf, np.nan],
    np.float32,
)


def floats(step: int = 257 * 127) -> np.ndarray:
    """Floats of all sizes and signs, and those at which functions end."""
    bits = np.arange(0, 1 << 32, step, dtype=np.int64).astype(np.uint32)
    return np.concatenate([bits.view(np.float32), EDGES])


def pairs() -> tuple[np.ndarray, np.ndarray]:
    """Operands for a function of two: all pairs of edges, and pairs whose power is a number."""
    rng = np.random.default_rng(2)
    x, y = (each.ravel() for each in np.meshgrid(EDGES, EDGES))
    bases = np.exp(rng.normal(size=20000) * 20).astype(np.float32)
    powers = (rng.normal(size=20000) * rng.choice([0.1, 3], 20000)).astype(np.float32)
    return np.concatenate([x, bases, -bases]), np.concatenate([y, powers, np.rint(powers)])


OPERANDS = {1: lambda: (floats(), floats()[::-1]), 2: pairs}


@pytest.mark.parametrize("name", SEQUENCES)
def test_a_result_is_right_to_half_a_unit_in_the_last_place(name: str):
    x, y = OPERANDS[SCALAR_FUNCTIONS[name].arity]()
    assert not len(wrong(name, x, y))


def test_one_wrong_digit_of_a_polynomial_is_found(monkeypatch: pytest.MonkeyPatch):
    first, second, *rest = functions.EXP
    monkeypatch.setattr(functions, "EXP", (first, second * (1 + 2.0**-24), *rest))
    program = NumpyProgram(sequence(functions._exp, 1))
    x = np.linspace(-10, 10, 10001, dtype=np.float32)
    out = np.empty_like(x)
    program.run((x,), out)
    exact = np.exp(x.astype(float))
    unit = np.spacing(exact.astype(np.float32))
    assert (np.abs(out - exact) > 0.51 * unit).any()


def digest(name: str) -> str:
    """A digest of the results of a function, in which all NaN are one."""
    operands = (floats(), floats()[::-1])[: SEQUENCES[name].operands]
    out = np.empty_like(operands[0])
    PROGRAMS[name].run(operands, out)
    out[np.isnan(out)] = np.nan
    return sha256(out.astype("<f4").tobytes()).hexdigest()[:12]


DIGESTS = {
    "exp": "dfd6d1e1a549",
    "log": "c6a2556b759c",
    "sqrt": "6276da868428",
    "tanh": "01638f25b96c",
    "sigmoid": "6c92cbde00c9",
    "softplus": "6e753d12961a",
    "erf": "20297ac708a3",
    "sin": "2b8f88453c69",
    "cos": "bffe25dba3b0",
    "tan": "7bc3284c33fd",
    "asin": "b16b0ec8e895",
    "acos": "2a9cf3443977",
    "atan": "0d7aa57d120a",
    "sinh": "fccd406182d2",
    "cosh": "f4a01fa1f139",
    "asinh": "1b5c953ab9aa",
    "acosh": "af0b2714c941",
    "atanh": "735da894a4fc",
    "pow": "fe8e79bcb73f",
    "abs": "73b2c878251a",
    "leaky_relu": "6487fb5869a6",
}


@pytest.mark.parametrize("name", SEQUENCES)
def test_results_are_the_same_bytes_on_every_processor(name: str):
    assert digest(name) == DIGESTS[name]


def series(term: Callable[[int], float]) -> Callable[[float], float]:
    return lambda w: math.fsum(term(j) * w**j for j in range(60))


def of_root(function: Callable[[float], float], at_0: float) -> Callable[[float], float]:
    """f(x) / x in x^2."""
    return lambda w: function(math.sqrt(w)) / math.sqrt(w) if w > 1e-12 else at_0


def factorial(n: int) -> float:
    return float(math.factorial(n))


ANGLE = (0.626 * math.pi / 2) ** 2
FITS = {
    "EXP": (series(lambda j: 1 / factorial(j + 1)), -math.log(2) / 2, math.log(2) / 2),
    "LOG": (series(lambda j: 2 / (2 * j + 3)), 0, 0.02944),
    "SIN": (series(lambda j: (-1) ** (j + 1) / factorial(2 * j + 3)), 0, ANGLE),
    "COS": (series(lambda j: (-1) ** (j + 1) / factorial(2 * j + 2)), 0, ANGLE),
    "ATAN": (of_root(math.atan, 1), 0, 1),
    "ERF": (of_root(math.erf, 2 / math.sqrt(math.pi)), 0, 1),
    "LOG_ERFC": (lambda x: math.log(math.erfc(x)), 1, 4),
}


@pytest.mark.parametrize("name", FITS)
def test_polynomials_interpolate_at_chebyshev_points(name: str):
    function, low, high = FITS[name]
    recorded = getattr(functions, name)
    of_arrays = np.vectorize(function, otypes=[float])
    fitted = Chebyshev.interpolate(of_arrays, len(recorded) - 1, [low, high])
    x = np.linspace(low, high, 999)
    exact = of_arrays(x)
    np.testing.assert_allclose(Polynomial(recorded)(x), fitted(x), rtol=1e-10)
    np.testing.assert_allclose(Polynomial(recorded)(x), exact, rtol=2.0**-32)


def test_the_pieces_of_a_right_angle_are_those_of_pi():
    first, second, third = (piece[0] for piece in RIGHT_ANGLES)
    assert first + second + third == 2 / math.pi
    # A number of 24 bits and a piece of 29 have an exact product.
    assert all(float(each * 2.0**57).is_integer() for each in (first, second))


def test_operands_that_overlap_the_result_are_read_before_they_are_written():
    memory = np.linspace(0, 1, 20001, dtype=np.float32)
    need = np.empty(20000, np.float32)
    PROGRAMS["exp"].run((memory[:-1].copy(),), need)
    PROGRAMS["exp"].run((memory[:-1],), memory[1:])
    np.testing.assert_array_equal(memory[1:], need)


def test_a_value_is_of_one_kind():
    with pytest.raises(AssertionError, match="and of number"):
        sequence(lambda x: (x.bits & x).number, 1)


def test_an_operand_that_is_the_result_is_passed_through():
    program = NumpyProgram(sequence(lambda x: x, 1))
    out = np.empty(3, np.float32)
    program.run((np.array([1, -0.0, 3], np.float32),), out)
    assert out.tolist() == [1, -0.0, 3]
