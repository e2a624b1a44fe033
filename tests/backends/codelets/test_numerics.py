from math import prod

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from tile_programs import Case, cases, dense, reductions

from abele.backends.codelets.calls import Scratch, chunks, coalesced, run_calls
from abele.backends.codelets.numerics import (
    CODELETS,
    Placed,
    bind_vertices,
    kind_of,
    run_vertices,
)
from abele.backends.host.copies import HostScratch
from abele.backends.host.switch import is_wanted
from abele.dialects.abele import Plan
from abele.dialects.scalar_functions import COMBINERS
from abele.dialects.structured import Body, Structure
from abele.ir.geometry.blocks import gather, scatter
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map

BF16 = np.dtype(ml_dtypes.bfloat16)


def run(case: Case, operands: list[np.ndarray]) -> np.ndarray:
    """The result of a vertex set, through the memory of all tiles."""
    *layouts, last = case.layouts()
    result = case.dtypes[-1]
    address = 8
    placed = []
    row = 16 + sum(8 + lay.block_elements * 8 for lay in (*layouts, last))
    memory = np.full((case.tiles, row), 0xFF, np.uint8)
    for layout, dtype in zip((*layouts, last), case.dtypes, strict=True):
        placed.append(Placed(memory, address, dtype))
        address += -(-layout.block_elements * dtype.itemsize // 8) * 8
    for x, p, layout in zip(operands, placed, layouts, strict=False):
        scatter(x.astype(p.dtype), memory, p.address, layout)
    before = memory.copy()
    run_vertices(case.structure, case.plan, placed[:-1], placed[-1])
    start, size = placed[-1].address, last.block_elements * result.itemsize
    before[:, start : start + size] = memory[:, start : start + size]
    np.testing.assert_array_equal(memory, before)
    return gather(memory, start, last, result)


@settings(max_examples=100)
@given(case=cases())
def test_vertices_compute_the_structure_and_write_nothing_else(case: Case):
    operands = case.operands()
    expected = dense(case.structure, operands, case.dtypes[-1])
    np.testing.assert_array_equal(run(case, operands), expected, strict=True)


@settings(max_examples=50)
@given(case=cases(), data=st.data())
def test_operands_and_result_may_have_any_dtypes(case: Case, data: st.DataObject):
    kinds = st.sampled_from(["int8", "int16", "int32", "int64", "float16", "float32"])
    kind = st.just(BF16) | kinds.map(np.dtype)
    space = case.structure.space
    if any(np.isinf(a.fill) for a in space.operands):
        kind = kind.filter(lambda dtype: dtype.kind != "i")
    dtypes = tuple(data.draw(kind) for _ in case.dtypes)
    if any(d.kind != "i" for d in dtypes[:-1]):
        wide = kind.filter(lambda dtype: dtype.kind != "i")
        dtypes = (*dtypes[:-1], data.draw(wide))
    case = Case(case.structure, case.plan, dtypes, case.tiles, case.seed)
    operands = case.operands()
    expected = dense(case.structure, operands, dtypes[-1])
    actual = run(case, operands)
    # Sums here are exact in float32, so one rounding at the end is all that bfloat16 may do.
    np.testing.assert_array_equal(
        actual.astype(np.float64), expected.astype(np.float64), strict=True
    )


def small(body: Body, m: int, n: int, k: int, dtypes: tuple[str, ...]) -> Case:
    dims = (Dim("m", m), Dim("n", n), Dim("k", k, "reduction"))
    left = AccessMap((AxisMap(m, ((0, 1),)), AxisMap(k, ((2, 1),))))
    right = AccessMap((AxisMap(k, ((2, 1),)), AxisMap(n, ((1, 1),))))
    space = Space(dims, (left, right), (identity_map((0, 1), (m, n)),))
    kinds = tuple(np.dtype(d) for d in dtypes)
    return Case(Structure(space, body), Plan((2, 2, 1)), kinds, 4, 0)


PRODUCT = Body("mul", "sum")


@pytest.mark.parametrize("shape", [(2, 2, 3), (40, 30, 50), (2, 200, 300)])
def test_half_precision_products_are_added_in_single_and_rounded_once(shape: tuple[int, int, int]):
    case = small(PRODUCT, *shape, ("float16",) * 3)
    rng = np.random.default_rng(0)
    m, n, k = shape
    a = rng.standard_normal((m, k)).astype(np.float16)
    b = rng.standard_normal((k, n)).astype(np.float16)
    exact = a.astype(np.float64) @ b.astype(np.float64)
    error = np.abs(run(case, [a, b]).astype(np.float64) - exact)
    bound = np.abs(exact) * 2.0**-11 + (np.abs(a) @ np.abs(b)).astype(np.float64) * k * 2.0**-23
    assert (error <= bound + 2.0**-24).all()


def test_sums_of_halves_are_added_in_single_and_rounded_once():
    dims = (Dim("i", 4), Dim("k", 3000, "reduction"))
    access = identity_map((0, 1), (4, 3000))
    space = Space(dims, (access,), (identity_map((0,), (4,)),))
    halves = (np.dtype(np.float16),) * 2
    case = Case(Structure(space, Body("identity", "sum")), Plan((2, 1)), halves, 4, 0)
    ones = np.ones((4, 3000), np.float16)
    assert run(case, [ones]).tolist() == [3000] * 4


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
@pytest.mark.parametrize("shape", [(2, 2, 3), (9, 8, 70)])
def test_integer_products_wrap_at_the_width_of_the_result(dtype: str, shape: tuple[int, int, int]):
    case = small(PRODUCT, *shape, (dtype,) * 3)
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(1)
    m, n, k = shape
    a = rng.integers(limits.min, limits.max, (m, k), dtype, endpoint=True)
    b = rng.integers(limits.min, limits.max, (k, n), dtype, endpoint=True)
    exact = a.astype(object) @ b.astype(object)
    modulus = 1 << limits.bits
    wrapped = [[(int(v) - limits.min) % modulus + limits.min for v in row] for row in exact]
    assert run(case, [a, b]).tolist() == wrapped


def test_narrow_integers_may_be_added_into_wider_ones():
    case = small(PRODUCT, 4, 4, 900, ("int8", "int8", "int32"))
    a = np.full((4, 900), -128, np.int8)
    b = np.full((900, 4), 127, np.int8)
    assert (run(case, [a, b]) == -128 * 127 * 900).all()


def test_doubles_stay_doubles():
    case = small(PRODUCT, 4, 4, 40, ("float64",) * 3)
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((4, 40)), rng.standard_normal((40, 4))
    np.testing.assert_allclose(run(case, [a, b]), a @ b, rtol=1e-14, atol=1e-14)


@given(reductions())
def test_a_reduction_of_nothing_is_the_identity(structure: Structure):
    combiner = structure.body.combiner
    assert combiner is not None
    dims = (Dim("i", 3), Dim("k", 0, "reduction"))
    space = Space(dims, (identity_map((0, 1), (3, 0)),), (identity_map((0,), (3,)),))
    case = Case(
        Structure(space, Body("identity", combiner)),
        Plan((3, 1)),
        (np.dtype(np.float32),) * 2,
        4,
        0,
    )
    assert run(case, [np.empty((3, 0))]).tolist() == [COMBINERS[combiner]] * 3


def test_a_tensor_of_nothing_is_left_alone():
    space = Space(
        (Dim("i", 0),), (identity_map((0,), (0,)),), (AccessMap((AxisMap(0, ((0, 1),)),)),)
    )
    case = Case(Structure(space, Body("relu")), Plan((1,)), (np.dtype(np.float32),) * 2, 4, 0)
    assert run(case, [np.empty(0)]).size == 0


def test_overflows_are_infinite_without_a_warning():
    case = small(PRODUCT, 2, 2, 2, ("float32",) * 3)
    huge = np.full((2, 2), 3e38, np.float32)
    assert np.isposinf(run(case, [huge, huge])).all()


def test_two_runs_agree_to_the_bit():
    case = small(PRODUCT, 40, 30, 500, ("float32",) * 3)
    rng = np.random.default_rng(3)
    operands = [rng.standard_normal((40, 500)), rng.standard_normal((500, 30))]
    assert run(case, operands).tobytes() == run(case, operands).tobytes()


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (Body("mul"), "elementwise"),
        (Body("mul", "sum"), "contraction"),
        (Body("mul", "max"), "reduction"),
        (Body("identity", "sum"), "reduction"),
    ],
)
def test_a_body_has_one_codelet_in_every_mode(body: Body, kind: str):
    assert kind_of(body) == kind
    assert kind in CODELETS


def test_a_parallel_dimension_that_the_result_lacks_is_refused():
    dims = (Dim("i", 4), Dim("j", 4))
    space = Space(dims, (identity_map((0, 1), (4, 4)),), (identity_map((0,), (4,)),))
    memory = np.zeros((1, 256), np.uint8)
    placed = Placed(memory, 0, np.dtype(np.float32))
    with pytest.raises(ValueError, match="dimension j: its 4 points write one element"):
        bind_vertices(Structure(space, Body("relu")), Plan((1, 1)), [placed], placed, Scratch())


# Views


@given(
    st.lists(st.integers(1, 4), max_size=4),
    st.permutations(range(4)),
    st.lists(st.booleans(), min_size=4, max_size=4),
)
def test_coalesced_arrays_walk_the_same_elements(
    shape: list[int], order: list[int], kept: list[bool]
):
    order = [d for d in order if d < len(shape)]
    last = np.arange(prod(shape)).reshape([shape[d] for d in order])
    last = last.transpose(np.argsort(order))
    first = np.broadcast_to(
        last[tuple(slice(None) if kept[d] else slice(0, 1) for d in range(len(shape)))], shape
    )
    a, b = coalesced(first, last)
    assert a.shape == b.shape
    pairs = sorted(zip(b.ravel().tolist(), a.ravel().tolist(), strict=True))
    assert pairs == sorted(zip(last.ravel().tolist(), first.ravel().tolist(), strict=True))
    if all(kept[: len(shape)]):
        assert b.ndim <= 1


@given(st.lists(st.integers(0, 5), max_size=4), st.integers(1, 40))
def test_chunks_cut_an_array_without_remainder_or_overlap(shape: list[int], largest: int):
    seen = np.zeros(shape, int)
    for index in chunks(shape, largest):
        assert isinstance(seen[index], np.ndarray)
        assert seen[index].size <= largest
        seen[index] += 1
    assert (seen == 1).all()


def test_scratch_that_has_grown_leaves_old_views_alone():
    scratch = Scratch()
    old = scratch.take("a", (4,), np.dtype(np.float32))
    old[...] = 1
    new = scratch.take("a", (1000,), np.dtype(np.float32))
    new[...] = 2
    assert old.tolist() == [1] * 4
    assert np.shares_memory(new, scratch.take("a", (10,), np.dtype(np.int8)))
    assert not np.shares_memory(new, scratch.take("b", (10,), np.dtype(np.int8)))


@given(
    st.lists(st.integers(0, 5), max_size=4),
    st.permutations(range(4)),
    st.lists(st.integers(1, 3), min_size=8, max_size=8),
    st.lists(st.booleans(), min_size=4, max_size=4),
    st.sampled_from(["u1", "f2", "f4", "f8", "?", "c16"]),
    st.booleans() if is_wanted() else st.just(False),
)
def test_copies_move_each_element_and_no_other(
    shape: list[int],
    order: list[int],
    steps: list[int],
    repeated: list[bool],
    dtype: str,
    fast: bool,
):
    order = [d for d in order if d < len(shape)]

    def spaced(gaps: list[int], sizes: list[int]) -> tuple[np.ndarray, np.ndarray]:
        """An array with gaps, and the view of its elements in another order of axes."""
        whole = np.arange(prod(n * g for n, g in zip(sizes, gaps)), dtype=np.int64) % 251
        whole = whole.astype(dtype).reshape([sizes[d] * gaps[d] for d in order])
        view = whole[(*(slice(None, None, gaps[d]) for d in order), ...)]
        return whole, view.transpose(np.argsort(order))

    sizes = [1 if r and n else n for r, n in zip(repeated, shape)]
    _, source = spaced(steps[: len(shape)], sizes)
    source = np.broadcast_to(source, shape)
    whole, target = spaced(steps[4 : 4 + len(shape)], shape)
    target[...] = 0
    expected = whole.copy()
    expected[(*(slice(None, None, steps[4 + d]) for d in order), ...)] = source.transpose(order)
    scratch = HostScratch() if fast else Scratch()
    run_calls(scratch.copy_calls(target, source))
    np.testing.assert_array_equal(whole, expected)
