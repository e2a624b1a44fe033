"""Kernels find bytes equal exactly where NumPy does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.check import Judge
from abele.backends.host.judges import FastJudge, best_judge
from abele.ir.strided import as_strided

pytest.importorskip("numba")


@st.composite
def views(draw):
    """Two views of one shape, of arrays with the same bits, and what one of them is a view of."""
    dtype = np.dtype(draw(st.sampled_from(["u1", "f2", "f4", "f8", "b1"])))
    rank = draw(st.integers(0, 4))
    sizes = st.sampled_from([1, 2, 3, 5, 19])
    shape = tuple(draw(sizes) for _ in range(rank))
    rng = np.random.default_rng(draw(st.integers(0, 1 << 16)))
    held = rng.integers(0, 2 if dtype.kind == "b" else 250, shape).astype(dtype)
    order = draw(st.permutations(range(rank)))
    steps = [draw(st.integers(1, 3)) for _ in range(rank)]
    room = np.zeros([n * s for n, s in zip(shape, steps, strict=True)], dtype).transpose(order)
    other = room.transpose(np.argsort(order))[(*(slice(None, None, s) for s in steps), ...)]
    other[...] = held
    repeated = draw(st.booleans())
    if repeated:
        held = as_strided(held, (3, *shape), (0, *held.strides))
        other = np.stack([other] * 3)
    return held, other, rng


@given(views())
@settings(max_examples=100, deadline=None)
def test_kernels_find_every_bit_that_differs(drawn):
    left, right, rng = drawn
    fast, plain = FastJudge(), Judge()
    assert fast.are_equal(left, right)
    assert plain.are_equal(left, right)
    at = tuple(int(rng.integers(n)) for n in right.shape)
    changed = right.copy()
    if changed.dtype.kind == "b":
        changed[at] = not changed[at]
    else:
        bits = changed.view(f"u{changed.itemsize}")
        bits[at] ^= bits.dtype.type(1 << int(rng.integers(8 * changed.itemsize)))
    for judge in (fast, plain):
        assert not judge.are_equal(left, changed)
        assert not judge.are_equal(changed, left)


def test_equal_zeros_of_other_signs_differ_and_the_same_nan_does_not():
    for judge in (FastJudge(), Judge()):
        assert not judge.are_equal(np.zeros(3, np.float32), -np.zeros(3, np.float32))
        assert judge.are_equal(np.full(3, np.nan), np.full(3, np.nan))
        assert judge.are_equal(np.zeros((2, 0)), np.zeros((2, 0)))


def test_without_kernels_numpy_judges(monkeypatch: pytest.MonkeyPatch):
    assert type(best_judge()) is FastJudge
    monkeypatch.setenv("ABELE_FAST", "0")
    assert type(best_judge()) is Judge
