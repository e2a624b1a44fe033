"""Kernels find bytes equal exactly where NumPy does."""

from __future__ import annotations

from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tile_programs import structures

from abele.backends.host.judges import FastJudge, best_judge
from abele.backends.op_check import Judge
from abele.backends.reference import evaluate_structure
from abele.dialects.structured import Body, Stage, Structure, extras_of
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from abele.ir.support.strided import as_strided

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form


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
    monkeypatch.setenv("ABELE_KERNELS", "plain")
    assert type(best_judge()) is Judge


def batch_of_products(stages: tuple[Stage, ...]) -> Structure:
    """[3, 5, 6] by [3, 6, 7], and operands of 7 elements."""
    dims = (Dim("b", 3), Dim("m", 5), Dim("n", 7), Dim("k", 6, "reduction"))
    maps = [identity_map((0, 1, 3), (3, 5, 6)), identity_map((0, 3, 2), (3, 6, 7))]
    maps += [identity_map((2,), (7,))] * extras_of(stages)
    space = Space(dims, tuple(maps), (identity_map((0, 1, 2), (3, 5, 7)),))
    return Structure(space, Body("mul", "sum", (), stages))


def merged_along(combiner: str | None, stages: tuple[Stage, ...]) -> Structure:
    """[4, 3, 5, 7] merged along its first axis, and operands of [3, 1, 7] elements."""
    n = 4 if combiner else 1
    dims = (Dim("k", n, "reduction"), Dim("b", 3), Dim("m", 5), Dim("n", 7))
    maps = [identity_map((0, 1, 2, 3), (n, 3, 5, 7))]
    more = AccessMap((AxisMap(3, ((1, 1),)), AxisMap(1), AxisMap(7, ((3, 1),))))
    maps += [more] * extras_of(stages)
    space = Space(dims, tuple(maps), (identity_map((1, 2, 3), (3, 5, 7)),))
    return Structure(space, Body("identity", combiner, (), stages))


STAGES = ((), (Stage("add"), Stage("relu")), (Stage("mul"), Stage("tanh")))
STRUCTURES = [batch_of_products(stages) for stages in STAGES]
STRUCTURES += [
    merged_along(combiner, stages) for combiner in ("sum", "prod", "max", None) for stages in STAGES
]


@pytest.mark.parametrize("elements", [1, 40, 1 << 17])
@pytest.mark.parametrize("structure", STRUCTURES)
def test_regions_have_the_ratio_of_the_whole_result(
    structure: Structure, elements: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("abele.backends.reference.evaluation.REGION", elements)
    rng = np.random.default_rng(elements)
    given_ = [rng.normal(size=a.shape).astype(np.float32) for a in structure.space.operands]
    value, bound = evaluate_structure(structure, given_, np.dtype(np.float32), (3, 5, 7))
    at = np.unravel_index(bound.argmax(), bound.shape)
    for factor in (0.0, 0.3, 8.0, np.inf, np.nan):
        actual = value.astype(np.float32)
        actual[at] += np.float32(factor * max(bound[at], 1e-30))
        plain, fast = (
            judge.largest_ratio(structure, given_, actual, 0) for judge in (Judge(), FastJudge())
        )
        if bound[at]:
            assert factor < 1 or (plain > 1 and fast > 1)
        # Sums of float64 may be added in another order.
        np.testing.assert_allclose(fast, plain, rtol=1e-9)


@given(
    structures(),
    st.sampled_from(["float32", "float16", "int32", "float64"]),
    st.sampled_from([1, 3, 50]),
    st.integers(0, 1 << 16),
)
@settings(max_examples=60, deadline=None)
def test_regions_of_any_structure_have_the_ratio_of_the_whole_result(
    structure: Structure, dtype: str, elements: int, seed: int
):
    rng = np.random.default_rng(seed)
    given_ = [(3 * rng.normal(size=a.shape)).astype(dtype) for a in structure.space.operands]
    shape = structure.space.results[0].shape
    value, _ = evaluate_structure(structure, given_, np.dtype(dtype), shape)
    with np.errstate(all="ignore"):
        actual = value.astype(dtype)
    with mock.patch("abele.backends.reference.evaluation.REGION", elements):
        fast = FastJudge().largest_ratio(structure, given_, actual, 0)
    plain = Judge().largest_ratio(structure, given_, actual, 0)
    # In float64, the other order of a sum may be all of its error.
    np.testing.assert_allclose(fast, plain, rtol=1e-8, atol=1.0 if dtype == "float64" else 0.0)
