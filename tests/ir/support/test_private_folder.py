import os
from pathlib import Path

import pytest

from abele.ir.support.private_folder import intrusion, private_folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "outer" / "kernels"
    folder.mkdir(parents=True)
    intrusion.cache_clear()
    return folder


@pytest.mark.parametrize("mode", [0o700, 0o755])
def test_a_folder_of_ones_own_is_private(folder: Path, mode: int):
    folder.chmod(mode)
    assert intrusion(folder) == ""


@pytest.mark.parametrize("mode", [0o702, 0o777, 0o1777])
def test_a_folder_that_others_can_write_to_is_not(folder: Path, mode: int):
    folder.chmod(mode)
    assert intrusion(folder) == f"others can write to {folder}"


@pytest.mark.parametrize(("mode", "private"), [(0o777, False), (0o1777, True)])
def test_its_parents_count_unless_others_cannot_replace_it(folder: Path, mode: int, private: bool):
    folder.parent.chmod(mode)
    assert intrusion(folder) == ("" if private else f"others can write to {folder.parent}")


def test_a_link_to_another_folder_is_followed(folder: Path):
    link = folder.parent / "link"
    link.symlink_to(folder)
    folder.chmod(0o777)
    assert intrusion(link) == f"others can write to {folder}"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_folder_or_a_file_of_another_user_is_not_private(folder: Path):
    (folder / "kept.1.nbc").touch()
    os.chown(folder / "kept.1.nbc", 65534, 65534)
    assert intrusion(folder) == f"{folder}/kept.1.nbc belongs to another user"
    intrusion.cache_clear()
    (folder / "kept.1.nbc").unlink()
    os.chown(folder, 65534, 65534)
    assert intrusion(folder) == f"{folder} belongs to another user"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_group_of_others_may_not_write(folder: Path):
    os.chown(folder, 0, 65534)
    folder.chmod(0o770)
    assert intrusion(folder) == f"others can write to {folder}"


def test_a_file_that_vanishes_meanwhile_is_no_problem(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    listed = [folder / "kept.1.nbc", folder / "kept.2.nbc"]
    listed[1].touch()
    monkeypatch.setattr(Path, "glob", lambda *_: listed)
    assert intrusion(folder) == ""


def test_a_private_folder_is_created(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE", str(folder / "cache"))
    made = private_folder("one")
    assert made == folder / "cache" / "kernels" / "one"
    assert made.stat().st_mode & 0o777 == 0o700
    assert intrusion(made) == ""
