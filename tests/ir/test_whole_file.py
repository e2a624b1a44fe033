from pathlib import Path

import pytest

from abele.ir.whole_file import whole_file


def test_a_failed_write_leaves_the_old_file_and_nothing_beside_it(tmp_path: Path):
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
