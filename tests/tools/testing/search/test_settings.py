"""The settings of checks: one record, with the same names as the keywords."""

from dataclasses import fields

import pytest

from abele.tools.testing import check_pass, check_rule
from abele.tools.testing.rules.settings import RuleOptions, RuleSettings
from abele.tools.testing.search.settings import (
    SECONDS,
    Budget,
    BudgetOptions,
    CheckOptions,
    CheckSettings,
)


@pytest.mark.parametrize(
    ("settings", "options"),
    [(Budget, BudgetOptions), (CheckSettings, CheckOptions), (RuleSettings, RuleOptions)],
)
def test_every_setting_is_a_keyword(settings: type[Budget], options: type):
    assert {each.name for each in fields(settings)} == set(options.__annotations__)


def test_an_unknown_keyword_is_named():
    with pytest.raises(TypeError, match="'exampels'"):
        check_pass("canonicalize", exampels=3)
    with pytest.raises(TypeError, match="'exampels'"):
        check_rule(None, exampels=3)


def test_a_number_of_programs_has_a_default_unless_the_time_is_set():
    assert Budget().count(7) == 7
    assert Budget(examples=3, seconds=1.0).count(7) == 3
    assert Budget(seconds=1.0).count(7) > 1000


def test_a_check_of_passes_runs_for_seconds_unless_its_budget_is_set():
    assert CheckSettings().time == SECONDS
    assert CheckSettings(examples=3).time is None
    assert CheckSettings(examples=3, seconds=1.0).time == 1.0


def test_any_seed_is_zero_where_runs_must_repeat(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("CI", "true")
    assert Budget().any_seed() == 0
    assert Budget(seed=5).any_seed() == 5


def test_relations_may_be_one_several_or_none():
    def holds(before: object, after: object, compiled: object) -> None:
        return None

    assert CheckSettings().relations == ()
    assert CheckSettings(relation=holds).relations == (holds,)
    assert CheckSettings(relation=[holds, holds]).relations == (holds, holds)
