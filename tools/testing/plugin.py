"""The pytest plug-in: check_pass and check_pipeline as fixtures, and what they have exercised.

    def test_mine(check_pass):
        check_pass(MyPass(), level="nn")

pytest loads it wherever abele is installed. So it imports nothing but pytest until a fixture is
asked for, and says nothing where none has been.
"""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from .checks import Report

REPORTS = pytest.StashKey[list["Report"]]()
FEW = 12
"""How many operations the summary names of those that were exercised least."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """The budget of all checks, and the program of a single one."""
    group = parser.getgroup("abele", "property tests of compiler passes")
    group.addoption(
        "--abele-examples", type=int, metavar="N", help="programs for each check (100 or its own)"
    )
    group.addoption(
        "--abele-seconds", type=float, metavar="S", help="seconds after which a check ends"
    )
    group.addoption("--abele-seed", type=int, metavar="N", help="seed of the programs")
    group.addoption(
        "--abele-replay", metavar="FOLDER", help="check the program saved in a folder, no others"
    )


def _checker(request: pytest.FixtureRequest, name: str) -> Callable[..., Report | None]:
    """The function of that name, with the budget of the command line for whatever a call leaves
    open, and the command that replays this test."""
    from . import checks  # noqa: PLC0415

    config = request.config
    function: Callable[..., Report] = getattr(checks, name)
    options = {
        what: config.getoption(f"--abele-{what}") for what in ("examples", "seconds", "seed")
    }
    replay: str | None = config.getoption("--abele-replay")

    def check(*arguments: Any, **keywords: Any) -> Report | None:
        if replay is not None:
            checks.replay(Path(replay), *arguments, **keywords)
            return None
        # A budget that is asked for now is in place of the test's own.
        given = {what: value for what, value in options.items() if value is not None}
        if "seconds" in given and "examples" not in given:
            keywords.pop("examples", None)
        command = f"pytest {shlex.quote(request.node.nodeid)} --abele-replay FOLDER"
        report = function(*arguments, **{"command": command, **keywords, **given})
        config.stash.setdefault(REPORTS, []).append(report)
        return report

    return check


@pytest.fixture
def check_pass(request: pytest.FixtureRequest) -> Callable[..., Report | None]:
    """abele.tools.testing.check_pass, with the budget of the command line."""
    return _checker(request, "check_pass")


@pytest.fixture
def check_pipeline(request: pytest.FixtureRequest) -> Callable[..., Report | None]:
    """abele.tools.testing.check_pipeline, with the budget of the command line."""
    return _checker(request, "check_pipeline")


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """What the checks of this session have exercised."""
    if REPORTS not in config.stash:
        return
    reports = config.stash[REPORTS]
    total: Counter[tuple[str, str, str]] = Counter()
    for report in reports:
        total.update(report.exercised)
    terminalreporter.section("abele: programs")
    examples = sum(report.examples for report in reports)
    seconds = sum(report.seconds for report in reports)
    changed = sum(report.changed for report in reports)
    terminalreporter.line(
        f"{len(reports)} checks, {examples} programs in {seconds:.1f} s, {changed} of them changed"
    )
    for level in dict.fromkeys(level for _, level, _ in total):
        of_level = {key: count for key, count in total.items() if key[1] == level}
        by_op: Counter[str] = Counter()
        by_element: Counter[str] = Counter()
        for (op, _, element), count in of_level.items():
            by_op[op.partition(".")[2]] += count
            by_element[element or "none"] += count
        elements = ", ".join(f"{name} {count}" for name, count in by_element.most_common(8))
        terminalreporter.line(f"{level}: {len(by_op)} operations; {elements}")
        least = ", ".join(f"{name} {count}" for name, count in by_op.most_common()[: -FEW - 1 : -1])
        terminalreporter.line(f"  least: {least}")
