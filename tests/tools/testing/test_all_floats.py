import numpy as np
import pytest

from abele.backends.codelets import functions
from abele.backends.codelets.sequences import NumpyProgram, sequence
from abele.ir.errors import InputError
from abele.tools.testing import all_floats


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(all_floats, "BLOCK", 1 << 12)


def test_blocks_of_floats_are_tried_until_the_time_is_over(capsys: pytest.CaptureFixture[str]):
    all_floats.all_floats(["exp", "leaky_relu"], seconds=0.2)
    assert capsys.readouterr().out.endswith(" of 2097152 blocks of 4096 floats, 0 wrong\n")


def test_a_kernel_with_other_bytes_is_found(monkeypatch: pytest.MonkeyPatch):
    pytest.importorskip("numba")
    monkeypatch.setitem(functions.PROGRAMS, "exp", NumpyProgram(sequence(lambda x: x + 1.0, 1)))
    x = np.linspace(1, 2, 100, dtype=np.float32)
    found = all_floats.differing("exp", x, x)
    assert found.shape == (100, 1)


def test_a_function_without_a_sequence_is_refused():
    with pytest.raises(InputError, match="no function 'relu' has a sequence; there are exp,"):
        all_floats.all_floats(["relu"])
