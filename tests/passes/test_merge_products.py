from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from abele.backends.reference.run import run_reference
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.levels import NN
from abele.ir.upstream import Context, ModulePass
from abele.ir.verify import verify
from abele.passes.merge_products import MergeProducts, products_of_a_value
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import with_apply

HALF = np.dtype(np.float16)


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(HALF)


def program(
    rows: int,
    terms: int,
    columns: list[int],
    *,
    biases: bool,
    turned: bool,
    stored: bool = False,
    gemm: bool = False,
    cast: bool = False,
) -> ModuleOp:
    """@main multiplies its argument by several weights, which are states.

    Args:
        stored: whether it stores other weights.
        gemm: whether nn.gemm multiplies, and adds the biases.
        cast: whether the states are float32, of which it reads casts.
    """
    block = Block(arg_types=[TensorType(element_type(HALF), (rows, terms))])
    states: list[nn.StateOp] = []
    results: list[SSAValue] = []

    def state(name: str, array: np.ndarray) -> SSAValue:
        held = array.astype(np.float32) if cast else array
        states.append(nn.StateOp(name, held))
        load = nn.LoadOp(name, TensorType(element_type(held.dtype), array.shape))
        block.add_op(load)
        if stored:
            other = nn.ConstantOp(held + held.dtype.type(1))
            block.add_ops([other, nn.StoreOp(other.result, name)])
        if not cast:
            return load.result
        narrow = nn.CastOp(load.result, element_type(HALF))
        block.add_op(narrow)
        return narrow.result

    for i, n in enumerate(columns):
        shape = (n, terms) if turned else (terms, n)
        weight = state(f"w{i}", numbers(i, *shape))
        bias = state(f"b{i}", numbers(9 + i, n)) if gemm and biases else None
        product = (
            nn.GemmOp(block.args[0], weight, bias, alpha=2.0, beta=-1.0, transpose_rhs=turned)
            if gemm
            else nn.MatMulOp(block.args[0], weight, transpose_rhs=turned)
        )
        block.add_op(product)
        results.append(product.result)
        if biases and bias is None:
            total = nn.AddOp(state(f"b{i}", numbers(9 + i, n)), product.result)
            block.add_op(total)
            results[-1] = total.result
    block.add_op(ReturnOp(*results))
    types = [block.args[0].type], [each.type for each in results]
    return ModuleOp([*states, FuncOp("main", types, Region(block))])


def merged(module: ModuleOp) -> ModuleOp:
    made = module.clone()
    MergeProducts("mk2").apply(new_context(), made)
    verify(made, NN)
    return made


def count(module: ModuleOp, kind: type) -> int:
    return sum(isinstance(op, kind) for op in module.walk())


@given(
    st.lists(st.integers(1, 70), min_size=2, max_size=4), st.booleans(), st.booleans(), st.data()
)
@settings(max_examples=15, deadline=None)
def test_merged_products_compute_the_same(
    columns: list[int], biases: bool, turned: bool, data: st.DataObject
):
    rows, terms = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 40))
    gemm, cast = data.draw(st.booleans()), data.draw(st.booleans())
    module = program(rows, terms, columns, biases=biases, turned=turned, gemm=gemm, cast=cast)
    made = merged(module)
    given_ = {"arg0": numbers(99, rows, terms)}
    before, after = (run_reference(each, given_).outputs for each in (module, made))
    for name in before:
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("biases", [False, True])
def test_products_of_a_single_row_are_merged_with_their_biases(biases: bool):
    made = merged(program(1, 768, [768] * 3, biases=biases, turned=False))
    assert count(made, nn.MatMulOp) == 1
    assert count(made, nn.AddOp) == biases
    # The parts are side by side, in order.
    parts = [nn.values_of(op.starts)[1] for op in made.walk() if isinstance(op, nn.SliceOp)]
    assert parts == [0, 768, 1536]
    assert all(a < b for a, b in pairwise(parts))


@pytest.mark.parametrize("biases", [False, True])
def test_products_with_a_scale_are_merged_with_the_biases_that_they_add(biases: bool):
    made = merged(program(1, 768, [768] * 3, biases=biases, turned=True, gemm=True))
    (product,) = (op for op in made.walk() if isinstance(op, nn.GemmOp))
    assert (product.bias is not None) == biases
    assert (product.alpha.value.data, product.beta.value.data) == (2.0, -1.0)


def test_products_with_a_scale_stay_if_they_add_more_than_a_vector_of_columns():
    module = program(1, 768, [768] * 2, biases=True, turned=False, gemm=True)
    for op in module.walk():
        if isinstance(op, nn.GemmOp):
            assert op.bias is not None
            whole = nn.ReshapeOp(op.bias, (1, 768))
            assert op.parent is not None
            op.parent.insert_op_before(whole, op)
            op.operands[2] = whole.result
    assert products_of_a_value(module) == []


def test_products_with_different_scales_stay():
    module = program(1, 768, [768] * 2, biases=False, turned=False, gemm=True)
    first = next(op for op in module.walk() if isinstance(op, nn.GemmOp))
    first.alpha = nn.GemmOp(first.lhs, first.rhs, alpha=3.0).alpha
    assert products_of_a_value(module) == []


def test_narrow_casts_of_weights_are_merged():
    made = merged(program(1, 768, [768] * 3, biases=True, turned=False, cast=True))
    assert count(made, nn.MatMulOp) == 1
    made = merged(program(1, 768, [768] * 3, biases=True, turned=False, cast=True, stored=True))
    assert count(made, nn.MatMulOp) == 3


def test_weights_that_a_run_changes_stay():
    module = program(1, 768, [768] * 2, biases=False, turned=False, stored=True)
    assert products_of_a_value(module) == []
    assert count(merged(module), nn.MatMulOp) == 2


def test_products_of_several_values_or_with_other_matrices_stay():
    module = program(1, 768, [768] * 2, biases=False, turned=False)
    first, second = (op for op in module.walk() if isinstance(op, nn.MatMulOp))
    assert len(products_of_a_value(module)) == 1
    second.operands[0] = first.result
    assert products_of_a_value(module) == []


# Bugs that are planted in the pass, which the kit finds in products of a value


def products(seed: int) -> Program:
    """Products of a few rows with weights of the same or of different sizes."""
    rng = np.random.default_rng(seed)
    rows, terms, size = int(rng.integers(1, 3)), int(rng.integers(1, 9)), int(rng.integers(1, 9))
    others = rng.integers(1, 9, rng.integers(1, 3)).tolist()
    biases, turned, gemm, cast = (bool(flag) for flag in rng.integers(0, 2, 4))
    module = program(
        rows, terms, [size, size, *others], biases=biases, turned=turned, gemm=gemm, cast=cast
    )
    given = {"arg0": numbers(seed, rows, terms)}
    return Program(module, new_context(), given, resolve_target("mk2"))


PRODUCTS = st.integers(0, 500).map(products)


def another_part(module: ModuleOp) -> None:
    """The first two slices change their places."""
    first, second = [op for op in module.walk() if isinstance(op, nn.SliceOp)][:2]
    first.starts, second.starts = second.starts, first.starts


def one_column_further(module: ModuleOp) -> None:
    """The second slice begins one column before its own."""
    _, second = [op for op in module.walk() if isinstance(op, nn.SliceOp)][:2]
    rank = len(nn.values_of(second.starts))
    starts = [*nn.values_of(second.starts)[: rank - 1], nn.values_of(second.starts)[-1] - 1]
    made = nn.SliceOp(second.operand, starts, [1] * rank, nn.shape_of(second.result))
    second.starts = made.starts
    made.drop_all_references()


def another_bias(module: ModuleOp) -> None:
    """The first two biases change their places; without biases, the first two weights."""
    joined = [op for op in module.walk() if isinstance(op, nn.ConcatOp)][-1]
    first, second, *_ = joined.operands
    joined.operands[0], joined.operands[1] = second, first


def damaged(damage: Callable[[ModuleOp], None]) -> ModulePass:
    tested = MergeProducts("mk2")

    def apply(ctx: Context, op: ModuleOp) -> None:
        tested.apply(ctx, op)
        if count(op, nn.SliceOp):
            damage(op)

    return with_apply(tested, apply)


def test_the_kit_finds_no_difference_in_products_of_a_value():
    report = check_pass(MergeProducts("mk2"), programs=PRODUCTS, examples=20, seed=0)
    assert report.changed >= 10


@pytest.mark.parametrize("damage", [another_part, one_column_further, another_bias])
def test_the_kit_finds_a_planted_bug(damage: Callable[[ModuleOp], None]):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(damaged(damage), programs=PRODUCTS, examples=200, seed=0, reduce_seconds=0)
    assert found.value.examples <= 4
