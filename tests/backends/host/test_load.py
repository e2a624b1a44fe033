"""Kernels are loaded by need, with a message if they are compiled first."""

import ast
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import sleep

import pytest

from abele.backends.host import load, machine_code
from abele.backends.host.kernel_sources import KERNELS, folder_stamp
from abele.backends.host.machine_code import locked, path_of
from abele.backends.host.switch import choice
from abele.backends.host.tasks import NEEDS
from abele.ir.errors import InputError

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


def test_threads_that_load_a_task_at_once_get_the_same_code(monkeypatch: pytest.MonkeyPatch):
    def saved(task: str) -> object:
        sleep(0.05)
        return object()

    monkeypatch.setattr(load, "saved_kernels", saved)
    monkeypatch.setattr(load, "_loaded", {})
    with ThreadPoolExecutor(4) as pool:
        assert len({*pool.map(load.kernels, ["equality"] * 4)}) == 1


def test_a_process_that_is_forked_while_a_thread_loads_kernels_can_load_them():
    script = (
        "import os, signal; from threading import Event, Thread; from time import sleep\n"
        "from abele.backends.host import load\n"
        "begun, saved = Event(), load.saved_kernels\n"
        "def slowly(task): begun.set(); sleep(0.2); return saved(task)\n"
        "load.saved_kernels = slowly\n"
        "other = Thread(target=load.kernels, args=['equality']); other.start(); begun.wait()\n"
        "child = os.fork()\n"
        "if not child: signal.alarm(20); load.kernels('equality'); os._exit(7)\n"
        "print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])); other.join()"
    )
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "7\n"


@pytest.mark.parametrize("task", TASKS)
def test_all_kernels_of_a_task_are_counted(task: str):
    module = ast.parse((KERNELS / f"{task}.py").read_text())
    calls = [each for each in ast.walk(module) if isinstance(each, ast.Call)]
    compiled = [each for each in calls if isinstance(each.func, ast.Name)]
    assert load.kernel_count(task) == sum(each.func.id == "compiled" for each in compiled) > 0


def test_two_processes_compile_different_tasks():
    tasks = [task for share in load.SHARES for task in share]
    assert sorted(tasks) == sorted(TASKS)


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


TASK = "equality"
"""A task that is compiled in a second."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of kernels, for a process that has loaded and compiled none."""
    pytest.importorskip("numba")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(load, "SHARES", ((TASK,),))
    monkeypatch.setattr(load, "_loaded", {})
    monkeypatch.setattr(load, "_said", [])
    monkeypatch.setattr(load, "_provers", {})
    forget(monkeypatch)
    yield tmp_path
    for each in [*load._children, *load._provers.values()]:
        each.end()


def forget(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget what this process knows of kernels, as if it were another one."""
    for name in ("_loaded", "_problems", "_codes"):
        monkeypatch.setattr(load, name, {})


def test_kernels_are_compiled_with_one_line_and_kept(folder: Path, capfd: pytest.CaptureFixture):
    assert callable(load.kernels(TASK).differ)
    assert capfd.readouterr().err == load.COMPILING + "\n"
    load._loaded.clear()
    assert callable(load.kernels(TASK).differ)
    assert capfd.readouterr().err == ""


@pytest.mark.large
def test_forms_are_kept_beside_each_other(folder: Path, monkeypatch: pytest.MonkeyPatch):
    found = {}
    for form in ("wide", "narrow"):
        monkeypatch.setenv("ABELE_KERNELS", form)
        found[form] = load.kernels(TASK)
    assert found["wide"] is not found["narrow"]
    assert sorted(p.name.split("-")[1] for p in folder.glob("abele/*.code")) == ["narrow", "wide"]
    assert load.kernels(TASK) is found["narrow"]
    assert load.loaded_kernels() == {TASK: found["narrow"]}


@pytest.mark.large
def test_settings_of_numba_change_no_kernel(folder: Path, monkeypatch: pytest.MonkeyPatch):
    (folder / ".numba_config.yaml").write_text("disable_jit: 1")
    monkeypatch.chdir(folder)
    monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
    before = path_of(TASK)
    assert callable(load.kernels(TASK).differ)
    assert before.is_file()


def test_kernels_that_cannot_be_kept_are_used_with_one_warning(
    folder: Path, capfd: pytest.CaptureFixture[str]
):
    (folder / "abele").touch()
    assert callable(load.kernels(TASK).differ)
    said, warned = capfd.readouterr().err.splitlines()
    assert said == load.COMPILING
    assert warned.startswith(f"warning: {folder}/abele: ")
    assert "ABELE_CACHE" in warned


@pytest.mark.large
def test_kernels_of_damaged_files_are_compiled_and_kept_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    load.kernels(TASK)
    (path,) = folder.glob("abele/*.code")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    forget(monkeypatch)
    load._children.clear()
    load.kernels(TASK)
    assert len(path.read_bytes()) == len(whole)


def test_a_process_that_compiles_and_dies_is_one_message(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    dies = "import sys, os; print('LLVM ERROR: no such symbol', file=sys.stderr); os.abort()"
    monkeypatch.setattr(load, "CHILD", dies)
    with pytest.raises(InputError, match="equality cannot be compiled: LLVM ERROR: no such symbol"):
        load.kernels(TASK)


def test_kernels_of_other_sources_than_those_of_this_process_are_not_used(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(load, "folder_stamp", lambda _: "of yesterday")
    with pytest.raises(InputError, match="sources have changed since this process began"):
        load.kernels(TASK)


def test_kernels_that_another_process_has_compiled_are_not_compiled_again(
    folder: Path, capfd: pytest.CaptureFixture[str]
):
    for expected in (["compiled", "kept"], ["kept"]):
        load.compile_tasks([TASK], folder_stamp(KERNELS))
        told = [json.loads(line)[0] for line in capfd.readouterr().out.splitlines()]
        assert list(dict.fromkeys(told)) == expected


def test_a_process_waits_while_another_one_compiles_the_same(folder: Path):
    with locked(TASK):
        child = load._begin(choice(), TASK)
        sleep(0.5)
        assert not list(folder.glob("abele/*.unproved"))
    assert child.code(TASK, load._Line(TASK, io.StringIO()))


def test_without_another_process_this_one_compiles(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "executable", "")
    assert callable(load.kernels(TASK).differ)
    assert path_of(TASK).is_file()


def test_a_fork_leaves_the_processes_that_compile_to_its_parent(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(load, "CHILD", "import time; time.sleep(60)")
    running = load._begin(choice(), TASK)
    pid = os.fork()
    if pid == 0:
        os._exit(len(load._children))
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert load._children == [running]


# Proofs

ANSWERS = "import json, os, sys, time; sys.stdin.readline()\n"
FAILS = (
    ANSWERS + "print(json.dumps(['proved', 5, 0.1, 'rows: 3 of 4 elements differ']), flush=True)"
)
CRASHES = ANSWERS + "print(json.dumps(['begun', 'rows']), flush=True); os.abort()"
HANGS = ANSWERS + "print(json.dumps(['begun', 'rows']), flush=True); time.sleep(100)"


def kept(folder: Path) -> list[str]:
    return sorted(path.suffix for path in folder.glob("abele/*") if path.suffix != ".lock")


@pytest.fixture(scope="module")
def code() -> bytes:
    """The code of the task, which is compiled once for all tests."""
    pytest.importorskip("numba")
    load.kernels(TASK)
    found = load.saved(TASK)
    assert found is not None
    return found


@pytest.fixture
def compiled(code: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of kernels, where compiling takes no time."""
    monkeypatch.setattr(load, "_compiled", lambda chosen, task: code)
    return folder


def test_kernels_are_proved_before_they_are_kept(compiled: Path, monkeypatch: pytest.MonkeyPatch):
    assert load.has_kernels(TASK)
    assert kept(compiled) == [".code", ".proof"]
    proof = load.kept_proof(TASK)
    assert proof is not None
    assert proof.problem == ""
    assert proof.cases > 1000
    # What is kept is not proved again.
    forget(monkeypatch)
    monkeypatch.setattr(load, "_prover", None)
    assert load.has_kernels(TASK)


@pytest.mark.parametrize(
    ("script", "problem"),
    [
        (FAILS, "rows: 3 of 4 elements differ"),
        (CRASHES, "rows: ended by SIGABRT"),
        (HANGS, "rows: no end within 4 s"),
    ],
)
def test_kernels_that_fail_are_not_used_and_one_warning_says_so(
    script: str,
    problem: str,
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
):
    monkeypatch.setattr(load, "PROVES", script)
    if script == HANGS:
        monkeypatch.setattr("abele.backends.host.proofs.LIMIT_SECONDS", 4.0)
    assert not load.has_kernels(TASK)
    assert not load.has_kernels(TASK)
    warned = capfd.readouterr().err
    assert warned == (
        f"warning: kernels of {TASK} fail their self-test on this host ({problem}), "
        f"{load.INSTEAD}\n"
    )
    assert kept(compiled) == [".proof"]
    # Another process neither compiles nor proves them again, and says the same.
    forget(monkeypatch)
    monkeypatch.setattr(load, "_compiled", None)
    assert not load.has_kernels(TASK)
    assert capfd.readouterr().err == warned


def test_nothing_is_kept_of_a_battery_that_somebody_has_ended(
    compiled: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(load, "PROVES", ANSWERS + "os.kill(os.getpid(), 9)")
    assert not load.has_kernels(TASK)
    assert "cannot be tried: its process was ended by SIGKILL" in capfd.readouterr().err
    assert kept(compiled) == []


def test_kernels_that_have_failed_can_be_proved_again(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
):
    right = load.PROVES
    monkeypatch.setattr(load, "PROVES", FAILS)
    assert load.proof_of(TASK).problem
    load._provers.popitem()[1].end()
    monkeypatch.setattr(load, "PROVES", right)
    assert load.proof_of(TASK).problem
    assert not load.proof_of(TASK, again=True).problem
    assert kept(compiled) == [".code", ".proof"]
    assert load.has_kernels(TASK)


def test_tasks_without_which_others_are_of_no_use_come_first():
    before = set[str]()
    for task, needed in NEEDS.items():
        assert {*needed} <= before
        before.add(task)


def test_a_task_whose_needs_have_failed_has_no_kernels(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    failed = load.NoKernels(TASK, "are planted")
    monkeypatch.setitem(load._problems, (choice().name, TASK), failed)
    monkeypatch.setitem(NEEDS, "bounds", (TASK,))
    assert not load.has_kernels("bounds")
    assert capfd.readouterr().err == ""


def test_code_that_another_battery_has_proved_is_proved_and_not_compiled(
    code: bytes, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    load.save(TASK, code)
    monkeypatch.setattr(machine_code, "_proof_stamp", lambda: "of a later battery")
    monkeypatch.setattr(load, "_compiled", None)
    assert load.has_kernels(TASK)
    assert kept(folder) == [".code", ".code", ".proof"]


@pytest.mark.usefixtures("folder")
def test_code_that_nobody_has_proved_is_not_used_under_another_name(code: bytes):
    load.save(TASK, code, machine_code.UNPROVED)
    path_of(TASK, machine_code.UNPROVED).rename(path_of(TASK))
    assert load.saved(TASK) is None


@pytest.mark.slow
@pytest.mark.large
def test_two_processes_that_compile_at_once_both_have_kernels(folder: Path):
    script = f"from abele.backends.host import load; print(load.has_kernels({TASK!r}))"
    command = [sys.executable, "-c", script]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    both = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for each in both:
        assert each.communicate() == ("True\n", load.COMPILING + "\n")
    assert kept(folder) == [".code", ".proof"]


@pytest.mark.large
def test_a_task_is_proved_if_the_files_of_what_it_needs_are_gone(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    """They are loaded, but the folder is another one by now."""
    monkeypatch.setattr(load, "SHARES", (("sharing", "lookups"),))
    assert load.has_kernels("sharing")
    load._codes.clear()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "other"))
    assert load.has_kernels("lookups")
