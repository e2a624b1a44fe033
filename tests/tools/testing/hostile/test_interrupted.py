from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
import typer
from typer.core import TyperGroup

from abele.ir.support.whole_file import whole_file
from abele.tools.cli import app
from abele.tools.testing.hostile import interrupted
from abele.tools.testing.hostile.interrupted import WAYS, WRITERS, Harness, Interruption, Writer

COMMANDS = cast(TyperGroup, typer.main.get_command(app))


@pytest.fixture(scope="module")
def harness() -> Iterator[Harness]:
    made = Harness(COMMANDS, ("failure",))
    yield made
    made.close()


@pytest.mark.parametrize("way", WAYS)
def test_the_old_output_stays_or_the_new_one(harness: Harness, way: str):
    tried = [each for each in harness.interruptions(2 * len(WAYS), seed=3) if each.way == way]
    assert len(tried) == 2
    for each in tried:
        assert not harness.problems(each)


def test_every_event_of_the_last_step_is_tried(harness: Harness):
    events = harness.events["failure"]
    for at in range(events - 5, events):
        for at_once in (True, False):
            each = Interruption("failure", "killed", at, had_old=True, at_once=at_once)
            assert not harness.problems(each)


@pytest.mark.slow
def test_a_cache_has_a_whole_program_or_none():
    made = Harness(COMMANDS, ("cache",))
    events = made.events["cache"]
    try:
        for at in range(events - 6, events):
            each = Interruption("cache", "killed", at, had_old=True, at_once=True)
            assert not made.problems(each)
        whole = next((made.folder / "work").rglob("*.abele"))
        assert interrupted._is_sound_cache(made.folder / "work")
        whole.write_bytes(whole.read_bytes()[:-100])
        assert not interrupted._is_sound_cache(made.folder / "work")
    finally:
        made.close()


def _careless(target: str) -> None:
    Path("q.json").write_text(f'{{"target": "{target}",')
    with open("q.json", "a") as stream:
        stream.write("1: 1}".replace("1: 1", '"one": 1'))


def _leaves_its_work(target: str) -> None:
    for each in sorted(Path().glob("*.part")):
        each.rename(f".{each.name}")
    Path("q.part").write_text(target)
    with whole_file(Path("q.json")) as stream:
        stream.write(f'{{"target": "{target}"}}'.encode())
    Path("q.part").unlink()


@pytest.mark.parametrize(
    ("writes", "problem"),
    [(_careless, "q.json is neither old nor new"), (_leaves_its_work, "the next run leaves .q")],
)
def test_a_careless_writer_is_found(monkeypatch: pytest.MonkeyPatch, writes, problem: str):
    monkeypatch.setitem(WRITERS, "bad", Writer(("q.json",), writes))
    careless = Harness(COMMANDS, ("bad",))
    try:
        found = [
            problem
            for at in range(careless.events["bad"])
            for problem in careless.problems(Interruption("bad", "killed", at, True, True))
        ]
    finally:
        careless.close()
    assert any(problem in each for each in found), found


def test_every_command_that_writes_is_a_writer():
    ours = {each.arguments[0] for each in WRITERS.values() if not callable(each.arguments)}
    # The others write what one of these writes, or print.
    assert ours == {"run", "compile", "opt", "plan", "memory", "graph", "scan", "report", "train"}
    assert interrupted.OLD != interrupted.NEW
