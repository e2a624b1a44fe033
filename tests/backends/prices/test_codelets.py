"""Prices of cells against the formulas they are made of."""

from __future__ import annotations

from dataclasses import replace
from math import ceil, sqrt

import numpy as np
import pytest
from some_prices import busiest_tile_cycles
from xdsl.dialects.builtin import TensorType, f16, i32
from xdsl.ir import Block

from abele.backends.codelets.scalar import SCALAR_FUNCTIONS
from abele.backends.prices import cost
from abele.backends.prices.block_products import block_product_cycles
from abele.backends.prices.codelets import cells_cycles, compute_cycles
from abele.backends.prices.contractions.amp import amp_cycles
from abele.backends.prices.contractions.contraction import Contraction
from abele.backends.prices.contractions.methods import METHODS
from abele.backends.prices.contractions.slic import slic_cycles
from abele.backends.prices.contractions.workers import mac_cycles
from abele.backends.prices.workload import Workload, roles
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.abele import Plan
from abele.dialects.scalar_functions import FUNCTIONS, chainable
from abele.dialects.structured import (
    Body,
    Stage,
    Structure,
    extras_of,
)
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space, identity_map
from abele.passes.plans.bands import BlockPattern, Buckets

MK2 = resolve_target("mk2")
F16, F32, F64, I32 = (np.dtype(n) for n in ("float16", "float32", "float64", "int32"))


def conv(n=1, co=64, y=28, x=28, ci=32, ky=3, kx=3) -> Structure:
    dims = (
        Dim("n", n),
        Dim("co", co),
        Dim("y", y),
        Dim("x", x),
        Dim("ci", ci, "reduction"),
        Dim("ky", ky, "reduction"),
        Dim("kx", kx, "reduction"),
    )
    image = AccessMap(
        (
            AxisMap(n, ((0, 1),)),
            AxisMap(ci, ((4, 1),)),
            AxisMap(y, ((2, 1), (5, 1)), -1, outside="fill"),
            AxisMap(x, ((3, 1), (6, 1)), -1, outside="fill"),
        )
    )
    weight = identity_map((1, 4, 5, 6), (co, ci, ky, kx))
    return Structure(
        Space(dims, (image, weight), (identity_map((0, 1, 2, 3), (n, co, y, x)),)),
        Body("mul", "sum"),
    )


def elementwise(function: str, *sizes: int) -> Structure:
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(sizes))
    access = identity_map(tuple(range(len(sizes))), sizes)
    count = SCALAR_FUNCTIONS[function].arity
    return Structure(Space(dims, (access,) * count, (access,)), Body(function))


def total(outputs: int, depth: int, function: str = "identity") -> Structure:
    dims = (Dim("i", outputs), Dim("k", depth, "reduction"))
    return Structure(
        Space(dims, (identity_map((0, 1), (outputs, depth)),), (identity_map((0,), (outputs,)),)),
        Body(function, "sum"),
    )


def test_a_contraction_takes_its_cheapest_method_or_the_one_asked_for():
    structure = conv()
    sizes = 28 * 28, 32, 64, 9, 1
    tile = Contraction.of(*sizes, "float16", "float32", field_rows=28)
    amp, mac = amp_cycles(tile, MK2), mac_cycles(tile, MK2)
    cells = np.array([structure.space.sizes])
    assert compute_cycles(Workload(structure, F16, F16, MK2), cells)[1].tolist() == ["amp"]
    for method, cycles in (("", amp), ("amp", amp), ("mac", mac)):
        plan = Plan((1,) * 7, method=method)
        assert busiest_tile_cycles(structure, plan, [F16, F16, F16], MK2) == cycles
    with pytest.raises(ValueError, match="method 'fft'"):
        busiest_tile_cycles(structure, Plan((1,) * 7, method="fft"), [F16] * 3, MK2)
    with pytest.raises(ValueError, match="no method 'amp' for float64"):
        busiest_tile_cycles(structure, Plan((1,) * 7, method="amp"), [F64] * 3, MK2)


def test_a_window_that_moves_far_or_is_dilated_is_not_for_slic():
    def slic(stride: int, dilation: int) -> float:
        dims = (Dim("o", 4), Dim("x", 60), Dim("c", 4, "reduction"), Dim("k", 4, "reduction"))
        reach = 59 * stride + 3 * dilation + 1
        image = AccessMap(
            (AxisMap(4, ((2, 1),)), AxisMap(reach, ((1, stride), (3, dilation)), outside="none"))
        )
        space = Space(
            dims, (image, identity_map((0, 2, 3), (4, 4, 4))), (identity_map((0, 1), (4, 60)),)
        )
        cells = np.array([space.sizes])
        structure = Structure(space, Body("mul", "sum"))
        return compute_cycles(Workload(structure, F16, F16, MK2), cells, "slic")[0][0]

    sizes = 60, 4, 4, 4, 1, "float16", "float32"
    assert slic(1, 1) == slic_cycles(Contraction.of(*sizes), MK2)
    assert slic(2, 1) == slic_cycles(Contraction.of(*sizes, stride=2), MK2)
    assert np.isinf(slic(4, 1))
    assert np.isinf(slic(1, 2))


def test_the_busiest_tile_has_the_largest_cell():
    structure = elementwise("relu", 7, 10)
    cells = cells_cycles(Workload(structure, F32, F32, MK2), Plan((2, 3)))
    assert cells.shape == (2, 3)
    assert cells[0, 0] == cells.max()
    assert cells[0, 0] == cost.elementwise_cycles(16, 1, "relu", "float32", MK2)
    assert cells[1, 2] == cost.elementwise_cycles(9, 1, "relu", "float32", MK2)
    assert busiest_tile_cycles(structure, Plan((2, 3)), [F32, F32], MK2) == cells.max()


def test_the_busiest_worker_decides():
    structure = elementwise("add", 5, 12)
    even = busiest_tile_cycles(structure, Plan((1, 1)), [F32] * 3, MK2)
    assert busiest_tile_cycles(structure, Plan((1, 1), workers=(1, 6)), [F32] * 3, MK2) == even
    # Five workers of 12 elements, where six of 10 would do; then one of all.
    five = cost.elementwise_cycles(6 * 12, 2, "add", "float32", MK2)
    assert busiest_tile_cycles(structure, Plan((1, 1), workers=(6, 1)), [F32] * 3, MK2) == five
    one = cost.elementwise_cycles(6 * 60, 2, "add", "float32", MK2)
    assert busiest_tile_cycles(structure, Plan((1, 1), workers=(1, 1)), [F32] * 3, MK2) == one
    # Twelve vertices take two turns, each of which has to be started.
    turn = cost.elementwise_cycles(6 * 5, 2, "add", "float32", MK2)
    assert busiest_tile_cycles(structure, Plan((1, 1), workers=(1, 12)), [F32] * 3, MK2) == 2 * turn


def test_a_sum_is_a_reduction_and_a_sum_of_functions_both():
    plain = busiest_tile_cycles(total(8, 100), Plan((1, 1)), [F32, F32], MK2)
    assert plain == cost.reduce_cycles(8, 100, "float32", MK2)
    squares = busiest_tile_cycles(total(8, 100, "square"), Plan((1, 1)), [F32, F32], MK2)
    assert squares == plain + cost.elementwise_cycles(800, 1, "square", "float32", MK2)


def test_merging_single_elements_still_moves_them():
    moved = cost.elementwise_cycles(8, 1, "identity", "float32", MK2)
    assert busiest_tile_cycles(total(8, 1), Plan((1, 1)), [F32, F32], MK2) == moved


def test_another_result_type_is_a_cast():
    structure = elementwise("identity", 100)
    cast = cost.elementwise_cycles(100, 1, "cast", "int32", MK2)
    assert busiest_tile_cycles(structure, Plan((1,)), [I32, F32], MK2) == cast


@pytest.mark.parametrize("function", SCALAR_FUNCTIONS)
def test_every_scalar_function_has_a_price(function: str):
    structure = elementwise(function, 64)
    structure = Structure(structure.space, Body(function, None, (1.0,) * 2))
    dtypes = [F32] * (SCALAR_FUNCTIONS[function].arity + 1)
    assert busiest_tile_cycles(structure, Plan((1,)), dtypes, MK2) > 0


def test_nothing_to_do_costs_nothing():
    assert busiest_tile_cycles(elementwise("relu", 0, 4), Plan((1, 2)), [F32, F32], MK2) == 0
    scalar = Structure(Space((), (AccessMap(()),), (AccessMap(()),)), Body("relu"))
    assert busiest_tile_cycles(scalar, Plan(()), [F32, F32], MK2) > 0


def chained(structure: Structure, *stages: Stage) -> Structure:
    """The structure with stages whose operands are as its result."""
    space, extras = structure.space, extras_of(stages)
    return Structure(
        replace(space, operands=(*space.operands, *space.results * extras)),
        replace(structure.body, then=stages),
    )


@pytest.mark.parametrize("method", ["", *METHODS])
def test_a_chain_adds_its_functions_to_any_method(method: str):
    alone, structure = conv(), chained(conv(), Stage("add"), Stage("relu"))
    cells = np.array([[1, 16, 4, 28, 32, 3, 3], [1, 8, 2, 28, 32, 3, 3]], np.int64)
    before, best = compute_cycles(Workload(alone, F32, F32, MK2), cells, method)
    after, methods = compute_cycles(Workload(structure, F32, F32, MK2), cells, method)
    outputs = cells[:, :4].prod(axis=1)
    chain = cost.following_cycles(outputs, 2, "add", "float32", MK2)
    chain = chain + cost.following_cycles(outputs, 1, "relu", "float32", MK2)
    np.testing.assert_array_equal(after, before + chain)
    np.testing.assert_array_equal(methods, best)
    assert roles(structure) == roles(alone)


def test_the_busiest_worker_does_its_part_of_the_chain():
    structure = chained(elementwise("add", 5, 12), Stage("relu"))
    dtypes = [F32] * 3
    alone = busiest_tile_cycles(structure.unchained, Plan((1, 1), workers=(1, 1)), dtypes, MK2)
    relu = cost.following_cycles(6 * 60, 1, "relu", "float32", MK2)
    assert busiest_tile_cycles(structure, Plan((1, 1), workers=(1, 1)), dtypes, MK2) == alone + relu


def test_a_chain_of_halves_is_priced_in_the_dtype_it_works_in():
    alone = elementwise("add", 600)
    cycles = [
        busiest_tile_cycles(s, Plan((1,)), [F16] * 3, MK2)
        for s in (alone, chained(alone, Stage("exp")))
    ]
    assert cycles[1] - cycles[0] == cost.following_cycles(600, 1, "exp", "float32", MK2)


@pytest.mark.parametrize("function", chainable())
def test_a_stage_of_a_chain_is_cheaper_than_a_separate_vertex_set(function: str):
    stage = Stage(function, (1.0,) * FUNCTIONS[function].parameters)
    for dtype in (F32, F16):
        for n in (6, 600, 6000):
            alone = elementwise("mul", n)
            own = elementwise(function, n)
            own = Structure(own.space, Body(function, None, stage.parameters))
            apart = busiest_tile_cycles(alone, Plan((1,)), [dtype] * 3, MK2)
            apart += busiest_tile_cycles(own, Plan((1,)), [F32] * (2 + stage.extras), MK2)
            together = busiest_tile_cycles(
                chained(alone, stage), Plan((1,)), [dtype] * (3 + stage.extras), MK2
            )
            assert together < apart


def test_a_scaled_tensor_plus_another_is_one_loop():
    scale = elementwise("scale", 96)
    scale = Structure(scale.space, Body("scale", None, (2.0,)))
    cells = np.array([[96]])

    def cycles(structure: Structure, dtype: np.dtype = F32) -> int:
        return int(compute_cycles(Workload(structure, dtype, dtype, MK2), cells)[0][0])

    both = chained(scale, Stage("add"))
    assert cycles(both) == cost.scaled_add_cycles(96, "float32", MK2)
    more = chained(scale, Stage("add"), Stage("relu"))
    assert cycles(more) == cycles(both) + cost.following_cycles(96, 1, "relu", "float32", MK2)
    # Of integers, and of a value that is added to all, it is a chain like others.
    other = chained(scale, Stage("sub"))
    assert cycles(both, I32) > cost.scaled_add_cycles(96, "float32", MK2)
    assert cycles(other) == cycles(scale) + cost.following_cycles(96, 2, "sub", "float32", MK2)


def test_lookups_in_one_row_s_tile_cost_as_much_as_a_table_in_one_part():
    rows, n, width = 4000, 96, 4
    dims = (Dim("n", n), Dim("k", width), Dim("row", rows))
    table, updates = identity_map((2, 1), (rows, width)), identity_map((0, 1), (n, width))
    own = (replace(dims[0], kind="reduction"), *dims[1:])
    relation = Relation(AxisMap(rows, ((2, 1),)), 1)
    space = Space(own, (updates, identity_map((0,), (n,))), (table,), (relation,))
    spread = Workload(Structure(space, Body("identity", "sum")), F32, F32, MK2)
    together = replace(spread, lookups="together")
    parts = np.array([[n, width, rows // 10]])
    even, worst = (compute_cycles(work, parts)[0][0] for work in (spread, together))
    added = cost.lookup_cycles(
        *(np.array([each]) for each in (n, n, width)), True, "float32", MK2
    ) - cost.lookup_cycles(
        *(np.array([each]) for each in (n, -(-n // 10), width)), True, "float32", MK2
    )
    assert worst - even == added[0] > 0
    whole = np.array([[n, width, rows]])
    assert compute_cycles(spread, whole)[0] == compute_cycles(together, whole)[0]


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("last", [False, True])
def test_a_product_of_blocks_costs_the_blocks_of_its_rows_and_a_look_at_the_others(
    transposed: bool, last: bool
):
    """64 blocks of 8 x 16 in 10 rows, or columns, and 5 columns, or rows."""
    k, m = (10 * 8, 5 * 16) if transposed else (5 * 16, 10 * 8)
    shapes = [(64, 8, 16), (12, k) if last else (k, 12), (64,), (64,)]
    types = [TensorType(i32 if len(s) == 1 else f16, s) for s in shapes]
    op = nn.BlockMatMulOp(*Block(arg_types=types).args, m, transposed=transposed, dense_last=last)
    structure, block = op.structure(), (16, 8) if transposed else (8, 16)
    names, work = [dim.name for dim in structure.space.dims], Workload(structure, F16, F16, MK2)
    sizes = np.array([dim.size for dim in structure.space.dims])
    row, workers, each = names.index("row"), MK2.workers, MK2.lookup.missed_cycles
    # Of a tenth of the rows, the fullest tile has 3 deviations more than 6.4 blocks.
    part = 1 / sizes[row]
    fullest = ceil(64 * part + 3 * sqrt(64 * part * (1 - part)))
    for there, blocks in ((sizes[row], 64), (1, fullest)):
        cells = sizes.copy()
        cells[row] = there
        price = block_product_cycles(blocks, there, block, 12, "float16", MK2)
        price = price + cost.fill_cycles(int(there) * block[0] * 12 * 2, MK2)
        price = price + -(-(64 - blocks) // workers) * workers * each
        assert compute_cycles(work, cells[None])[0] == price


def test_a_bucket_costs_what_its_blocks_do():
    rng = np.random.default_rng(0)
    matrix = np.kron(rng.random((12, 12)) < 0.3, np.ones((4, 4))).astype(np.float32)
    buckets = Buckets(BlockPattern.of_dense(matrix, (4, 4)), 3, 2)
    structure = buckets.structure((20,), before=0)
    cells = np.array([1 if d.name in ("band", "part") else d.size for d in structure.space.dims])
    found = compute_cycles(Workload(structure, F32, F32, MK2), cells[None])[0]
    wanted = block_product_cycles(buckets.room, 4, (4, 4), 20, "float32", MK2)
    assert found == wanted + cost.fill_cycles(4 * 4 * 20 * 4, MK2)
