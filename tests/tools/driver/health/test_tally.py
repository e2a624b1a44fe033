import ml_dtypes
import numpy as np
import pytest

from abele.ir.support.number_formats import FORMATS
from abele.tools.driver.health.tally import NEAR, Tally, tally

HALVES = np.arange(1 << 16, dtype=np.uint16).view(np.float16)


def test_every_half_is_counted_as_what_it_is():
    """Of 65,536 bit patterns, 2,046 are NaN, and 3 * 2^10 of each sign are from 2^13 on."""
    found = tally(HALVES)
    assert found == Tally(
        elements=1 << 16,
        largest=65504.0,
        zeros=2,
        subnormals=2 * 1023,
        near=2 * int(np.count_nonzero((HALVES >= 8188) & (HALVES <= 65504))),
        clipped=2,
        infinities=2,
        nans=2 * 1023,
    )
    assert found.overflows == 2 + 2 + 2 * 1023


@pytest.mark.parametrize("name", ["f32", "f16", "bf16", "f143", "f152"])
def test_the_edges_of_each_type_are_counted_on_the_right_side(name: str):
    kind = FORMATS[name]
    assert kind.numpy_dtype is not None
    normal, step = 2.0**kind.least, kind.smallest
    edge = NEAR * kind.largest
    below = np.nextafter(np.array(edge, kind.numpy_dtype), np.array(0, kind.numpy_dtype))
    values = [0.0, step, normal - step, normal, -float(below), -edge, kind.largest]
    found = tally(np.array(values).astype(kind.numpy_dtype))
    assert (found.zeros, found.subnormals, found.near, found.clipped) == (1, 2, 2, 1)
    assert found.largest == kind.largest


def test_the_largest_number_is_the_largest_finite_one():
    assert tally(np.array([np.nan, -3.0, 2.0], np.float16)).largest == 3.0
    assert tally(np.array([np.nan, np.inf], ml_dtypes.bfloat16)).largest == 0.0
    assert tally(np.zeros(0, np.float32)) == Tally()


def test_counts_of_parts_add_up_to_those_of_the_whole():
    cut = tally(HALVES[:1000]) | tally(HALVES[1000:40000]) | tally(HALVES[40000:])
    assert cut == tally(HALVES)


def test_integers_have_no_health():
    with pytest.raises(ValueError, match="int32"):
        tally(np.zeros(3, np.int32))
