import os
import subprocess
import sys
from pathlib import Path

import pytest

from abele.ir.support import temporary_entries
from abele.ir.support.temporary_entries import KEEPS, clean, file_beside, folder_beside

WRITES = """
import os, sys
from pathlib import Path
from abele.ir.support.temporary_entries import file_beside, folder_beside
with {}(Path(sys.argv[1], "out")) as made:
    print("made", flush=True)
    {}
"""


def process(folder: Path, kind: str, then: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", WRITES.format(kind, then), folder]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


@pytest.fixture(autouse=True)
def unknown(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(temporary_entries, "cleaned", set())


@pytest.mark.parametrize("kind", ["file_beside", "folder_beside"])
def test_only_what_dead_processes_left_is_removed(tmp_path: Path, kind: str):
    with process(tmp_path, kind, "os.kill(os.getpid(), 9)") as dead:
        assert dead.wait() == -9
    (left,) = tmp_path.iterdir()
    with process(tmp_path, kind, "sys.stdin.read()") as alive:
        assert alive.stdout is not None
        alive.stdout.readline()
        # The second process has removed what the first one left, but nobody removes its own.
        assert not left.exists()
        clean(tmp_path)
        (left,) = tmp_path.iterdir()
        alive.communicate("")
    assert not left.exists()


def test_what_others_named_alike_stays(tmp_path: Path):
    names = [".abele-notes", "abele-" + "0" * 32, ".abele-" + "0" * 31, ".abele-" + "0" * 32 + ".x"]
    for name in names:
        (tmp_path / name).write_text("mine")
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("mine")
    (tmp_path / (".abele-" + "1" * 32)).symlink_to(target)
    os.mkfifo(tmp_path / (".abele-" + "2" * 32))
    clean(tmp_path)
    assert {*names, "target"} <= {each.name for each in tmp_path.iterdir()}
    assert (target / "mine").exists()


@pytest.mark.parametrize("there", [True, False])
def test_a_previous_output_is_put_back_if_nothing_took_its_place(tmp_path: Path, there: bool):
    was = tmp_path / (".abele-" + "0" * 32 + KEEPS)
    (was / "out").mkdir(parents=True)
    (was / "out" / "a").write_text("old")
    if there:
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "a").write_text("new")
    clean(tmp_path)
    assert (tmp_path / "out" / "a").read_text() == ("new" if there else "old")
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


def test_a_name_of_any_length_can_be_written(tmp_path: Path):
    with file_beside(tmp_path / ("n" * 255)) as (made, descriptor):
        os.close(descriptor)
        os.replace(made, tmp_path / ("n" * 255))
    with folder_beside(tmp_path / ("m" * 255)) as made:
        os.replace(made, tmp_path / ("m" * 255))
    assert sorted(each.name for each in tmp_path.iterdir()) == ["m" * 255, "n" * 255]


def test_a_file_system_without_locks_is_written_to_and_not_cleaned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def without(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    left = tmp_path / (".abele-" + "0" * 32)
    left.write_text("")
    monkeypatch.setattr(temporary_entries.fcntl, "flock", without)
    with file_beside(tmp_path / "out") as (made, descriptor):
        os.close(descriptor)
        assert made.exists()
    assert [each.name for each in tmp_path.iterdir()] == [left.name]
