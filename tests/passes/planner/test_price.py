from math import ceil, prod

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from abele.backends.prices import cost
from abele.backends.prices.block_products import block_product_cycles
from abele.backends.prices.workload import Workload
from abele.backends.target import resolve_target
from abele.dialects.abele import Plan
from abele.dialects.structured import Structure
from abele.passes.planner.candidates import splits
from abele.passes.planner.price import block_elements, codelet, worker_parts
from abele.passes.plans.bands import BlockPattern, Buckets
from abele.passes.plans.derive import compute_layouts, refined

from .some_operators import F16, F32, add, conv, matmul, problem, structures, total


@given(structures(), st.data())
def test_blocks_have_the_elements_of_their_layouts(structure: Structure, data: st.DataObject):
    parts = splits(problem(structure), 24)
    chosen = parts[data.draw(st.integers(0, len(parts) - 1))]
    plan = Plan(tuple(chosen.tolist()))
    refined(structure, plan)
    cells = -(-np.array([structure.space.sizes]) // chosen)
    # Those of a chain may be read elsewhere, where partials are combined.
    for access, layout in zip(
        structure.space.operands, compute_layouts(structure, plan), strict=False
    ):
        assert block_elements(access, cells)[0] == layout.block_elements


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(1, 7))
def test_workers_share_a_cell_as_evenly_as_they_can(sizes: list[int], workers: int):
    kept = tuple(range(len(sizes)))
    parts = worker_parts(tuple(sizes), kept, workers)
    assert prod(parts) <= workers
    assert all(1 <= p <= n for p, n in zip(parts, sizes, strict=True))
    share = prod(ceil(n / p) for n, p in zip(sizes, parts, strict=True))
    for d, n in enumerate(sizes):
        rest = prod(sizes) // n
        assert share <= rest * ceil(n / min(n, workers)), d


def test_workers_leave_reductions_alone():
    assert worker_parts((1, 8), (0,), 6) == (1, 1)


def test_a_supervisor_codelet_has_no_workers():
    target = resolve_target("mk2")
    assert codelet(Workload(matmul(64, 64, 64), F16, F16, target), (64, 64, 64))[1:] == ("amp", ())


def test_all_workers_share_the_depth_of_the_only_sum_of_a_tile():
    target = resolve_target("mk2")
    few, many = (Workload(total(n, 768), F32, F32, target) for n in (1, 12))
    cycles, _, workers = codelet(few, (1, 768))
    assert workers == ()
    assert cycles < codelet(few, (1, 768), workers=(1, 1))[0]
    assert codelet(many, (12, 768))[2] == (6, 1)


def test_a_product_of_blocks_shares_its_work_itself():
    """To cut its rows for the workers would let each look at the blocks of the others."""
    target, rng = resolve_target("mk2"), np.random.default_rng(0)
    buckets = Buckets(BlockPattern.of_dense(rng.random((48, 96)) < 1 / 8, (1, 1)), 4, 2)
    structure = buckets.structure((4,), before=0)
    work = Workload(structure, F16, F16, target)
    dims = structure.space.dims
    cell = tuple(1 if d.name in ("band", "part") else d.size for d in dims)
    wanted = block_product_cycles(buckets.room, buckets.high, (1, 1), 4, "float16", target)
    wanted = float(wanted + cost.fill_cycles(buckets.high * 4 * 2, target))
    assert codelet(work, cell) == (wanted, "", ())
    cut = tuple({"n": 2, "row": 3}.get(d.name, 1) for d in dims)
    assert codelet(work, cell, workers=cut) == (wanted, "", cut)


def test_a_single_row_goes_to_the_workers():
    target = resolve_target("mk2")
    work = Workload(matmul(1, 512, 24), F16, F16, target)
    _, method, workers = codelet(work, (1, 24, 512))
    assert (method, workers) == ("mac", (1, 6, 1))


def test_a_decided_method_and_workers_are_kept():
    target = resolve_target("mk2")
    work = Workload(matmul(8, 16, 8), F32, F32, target)
    assert codelet(work, (8, 8, 16), "mac", (1, 4, 1))[1:] == ("mac", (1, 4, 1))


@pytest.mark.parametrize("structure", [conv(16, 8, 64, 3), add(64, 64)])
def test_half_the_cell_costs_less(structure: Structure):
    target = resolve_target("mk2")
    whole = structure.space.sizes
    half = (whole[0] // 2, *whole[1:])
    work = Workload(structure, F32, F32, target)
    assert codelet(work, half)[0] < codelet(work, whole)[0]
