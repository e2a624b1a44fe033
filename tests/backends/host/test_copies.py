"""Compiled copies of arrays."""

import numpy as np
import pytest

from abele.backends.codelets.calls import run_calls
from abele.backends.host.copies import HostScratch

pytest.importorskip("numba")
pytestmark = pytest.mark.each_form


@pytest.mark.parametrize("repeated", [False, True])
def test_copies_have_as_many_axes_as_they_need(repeated: bool):
    # NumPy has at most 64; none of these lies along with the next one.
    rank = 19
    shape = (1, *[2] * (rank - 1))
    source = np.arange(2 ** (rank - 1), dtype=np.float32).reshape(shape).transpose()
    if repeated:
        source = np.broadcast_to(source[:, :1], source.shape)
    target = np.zeros(source.shape, np.float32)
    (call,) = HostScratch().copy_calls(target, source)
    run_calls([call])
    np.testing.assert_array_equal(target, source)
