"""A line of the summary for each reason to skip tests: how many, why, and in which files."""

from collections import Counter, defaultdict

import pytest


def reasons(reports: list[pytest.TestReport | pytest.CollectReport]) -> list[str]:
    """The lines, those of most tests first."""
    counts: Counter[str] = Counter()
    files: defaultdict[str, set[str]] = defaultdict(set)
    for report in reports:
        # The file, the line and the reason.
        assert isinstance(report.longrepr, tuple)
        reason = report.longrepr[2].removeprefix("Skipped: ")
        counts[reason] += 1
        files[reason].add(report.nodeid.partition("::")[0])
    return [
        f"{count:5} {reason} ({', '.join(sorted(files[reason]))})"
        for reason, count in counts.most_common()
    ]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("skipped tests, by reason")
        for line in reasons(skipped):
            terminalreporter.write_line(line)
