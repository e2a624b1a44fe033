from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from built_steps import values_of
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from lowered_stablehlo import lowered, results_of, returned
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


@pytest.mark.parametrize(
    ("wide", "shape"), [("i64", "3x64"), ("i8", "2x8"), ("f32", "32"), ("ui16", "1x16")]
)
def test_truth_values_are_the_bits_of_a_number(wide: str, shape: str) -> None:
    sizes = [int(n) for n in shape.split("x")]
    truths = np.random.default_rng(0).random(sizes) < 0.5
    kind = {"i64": np.int64, "i8": np.int8, "f32": np.float32, "ui16": np.uint16}[wide]
    number = np.packbits(truths, -1, "little").view(kind).reshape(sizes[:-1])
    made = f"tensor<{''.join(f'{n}x' for n in sizes[:-1])}{wide}>"
    for taken, found, x, y in (
        (f"tensor<{shape}xi1>", made, truths, number),
        (made, f"tensor<{shape}xi1>", number, truths),
    ):
        body = f'%0 = "stablehlo.bitcast_convert"(%x) : ({taken}) -> {found}\n'
        body += returned(["0"], [found], "func.return")
        (value,) = results_of(body, f"%x: {taken}", found, x)
        assert value.dtype == y.dtype
        assert value.tobytes() == y.tobytes()


@pytest.mark.parametrize(("bits", "narrow"), [((8, 23), np.float32), ((5, 10), np.float16)])
def test_a_float64_is_rounded_to_a_narrower_float(bits: tuple[int, int], narrow: Any) -> None:
    draw = np.random.default_rng(0)
    # Numbers that are subnormal in the narrower float become 0.
    x = draw.choice([-1, 1], 500) * draw.uniform(1, 10, 500) * 10.0 ** draw.integers(-4, 6, 500)
    x = np.concatenate([x, [0.0, -0.0, np.inf, -np.inf, np.nan, 1e39, -1e39, 1e-60, 65519, 65520]])
    kind = f"tensor<{x.size}xf64>"
    body = f"""%0 = "stablehlo.reduce_precision"(%x) <{{exponent_bits = {bits[0]} : i32,
        mantissa_bits = {bits[1]} : i32}}> : ({kind}) -> {kind}\n"""
    (found,) = results_of(body + returned(["0"], [kind], "func.return"), f"%x: {kind}", kind, x)
    with np.errstate(over="ignore"):
        wanted = x.astype(narrow).astype(np.float64)
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("element", ["f32", "f64"])
def test_a_float_without_mantissa_has_no_nan(element: str) -> None:
    kind = f"tensor<3x{element}>"
    body = f"""%0 = "stablehlo.reduce_precision"(%x) <{{exponent_bits = 5 : i32, mantissa_bits =
        0 : i32}}> : ({kind}) -> {kind}\n"""
    x = np.array([np.nan, 3.5, -np.inf], f"f{int(element[1:]) // 8}")
    (found,) = results_of(body + returned(["0"], [kind], "func.return"), f"%x: {kind}", kind, x)
    np.testing.assert_array_equal(found, [np.inf, 4, -np.inf])
