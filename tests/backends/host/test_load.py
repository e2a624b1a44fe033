"""Kernels are loaded by need, with a message if they are compiled first."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from abele.backends.host import load

TASKS = ("copies", "chains", "routes", "products")

LOAD = f"from abele.backends.host import load; [load.kernels(t) for t in {TASKS * 2}]"


def loaded(cache: Path, **environment: str) -> str:
    """What a process that loads kernels says on stderr."""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=known, capture_output=True, text=True, check=True
    )
    return done.stderr


def told(script: str) -> list[str]:
    """What a script prints, by words, in a Python of its own that knows `load_all` and `np`."""
    imports = "import sys, numpy as np; from abele.backends.host import load\n"
    imports += f"def load_all(): [load.kernels(t) for t in {TASKS}]\n"
    command = [sys.executable, "-c", imports + script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_kernels_load_without_the_linear_algebra_of_scipy_which_numba_finds_later():
    pytest.importorskip("scipy")
    script = (
        "load_all(); print('scipy.linalg' in sys.modules); import numba; eye = np.eye(3)\n"
        "print((numba.njit(lambda a: a @ a)(eye) == eye).all(), 'scipy.linalg' in sys.modules)"
    )
    assert told(script) == ["False", "True", "True"]


def test_a_scipy_without_linear_algebra_is_numbas_to_find(tmp_path: Path):
    (tmp_path / "scipy").mkdir()
    (tmp_path / "scipy" / "__init__.py").write_text("__version__ = '1.0'")
    script = (
        f"sys.path.insert(0, {str(tmp_path)!r}); load_all(); import numba\n"
        "print(numba.njit(lambda a, b: np.correlate(a, b))(np.ones(4), np.ones(4)))"
    )
    assert told(script) == ["[4.]"]


def test_two_threads_that_load_kernels_leave_numba_as_it_was():
    script = (
        "import numba.np.linalg as numbas; from threading import Thread\n"
        "before = numbas.ensure_blas; both = [Thread(target=load_all) for _ in range(2)]\n"
        "[each.start() for each in both]; [each.join() for each in both]\n"
        "from numba.np import arraymath\n"
        "print(numbas.ensure_blas is before, arraymath.ensure_blas is before)"
    )
    assert told(script) == ["True", "True"]


def test_a_host_without_wide_vectors_has_kernels_of_its_own_that_write_the_same(tmp_path: Path):
    host = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c"}
    # Compiling is said once, and only where it is done.
    assert loaded(tmp_path, **host) == load.COMPILING + "\n"
    assert loaded(tmp_path, **host) == ""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **host}
    tests = [str(Path(__file__).with_name("test_fast.py")), "-k", "change_no_byte"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *tests],
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
