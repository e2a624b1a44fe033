from pathlib import Path

import pytest

from abele.ir.support.cache_folder import cache_folder


def test_the_folder_is_abeles_own_variable_or_a_folder_in_the_users_cache(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path / "own"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "users"))
    assert cache_folder() == tmp_path / "own"
    monkeypatch.delenv("ABELE_CACHE")
    assert cache_folder() == tmp_path / "users" / "abele"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "abele"
