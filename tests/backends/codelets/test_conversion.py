import ml_dtypes
import numpy as np
import pytest

from abele.backends.codelets.conversion import compute_dtype, converted, storage_dtype


@pytest.mark.parametrize(
    ("values", "source", "target", "need"),
    [
        ([1.9, -1.9, np.nan, np.inf, -np.inf], "float32", "int8", [1, -1, 0, 127, -128]),
        ([-1.0, 300.0], "float32", "uint8", [0, 255]),
        ([2.0**31, -(2.0**31), 1e30], "float32", "int32", [2**31 - 1, -(2**31), 2**31 - 1]),
        ([2.0**63, -(2.0**63)], "float64", "int64", [2**63 - 1, -(2**63)]),
        ([300, -1], "int32", "uint8", [44, 255]),
        ([0.0, -0.5, np.nan], "float16", "bool", [False, True, True]),
        ([True, False], "bool", "float32", [1.0, 0.0]),
        ([70000.0], "float32", "float16", [np.inf]),
    ],
)
def test_a_conversion_truncates_saturates_or_wraps(values, source, target, need):
    got = converted(np.array(values, source), np.dtype(target))
    assert got.dtype == target
    assert got.tolist() == need


def test_dtypes_of_computing_and_storing():
    half, brain, single = (np.dtype(t) for t in (np.float16, ml_dtypes.bfloat16, np.float32))
    assert compute_dtype(half) == compute_dtype(half, brain) == single
    assert compute_dtype(np.dtype(bool)) == np.int8
    assert storage_dtype(half, half) == half
    assert storage_dtype(half, brain) == single
