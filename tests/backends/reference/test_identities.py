"""The numbers that combiners merge without effect."""

import ml_dtypes
import numpy as np
import pytest

from abele.backends.reference.identities import identity_of
from abele.dialects.dtypes import element_type
from abele.ir.support.number_kinds import is_floating

MERGE = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
DTYPES = (np.float32, np.float16, ml_dtypes.bfloat16, np.int8, np.uint8, np.int64, np.uint64, bool)


@pytest.mark.parametrize("combiner", MERGE)
@pytest.mark.parametrize("dtype", DTYPES, ids=lambda each: np.dtype(each).name)
def test_merging_with_it_changes_nothing(combiner: str, dtype: type) -> None:
    values = np.array([0, 1, 2, 100], dtype)
    if is_floating(values.dtype):
        values = np.concatenate([values, -values, np.array([-np.inf, np.inf], dtype)])
    elif dtype is not bool:
        limits = np.iinfo(dtype)
        values = np.concatenate([values, np.array([limits.min, limits.max], dtype)])
    identity = np.asarray(identity_of(combiner, element_type(values.dtype))).astype(dtype)
    np.testing.assert_array_equal(MERGE[combiner](values, identity), values)
