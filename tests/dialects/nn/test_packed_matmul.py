import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f16, f32, i8
from xdsl.ir import Block

from abele.backends.reference.structure import structure_value
from abele.dialects import nn
from abele.ir.upstream import VerifyException

BYTE = IntegerType(8, Signedness.UNSIGNED)


def product(*shapes, bits=4, of=f32, byte=BYTE) -> nn.PackedMatMulOp:
    kinds = (of, byte, of, byte, byte)
    types = [TensorType(kind, shape) for kind, shape in zip(kinds, shapes, strict=True)]
    return nn.PackedMatMulOp(*Block(arg_types=types).args, bits=bits)


@st.composite
def problems(draw):
    """A product, integers for its operands, and the matrix that they stand for."""
    bits, size = draw(st.sampled_from([2, 4, 8])), draw(st.sampled_from([8, 16]))
    n, blocks, each = draw(st.integers(1, 4)), draw(st.integers(1, 3)), 8 // bits
    terms = draw(st.integers((blocks - 1) * size + 1, blocks * size))
    batch = draw(st.lists(st.integers(1, 3), max_size=2))
    shared = [draw(st.sampled_from([(n, blocks), (n, 1), (1, blocks), (1, 1)])) for _ in range(2)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    value = rng.integers(-8, 9, (*batch, terms)).astype(np.float32)
    packed = rng.integers(0, 256, (n, blocks, size // each)).astype(np.uint8)
    scales = rng.choice([0.5, 1, 2], shared[0]).astype(np.float32)
    zeros = rng.integers(0, 1 << bits, shared[1]).astype(np.uint8)
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    integers = np.array(
        [[[byte >> shift & (1 << bits) - 1 for byte in row for shift in shifts] for row in rows]
         for rows in packed.tolist()]
    )  # fmt: skip
    matrix = (integers - zeros[..., None].astype(float)) * scales[..., None]
    matrix = np.broadcast_to(matrix, integers.shape).reshape(n, -1)[:, :terms]
    operands = [value, packed, scales, zeros, shifts]
    return product(*(a.shape for a in operands), bits=bits), operands, matrix


@given(problems())
def test_it_is_the_product_of_the_unpacked_matrix(problem):
    op, operands, matrix = problem
    shape = nn.shape_of(op.result)
    found = structure_value(op.structure(), operands, np.dtype(np.float32), shape)
    np.testing.assert_array_equal(np.reshape(found, shape), operands[0] @ matrix.T)


SHAPES = [(2, 64), (8, 2, 16), (8, 2), (8, 2), (2,)]


@pytest.mark.parametrize(
    ("changed", "options", "message"),
    [
        ({}, {"bits": 3}, r"bits 3; need 2, 4, 8"),
        ({}, {"bits": 8}, r"shifts of shape \[2\]; need one for each of the 1 elements of a byte"),
        ({}, {"byte": i8}, r"packed of i8; need ui8"),
        ({}, {"of": i8}, r"value of i8; need floats"),
        ({0: ()}, {}, r"a value of rank 0"),
        ({1: (8, 32)}, {}, r"packed of shape \[8, 32\]; need \[n, blocks, bytes\]"),
        ({0: (2, 65)}, {}, r"64 packed elements in a row for a value of 65 terms"),
        ({2: (8, 3)}, {}, r"scales of shape \[8, 3\]; need \[8, 2\], or 1 in place of a size"),
        ({3: (8,)}, {}, r"zeros of shape \[8\]; need \[8, 2\]"),
    ],
)
def test_operands_that_do_not_fit_are_refused(changed, options, message):
    with pytest.raises(VerifyException, match=message):
        product(*(changed.get(i, shape) for i, shape in enumerate(SHAPES)), **options)


def test_the_result_has_the_type_of_the_value():
    assert product(*SHAPES, of=f16).result.type == TensorType(f16, (2, 8))


def test_any_space_with_the_same_body_takes_the_same_types():
    op = product(*SHAPES, of=f16)
    made = nn.ComputeOp(op.operands, op.structure())
    made.verify()
    assert made.result.type == op.result.type
