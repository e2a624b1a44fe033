from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region, SSAValue

from abele.backends.reference.run import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.dialects.levels import NN
from abele.ir.verify import verify
from abele.passes.merge_products import MergeProducts, products_of_a_value
from abele.tools.driver.context import new_context

HALF = np.dtype(np.float16)


def numbers(seed: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(HALF)


def program(
    rows: int, terms: int, columns: list[int], *, biases: bool, turned: bool, stored: bool = False
) -> ModuleOp:
    """@main multiplies its argument by several weights, which are states."""
    block = Block(arg_types=[TensorType(element_type(HALF), (rows, terms))])
    states: list[nn.StateOp] = []
    results: list[SSAValue] = []

    def state(name: str, array: np.ndarray) -> SSAValue:
        made = nn.StateOp(name, array)
        states.append(made)
        load = nn.LoadOp(name, TensorType(element_type(HALF), array.shape))
        block.add_op(load)
        if stored:
            other = nn.ConstantOp(array + HALF.type(1))
            block.add_ops([other, nn.StoreOp(other.result, name)])
        return load.result

    for i, n in enumerate(columns):
        shape = (n, terms) if turned else (terms, n)
        product = nn.MatMulOp(
            block.args[0], state(f"w{i}", numbers(i, *shape)), transpose_rhs=turned
        )
        block.add_op(product)
        results.append(product.result)
        if biases:
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
def test_merged_products_compute_the_same(columns, biases, turned, data):
    rows, terms = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 40))
    module = program(rows, terms, columns, biases=biases, turned=turned)
    made = merged(module)
    given_ = {"arg0": numbers(99, rows, terms)}
    before, after = (run_reference(each, given_).outputs for each in (module, made))
    for name in before:
        np.testing.assert_array_equal(after[name], before[name])


@pytest.mark.parametrize("biases", [False, True])
def test_products_of_a_single_row_are_merged_with_their_biases(biases):
    made = merged(program(1, 768, [768] * 3, biases=biases, turned=False))
    assert count(made, nn.MatMulOp) == 1
    assert count(made, nn.AddOp) == biases
    # The parts are side by side, in order.
    parts = [nn.values_of(op.starts)[1] for op in made.walk() if isinstance(op, nn.SliceOp)]
    assert parts == [0, 768, 1536]
    assert all(a < b for a, b in pairwise(parts))


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
