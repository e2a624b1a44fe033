import pytest

from abele.backends.graph import memory
from abele.backends.graph.memory import check_memory
from abele.ir.errors import InputError


def test_a_request_for_too_much_memory_names_the_available_memory(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(memory, "available_bytes", lambda: 3 * 10**9)
    check_memory(3 * 10**9, "a table")
    with pytest.raises(
        InputError, match=r"a table: 4,000 MB of memory are needed, and 3,000 MB are"
    ):
        check_memory(4 * 10**9, "a table")
    monkeypatch.setattr(memory, "available_bytes", lambda: None)
    check_memory(10**18, "a table")
