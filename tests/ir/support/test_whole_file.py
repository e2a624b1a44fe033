import os
from pathlib import Path

import pytest

from abele.ir.errors import InputError
from abele.ir.support.whole_file import check_file, check_folder, whole_file


def test_a_failed_write_leaves_only_the_old_file(tmp_path: Path):
    path = tmp_path / "a.txt"
    path.write_text("old")
    with pytest.raises(RuntimeError, match="half way"), whole_file(path) as stream:
        stream.write(b"ne")
        raise RuntimeError("half way")
    assert [each.name for each in tmp_path.iterdir()] == ["a.txt"]
    assert path.read_text() == "old"


def test_the_file_appears_when_the_block_ends(tmp_path: Path):
    path = tmp_path / "new" / "a.txt"
    with whole_file(path) as stream:
        stream.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("there", [True, False])
def test_a_link_stays_and_its_target_is_written(tmp_path: Path, there: bool):
    target, link = tmp_path / "folder" / "target.txt", tmp_path / "link.txt"
    target.parent.mkdir()
    if there:
        target.write_text("old")
    link.symlink_to(target)
    with whole_file(link) as stream:
        stream.write(b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert [each.name for each in target.parent.iterdir()] == ["target.txt"]


def test_a_pipe_is_written_to_and_stays(tmp_path: Path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        with whole_file(pipe) as stream:
            stream.write(b"new")
        assert os.read(reader, 10) == b"new"
    finally:
        os.close(reader)
    assert pipe.is_fifo()
    assert [each.name for each in tmp_path.iterdir()] == ["pipe"]


def test_a_path_that_cannot_be_written_is_reported_first_and_nothing_is_created(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(InputError, match=f"^{tmp_path}: cannot be written: it is a folder"):
        check_file(tmp_path)
    with pytest.raises(InputError, match=f"^{file / 'a' / 'b'}: .*{file} is not a folder"):
        check_file(file / "a" / "b")
    with pytest.raises(InputError, match=f"^{file}: .*{file} is not a folder"):
        check_folder(file)
    check_file(file)
    check_file(tmp_path / "new" / "a.txt")
    check_file(Path(os.devnull))
    check_folder(tmp_path / "new")
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


@pytest.mark.skipif(not os.path.ismount("/proc"), reason="needs Linux")
def test_a_folder_in_which_no_file_can_be_created():
    with pytest.raises(InputError, match="^/proc/new/a.txt: cannot be written: /proc: "):
        check_file(Path("/proc/new/a.txt"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_write_permission(tmp_path: Path):
    tmp_path.chmod(0o500)
    with pytest.raises(InputError, match="Permission denied; choose another path"):
        check_file(tmp_path / "a.txt")
