import ml_dtypes
import numpy as np
import pytest

from abele.ir.support.number_kinds import (
    bit_width,
    in_whole_bytes,
    is_floating,
    is_unsigned,
    is_whole,
    whole_limits,
)

FLOATS = ("float8_e5m2", "float8_e4m3fn", "float4_e2m1fn", "bfloat16")
WHOLE = {"int4": (-8, 7), "uint4": (0, 15), "int2": (-2, 1), "uint2": (0, 3)}


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name))


@pytest.mark.parametrize("name", FLOATS)
def test_a_narrow_float_is_a_float(name):
    assert is_floating(dtype(name))
    assert not is_whole(dtype(name))


@pytest.mark.parametrize(("name", "limits"), WHOLE.items())
def test_an_integer_of_few_bits_has_its_own_limits_and_takes_a_byte(name, limits):
    kind = dtype(name)
    assert is_whole(kind)
    assert not is_floating(kind)
    assert whole_limits(kind) == limits
    assert is_unsigned(kind) == name.startswith("u")
    assert in_whole_bytes(kind) == np.dtype("u1" if name.startswith("u") else "i1")


def test_bits_are_those_of_the_number_not_of_its_memory():
    names = ("int4", "uint2", "float4_e2m1fn", "float8_e8m0fnu", "bfloat16")
    assert [bit_width(dtype(name)) for name in names] == [4, 2, 4, 8, 16]
    assert [bit_width(np.dtype(name)) for name in ("?", "i1", "f8")] == [1, 8, 64]


def test_numbers_of_whole_bytes_stay_what_they_are():
    assert in_whole_bytes(np.dtype("i8")) == np.dtype("i8")
    assert in_whole_bytes(np.dtype("f4")) == np.dtype("f4")
