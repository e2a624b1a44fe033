"""Sums of products have the same bytes whatever adds them up."""

import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from fractions import Fraction
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info

from abele.backends.codelets import ordered
from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.cells import Cells
from abele.backends.codelets.contraction import contraction
from abele.backends.codelets.ordered import (
    TERMS,
    adds_in_order,
    fused_matmul,
    matmul_calls,
    scratch_elements,
)
from abele.dialects.structured import Body, Narrow
from abele.ir.support.number_formats import Overflow

FLOATS = st.floats(width=32, allow_nan=False, allow_infinity=False)

SIZES = ((1, 1, 5), (1, 9, 300), (7, 1, 40), (2, 3, 17), (5, 8, 8), (33, 17, 64), (12, 70, 129))


def operands(batch: int, m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    x = random.standard_normal((batch, k, m), np.float32).swapaxes(-1, -2)
    return x, random.standard_normal((batch, k, n), np.float32)


def product(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    out = np.full((*x.shape[:-1], y.shape[-1]), np.nan, np.float32)
    run_calls(matmul_calls(x, y, out, Scratch()))
    return out


def in_chains(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    total = np.zeros((), np.float32)
    for first in range(0, x.shape[-1], TERMS):
        sums = np.empty((*x.shape[:-1], y.shape[-1]), np.float32)
        fused_matmul(x[..., first : first + TERMS], y[..., first : first + TERMS, :], sums)
        total = total + sums if first else sums
    return total


def said() -> str:
    found = hashlib.sha256()
    for m, n, k in SIZES:
        found.update(product(*operands(2, m, n, k, 0)).tobytes())
    return f"{found.hexdigest()} {threadpool_info()[0]['architecture']}"


def nearest(exact: Fraction) -> np.float32:
    """The float32 nearest to a number, of two the even one."""
    if not exact:
        return np.float32(0)
    sign, exact = (-1 if exact < 0 else 1), abs(exact)
    power = max(exact.numerator.bit_length() - exact.denominator.bit_length() - 24, -149)
    while exact >= Fraction(2) ** (power + 24):
        power += 1
    # Round rounds halves to even.
    return np.float32(sign * float(round(exact / Fraction(2) ** power) * Fraction(2) ** power))


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(FLOATS, FLOATS), min_size=1, max_size=4))
def test_a_chain_rounds_once_for_each_product_that_it_adds(terms: list[tuple[float, float]]):
    expected = np.float32(0)
    for a, b in terms:
        exact = Fraction(a) * Fraction(b) + Fraction(float(expected))
        if abs(exact) >= Fraction(2) ** 127:
            return
        expected = nearest(exact)
    x, y = (np.array(side, np.float32) for side in zip(*terms, strict=True))
    out = np.empty((1, 1), np.float32)
    fused_matmul(x[None, :], y[:, None], out)
    assert out[0, 0] == expected


@settings(max_examples=40, deadline=None)
@given(
    st.integers(1, 3),
    st.sampled_from([1, 2, 3, 4, 7, 17]),
    st.sampled_from([1, 2, 8, 16, 33]),
    st.sampled_from([1, 2, 3, 7, 8, 40, TERMS, TERMS + 1, 3 * TERMS]),
    st.integers(0, 99),
)
def test_products_are_chains_of_so_many_terms(batch: int, m: int, n: int, k: int, seed: int):
    x, y = operands(batch, m, n, k, seed)
    assert product(x, y).tobytes() == in_chains(x, y).tobytes()
    turned = np.ascontiguousarray(y.swapaxes(-1, -2)).swapaxes(-1, -2)
    assert product(x, turned).tobytes() == in_chains(x, y).tobytes()


@pytest.mark.parametrize("is_in_order", [True, False])
def test_a_matrix_times_its_own_transpose_is_a_product_like_others(
    is_in_order: bool, monkeypatch: pytest.MonkeyPatch
):
    m, k = 24, 40
    monkeypatch.setattr(ordered, "adds_in_order", lambda *_: is_in_order)
    (matrix,) = operands(1, 1, m, k, 0)[1]
    size = matrix.itemsize

    def times(other: np.ndarray) -> bytes:
        out = np.empty((m, m), np.float32)
        steps = (size, 0, m * size), (0, size, m * size), (m * size, size, 0)
        a, b, result = (
            np.lib.stride_tricks.as_strided(array, (m, m, k), strides)
            for array, strides in zip((matrix, other, out), steps, strict=True)
        )
        run_calls(contraction(Cells(Body("mul", "sum"), (a, b), result, (2,)), Scratch()))
        return out.tobytes()

    assert times(matrix) == times(matrix.copy())


@settings(max_examples=40, deadline=None)
@given(st.sampled_from([1, 2, 9]), st.sampled_from([1, 2, 9]), st.sampled_from([5, 3 * TERMS]))
def test_scratch_stays_within_the_declared_size(rows: int, columns: int, depth: int):
    x, y = operands(3, rows, columns, depth, 0)
    taken: dict[str, int] = {}

    class Counting(Scratch):
        def take(self, purpose: str, shape: Sequence[int], dtype: np.dtype) -> np.ndarray:
            taken[purpose] = max(taken.get(purpose, 0), prod(shape))
            return super().take(purpose, shape, dtype)

    matmul_calls(x, y, np.empty((3, rows, columns), np.float32), Counting())
    assert sum(taken.values()) == 3 * scratch_elements(rows, columns, depth)


@pytest.mark.parametrize("rows", [(), (3,), (2, 3)])
def test_only_so_many_rows_are_left_to_blas_as_it_adds_up_in_order(
    rows: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
):
    x, y = operands(2, 17, 8, 40, 0)
    expected = in_chains(x, y)
    asked: list[int] = []

    def adds(rows_: int, columns: int, depth: int, is_row_major: bool) -> bool:
        asked.append(rows_)
        return rows_ in rows and adds_in_order(rows_, columns, depth, is_row_major)

    monkeypatch.setattr(ordered, "adds_in_order", adds)
    assert product(x, y).tobytes() == expected.tobytes()
    assert asked[0] == 17


@pytest.mark.skipif(platform.machine() != "x86_64", reason="kernels of BLAS for x86 are asked for")
def test_bytes_are_the_same_with_all_kernels_of_blas():
    seen: dict[str, str] = {}
    for core in ("", "Nehalem", "Sandybridge", "Haswell"):
        environment = {**os.environ, "OPENBLAS_CORETYPE": core}
        done = subprocess.run(
            [sys.executable, __file__], env=environment, capture_output=True, text=True, check=True
        )
        digest, kernels = done.stdout.split()
        seen[kernels] = digest
    assert len(seen) >= 3
    assert len(set(seen.values())) == 1


if __name__ == "__main__":
    print(said())


def rounded_sums(x: np.ndarray, y: np.ndarray, terms: int, overflow: Overflow) -> np.ndarray:
    """The product of two matrices of halves, whose sum is a half after every so many terms."""
    total = np.zeros((len(x), y.shape[1]), np.float32)
    for first in range(0, x.shape[1], terms):
        part = np.zeros_like(total)
        for k in range(first, min(first + terms, x.shape[1])):
            exact = x[:, k, None].astype(np.longdouble) * y[k].astype(np.longdouble)
            part = (part.astype(np.longdouble) + exact).astype(np.float32)
        with np.errstate(over="ignore"):
            half = (total + part).astype(np.float16).astype(np.float32)
        limit = {Overflow.INFINITY: np.inf, Overflow.CLIP: 65504.0, Overflow.NAN: np.nan}[overflow]
        total = np.where(np.isinf(half), np.copysign(limit, half), half).astype(np.float32)
    return total


@pytest.mark.parametrize("overflow", Overflow)
@pytest.mark.parametrize(("m", "n", "k", "terms"), [(5, 8, 67, 16), (1, 9, 300, 16), (7, 1, 40, 8)])
def test_a_narrow_sum_is_rounded_once_after_each_pass(m, n, k, terms, overflow):
    random = np.random.default_rng(m)
    x = random.integers(-99, 99, (m, k)).astype(np.float16) * np.float16(0.25)
    y = random.integers(-99, 99, (k, n)).astype(np.float16)
    x[0] *= np.float16(64)
    out = np.empty((m, n), np.float16)
    body = Body("mul", "sum", narrow=Narrow(terms, overflow))
    views = [
        np.lib.stride_tricks.as_strided(a, (m, n, k), steps)
        for a, steps in (
            (x, (x.strides[0], 0, x.strides[1])),
            (y, (0, y.strides[1], y.strides[0])),
            (out, (*out.strides, 0)),
        )
    ]
    run_calls(contraction(Cells(body, tuple(views[:2]), views[2], (2,)), Scratch()))
    expected = rounded_sums(x, y, terms, overflow)
    assert (np.abs(expected) >= 65504).any() or np.isnan(expected).any()
    np.testing.assert_array_equal(out, expected.astype(np.float16))
