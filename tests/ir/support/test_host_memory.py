import resource
from pathlib import Path

import pytest

from abele.ir.support import host_memory
from abele.ir.support.host_memory import available_bytes, free_bytes, free_mapped_bytes


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A host with 5 GiB free; the folder holds its proc/ and cgroup/."""
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "cgroup" / "memory").mkdir(parents=True)
    monkeypatch.setattr(host_memory, "PROC", tmp_path / "proc")
    monkeypatch.setattr(host_memory, "CGROUPS", tmp_path / "cgroup")
    (tmp_path / "proc/meminfo").write_text("MemFree: 1 kB\nMemAvailable: 5242880 kB\n")
    return tmp_path


def limit_addresses(monkeypatch: pytest.MonkeyPatch, limit: int) -> None:
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limit, -1))


def test_this_host_has_some_memory_free():
    assert (available_bytes() or 0) > 0


def test_available_memory_is_free(host: Path):
    assert free_bytes() == available_bytes() == 5 << 30


@pytest.mark.parametrize(("limit", "usage"), host_memory.LIMITS)
def test_the_limit_of_a_control_group_counts(host: Path, limit: str, usage: str):
    (host / "cgroup" / limit).write_text("300\n")
    (host / "cgroup" / usage).write_text("100\n")
    assert free_bytes() == available_bytes() == 200
    (host / "cgroup" / usage).write_text("400\n")
    assert available_bytes() == 0
    (host / "cgroup" / limit).write_text("max\n")
    assert available_bytes() == 5 << 30


def test_a_limit_on_address_space_limits_available_memory(
    host: Path, monkeypatch: pytest.MonkeyPatch
):
    (host / "proc/self/status").write_text("VmPeak: 9 kB\nVmSize: 1024 kB\n")
    limit_addresses(monkeypatch, 3 << 20)
    assert free_mapped_bytes() == available_bytes() == 2 << 20
    assert free_bytes() == 5 << 30
    limit_addresses(monkeypatch, resource.RLIM_INFINITY)
    assert free_mapped_bytes() is None


def test_a_limit_on_this_process_counts(monkeypatch: pytest.MonkeyPatch):
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    limit_addresses(monkeypatch, used + 10**8)
    left = available_bytes()
    assert left is not None
    assert 0 <= left <= 10**8 + 10**7


def test_free_pages_count_where_proc_is_absent(host: Path, monkeypatch: pytest.MonkeyPatch):
    (host / "proc/meminfo").unlink()
    assert (available_bytes() or 0) > 0
    monkeypatch.setattr(host_memory.os, "sysconf_names", {})
    assert free_bytes() is None
