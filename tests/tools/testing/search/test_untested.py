"""A check that tested nothing fails, and says what to give it."""

import pytest

from abele.tools.testing import Report, Untested, check_pass, check_pipeline, programs
from abele.tools.testing.search import pass_level
from abele.tools.testing.search.untested import is_hardly_any

from ..idle_passes import MarkCopies, MarkNothing, MarkRelayouts


def test_a_pass_that_changes_nothing_fails_and_says_why(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(pass_level, "TRIED", 4)
    with pytest.raises(Untested) as caught:
        check_pass(MarkNothing(), examples=10, seed=1)
    text = str(caught.value)
    assert "pass 'mark-nothing' changed none of 10 programs of nn" in text
    assert "the level: the pass changed none of 4 programs of each of nn, partition" in text
    assert "level=..., one of stablehlo, nn, partition, tile" in text
    assert "operators=[nn.ReluOp, ...]" in text
    assert "expect_changes=False" in text


def test_a_pass_on_the_wrong_level_fails():
    with pytest.raises(Untested, match="none of 20 programs of nn"):
        check_pass(MarkRelayouts(), level="nn", examples=20, seed=1)


def test_given_programs_must_contain_the_operations_that_the_pass_looks_for():
    some = programs(operators=["nn.add"], control_flow=False)
    with pytest.raises(Untested, match="give programs that contain what it looks for"):
        check_pass(MarkCopies(), programs=some, examples=5, seed=1)


def test_a_pass_may_say_that_it_is_right_to_change_nothing():
    report = check_pass(MarkNothing(), "nn", examples=8, seed=1, expect_changes=False)
    assert (report.examples, report.changed) == (8, 0)


def test_a_users_pass_in_a_pipeline_must_change_programs_itself():
    with pytest.raises(Untested, match="pass 'mark-nothing' changed none of 5 programs"):
        check_pipeline(("nn", MarkNothing(), "partition"), examples=5, seed=1)
    report = Report()
    check_pipeline(("partition", MarkRelayouts()), "planned", examples=4, seed=1, report=report)
    assert report.changed_by["mark-relayouts"] > 0
    assert set(report.changed_by) == {"mark-relayouts"}


def test_no_time_is_not_a_test():
    with pytest.raises(Untested, match=r"no program ran in \d+\.\d s"):
        check_pass("canonicalize", seconds=1e-9, seed=1)


@pytest.mark.parametrize(
    ("changed", "examples", "idle"),
    [(0, 1, True), (1, 1, False), (1, 99, False), (1, 100, False), (1, 101, True), (5, 500, False)],
)
def test_one_program_in_a_hundred_must_change(changed: int, examples: int, idle: bool):
    assert is_hardly_any(changed, examples) == idle
