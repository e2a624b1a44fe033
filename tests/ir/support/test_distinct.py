"""The distinct values of arrays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from abele.ir.support.distinct import distinct


@given(st.lists(st.integers(-5, 5)))
def test_each_value_occurs_once_and_in_order(values: list[int]):
    assert distinct(np.array(values, np.int64)).tolist() == sorted(set(values))
