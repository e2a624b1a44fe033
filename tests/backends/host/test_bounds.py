"""Ratios of errors to bounds that a kernel computes are those of NumPy, to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from abele.backends.host.bounds import largest_ratio
from abele.backends.reference.compare import worst_of
from abele.backends.reference.merged import Merged
from abele.backends.reference.structure import merged_regions
from abele.dialects.structured import Body, Stage, Structure, extras_of
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form

M, N, K = 9, 70, 6

STAGES = [
    *map(Stage, ("add", "sub", "mul", "div", "max", "min", "relu", "neg", "square", "reciprocal")),
    *(Stage(name, at=1) for name in ("sub", "div", "max")),
    *(Stage("mul", reads=reads) for reads in ((0, 0), (1, 0), (0, 2), (1, 2))),
    *(Stage("sub", reads=reads) for reads in ((0, 1), (1, -1), (-1, 0))),
]

BODIES = [
    ("mul", "sum"),
    ("add", "sum"),
    ("sub", "prod"),
    ("identity", "sum"),
    ("identity", "prod"),
    ("identity", "max"),
    ("identity", "min"),
    ("add", None),
    ("identity", None),
    ("max", None),
]


@st.composite
def chains(draw) -> tuple[Stage, ...]:
    stages: list[Stage] = []
    for each in draw(st.lists(st.sampled_from(STAGES), max_size=4)):
        if all(k <= len(stages) for k in each.reads):
            stages.append(each)
    return tuple(stages)


def structure_of(function: str, combiner: str | None, stages: tuple[Stage, ...]) -> Structure:
    """[9, 6] and [6, 70] into [9, 70], then stages with operands that repeat in all ways."""
    k = K if combiner else 1
    dims = (Dim("m", M), Dim("n", N), Dim("k", k, "reduction"))
    maps = [identity_map((0, 2), (M, k)), identity_map((2, 1), (k, N))]
    if function == "identity":
        maps = [identity_map((0, 1, 2), (M, N, k))]
    kinds = (
        identity_map((1,), (N,)),
        AccessMap((AxisMap(M, ((0, 1),)), AxisMap(1))),
        identity_map((0, 1), (M, N)),
        AccessMap((AxisMap(1),)),
    )
    maps += [kinds[i % 4] for i in range(extras_of(stages))]
    space = Space(dims, tuple(maps), (identity_map((0, 1), (M, N)),))
    return Structure(space, Body(function, combiner, (), stages))


def merged_structure(structure: Structure, operands: list[np.ndarray], dtype: np.dtype) -> Merged:
    """What a result begins with, in one region."""
    ((_, merged),) = merged_regions(structure, operands, np.zeros((M, N), dtype))
    return merged


RARE = [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-40, -1e-40, 3e38, -3e38, 1.0]


def numbers(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: str, rare: float
) -> np.ndarray:
    found = rng.normal(size=shape) * 10.0 ** rng.integers(-3, 3, shape)
    found = np.where(rng.random(shape) < rare, rng.choice(RARE, shape), found)
    with np.errstate(all="ignore"):
        return found.astype(dtype)


@given(
    st.sampled_from(BODIES),
    chains(),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([0.0, 0.001, 0.2]),
    st.integers(0, 1 << 16),
)
@settings(max_examples=150, deadline=None)
def test_a_kernel_finds_the_ratio_of_numpy_to_the_bit(body, stages, dtype, rare, seed):
    structure = structure_of(*body, stages)
    rng = np.random.default_rng(seed)
    operands = [numbers(rng, a.shape, dtype, rare) for a in structure.space.operands]
    merged = merged_structure(structure, operands, np.dtype(dtype))
    value, bound = merged.bounded()
    with np.errstate(all="ignore"):
        shift = np.where(np.isfinite(bound), bound, 0.0) * rng.normal()
        right = (value + shift).astype(dtype)
    wrong = np.where(rng.random(right.shape) < rare, numbers(rng, right.shape, dtype, 0.5), right)
    for actual in (right, wrong):
        ratio = largest_ratio(merged, actual)
        assert ratio is not None
        np.testing.assert_equal(ratio, worst_of(actual, value, bound).ratio)


@given(st.sampled_from(BODIES), chains(), st.integers(0, 1 << 16))
@settings(max_examples=20, deadline=None)
def test_the_ratio_of_each_element_is_that_of_numpy(body, stages, seed):
    """The largest ratio hides all others, so each of some elements is made the one that is off."""
    structure = structure_of(*body, stages)
    rng = np.random.default_rng(seed)
    operands = [numbers(rng, a.shape, "float32", 0.05) for a in structure.space.operands]
    merged = merged_structure(structure, operands, np.dtype(np.float32))
    value, bound = merged.bounded()
    with np.errstate(all="ignore"):
        right, off = value.astype(np.float32), (value + 1e6 * bound).astype(np.float32)
    for i in rng.integers(0, M * N, 20):
        actual = right.copy()
        actual.flat[i] = off.flat[i]
        np.testing.assert_equal(largest_ratio(merged, actual), worst_of(actual, value, bound).ratio)


@pytest.mark.parametrize(
    ("stages", "dtype"),
    [
        ((Stage("tanh"),), "float32"),
        ((Stage("scale", (0.3,)),), "float32"),
        ((Stage("identity", element="i8"),), "float32"),
        ((), "float16"),
        ((Stage("relu"),), "bfloat16"),
    ],
)
def test_what_the_kernel_does_not_have_is_left_to_numpy(stages, dtype):
    import ml_dtypes

    structure = structure_of("mul", "sum", stages)
    kind = np.dtype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    operands = [np.ones(a.shape, kind) for a in structure.space.operands]
    merged = merged_structure(structure, operands, kind)
    assert largest_ratio(merged, np.ones((M, N), kind)) is None


def test_whole_numbers_are_left_to_numpy():
    structure = structure_of("mul", "sum", ())
    operands = [np.ones(a.shape, np.int32) for a in structure.space.operands]
    merged = merged_structure(structure, operands, np.dtype(np.int32))
    assert largest_ratio(merged, np.full((M, N), K, np.int32)) is None
