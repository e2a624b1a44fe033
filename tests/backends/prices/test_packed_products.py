import numpy as np
import pytest
from xdsl.dialects.builtin import IntegerType, Signedness, TensorType, f16
from xdsl.ir import Block

from abele.backends.prices.codelets import compute_cycles
from abele.backends.prices.packed_products import packed_product_cycles
from abele.backends.prices.workload import Workload
from abele.backends.target import PRESETS
from abele.dialects import nn

MK2 = PRESETS["mk2"]
W = MK2.workers
F16 = np.dtype(np.float16)
BYTE = IntegerType(8, Signedness.UNSIGNED)
NEVER = np.array(np.inf)


def streamed(rows, blocks, bytes_, field, bits=4, dtype="float16"):
    sizes = (np.array(each) for each in (rows, blocks, bytes_, field))
    return packed_product_cycles(*sizes, bits, dtype, NEVER, MK2)


@pytest.mark.parametrize(("bits", "word"), [(4, 2 + 4 * 3), (8, 2 + 2 * 2), (2, 2 + 8 * 3)])
def test_a_vector_is_multiplied_by_integers_as_they_are_taken_apart(bits, word):
    """12 rows of 3 blocks of 16 bytes: two words a block, with 16 / bits groups of four each."""
    groups = 16 // bits
    row = 10 + 3 * 2 * word + 10 + 3 * (6 + 2) + 3 * 2 * groups
    assert streamed(2 * W, 3, 16, 1, bits) == 30 + W * (16 + 2 * row)


def test_float32_takes_two_conversions_and_one_more_product_for_each_group():
    more = streamed(W, 1, 8, 1, dtype="float32") - streamed(W, 1, 8, 1)
    assert more == W * 4 * (2 + 1)


def test_many_vectors_are_multiplied_by_the_faster_units():
    n, blocks, bytes_ = 16, 2, 16
    types = [TensorType(f16, (512, 64)), TensorType(BYTE, (n, blocks, bytes_))]
    types += [TensorType(f16, (n, blocks)), TensorType(BYTE, (1, 1)), TensorType(BYTE, (2,))]
    op = nn.PackedMatMulOp(*Block(arg_types=types).args, bits=4)
    plain = nn.MatMulOp(
        *Block(arg_types=[types[0], TensorType(f16, (n, 64))]).args, transpose_rhs=True
    )
    work = Workload(op.structure(), F16, F16, MK2)
    found = compute_cycles(work, np.array([[512, n, blocks, bytes_, 2]]))[0]
    dense = compute_cycles(Workload(plain.structure(), F16, F16, MK2), np.array([[512, n, 64]]))[0]
    assert dense < found < streamed(n, blocks, bytes_, 512)


def test_cycles_never_fall_with_a_larger_matrix_or_more_vectors():
    many = np.arange(1, 40)
    for sizes in ((many, 3, 16, 2), (9, many, 16, 2), (9, 3, many, 2), (9, 3, 16, many)):
        assert (np.diff(streamed(*sizes)) >= 0).all()
