"""A table of what each test costs: `pytest --log-cost FILE tests/ir`.

A line per test, with tabs between: its name, then seconds of wall clock, of CPU and of CPU of the
processes that it started and waited for, then megabytes of memory before and after it. A fixture
of a module or of the run counts for the test that needs it first. `sort -t$'\\t' -k3nr FILE | head`
lists the tests that take most of the processor.
"""

import os
import resource
import time
from collections.abc import Generator
from pathlib import Path

import pytest

COLUMNS = ("test", "wall s", "CPU s", "CPU s of children", "MB before", "MB after")


class CostLog:
    """Adds a line to a file after each test. All workers write to the same file."""

    def __init__(self, path: Path) -> None:
        self._path = path

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        before = _spent()
        try:
            return (yield)
        finally:
            after = _spent()
            seconds = [end - begin for begin, end in zip(before[:3], after[:3], strict=True)]
            numbers = [f"{each:.3f}" for each in seconds]
            numbers += [f"{each[3] / 1e6:.0f}" for each in (before, after)]
            self.add(item.nodeid, *numbers)

    def add(self, *columns: str) -> None:
        """Add a line, in one piece."""
        with self._path.open("a") as file:
            file.write("\t".join(columns) + "\n")


def _spent() -> tuple[float, float, float, int]:
    """Seconds so far: of wall clock, of CPU and of CPU of children; and bytes of memory now."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGESIZE")
    return (
        time.perf_counter(),
        time.process_time(),
        children.ru_utime + children.ru_stime,
        memory,
    )


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--log-cost",
        type=Path,
        metavar="FILE",
        help="write a line per test: seconds, and memory before and after it (needs Linux)",
    )


def pytest_configure(config: pytest.Config) -> None:
    path = config.getoption("--log-cost")
    if path is None:
        return
    log = CostLog(path.absolute())
    # The process that starts the workers runs no tests.
    if not hasattr(config, "workerinput"):
        path.write_text("")
        log.add(*COLUMNS)
    config.pluginmanager.register(log)
