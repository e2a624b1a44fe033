"""Kernels are loaded by need, with a message if they are compiled first."""

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from time import sleep

import pytest

from abele.backends.host import load

TASKS = (
    "sharing",
    "copies",
    "chains",
    "functions",
    "routes",
    "products",
    "lookups",
    "bounds",
    "equality",
)

LOAD = f"from abele.backends.host import load; [load.kernels(t) for t in {TASKS * 2}]"


def loaded(cache: Path, **environment: str) -> str:
    """What a process that loads kernels says on stderr."""
    known = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run(
        [sys.executable, "-c", LOAD], env=known, capture_output=True, text=True, check=True
    )
    return done.stderr


def told(script: str) -> list[str]:
    """What a script prints, by words, in a Python of its own that knows `load_all` and `np`.

    `load_all` loads the kernels as numba compiles them.
    """
    imports = "import sys, numpy as np; from abele.backends.host import load\n"
    imports += "def nothing(): pass\n"
    imports += f"def load_all(): [load._imported(t, nothing, nothing) for t in {TASKS}]\n"
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


def test_threads_that_load_a_task_at_once_get_the_same_code(monkeypatch: pytest.MonkeyPatch):
    def saved(task: str) -> object:
        sleep(0.05)
        return object()

    monkeypatch.setattr(load, "saved_kernels", saved)
    monkeypatch.setattr(load, "loaded", {})
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(load.kernels, ["equality"] * 4)}) == 1


def test_a_process_that_is_forked_while_a_thread_loads_kernels_can_load_them():
    script = (
        "import os, signal; from threading import Event, Thread; from time import sleep\n"
        "begun, saved = Event(), load.saved_kernels\n"
        "def slowly(task): begun.set(); sleep(0.2); return saved(task)\n"
        "load.saved_kernels = slowly\n"
        "other = Thread(target=load.kernels, args=['equality']); other.start(); begun.wait()\n"
        "child = os.fork()\n"
        "if not child: signal.alarm(20); load.kernels('equality'); os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); other.join()"
    )
    assert told(script) == ["7"]


@pytest.mark.slow
def test_a_host_without_wide_vectors_has_kernels_of_its_own_that_write_the_same(tmp_path: Path):
    host = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c"}
    # One line says that kernels are compiled, and none if they are cached.
    assert loaded(tmp_path, **host) == load.COMPILING + "\n"
    known = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), **host}
    tests = [str(Path(__file__).with_name("test_fast.py")), "-k", "change_no_byte"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-s", "-p", "no:cacheprovider", *tests],
        env=known,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert load.COMPILING not in done.stderr


@pytest.mark.parametrize("task", TASKS)
def test_all_kernels_of_a_task_are_counted(task: str):
    module = import_module(f"abele.backends.host.kernels.{task}")
    own = [
        each
        for each in vars(module).values()
        if getattr(each, "__module__", "") == module.__name__ and hasattr(each, "overloads")
    ]
    assert load.kernel_count(task) == len(own) > 0


def test_two_processes_compile_different_tasks():
    first, second = load.SHARES
    assert not {*first} & {*second}
    assert {*first, *second} <= {*TASKS}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_shows_progress_and_erases_it():
    stream = Terminal()
    line = load._Line("routes", stream)
    line.show()
    line.add("chains")
    line.add("routes")
    shown = stream.getvalue().split("\r")
    total = load.kernel_count("routes")
    assert [each.removesuffix("\x1b[K").split(", ")[-1] for each in shown[1:]] == [
        f"0 of {total}",
        f"0 of {total}",
        f"1 of {total}",
    ]
    line.erase()
    assert stream.getvalue().endswith("\r\x1b[K")


def test_nothing_is_erased_where_nothing_was_shown():
    stream = Terminal()
    load._Line("routes", stream).erase()
    assert stream.getvalue() == ""
