"""Kernels are loaded as machine code without numba, unless anything is wrong with it."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from abele.backends.host import machine_code
from abele.backends.host.kernels.tables import JOB_STOPS
from abele.backends.host.machine_code import code_of, save, saved_kernels
from abele.backends.host.switch import FORMS, choice

pytest.importorskip("numba")

TASK = "sharing"

FORM = choice().name
(OTHER,) = {*FORMS} - {FORM}


@pytest.fixture
def module() -> ModuleType:
    """The task's kernels as numba compiles them."""
    return import_module(f"abele.backends.host.kernels.{TASK}")


@pytest.fixture
def file(tmp_path: Path, module: ModuleType, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of the task's kernels."""
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert save(TASK, code_of(module)) == ""
    (path,) = tmp_path.glob("abele/*.code")
    return path


def test_machine_code_has_the_constants_of_its_module(file: Path, module: ModuleType):
    assert file.name.startswith(f"{TASK}-")
    found = vars(saved_kernels(TASK))
    constants = {name: value for name, value in vars(module).items() if name.isupper()}
    same = {name for name, value in constants.items() if found.get(name) == value}
    # Code is at another place, and numba's options are no numbers.
    assert {*constants} - same == {"TAKE_UNITS", "OPTIONS"}
    assert found["TAKE_UNITS"] > 0


@pytest.mark.usefixtures("file")
def test_machine_code_is_called_with_integers_and_returns_them():
    kernels = saved_kernels(TASK)
    assert kernels is not None
    job = np.zeros(256, np.int64)
    assert kernels.unpark(job.ctypes.data, 1) == 0
    job[JOB_STOPS] = 1
    assert kernels.work(job.ctypes.data, 1, 1, kernels.TAKE_UNITS) == kernels.STOP == 1


def test_numba_is_not_imported_for_machine_code(file: Path):
    script = (
        "import sys; from abele.backends.host.load import kernels\n"
        f"print(type(kernels({TASK!r})).__name__, 'numba' in sys.modules)"
    )
    environment = os.environ | {"NUMBA_CACHE_DIR": str(file.parents[1])}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["Kernels", "False"]


@pytest.mark.parametrize("at", [0, 20, 100, -1])
def test_damaged_machine_code_is_not_loaded(file: Path, at: int):
    data = bytearray(file.read_bytes())
    data[at] ^= 1
    file.write_bytes(data)
    assert saved_kernels(TASK) is None


def test_machine_code_that_is_cut_off_is_not_loaded(file: Path):
    data = file.read_bytes()
    for left in (0, 10, 50, len(data) - 1):
        file.write_bytes(data[:left])
        assert saved_kernels(TASK) is None


def test_machine_code_of_another_task_or_host_is_not_loaded(
    file: Path, monkeypatch: pytest.MonkeyPatch
):
    other = file.with_name(file.name.replace(TASK, "equality"))
    save("equality", b"its code")
    own = file.read_bytes()
    file.write_bytes(other.read_bytes())
    assert saved_kernels(TASK) is None
    monkeypatch.setattr(
        machine_code, "kernel_stamp", lambda: file.stem.split("-")[2] + "of another"
    )
    file.write_bytes(own)
    assert saved_kernels(TASK) is None


def test_what_is_no_file_is_not_waited_for_and_gives_way(file: Path, module: ModuleType):
    file.unlink()
    os.mkfifo(file)
    assert saved_kernels(TASK) is None
    save(TASK, code_of(module))
    assert saved_kernels(TASK) is not None


def test_a_damaged_file_is_written_again(file: Path, module: ModuleType):
    file.write_bytes(file.read_bytes()[:-1])
    save(TASK, code_of(module))
    assert saved_kernels(TASK) is not None


def test_machine_code_that_others_could_have_written_is_not_loaded(file: Path):
    file.parent.chmod(0o777)
    machine_code.intrusion.cache_clear()
    assert saved_kernels(TASK) is None
    file.parent.chmod(0o700)
    machine_code.intrusion.cache_clear()
    assert saved_kernels(TASK) is not None


@pytest.mark.usefixtures("file")
def test_machine_code_of_another_form_or_processor_is_not_loaded():
    processor = "nehalem" if os.environ.get("NUMBA_CPU_NAME") == "haswell" else "haswell"
    for name, value in {"NUMBA_CPU_NAME": processor, "ABELE_KERNELS": OTHER}.items():
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(name, value)
            assert saved_kernels(TASK) is None
        assert saved_kernels(TASK) is not None


def test_kernels_that_take_more_than_integers_are_not_kept():
    numba = import_module("numba")

    def half(x: float) -> float:
        return x / 2

    compiled = numba.njit("float64(float64)")(half)
    with pytest.raises(ValueError, match="half takes or returns more than integers"):
        code_of(SimpleNamespace(__name__=__name__, half=compiled))


def test_few_versions_of_a_task_are_kept(file: Path, module: ModuleType):
    for i in range(12):
        old = file.with_name(f"{TASK}-{FORM}-{i:032}{machine_code.ENDING}")
        old.touch()
        os.utime(old, (i, i))
    other = file.with_name(f"{TASK}-{OTHER}-{0:032}{machine_code.ENDING}")
    other.touch()
    os.utime(other, (0, 0))
    file.unlink()
    save(TASK, code_of(module))
    assert other.is_file()
    other.unlink()
    kept = {path.name for path in file.parent.glob("*")}
    assert len(kept) == machine_code.MOST_VERSIONS
    assert file.name in kept
    assert f"{TASK}-{FORM}-{11:032}{machine_code.ENDING}" in kept
