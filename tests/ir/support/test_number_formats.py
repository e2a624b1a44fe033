import numpy as np
import pytest

from abele.ir.support.number_formats import (
    FORMATS,
    SCALES,
    Overflow,
    format_of,
    scale_byte,
    scale_of,
)

gfloat = pytest.importorskip("gfloat")

EIGHT = [each for each in FORMATS.values() if each.bits == 8]
NARROW = [each for each in FORMATS.values() if each.bits <= 16]


def oracle(fmt):
    """The format, as gfloat describes it."""
    nans = {"exponent": 2 ** (fmt.digits - 1) - 1, "negative zero": 0, "none": 0}[fmt.nan]
    domain = gfloat.types.Domain.Extended if fmt.infinities else gfloat.types.Domain.Finite
    return gfloat.FormatInfo(
        name=fmt.name,
        k=fmt.bits,
        precision=fmt.digits,
        bias=fmt.bias,
        has_nz=fmt.nan != "negative zero",
        domain=domain,
        num_high_nans=nans,
        has_subnormals=True,
        is_signed=True,
        is_twos_complement=False,
    )


def numbers_of(fmt):
    codes = np.arange(1 << fmt.bits, dtype=fmt.code_dtype)
    return codes, fmt.decode(codes)


def between(fmt):
    """Finite numbers of a format, and the quarters of each gap, up to beyond the largest."""
    _, numbers = numbers_of(fmt)
    numbers = np.unique(numbers[np.isfinite(numbers)])
    steps = np.diff(numbers)
    inner = [numbers[:-1] + steps * part for part in (0.25, 0.5, 0.75)]
    beyond = fmt.largest * np.array([1 + 2.0**-fmt.digits, 1.1, 3.0, np.inf])
    return np.concatenate([numbers, *inner, beyond, -beyond, [np.nan, -0.0]])


@pytest.mark.parametrize("fmt", EIGHT, ids=str)
def test_every_code_of_8_bits_means_what_gfloat_says(fmt):
    codes, numbers = numbers_of(fmt)
    expected = [gfloat.decode_float(oracle(fmt), int(code)).fval for code in codes]
    np.testing.assert_array_equal(numbers, expected)
    assert (np.signbit(numbers) == np.signbit(expected))[~np.isnan(numbers)].all()


@pytest.mark.parametrize("fmt", [f for f in NARROW if f.dtype], ids=str)
def test_every_code_of_16_bits_or_fewer_means_what_its_dtype_says(fmt):
    codes, numbers = numbers_of(fmt)
    with np.errstate(invalid="ignore"):
        expected = codes.view(fmt.numpy_dtype).astype(np.float64)
    np.testing.assert_array_equal(numbers, expected)
    assert format_of(fmt.numpy_dtype) is fmt


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_encoding_a_number_gives_back_its_code(fmt):
    codes, numbers = numbers_of(fmt)
    known = ~np.isnan(numbers)
    np.testing.assert_array_equal(fmt.encode(numbers[known]), codes[known])
    if fmt.nan != "none":
        assert np.isnan(fmt.decode(fmt.encode(np.array([np.nan])))).all()


@pytest.mark.parametrize("fmt", EIGHT, ids=str)
def test_values_between_numbers_of_8_bits_round_to_nearest_as_in_gfloat(fmt):
    values = between(fmt)
    values = values[~np.isnan(values)]
    rounded = fmt.round(values)
    for value, found in zip(values, rounded, strict=True):
        expected = gfloat.round_float(oracle(fmt), float(value), sat=True)
        assert found == expected, value


@pytest.mark.parametrize("fmt", EIGHT, ids=str)
@pytest.mark.parametrize("word", [0, 1 << 29, 1 << 31, 5 << 29, (1 << 32) - 1])
def test_values_between_numbers_of_8_bits_round_stochastically_as_in_gfloat(fmt, word):
    bits = 3
    values = between(fmt)
    values = values[np.isfinite(values) & (np.abs(values) < fmt.largest)]
    words = np.full(values.shape, word >> (32 - bits) << (32 - bits), np.uint32)
    rounded = fmt.round(values, "stochastic", words=words)
    for value, found in zip(values, rounded, strict=True):
        # Quarters of a gap need no more than the first three bits of the word.
        expected = gfloat.round_float(
            oracle(fmt),
            float(value),
            gfloat.RoundMode.Stochastic,
            sat=True,
            srbits=word >> (32 - bits),
            srnumbits=bits,
        )
        assert found == expected, value


@pytest.mark.parametrize("name", ["f16", "bf16"])
def test_values_round_to_nearest_as_their_dtype_does(name):
    fmt = FORMATS[name]
    with np.errstate(over="ignore"):
        values = between(fmt).astype(np.float32)
        expected = values.astype(fmt.numpy_dtype).astype(np.float64)
    found = fmt.round(values.astype(np.float64), overflow=Overflow.INFINITY)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("fmt", NARROW, ids=str)
def test_overflow_follows_its_rule(fmt):
    large = np.array([fmt.largest, -fmt.largest, fmt.largest * 1.5, -np.inf, np.nan])
    if fmt.nan != "none":
        expected = [fmt.largest, -fmt.largest, np.nan, np.nan, np.nan]
        np.testing.assert_array_equal(fmt.round(large, overflow=Overflow.NAN), expected)
    expected = [fmt.largest, -fmt.largest, fmt.largest, -fmt.largest, np.nan]
    np.testing.assert_array_equal(fmt.round(large, overflow=Overflow.CLIP), expected)
    if fmt.infinities:
        expected = [fmt.largest, -fmt.largest, np.inf, -np.inf, np.nan]
        np.testing.assert_array_equal(fmt.round(large, overflow=Overflow.INFINITY), expected)
    else:
        with pytest.raises(ValueError, match="to infinity, which it has not"):
            fmt.round(large, overflow=Overflow.INFINITY)


@pytest.mark.parametrize("value", [0.1, -1.7e-8, 3.3e-5, 1000.3])
def test_the_mean_of_stochastic_roundings_is_the_value(value):
    n = 1 << 16
    words = np.random.default_rng(0).integers(0, 1 << 32, n, np.uint32)
    found = FORMATS["f16"].round(np.full(n, value), "stochastic", words=words)
    steps = np.unique(found)
    assert len(steps) == 2
    deviation = abs(found.mean() - value) / (steps[1] - steps[0])
    assert deviation <= 4 * 0.5 / np.sqrt(n)


def test_a_value_that_is_no_number_of_a_format_is_not_encoded():
    with pytest.raises(ValueError, match=r"0\.1 is no number of f16; round it first"):
        FORMATS["f16"].encode(np.array([1.0, 0.1]))
    with pytest.raises(ValueError, match="nan is no number of f134"):
        FORMATS["f134"].encode(np.array([np.nan]))


def test_the_byte_of_a_scale_says_format_and_scale():
    for name in ("f143", "f152"):
        for scale in SCALES:
            assert scale_of(scale_byte(name, scale)) == (name, scale)
    assert scale_byte("f143", -1) == 0b10111111
    with pytest.raises(ValueError, match="need f152 or f143, and a scale of -32 to 31"):
        scale_byte("f143", 32)
