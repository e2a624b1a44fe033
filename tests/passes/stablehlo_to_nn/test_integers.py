from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from built_steps import values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lowered_stablehlo import lowered, returned
from numpy.typing import NDArray

from abele.dialects.dtypes import element_type
from abele.ir.support.errors import InputError
from abele.ir.upstream import VerifyException
from abele.passes.stablehlo_to_nn import integers

Array = NDArray[Any]

DTYPES = [np.dtype(f"{kind}{n}") for kind in "iu" for n in (1, 2, 4, 8)]


def numbers(dtype: np.dtype[Any]) -> st.SearchStrategy[Array]:
    """Three integers, often at the ends of the range."""
    info = np.iinfo(dtype)
    few = st.sampled_from([info.min, info.max, 0, 1, 2, 8 * dtype.itemsize])
    return hnp.arrays(dtype, 3, elements=few | hnp.from_dtype(dtype))


pairs = st.sampled_from(DTYPES).flatmap(lambda d: st.tuples(numbers(d), numbers(d)))


def wrapped(values: list[int], dtype: np.dtype[Any]) -> Array:
    """Integers of any size in a dtype, where they wrap."""
    bits = 8 * dtype.itemsize
    return np.array([v % (1 << bits) for v in values], f"u{dtype.itemsize}").view(dtype)


def towards_zero(a: int, b: int) -> int:
    """The quotient of two integers, rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


@settings(max_examples=80, deadline=None)
@given(pairs)
def test_quotients_and_remainders_by_zero_are_those_of_xla(pair: tuple[Array, Array]) -> None:
    a, b = pair
    both = [(int(x), int(y)) for x, y in zip(a, b, strict=True)]
    quotients = [towards_zero(x, y) if y else -1 for x, y in both]
    rests = [x - y * towards_zero(x, y) if y else x for x, y in both]
    np.testing.assert_array_equal(values_of(integers.divided, a, b), wrapped(quotients, a.dtype))
    np.testing.assert_array_equal(values_of(integers.remainder, a, b), wrapped(rests, a.dtype))


@settings(max_examples=80, deadline=None)
@given(st.sampled_from(DTYPES).flatmap(numbers))
def test_bits_are_counted(a: Array) -> None:
    bits = 8 * a.dtype.itemsize
    as_unsigned = [int(x) % (1 << bits) for x in a]
    ones = np.array([x.bit_count() for x in as_unsigned], a.dtype)
    zeros = np.array([bits - x.bit_length() for x in as_unsigned], a.dtype)
    np.testing.assert_array_equal(values_of(integers.ones_counted, a), ones)
    np.testing.assert_array_equal(values_of(integers.zeros_counted, a), zeros)


@pytest.mark.parametrize("old", ["u1", "i2", "f4", "u8", "f2"])
@pytest.mark.parametrize("new", ["i1", "u2", "i4", "f4", "u8"])
def test_bits_become_elements_of_other_widths(old: str, new: str) -> None:
    given, wanted = np.dtype(old), np.dtype(new)
    random = np.random.default_rng(0)
    last = max(wanted.itemsize // given.itemsize, 1)
    shape = (3, last) if last > 1 else (3,)
    array = random.integers(0, 255, (*shape, given.itemsize), np.uint8).view(given)[..., 0]
    found = values_of(lambda new, x: integers.bits_as(new, x, element_type(wanted)), array)
    want = np.ascontiguousarray(array).view(wanted)
    if given.itemsize > wanted.itemsize:
        want = want.reshape(*shape, -1)
    elif last > 1:
        want = want[..., 0]
    assert isinstance(found, np.ndarray)
    assert found.tobytes() == np.ascontiguousarray(want).tobytes()
    assert found.shape == want.shape


@pytest.mark.parametrize(
    ("operand", "result", "why"),
    [
        ("3xf32", "3x4xi16", "the bits of"),
        ("3xf32", "4xi32", "the bits of"),
        ("3x3xi8", "3xi32", "the bits of"),
        ("3x2xi4", "3xi8", "elements of whole bytes"),
    ],
)
def test_bits_of_other_shapes_or_of_parts_of_bytes_are_refused(
    operand: str, result: str, why: str
) -> None:
    body = f'%0 = "stablehlo.bitcast_convert"(%x) : (tensor<{operand}>) -> tensor<{result}>\n'
    body += returned(["0"], [f"tensor<{result}>"], "func.return")
    with pytest.raises((InputError, VerifyException), match=why):
        lowered(body, f"%x: tensor<{operand}>", f"tensor<{result}>")
