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
from abele.passes.plans.bands import BlockPattern, Buckets, in_blocks


def drawn(data) -> tuple[np.ndarray, Buckets]:
    """A matrix of blocks of 2 x 3, and its pattern in buckets of any number."""
    high, wide = data.draw(st.integers(1, 8)), data.draw(st.integers(1, 8))
    bands, parts = data.draw(st.integers(1, high)), data.draw(st.integers(1, wide))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    matrix = sparse_matrix(rng, (high * 2, wide * 3), (2, 3), data.draw(st.sampled_from([0, 0.4])))
    return matrix, Buckets(BlockPattern.of_dense(matrix, (2, 3)), bands, parts)


@settings(max_examples=50)
@given(st.data())
def test_buckets_are_the_matrix_however_it_is_cut(data):
    matrix, buckets = drawn(data)
    pattern, members = buckets.pattern, buckets.members()
    blocks = in_blocks(matrix, (2, 3))[pattern.rows, pattern.columns]
    # What a place without a block has is never read.
    values = np.full((len(members), 2, 3), np.nan, np.float32)
    values[members >= 0] = blocks[members[members >= 0]]
    rows, columns = buckets.indices()
    dense = np.random.default_rng(0).integers(-4, 5, (matrix.shape[1], 5)).astype(np.float32)
    operands = [values.reshape(*rows.shape, 2, 3), dense, rows, columns]
    structure = buckets.structure((5,), before=0)
    block = Block(arg_types=[TensorType(element_type(each.dtype), each.shape) for each in operands])
    op = nn.ComputeOp(block.args, structure)
    block.add_ops([op, ReturnOp(op.result)])
    types = [each.type for each in block.args], [op.result.type]
    module = ModuleOp([FuncOp("main", types, Region(block))])
    given = {f"arg{i}": each for i, each in enumerate(operands)}
    found = run_reference(module, given).outputs["out0"].reshape(-1, 2, 5)
    order = buckets.order()
    found = found if order is None else found[order]
    np.testing.assert_array_equal(found.reshape(-1, 5), matrix @ dense)


@settings(max_examples=50)
@given(st.data())
def test_all_buckets_of_a_band_have_as_many_blocks_but_for_one(data):
    _, buckets = drawn(data)
    shape = buckets.bands, buckets.parts, buckets.room
    held = (buckets.members() >= 0).reshape(shape).sum(axis=2)
    assert np.ptp(held, axis=1).max() <= 1
    assert held.max() == buckets.room or not len(buckets.pattern.rows)
    np.testing.assert_array_equal(held.sum(axis=1), buckets.pattern.in_bands(buckets.bands))


def test_rows_are_dealt_so_that_bands_have_as_many_blocks():
    rows = np.repeat(np.arange(64), np.arange(64) // 4)
    pattern = BlockPattern(rows, rows, (64, 64), (1, 1))
    in_order = pattern.in_rows.reshape(8, 8).sum(axis=1)
    assert np.ptp(in_order) > 100
    assert np.ptp(pattern.in_bands(8)) <= 2


def test_rows_stay_in_their_order_where_bands_have_as_many_blocks():
    even = BlockPattern(np.arange(12), np.arange(12), (12, 12), (4, 4))
    assert Buckets(even, 3, 1).order() is None


def test_a_bucket_reads_only_the_columns_of_its_blocks():
    rows, columns = np.array([0, 0, 0, 1, 1, 1]), np.array([1, 5, 9, 9, 3, 3])
    buckets = Buckets(BlockPattern(rows, columns, (2, 10), (4, 4)), 2, 1)
    assert buckets.read == 3
    (table,) = buckets.structure((5,), before=0).space.tables
    np.testing.assert_array_equal(table.elements, [1, 5, 9, 3, 9, -1])


def test_an_index_that_the_matrix_does_not_have_is_refused():
    for rows, columns in (([3], [0]), ([0], [2]), ([-4], [0]), ([0], [-3])):
        with pytest.raises(InputError, match=r"(row|column) -?\d of block 0; the matrix has"):
            BlockPattern.of_list(np.array(rows), np.array(columns), (3, 2), (2, 2))
