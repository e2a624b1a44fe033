"""Each verdict, on a command that deserves it."""

import gc
import os
import sys
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import numpy as np
import pytest
import typer
from typer.core import TyperGroup

from abele.ir.errors import InputError
from abele.ir.support.garbage import collection_paused
from abele.tools.testing.hostile import child
from abele.tools.testing.hostile.case import Case
from abele.tools.testing.hostile.outcome import Outcome
from abele.tools.views.user_errors import user_errors

app = typer.Typer(pretty_exceptions_enable=False)


@app.command()
def accept(path: str = "") -> None:
    del path


@app.command()
def refuse() -> None:
    with user_errors():
        raise InputError("the number is 3; need 4")


@app.command()
def raises() -> None:
    raise KeyError("no such thing")


@app.command()
def crash() -> None:
    os.abort()


@app.command()
def hang() -> None:
    while True:
        pass


@app.command()
def memory() -> None:
    with user_errors():
        np.ones(child.MEMORY // 4)


@app.command()
def frozen() -> None:
    assert gc.get_freeze_count() > 10_000
    # To count takes a second for a large heap.
    with pytest.MonkeyPatch.context() as patch:
        patch.delattr(gc, "get_freeze_count")
        with collection_paused():
            pass


@app.command()
def escape() -> None:
    # The scratch folder is two levels above; this is beside it.
    Path("../../escaped").mkdir()
    Path("../../escaped").rmdir()


@app.command()
def probe() -> None:
    with TemporaryFile(dir="../.."):
        pass


@app.command()
def look() -> None:
    Path("/etc/passwd").read_text()


@app.command()
def start() -> None:
    os.system("true")


@app.command()
def lose(path: str) -> None:
    Path(path).unlink()
    with user_errors():
        raise InputError("too late")


@app.command()
def silent() -> None:
    raise typer.Exit(2)


@app.command()
def odd() -> None:
    print("what now?", file=sys.stderr)
    raise typer.Exit(77)


@app.command()
def stumble() -> None:
    with user_errors("model.mlir"):
        raise AttributeError("'NoneType' object has no attribute 'data'")


COMMANDS: Any = typer.main.get_command(app)


def outcome(*arguments: str, files: dict[str, bytes] | None = None) -> Outcome:
    assert isinstance(COMMANDS, TyperGroup)
    return child.outcome_of(Case("", arguments, files or {}), COMMANDS)


@pytest.mark.parametrize(
    ("command", "verdict", "site"),
    [
        ("accept", "accepted", ""),
        ("probe", "accepted", ""),
        ("refuse", "refused", "InputError"),
        ("raises", "traceback", "KeyError"),
        ("crash", "crash", "exit -6"),
        ("escape", "escaped", "os.mkdir '../../escaped'"),
        ("look", "escaped", "read '/etc/passwd'"),
        ("start", "escaped", "os.system b'true'"),
        ("memory", "memory", ""),
        ("silent", "unclear", "no message"),
        ("odd", "unclear", "exit code 77"),
        ("stumble", "unclear", "AttributeError"),
    ],
)
def test_each_command_gets_its_verdict(command: str, verdict: str, site: str):
    found = outcome(command)
    assert found.verdict == verdict, found
    assert site in found.site


def test_a_lost_file_is_named():
    found = outcome("lose", "before.txt", files={"before.txt": b"before"})
    assert (found.verdict, found.site) == ("lost", "before.txt changed")


def test_an_endless_loop_is_a_hang_and_is_located(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(child, "CPU_SECONDS", 1)
    # On a busy host, the second of CPU time may take longer than ten seconds.
    monkeypatch.setattr(child, "PATIENCE", 300)
    found = outcome("hang")
    assert found.verdict == "hang"
    assert "test_child.py" in found.site


def test_the_memory_of_the_parent_does_not_count(monkeypatch: pytest.MonkeyPatch):
    most = 64 << 20
    monkeypatch.setattr(child, "MEMORY", most)
    found = outcome("accept")
    assert found.peak > most
    assert found.verdict == "accepted"
    # A child may use again what its parent has freed, which is less than this.
    monkeypatch.setattr(child, "MEMORY", 1 << 30)
    assert outcome("memory").verdict == "memory"


def test_the_heap_of_the_parent_is_frozen_in_the_child_alone():
    before = gc.get_freeze_count()
    assert outcome("frozen").verdict == "accepted"
    assert gc.get_freeze_count() == before


def test_files_that_arguments_name_may_be_read():
    assert outcome("accept", "--path", "/etc/passwd").verdict == "accepted"


def test_the_scratch_folder_is_removed():
    running = child.start([Case("", ("refuse",))], COMMANDS)
    assert running.scratch.is_dir()
    running.finish()
    assert not running.scratch.exists()
