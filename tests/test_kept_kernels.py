import os
from pathlib import Path

import pytest
from kept_kernels import CODE, MOST, kept_folder, kernels_of_earlier_runs


def add(cache: Path, *names: str) -> None:
    (cache / CODE).mkdir(parents=True, exist_ok=True)
    for name in names:
        (cache / CODE / name).write_text(name)


def names(cache: Path) -> list[str]:
    return sorted(path.name for path in (cache / CODE).iterdir())


def test_kernels_of_a_run_are_there_in_the_next_one(tmp_path: Path):
    first, second, kept = tmp_path / "first", tmp_path / "second", tmp_path / "kept"
    both = ["chains-wide-1-2.code", "chains-wide-1-2.proof"]
    with kernels_of_earlier_runs(first, kept):
        add(first, *both)
    with kernels_of_earlier_runs(second, kept):
        assert names(second) == both
    assert names(kept) == both


def test_code_that_is_not_proved_and_locks_are_not_kept(tmp_path: Path):
    cache, kept = tmp_path / "cache", tmp_path / "kept"
    with kernels_of_earlier_runs(cache, kept):
        add(cache, "chains-wide-1.unproved", "chains-wide.lock")
    assert names(kept) == []


def test_the_oldest_kernels_of_a_task_are_removed(tmp_path: Path):
    cache, kept = tmp_path / "cache", tmp_path / "kept"
    add(kept, "chains-wide.lock")
    versions = [f"chains-wide-{n}-0.code" for n in range(MOST + 2)]
    add(kept, *versions, "chains-narrow-0-0.code")
    for time, name in enumerate(versions):
        os.utime(kept / CODE / name, (time, time))
    with kernels_of_earlier_runs(cache, kept):
        pass
    assert names(kept) == ["chains-narrow-0-0.code", *versions[2:], "chains-wide.lock"]


def test_without_a_folder_nothing_is_kept(tmp_path: Path):
    with kernels_of_earlier_runs(tmp_path, None):
        pass
    assert list(tmp_path.iterdir()) == []


def test_a_variable_names_the_folder(
    pytestconfig: pytest.Config, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("ABELE_TEST_KERNELS", str(tmp_path))
    assert kept_folder(pytestconfig) == tmp_path
