import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import Builtin, DenseIntOrFPElementsAttr

from abele.dialects.dense import array_of_dense, dense_of_array
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.ir.text import parse_module


def read(text):
    context = AbeleContext()
    context.load_dialect(Builtin)
    module = parse_module(f"builtin.module attributes {{v = {text}}} {{}}", context)
    attribute = module.attributes["v"]
    assert isinstance(attribute, DenseIntOrFPElementsAttr)
    return array_of_dense(attribute)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("dense<0xFF800000> : tensor<2xf32>", np.full(2, -np.inf, np.float32)),
        ("dense<[0x7F800000, -1.5]> : tensor<2xf32>", np.array([np.inf, -1.5], np.float32)),
        ("dense<0xFC00> : tensor<1xf16>", np.full(1, -np.inf, np.float16)),
        ("dense<0xFF80> : tensor<1xbf16>", np.full(1, -np.inf, ml_dtypes.bfloat16)),
        ("dense<0xFFF0000000000000> : tensor<f64>", np.array(-np.inf)),
        ("dense<[true, false]> : tensor<2xi1>", np.array([True, False])),
        ("dense<[[1], [-2]]> : tensor<2x1xi4>", np.array([[1], [-2]], ml_dtypes.int4)),
        ("dense<0x10> : tensor<2xi32>", np.full(2, 16, np.int32)),
        ("dense<255> : tensor<2xui8>", np.full(2, 255, np.uint8)),
        ("dense<[3, -1]> : tensor<2xindex>", np.array([3, -1])),
        ("dense<> : tensor<0xf32>", np.zeros(0, np.float32)),
    ],
)
def test_dense_attributes_are_read_bit_by_bit(text, expected):
    found = read(text)
    assert found.dtype == expected.dtype
    assert found.shape == expected.shape
    assert found.tobytes() == expected.tobytes()


def test_nan_stays_nan():
    assert np.isnan(read("dense<0x7FC00000> : tensor<2xf32>")).all()


def test_too_many_bits_are_refused_at_their_place():
    with pytest.raises(InputError, match=r"1:37: 0xFF800000 has more bits than float16"):
        read("dense<0xFF800000> : tensor<2xf16>")


KINDS = (np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint16, np.int64, np.bool_)


@given(st.sampled_from(KINDS), st.binary(min_size=8, max_size=64))
def test_an_array_comes_back_from_its_dense_attribute_in_the_same_bits(kind, data):
    dtype = np.dtype(kind)
    array = np.frombuffer(data[: len(data) - len(data) % 8], np.uint8)
    array = array % 2 == 1 if dtype == np.bool_ else array.view(dtype)
    found = array_of_dense(dense_of_array(array))
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
