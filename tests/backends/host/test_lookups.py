"""Compiled lookups leave the bytes that the codelet leaves, with work that rows do not add to."""

from time import process_time

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from abele.backends.codelets.calls import Call, run_calls
from abele.backends.codelets.numerics import Placed, VertexSet, run_vertices
from abele.backends.evaluate.blocks import Blocks, write_blocks
from abele.backends.host.calls import KernelCall
from abele.backends.host.copies import HostScratch
from abele.backends.host.vertices import bind_vertices
from abele.dialects.abele import Plan
from abele.dialects.structured import Body, Stage, Structure
from abele.ir.geometry.space import AxisMap, Dim, Relation, Space, identity_map, split_reduction

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form

INDICES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")


def gather(rows: int, n: int, width: int, along: bool) -> Structure:
    """A table [rows, width] looked up at indices [n], or along its rows at indices [n, width]."""
    dims = (Dim("n", n), Dim("k", width), Dim("row", rows, "reduction"))
    table = identity_map((2, 1), (rows, width))
    at = identity_map((0, 1), (n, width)) if along else identity_map((0,), (n,))
    relation = Relation(AxisMap(rows, ((2, 1),) if rows > 1 else ()), 1)
    space = Space(dims, (table, at), (identity_map((0, 1), (n, width)),), (relation,))
    return Structure(space, Body("identity", "pick"))


def placed(structure: Structure, plan: Plan, arrays: list[np.ndarray]) -> list[Placed]:
    found = []
    layouts = VertexSet.of(structure, plan).layouts
    for values, layout in zip(arrays, layouts, strict=True):
        room = max(64, layout.block_elements * values.dtype.itemsize + 64)
        blocks = Placed(np.full((layout.cells, room), 0xFF, np.uint8), 0, values.dtype)
        write_blocks(values.reshape(layout.shape), Blocks(blocks, layout))
        found.append(blocks)
    return found


@st.composite
def lookups(draw):
    rows, n, width = (draw(st.integers(1, 7)) for _ in range(3))
    structure = gather(rows, n, width, draw(st.booleans()))
    space = structure.space
    parts = draw(st.sampled_from([k for k in range(1, rows + 1) if (k - 1) * -(-rows // k) < rows]))
    if parts > 1:
        structure = Structure(split_reduction(space, 2, parts, 0.0), structure.body)
    if draw(st.booleans()):
        chained = identity_map((1,), (width,))
        mapped = Space(
            structure.space.dims,
            (*structure.space.operands, chained),
            structure.space.results,
            structure.space.relations,
        )
        structure = Structure(mapped, Body("identity", "pick", then=(Stage("add"),)))
    dims = structure.space.dims
    split = [draw(st.integers(1, d.size)) if d.kind == "parallel" else 1 for d in dims]
    if parts > 1:
        split[-1] = parts
    float_ = draw(st.sampled_from([np.float16, np.float32, np.float64]))
    kind = np.dtype(draw(st.sampled_from(INDICES)))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    low = -rows if kind.kind == "i" else 0
    shapes = [m.shape for m in structure.space.operands]
    arrays = [rng.normal(size=s).astype(float_) for s in shapes]
    arrays[1] = rng.integers(low, rows, shapes[1]).astype(kind)
    result = np.zeros(structure.space.results[0].shape, float_)
    return structure, Plan(tuple(split)), [*arrays, result]


@settings(max_examples=40)
@given(lookups())
def test_a_compiled_lookup_leaves_the_bytes_of_the_codelet(case):
    structure, plan, arrays = case
    plain, fast = (placed(structure, plan, arrays) for _ in range(2))
    run_vertices(structure, plan, plain[:-1], plain[-1])
    bound = bind_vertices(structure, plan, fast[:-1], fast[-1], HostScratch())
    run_calls(bound.calls)
    np.testing.assert_array_equal(plain[-1].memory, fast[-1].memory)


@st.composite
def replacements(draw):
    rows, n, width = (draw(st.integers(1, 6)) for _ in range(3))
    named = [n, width if draw(st.booleans()) else 1]
    dims = (Dim("n", n, "reduction"), Dim("k", width), Dim("row", rows))
    table = identity_map((2, 1), (rows, width))
    maps = identity_map((0, 1), (n, width)), identity_map((0, 1), tuple(named)), table
    relation = Relation(AxisMap(rows, ((2, 1),) if rows > 1 else ()), 1)
    space = Space(dims, maps, (table,), (relation,))
    structure = Structure(space, Body("identity", "last", resumes=True))
    order = draw(st.permutations(range(3)))
    plan = Plan((1, draw(st.integers(1, width)), draw(st.integers(1, rows))), tuple(order))
    kind = np.dtype(draw(st.sampled_from([np.float16, np.float32, np.float64, np.bool_])))
    rng = np.random.default_rng(draw(st.integers(0, 999)))
    new, old = (rng.integers(0, 99, shape).astype(kind) for shape in ((n, width), (rows, width)))
    return structure, plan, [new, rng.integers(-rows, rows, named), old, np.zeros_like(old)]


@settings(max_examples=60)
@given(replacements(), st.booleans())
def test_compiled_replacements_leave_the_bytes_of_the_codelet(case, in_place):
    structure, plan, arrays = case
    plain, fast = (placed(structure, plan, arrays) for _ in range(2))
    results = [each[2] if in_place else each[-1] for each in (plain, fast)]
    run_vertices(structure, plan, plain[:-1], results[0])
    bound = bind_vertices(structure, plan, fast[:-1], results[1], HostScratch())
    # A cell of one row has no axis to move along.
    is_compiled = any(isinstance(function, KernelCall) for function, _ in bound.calls)
    assert is_compiled == (len(arrays[2]) > plan.split[2])
    run_calls(bound.calls)
    np.testing.assert_array_equal(results[0].memory, results[1].memory)


def calls_of(rows: int) -> list[Call]:
    structure, plan = gather(rows, 128, 48, along=False), Plan((4, 6, 1))
    rng = np.random.default_rng(0)
    table = rng.normal(size=(rows, 48)).astype(np.float16)
    at = rng.integers(0, rows, 128)
    result = np.zeros((128, 48), np.float16)
    operands = placed(structure, plan, [table, at, result])
    return bind_vertices(structure, plan, operands[:-1], operands[-1], HostScratch()).calls


def test_a_lookup_costs_what_it_fetches_and_not_the_rows_of_its_table():
    def seconds(rows: int) -> float:
        calls = calls_of(rows)
        assert any(isinstance(function, KernelCall) for function, _ in calls)
        times = []
        for _ in range(30):
            begin = process_time()
            run_calls(calls)
            times.append(process_time() - begin)
        return min(times)

    assert seconds(20_000) < 4 * seconds(500) + 1e-4
