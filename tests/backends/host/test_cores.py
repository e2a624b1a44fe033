"""How many threads a run uses."""

from pathlib import Path

import pytest

from abele.backends.host import cores as module
from abele.backends.host.cores import allowed, cores, default_threads, thread_count
from abele.ir.errors import InputError


@pytest.fixture(autouse=True)
def _four_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "cores", lambda: 4)


@pytest.mark.parametrize(("text", "count"), [("1", 1), (" 3 ", 3), ("64", 4), ("9" * 30, 4)])
def test_a_number_of_threads_is_at_most_that_of_the_cores(text: str, count: int):
    assert thread_count(text, "X") == count


@pytest.mark.parametrize("text", ["0", "-1", "two", "1.5", "²", "00", "1e3"])
def test_what_is_no_number_of_threads_is_refused(text: str):
    with pytest.raises(InputError, match=r"^ABELE_THREADS: '.*' threads; need a whole number"):
        thread_count(text, "ABELE_THREADS")


@pytest.mark.parametrize(("text", "count"), [("2", 2), ("", 4), (" ", 4)])
def test_the_environment_says_how_many(text: str, count: int, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(module.VARIABLE, text)
    assert default_threads() == count


def test_without_a_wish_all_cores_are_used(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv(module.VARIABLE)
    assert default_threads() == 4


@pytest.mark.parametrize(
    ("text", "count"), [("250000 100000", 3), ("50000 100000", 1), ("100000 100000\n", 1)]
)
def test_a_control_group_allows_a_part_of_the_cores(text: str, count: int, tmp_path: Path):
    limit = tmp_path / "cpu.max"
    limit.write_text(text)
    assert allowed(limit) == count


@pytest.mark.parametrize("text", ["max 100000", "", "x y", "1 0"])
def test_a_control_group_without_a_limit_allows_all(text: str, tmp_path: Path):
    limit = tmp_path / "cpu.max"
    limit.write_text(text)
    assert allowed(limit) > 1000


def test_there_is_a_core():
    assert cores() >= 1
