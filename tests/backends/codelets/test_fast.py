"""What is said of kernels before they run, and what is known of variables."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from abele.backends.codelets import fast, fast_chain, ordered
from abele.backends.evaluate import routes

LOAD = "from abele.backends.codelets import fast; fast.kernels(); fast.kernels()"


def loaded(cache: Path, **environment: str) -> str:
    """What a process that loads kernels says on stderr."""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=known, capture_output=True, text=True, check=True
    )
    return done.stderr


def test_kernels_load_without_the_linear_algebra_of_scipy_which_numba_finds_later():
    pytest.importorskip("scipy")
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; import numpy as np; from abele.backends.codelets import fast;"
            "fast.kernels(); print('scipy.linalg' in sys.modules); import numba;"
            "eye = np.eye(3); print((numba.njit(lambda a: a @ a)(eye) == eye).all())",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout.split() == ["False", "True"]


def test_a_host_without_wide_vectors_has_kernels_of_its_own_that_write_the_same(tmp_path: Path):
    host = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c"}
    # Compiling is said once, and only where it is done.
    assert loaded(tmp_path, **host) == fast.COMPILING + "\n"
    assert loaded(tmp_path, **host) == ""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **host}
    tests = [str(Path(__file__).with_name("test_kernels.py")), "-k", "change_no_byte"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize(
    ("writer", "among"),
    [
        (fast, {"LANES", "WORDS"}),
        (ordered, {"TERMS"}),
        (fast_chain, {"LANES", "TAKE", "STORE", "EVERY_SECOND", "KEPT", "COLUMN", "STEP"}),
        (
            routes,
            {"LANES", "BY_WORDS", "BY_BYTES", "GATHERED", "FILLED", "REPLICA", "LANE", "TASK"},
        ),
    ],
)
def test_numbers_in_tables_mean_the_same_where_they_are_read(writer: ModuleType, among: set[str]):
    read = vars(fast.kernels())
    both = {name: x for name, x in vars(writer).items() if name.isupper() and name in read}
    assert among <= both.keys()
    assert both == {name: read[name] for name in both}


def test_what_lies_over_a_variable_changes_it():
    over = [np.array([0, 1]), np.array([0, 1]), np.array([2])]
    history = fast.History(over, [False] * 3)
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
