"""Offsets of a tensor stay those of its elements, in any shape and after any move."""

from functools import reduce
from math import prod

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from abele.backends.host.offsets import ABSENT, FILL, after_move, outer, reshaped, states
from abele.ir.geometry.space import AccessMap, AxisMap, Dim, Space

SHAPES = [(4, 6), (24,), (2, 2, 6), (4, 1, 3, 2), (2, 12), (8, 3)]


def of_elements(offsets):
    """The offset of each element, row-major."""
    return reduce(outer, offsets, np.zeros(1, np.int64))


@given(st.sampled_from(SHAPES), st.sampled_from(SHAPES), st.lists(st.integers(0, 99), min_size=24))
@example((4, 6), (24,), list(range(24)))
def test_a_reshape_keeps_the_offset_of_each_element(old, new, numbers):
    offsets, at = [], 0
    for n in old:
        offsets.append(np.array(numbers[at : at + n], np.int64))
        at = (at + n) % (len(numbers) - max(old) + 1)
    found = reshaped(offsets, old, new)
    if found is not None:
        assert [len(each) for each in found] == list(new)
        np.testing.assert_array_equal(of_elements(found), of_elements(offsets))


def test_an_axis_of_even_steps_can_be_split_and_one_of_uneven_steps_cannot():
    (high, low) = reshaped([np.arange(24) * 4], (24,), (4, 6))
    assert (high[1] - high[0], low[1] - low[0]) == (24, 4)
    assert reshaped([np.arange(24) ** 2], (24,), (4, 6)) is None


def test_a_move_transposes_offsets_and_leaves_what_it_does_not_bring_absent():
    rows, columns = np.array([0, 100, 200]), np.array([0, 4])
    dims = (Dim("i", 3), Dim("j", 2))
    read = AccessMap((AxisMap(3, ((0, 1),)), AxisMap(2, ((1, 1),))))
    written = AccessMap((AxisMap(2, ((1, 1),)), AxisMap(5, ((0, 1),), offset=1)))
    found = after_move([rows, columns], Space(dims, (read,), (written,)))
    assert found is not None
    element = of_elements(found).reshape(2, 5)
    np.testing.assert_array_equal(element[:, 1:4], columns[:, None] + rows)
    assert (states(element[:, [0, 4]]) == 2).all()


@given(st.lists(st.integers(0, 1 << 40), min_size=1))
def test_added_offsets_keep_what_they_mean(numbers):
    offsets = np.array(numbers, np.int64)
    for first, state in ((0, 0), (FILL, 1), (ABSENT, 2)):
        assert (states(first + offsets) == state).all()
    assert prod(states(outer(offsets, offsets)) + 1) == 1
