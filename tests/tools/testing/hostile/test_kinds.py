"""Each kind makes the same input from the same numbers, and commands survive a small sample."""

from pathlib import Path
from typing import Any

import pytest
import typer
from typer.core import TyperGroup

from abele.ir.errors import InputError
from abele.tools.cli import app
from abele.tools.testing.hostile.child import outcome_of, start
from abele.tools.testing.hostile.kinds import KINDS, case_of, kinds
from abele.tools.testing.hostile.reading import reading

COMMANDS: Any = typer.main.get_command(app)
assert isinstance(COMMANDS, TyperGroup)

SAMPLE = range(1)
SEED = 28


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_is_the_same_each_time(kind: str):
    some, again = (case_of(kind, SEED, 5, COMMANDS) for _ in range(2))
    assert some == again
    assert some != case_of(kind, SEED, 6, COMMANDS)


@pytest.mark.parametrize("kind", KINDS)
def test_commands_accept_or_refuse_a_sample(kind: str):
    for number in SAMPLE:
        case = case_of(kind, SEED, number, COMMANDS)
        outcome = outcome_of(case, COMMANDS)
        assert not outcome.failed, (case.command, case.description, outcome)


def test_front_ends_accept_or_refuse_a_sample():
    able = [kind for kind, each in KINDS.items() if each.reads]
    cases = [reading(case_of(kind, SEED, n, COMMANDS)) for kind in able for n in range(2)]
    outcomes = start(cases, COMMANDS).finish()
    assert len(outcomes) == len(cases)
    for case, outcome in zip(cases, outcomes, strict=True):
        assert not outcome.failed, (case.description, outcome)


def test_an_unknown_kind_is_refused():
    with pytest.raises(InputError, match="--kind odd: need one of .*nn-text"):
        kinds(("odd",))


def test_cases_write_their_files_and_links(tmp_path: Path):
    case = case_of("nn-text", SEED, 0, COMMANDS)
    case.write(tmp_path)
    assert (tmp_path / case.damaged).read_bytes() == case.files[case.damaged]
