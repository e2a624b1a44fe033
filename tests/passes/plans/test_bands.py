import hypothesis.strategies as st
import numpy as np
import pytest
from block_sparse import sparse_matrix
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.reference.run import run_reference
from abele.dialects import nn
from abele.dialects.dtypes import element_type
from abele.ir.support.errors import InputError
from abele.passes.plans.bands import BlockSparse, Buckets


@settings(max_examples=50)
@given(st.data())
def test_buckets_are_the_matrix_however_it_is_cut(data):
    high, wide = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))
    bands = data.draw(st.sampled_from([n for n in range(1, high + 1) if high % n == 0]))
    parts = data.draw(st.integers(1, wide))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    matrix = sparse_matrix(rng, (high * 2, wide * 3), (2, 3), 0.4)
    buckets = Buckets(BlockSparse.of_dense(matrix, (2, 3)), bands, parts)
    operands = [*buckets.arrays()]
    operands.insert(1, rng.integers(-4, 5, (wide * 3, 5)).astype(np.float32))
    structure = buckets.structure((5,), dense_last=False)
    block = Block(arg_types=[TensorType(element_type(each.dtype), each.shape) for each in operands])
    op = nn.ComputeOp(block.args, structure)
    block.add_ops([op, ReturnOp(op.result)])
    types = [each.type for each in block.args], [op.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    given = {f"arg{i}": each for i, each in enumerate(operands)}
    found = run_reference(module, given).outputs["out0"]
    np.testing.assert_array_equal(found.reshape(high * 2, 5), matrix @ operands[1])


@settings(max_examples=50)
@given(st.data())
def test_a_bucket_has_as_many_blocks_as_its_band_and_part(data):
    high, wide = (data.draw(st.integers(1, 9)) for _ in range(2))
    bands, parts = (data.draw(st.integers(1, n)) for n in (high, wide))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    count = data.draw(st.integers(0, 40))
    rows, columns = rng.integers(-high, high, count), rng.integers(-wide, wide, count)
    blocks = BlockSparse.of_list(np.ones((count, 1, 1)), rows, columns, (high, wide))
    own = blocks.sizes(bands, parts)
    held = np.zeros((bands * own[0], parts * own[1]), np.int64)
    np.add.at(held, (rows % high, columns % wide), 1)
    wanted = held.reshape(bands, own[0], parts, own[1]).sum(axis=(1, 3))
    np.testing.assert_array_equal(blocks.counts(bands, parts), wanted)
    # Other parts of the same matrix do not change what is known of these.
    blocks.counts(1, wide)
    np.testing.assert_array_equal(blocks.counts(bands, parts), wanted)


def test_an_index_that_the_matrix_does_not_have_is_refused():
    one = np.ones((1, 2, 2))
    for rows, columns in (([3], [0]), ([0], [2]), ([-4], [0]), ([0], [-3])):
        with pytest.raises(InputError, match=r"(row|column) -?\d of block 0; the matrix has"):
            BlockSparse.of_list(one, np.array(rows), np.array(columns), (3, 2))
