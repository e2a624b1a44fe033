import resource
from pathlib import Path

import pytest

from abele.backends.graph import memory
from abele.backends.graph.memory import available_bytes, check_memory
from abele.ir.errors import InputError


def test_what_there_is_not_is_refused_with_what_there_is(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * 10**9)
    check_memory(3 * 10**9, "a table")
    with pytest.raises(
        InputError, match=r"a table: 4,000 MB of memory are needed, and 3,000 MB are"
    ):
        check_memory(4 * 10**9, "a table")
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_memory(10**18, "a table")


def test_a_limit_on_the_process_counts(monkeypatch: pytest.MonkeyPatch):
    whole = available_bytes()
    assert whole is not None
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    monkeypatch.setattr(memory.resource, "getrlimit", lambda _: (used + 10**8, -1))
    left = available_bytes()
    assert left is not None
    assert 0 <= left <= 10**8 + 10**7


def test_where_the_system_says_nothing_free_pages_count(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "absent")
    assert (available_bytes() or 0) > 0
