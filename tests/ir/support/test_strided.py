import ml_dtypes
import numpy as np
import pytest

from abele.ir.support.strided import as_strided


@pytest.mark.parametrize("name", ["float8_e5m2", "int4", "bfloat16"])
def test_a_view_of_an_extension_dtype_shares_its_memory(name):
    array = np.arange(6, dtype=np.float32).astype(getattr(ml_dtypes, name))
    every_other = as_strided(array, (3,), (2 * array.itemsize,))
    np.testing.assert_array_equal(every_other, array[::2])
    every_other[...] = 1
    np.testing.assert_array_equal(array.astype(np.float32), [1, 1, 1, 3, 1, 5])
