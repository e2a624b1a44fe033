from math import inf, nan

import hypothesis.strategies as st
import numpy as np
import pytest
from block_sparse import densified
from hypothesis import given
from xdsl.dialects.builtin import TensorType, f16, f32, i1, i32
from xdsl.ir import Block

from abele.backends.faults import IndexFault
from abele.backends.reference.structure import structure_value
from abele.dialects import nn
from abele.ir.upstream import VerifyException


def product(values, dense, size, *, indices=None, of=f32, index=i32, **flags) -> nn.BlockMatMulOp:
    types = [(values, of), (dense, of), (indices or values[:1], index), (values[:1], index)]
    args = Block(arg_types=[TensorType(kind, shape) for shape, kind in types]).args
    return nn.BlockMatMulOp(*args, size=size, **flags)


@st.composite
def problems(draw):
    """A product and integers for its operands, with indices from the front and from the end."""
    height, width = draw(st.sampled_from([1, 2, 3, 4, 8])), draw(st.sampled_from([1, 2, 4]))
    high, wide = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    blocks, other = draw(st.integers(0, 9)), draw(st.lists(st.integers(1, 3), max_size=2))
    transposed, last = draw(st.booleans()), draw(st.booleans())
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = rng.integers(-8, 9, (blocks, height, width)).astype(np.float32)
    rows, columns = rng.integers(-high, high, blocks), rng.integers(-wide, wide, blocks)
    k, m = (high * height, wide * width) if transposed else (wide * width, high * height)
    dense = rng.integers(-8, 9, (*other, k) if last else (k, *other)).astype(np.float32)
    op = product(values.shape, dense.shape, m, transposed=transposed, dense_last=last)
    matrix = densified(values, rows, columns, (high, wide))
    return op, [values, dense, rows.astype(np.int32), columns.astype(np.int32)], matrix


@given(problems())
def test_it_is_the_product_of_the_densified_matrix(problem):
    op, operands, matrix = problem
    matrix = matrix.T if op.transposed is not None else matrix
    last = op.dense_last is not None
    dense = np.moveaxis(operands[1], -1, 0) if last else operands[1]
    wanted = np.tensordot(matrix, dense, 1)
    found = structure_value(op.structure(), operands, np.dtype(np.float32), nn.shape_of(op.result))
    shape = nn.shape_of(op.result)
    np.testing.assert_array_equal(
        np.reshape(found, shape), np.moveaxis(wanted, 0, -1) if last else wanted
    )


@pytest.mark.parametrize("wrong", [3, -4])
@pytest.mark.parametrize("operand", [2, 3])
def test_an_index_that_the_matrix_does_not_have_is_a_fault(operand, wrong):
    op = product((2, 4, 4), (12, 5), 12)
    indices = [np.zeros(2, np.int32), np.zeros(2, np.int32)]
    indices[operand - 2][1] = wrong
    operands = [np.ones((2, 4, 4), np.float32), np.ones((12, 5), np.float32), *indices]
    with pytest.raises(IndexFault, match=f"{wrong}"):
        structure_value(op.structure(), operands, np.dtype(np.float32), nn.shape_of(op.result))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: product((2, 4), (8, 3), 8), r"values of shape \[2, 4\]; need \[blocks, height"),
        (
            lambda: product((2, 4, 4), (10, 3), 8),
            "10 terms in blocks of 4; need a positive divisor",
        ),
        (lambda: product((2, 4, 4), (8, 3), 6), "6 rows in blocks of 4; need a positive divisor"),
        (lambda: product((2, 4, 0), (8, 3), 8), "8 terms in blocks of 0; need a positive divisor"),
        (lambda: product((2, 4, 4), (8, 3), -4), "size -4; need 0 or more"),
        (lambda: product((2, 4, 4), (8, 3), 0), "2 blocks of a matrix without rows; need none"),
        (lambda: product((2, 4, 4), (), 8), "a dense operand of rank 0; need one axis or more"),
        (lambda: product((2, 4, 4), (8, 3), 8, index=i1), "rows of i1; need integers of 8 bits"),
        (lambda: product((2, 4, 4), (8, 3), 8, index=f16), "rows of f16; need integers of 8 bits"),
        (
            lambda: product((2, 4, 4), (8, 3), 8, indices=(3,)),
            r"rows of shape \[3\]; need one for each of the 2 blocks",
        ),
        (lambda: product((2, 4, 4), (8, 3), 8, capacity=-1), "capacity -1; need 0 to"),
        (lambda: product((2, 4, 4), (8, 3), 8, density=1.5), "density 1.5; need 0.0 to 1.0"),
        (lambda: product((2, 4, 4), (8, 3), 8, density=nan), "density nan; need 0.0 to 1.0"),
        (lambda: product((2, 4, 4), (8, 3), 8, capacity=1 << 31), "capacity 2147483648; need 0"),
        (lambda: product((2, 4, 4), (8, 3), 8, capacity=1, density=0.5), "need one of them"),
        (lambda: product((2, 4, 4), (8, 3), 8, oversize=-0.1), "oversize -0.1; need 0 to 1000"),
        (lambda: product((2, 4, 4), (8, 3), 8, oversize=inf), "oversize inf; need 0 to 1000"),
        (
            lambda: product((2, 4, 4), (16, 3), 8, buckets=(1, 3)),
            r"buckets \[1, 3\]; need divisors of \[2, 4\]",
        ),
        (lambda: product((2, 4, 4), (8, 3), 8, buckets=(0, 1)), r"buckets \[0, 1\]; need divisors"),
    ],
)
def test_operands_that_do_not_fit_are_refused_with_what_is_allowed(make, message):
    with pytest.raises(VerifyException, match=message):
        make()
