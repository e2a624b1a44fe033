"""What is said of kernels before they run, and what is known of variables."""

import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from abele.backends.codelets import ordered
from abele.backends.host import chains, fast, routes

LOAD = "from abele.backends.host import fast; fast.kernels(); fast.kernels()"


def loaded(cache: Path, **environment: str) -> str:
    """What a process that loads kernels says on stderr."""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=known, capture_output=True, text=True, check=True
    )
    return done.stderr


def told(script: str) -> list[str]:
    """What a script prints, by words, in a Python of its own that knows `fast` and `np`."""
    imports = "import sys, numpy as np; from abele.backends.host import fast\n"
    command = [sys.executable, "-c", imports + script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_kernels_load_without_the_linear_algebra_of_scipy_which_numba_finds_later():
    pytest.importorskip("scipy")
    script = (
        "fast.kernels(); print('scipy.linalg' in sys.modules); import numba; eye = np.eye(3)\n"
        "print((numba.njit(lambda a: a @ a)(eye) == eye).all(), 'scipy.linalg' in sys.modules)"
    )
    assert told(script) == ["False", "True", "True"]


def test_a_scipy_without_linear_algebra_is_numbas_to_find(tmp_path: Path):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("__version__ = '1.0'")
    script = (
        f"sys.path.insert(0, {str(tmp_path)!r}); fast.kernels(); import numba\n"
        "print(numba.njit(lambda a, b: np.correlate(a, b))(np.ones(4), np.ones(4)))"
    )
    assert told(script) == ["[4.]"]


def test_two_threads_that_load_kernels_leave_numba_as_it_was():
    script = (
        "import numba.np.linalg as numbas; from threading import Thread\n"
        "before = numbas.ensure_blas; both = [Thread(target=fast.kernels) for _ in range(2)]\n"
        "[each.start() for each in both]; [each.join() for each in both]\n"
        "from numba.np import arraymath\n"
        "print(numbas.ensure_blas is before, arraymath.ensure_blas is before)"
    )
    assert told(script) == ["True", "True"]


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
        (chains, {"LANES", "TAKE", "STORE", "EVERY_SECOND", "KEPT", "COLUMN", "STEP"}),
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
