"""Counting, saving, shrinking and continuing, on commands with planted faults."""

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import typer
from lengths import large
from typer.core import TyperGroup
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools.cli import app as all_commands
from abele.tools.testing.hostile import child, kinds, run
from abele.tools.testing.hostile.case import Case
from abele.tools.testing.hostile.run import CASE, FILES, Tally, progress_file, replay, run_hostile
from abele.tools.testing.hostile.shrink import smallest
from abele.tools.views.user_errors import user_errors

app = typer.Typer(pretty_exceptions_enable=False)

LINES = [f"line {number}" for number in range(6)]


@app.command()
def read(path: str) -> None:
    """Raise for a file with a certain line, and refuse one with another."""
    lines = Path(path).read_text().splitlines()
    if "bad" in lines:
        raise KeyError("bad")
    with user_errors():
        if "worse" in lines:
            raise InputError("worse")


@app.command()
def other() -> None:
    """So that read is a command of a group."""


COMMANDS: Any = typer.main.get_command(app)
assert isinstance(COMMANDS, TyperGroup)


@dataclass(frozen=True)
class Planted:
    """A kind whose every third input has the bad line."""

    model: str = ""
    reads: bool = True

    def make(self, random: np.random.Generator, commands: TyperGroup) -> Case:
        del commands
        lines = list(LINES)
        what = ("fine", "worse", "bad")[int(random.integers(3))]
        lines.insert(int(random.integers(len(lines))), what)
        return Case(what, ("read", "x.txt"), {"x.txt": "\n".join(lines).encode()}, damaged="x.txt")


@pytest.fixture(autouse=True)
def planted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(kinds.KINDS, "planted", Planted())  # pyright: ignore[reportArgumentType]


def hostile(
    tally: Tally, folder: Path | None, examples: int, jobs: int = 1, shrinking: float = 0
) -> list[run.Failure]:
    found = run_hostile(
        ["planted"], tally, COMMANDS, folder, examples=examples, jobs=jobs, shrinking=shrinking
    )
    return list(found)


def test_verdicts_are_counted_and_a_failure_is_reported_once(tmp_path: Path):
    tally = Tally(3)
    (failure,) = hostile(tally, tmp_path, 8)
    counts = tally.counts["planted"]
    assert sum(counts.values()) == tally.done["planted"] == 8
    assert counts["traceback"] == failure.count > 1
    assert counts["refused"]
    assert counts["accepted"]


def test_a_failure_is_saved_small_and_runs_again(tmp_path: Path):
    (failure,) = hostile(Tally(3), tmp_path, 4, shrinking=30)
    folder = Path(failure.folder)
    assert (folder / FILES / "x.txt").read_text().strip() == "bad"
    assert json.loads((folder / CASE).read_text())["command"] == "abele read x.txt"
    again = replay(folder, COMMANDS)
    assert again.group == (failure.verdict, failure.site)


def test_a_run_continues_where_the_last_one_with_its_seed_ended(tmp_path: Path):
    whole, first = Tally(3), Tally(3)
    hostile(whole, None, 5)
    hostile(first, tmp_path, 2)
    second = Tally.read(tmp_path / progress_file(3))
    hostile(second, tmp_path, 5)
    assert second.counts == whole.counts


def test_jobs_change_no_verdict():
    one, three = Tally(3), Tally(3)
    hostile(one, None, 5)
    hostile(three, None, 5, jobs=3)
    assert one.counts == three.counts


def test_files_that_are_no_progress_and_folders_without_a_failure_are_refused(tmp_path: Path):
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(InputError, match="not the progress of a run"):
        Tally.read(tmp_path / "x.json")
    with pytest.raises(InputError, match="no saved failure"):
        replay(tmp_path, COMMANDS)


@pytest.mark.parametrize("needed", [{3}, {0, 7}, {2, 5, 11}, set()])
def test_the_smallest_list_has_what_is_needed(needed: set[int]):
    kept = smallest(range(12), lambda some: needed <= set(some), float("inf"))
    assert set(kept) == needed


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the planted command read the file of a case of which only the model is read."""

    def read_file(case: Case) -> None:
        text = case.files["x.txt"]
        if b"bad" in text:
            os.abort()
        COMMANDS.main(["read", "x.txt"])

    monkeypatch.setattr(child, "read_model_of", read_file)


@pytest.mark.parametrize("at_once", [1, large(3), 200])
def test_models_that_one_process_reads_have_their_own_verdicts(
    at_once: int, reads: None, monkeypatch: pytest.MonkeyPatch
):
    del reads
    monkeypatch.setattr(run, "READ_AT_ONCE", at_once)
    commands, tally = Tally(3), Tally(3)
    hostile(commands, None, 8)
    found = list(run_hostile(["planted"], tally, COMMANDS, None, examples=8, reads_only=True))
    assert [each.verdict for each in found] == ["crash"]
    # A crash ends the process, and the models after it are read in another one.
    expected = commands.counts["planted"]
    assert tally.counts["planted"]["crash"] == expected["traceback"] > 1
    assert tally.counts["planted"]["refused"] == expected["refused"]
    assert tally.counts["planted"]["accepted"] == expected["accepted"]


def test_a_kind_without_a_front_end_is_not_read_alone(tmp_path: Path):
    arguments = ["fuzz", "--hostile", "--read-only", "--kind", "targets", "-o", str(tmp_path)]
    result = CliRunner().invoke(all_commands, arguments)
    assert result.exit_code == 2
    assert "--kind targets: need one of onnx, pt2, stablehlo-text, " in result.output


def test_the_command_prints_the_table_and_the_seed(tmp_path: Path):
    arguments = ["fuzz", "--hostile", "--kind", "targets", "--examples", "1", "--seed", "5"]
    result = CliRunner().invoke(all_commands, [*arguments, "-o", str(tmp_path)])
    assert result.exit_code == 0, result.output
    assert "seed 5: hostile inputs of 1 kinds" in result.output
    assert "targets" in result.output
    assert json.loads((tmp_path / progress_file(5)).read_text())["done"] == {"targets": 1}


@pytest.mark.parametrize("option", [("--kind", "nn-text"), ("--examples", "3"), ("--read-only",)])
def test_options_of_hostile_inputs_need_hostile(option: tuple[str, str]):
    result = CliRunner().invoke(all_commands, ["fuzz", *option])
    assert result.exit_code == 2
    assert "need --hostile" in result.output
