"""Stamps of variables that share bytes."""

import numpy as np

from abele.backends.codelets.stamps import History


def test_a_write_of_a_variable_changes_those_that_share_bytes_with_it():
    overlaps = [np.array([0, 1]), np.array([0, 1]), np.array([2])]
    history = History(overlaps, [False] * 3)
    first, second, third = history.stamps
    first.write(True)
    seen = first.latest
    third.write(True)
    assert first.whole is not None
    assert first.latest == seen
    second.write(True)
    assert first.whole is None
    assert first.latest > seen
    assert second.whole is not None
    second.write(False)
    assert second.whole is None
    history.write_all()
    assert third.whole is None
