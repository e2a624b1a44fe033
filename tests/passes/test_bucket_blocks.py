from dataclasses import replace

import hypothesis.strategies as st
import numpy as np
import pytest
from block_sparse import densified, random_blocks
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp, StringAttr, TensorType, f16, f32, i32, i64
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.reference.run import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.abele import SpaceAttr
from abele.dialects.blob_attr import BlobAttr
from abele.dialects.block_inputs import block_inputs, block_states
from abele.dialects.dtypes import numpy_dtype
from abele.dialects.levels import NN
from abele.dialects.settable import changing_states
from abele.ir.blob import Blob
from abele.ir.geometry.block_lists import BlockLists
from abele.ir.support.errors import InputError
from abele.ir.verify import verify
from abele.passes.bucket_blocks import BucketBlocks
from abele.tools.driver.context import new_context
from abele.tools.driver.program import signature
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import with_apply


def program(grid, block, columns, *, element=f32, index=i32, count=3, products=({},), **options):
    """@main multiplies one list of blocks by a dense matrix for each product."""
    (high, wide), (height, width) = grid, block
    types = [TensorType(element, (count, *block)), *[TensorType(index, (count,))] * 2]
    sides = [high * height, wide * width]
    for each in products:
        m, k = reversed(sides) if each.get("transposed") else sides
        shape = (columns, k) if each.get("dense_last") else (k, columns)
        types.append(TensorType(element, shape))
    body = Block(arg_types=types)
    values, rows, cols, *dense = body.args
    made = []
    for each, x in zip(products, dense, strict=True):
        m = sides[1] if each.get("transposed") else sides[0]
        made.append(nn.BlockMatMulOp(values, x, rows, cols, m, **{**each, **options}))
    body.add_ops([*made, ReturnOp(*(op.result for op in made))])
    results = [op.result.type for op in made]
    return ModuleOp([FuncOp("main", (types, results), Region(body))])


def bucketed(module, target="tiny:16"):
    BucketBlocks(target).apply(new_context(), module)
    verify(module, NN)
    return module


def difference(module, rng, grid, block, count, columns, products, element):
    """The largest difference between results and those of dense products; None if refused."""
    dtype = numpy_dtype(element)
    given = random_blocks(rng, grid, block, count, dtype)
    taken = signature(module)
    lists = dict(zip(("arg0", "arg1", "arg2"), given, strict=True))
    matrix, worst = densified(*given, grid), 0.0
    for i, each in enumerate(products):
        own = matrix.T if each.get("transposed") else matrix
        x = rng.integers(-3, 4, (own.shape[1], columns)).astype(dtype)
        lists[f"arg{3 + i}"] = x.T if each.get("dense_last") else x
    try:
        encoded = taken.encoded(lists)
    except InputError as error:
        assert "does not fit" in str(error)
        return None
    found = run_reference(module, encoded).outputs
    for i, each in enumerate(products):
        own = matrix.T if each.get("transposed") else matrix
        x = lists[f"arg{3 + i}"].astype(np.float64)
        wanted = own @ (x.T if each.get("dense_last") else x)
        y = found[f"out{i}"]
        worst = max(worst, np.abs((y.T if each.get("dense_last") else y) - wanted).max(initial=0))
    return worst


PRODUCTS = (
    ({},),
    ({"transposed": True},),
    ({"dense_last": True}, {"transposed": True, "dense_last": True}),
)


@st.composite
def problems(draw):
    side, element = draw(st.sampled_from([1, 4, 8, 16])), draw(st.sampled_from([f16, f32]))
    grid = draw(st.sampled_from([(4, 4), (8, 2), (2, 6), (1, 4)]))
    capacity = draw(st.sampled_from([0, 1, 9, 0.0, 0.25, 1.0]))
    buckets = draw(st.sampled_from([None, (1, 1), (grid[0], 2), (1, grid[1])]))
    products, rng = draw(st.sampled_from(PRODUCTS)), draw(st.integers(0, 99))
    return grid, (side, side), element, capacity, buckets, products, np.random.default_rng(rng)


@settings(max_examples=25, deadline=None)
@given(problems())
def test_any_two_patterns_that_fit_run_on_one_program(problem):
    grid, block, element, capacity, buckets, products, rng = problem
    module = bucketed(
        program(
            *(grid, block, 3),
            element=element,
            products=products,
            buckets=buckets,
            **{"capacity" if isinstance(capacity, int) else "density": capacity},
        )
    )
    places = grid[0] * grid[1]
    planned = capacity if isinstance(capacity, int) else round(capacity * places)
    for count in (planned, rng.integers(0, planned + 1)):
        difference_of = difference(module, rng, grid, block, count, 3, products, element)
        assert difference_of in (0, None)
    # An empty pattern always fits.
    assert difference(module, rng, grid, block, 0, 3, products, element) == 0


def shifted(lists, *blocks):
    """The encoder with a bug: one bucket has the blocks of its neighbour."""
    (values, rows, columns), *rest = BlockLists.encode(lists, *blocks)
    return ((values, rows, np.roll(columns, 1, axis=1)), *rest)


def lossy(lists, *blocks):
    """The encoder with a bug: what spills is lost."""
    first, *rest = BlockLists.encode(lists, *blocks)
    return (first, *((v * 0, r, c) for v, r, c in rest))


def late(lists, *blocks):
    """The encoder with a bug: the last place of each bucket stays empty."""
    (values, rows, columns), *rest = BlockLists.encode(lists, *blocks)
    high = lists.shape[0] // lists.bands
    return (
        (values, np.where(np.arange(rows.shape[2]) < lists.room - 1, rows, high), columns),
        *rest,
    )


@pytest.mark.parametrize(
    ("encode", "patterns"), [(BlockLists.encode, None), (shifted, 1), (lossy, 2), (late, 1)]
)
def test_planted_bugs_of_the_encoder_show(encode, patterns):
    grid, block = (8, 4), (2, 3)
    module = bucketed(program(grid, block, 3, capacity=12, buckets=(4, 2)))
    (made,) = block_inputs(module)
    rng = np.random.default_rng(0)

    def is_right():
        given = random_blocks(rng, grid, block, 12, np.float32)
        try:
            tiers = encode(made.lists, *given)
        except InputError:
            return True
        named = zip(made.tier_names, tiers, strict=True)
        arrays = {n: a for names, found in named for n, a in zip(names, found, strict=True)}
        x = rng.integers(-3, 4, (12, 3)).astype(np.float32)
        found = run_reference(module, {**arrays, "arg3": x}).outputs["out0"]
        return np.array_equal(found, densified(*given, grid) @ x)

    # How many patterns it takes to find each.
    assert next((i + 1 for i in range(10) if not is_right()), None) == patterns


def test_the_planner_chooses_the_buckets():
    module = bucketed(program((64, 64), (16, 16), 64, element=f16, density=0.125), "bow")
    (made,) = block_inputs(module)
    assert made.lists.bands * made.lists.parts > 1


def test_states_get_buckets_of_their_first_values():
    module = program((4, 4), (2, 2), 3, capacity=4, buckets=(2, 2), oversize=0.0)
    (op,) = (op for op in module.walk() if isinstance(op, nn.BlockMatMulOp))
    loaded(op, "values", "rows", "columns")
    (made,) = block_states(bucketed(module))
    states = {
        op.sym_name.data: op.value.array for op in module.walk() if isinstance(op, nn.StateOp)
    }
    # All three blocks are in the first row and column.
    np.testing.assert_array_equal(states["rows"].ravel(), [0, 2, 2, 2])
    assert (states["rows.spilled"] == 0).sum() == 2
    assert changing_states(module) == states.keys() == {n for each in made.tier_names for n in each}


def test_first_values_that_do_not_fit_are_refused():
    module = program((4, 4), (2, 2), 3, count=9, capacity=1, buckets=(4, 4))
    (op,) = (op for op in module.walk() if isinstance(op, nn.BlockMatMulOp))
    loaded(op, "values", "rows", "columns")
    with pytest.raises(InputError, match="states 'values', 'rows', 'columns': a pattern of 9"):
        bucketed(module)


@pytest.mark.parametrize("kind", ["inputs", "states"])
def test_buckets_that_no_tiles_can_hold_are_refused(kind):
    module = program((4, 4), (2, 2), 3, capacity=(1 << 31) - 1, oversize=1000.0)
    (op,) = (op for op in module.walk() if isinstance(op, nn.BlockMatMulOp))
    if kind == "states":
        loaded(op, "values", "rows", "columns")
    with pytest.raises(InputError, match="buckets for .* blocks take .* bytes; tiny:16 has"):
        bucketed(module)


def test_a_program_without_a_main_function_is_refused():
    module = program((4, 4), (2, 2), 3, capacity=4)
    module.body.block.first_op.properties["sym_name"] = StringAttr("other")
    with pytest.raises(InputError, match="no function @main, whose inputs"):
        bucketed(module)


def test_a_product_without_a_capacity_stays():
    module = program((4, 4), (2, 2), 3)
    before = str(module)
    assert str(bucketed(module)) == before


def test_indices_keep_their_type_at_the_host():
    module = bucketed(program((4, 4), (2, 2), 3, capacity=4, index=i64))
    known = {tensor.name: tensor for tensor in signature(module).inputs}
    assert {*known} == {"arg0", "arg1", "arg2", "arg3"}
    assert known["arg1"].dtype == np.int64
    assert known["arg1"].open_axes == (0,)


def edited(change):
    """A program whose body is changed before its blocks are put into buckets."""
    module = program((4, 4), (2, 2), 3, capacity=4)
    (op,) = (op for op in module.walk() if isinstance(op, nn.BlockMatMulOp))
    change(op)
    return module


def computed(op):
    relu = nn.ReluOp(op.values)
    op.parent_block().insert_op_before(relu, op)
    op.operands[0] = relu.result


def read_twice(op):
    op.parent_block().insert_op_before(nn.ReluOp(op.values), op)


def twice_the_same(op):
    op.operands[3] = op.rows


def another_capacity(op):
    again = op.clone()
    again.properties["oversize"] = nn.base.number(0.5)
    op.parent_block().insert_op_before(again, op)


def loaded(op, *names, store=False):
    """Let a product read states instead of inputs."""
    module = op.get_toplevel_object()
    states = [each for each in module.walk() if isinstance(each, nn.StateOp)]
    for name in names:
        value = getattr(op, name)
        dtype = numpy_dtype(nn.element_of(value))
        array = np.zeros(nn.shape_of(value), dtype)
        if not any(isinstance(each, nn.StateOp) and each.sym_name.data == name for each in states):
            states.append(nn.StateOp(name, array))
            module.body.block.insert_op_before(states[-1], module.body.block.first_op)
        load = nn.LoadOp(name, value.type)
        op.parent_block().insert_op_before(load, op)
        op.operands[op.operands.index(value)] = load.result
        if store:
            op.parent_block().insert_op_before(nn.StoreOp(load.result, name), op)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (computed, "capacity of a list that is computed; need an input or a state"),
        (read_twice, "capacity of a list that something else reads"),
        (twice_the_same, "capacity of a list that is used twice; need one each"),
        (lambda op: loaded(op, "values"), "of inputs and states; need three inputs, or three"),
        (
            lambda op: loaded(op, "values", "rows", "columns", store=True),
            "capacity of a state that the program stores: @values",
        ),
        (another_capacity, "need the same capacity, oversize, buckets and matrix"),
    ],
)
def test_other_lists_are_refused(change, message):
    with pytest.raises(InputError, match=message):
        BucketBlocks("tiny:16").apply(new_context(), edited(change))


# Bugs that are planted in the pass, which the kit finds in programs whose blocks are states


def in_states(seed):
    """A program that multiplies lists of blocks that are states, once or twice."""
    rng = np.random.default_rng(seed)
    bands, parts, height, width = (int(n) for n in rng.integers(1, 4, 4))
    grid = bands * int(rng.integers(1, 3)), parts * int(rng.integers(1, 3))
    count, columns = int(rng.integers(0, 9)), int(rng.integers(1, 4))
    module = program(
        *(grid, (height, width), columns),
        count=count,
        products=PRODUCTS[rng.integers(len(PRODUCTS))],
        capacity=count,
        buckets=(bands, parts),
        oversize=0.0,
    )
    products = [op for op in module.walk() if isinstance(op, nn.BlockMatMulOp)]
    for op in products:
        loaded(op, "values", "rows", "columns")
    made = {op.sym_name.data: op for op in module.walk() if isinstance(op, nn.StateOp)}
    values = rng.integers(-3, 4, (count, height, width)).astype(np.float32)
    indices = (rng.integers(-n, n, count).astype(np.int32) for n in grid)
    for name, array in zip(("values", "rows", "columns"), (values, *indices), strict=True):
        made[name].value = BlobAttr(Blob(array))
    (main,) = (op for op in module.walk() if isinstance(op, FuncOp))
    for arg in reversed(main.body.block.args[:3]):
        main.body.block.erase_arg(arg)
    main.update_function_type()
    given = {
        f"arg{i}": rng.integers(-3, 4, nn.shape_of(arg)).astype(np.float32)
        for i, arg in enumerate(main.body.block.args)
    }
    return Program(module, new_context(), given, resolve_target("tiny:4"))


def change(module, name, changed):
    """Change the first value of a state, if there is one of that name."""
    for op in module.body.block.ops:
        if isinstance(op, nn.StateOp) and op.sym_name.data == name:
            op.value = BlobAttr(Blob(np.ascontiguousarray(changed(op.value.array))))


def next_bucket(module):
    for name in ("values", "rows", "columns"):
        change(module, name, lambda array: np.roll(array, 1, axis=0))


def lost_spill(module):
    change(module, "values.spilled", np.zeros_like)


def lost_place(module):
    def without_last(values):
        return np.where(np.arange(values.shape[2])[:, None, None] < values.shape[2] - 1, values, 0)

    change(module, "values", without_last)


def turned_blocks(module):
    for op in module.walk():
        if isinstance(op, nn.ComputeOp):
            space = op.structure().space
            first, *others = space.operands
            axes = first.axes[:3], first.axes[4:], first.axes[3:4]
            if first.shape[3] == first.shape[4]:
                turned = replace(first, axes=tuple(axis for each in axes for axis in each))
                op.properties["space"] = SpaceAttr(replace(space, operands=(turned, *others)))


def damaged(damage):
    tested = BucketBlocks("tiny:4")

    def apply(ctx, op):
        tested.apply(ctx, op)
        damage(op)

    return with_apply(tested, apply)


STATES = st.integers(0, 500).map(in_states)


def test_the_kit_finds_no_difference_in_programs_whose_blocks_are_states():
    report = check_pass(BucketBlocks("tiny:4"), programs=STATES, examples=20, seed=0)
    assert report.changed == report.examples


@pytest.mark.parametrize("damage", [next_bucket, lost_spill, lost_place, turned_blocks])
def test_the_kit_finds_a_planted_bug(damage):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(damaged(damage), programs=STATES, examples=200, seed=0, reduce_seconds=0)
    assert found.value.examples <= 4
