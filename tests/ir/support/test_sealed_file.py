import os
from pathlib import Path

import pytest

from abele.ir.support import sealed_file
from abele.ir.support.sealed_file import (
    Broken,
    open_regular,
    read_sealed,
    sealed,
    unsealed,
    write_sealed,
)

CONTENTS = b"some contents"


def written(path: Path, kind: str = "test 1", key: str = "one") -> Path:
    write_sealed(path, kind, key, CONTENTS)
    return path


def test_a_file_is_read_for_the_key_that_it_was_written_for(tmp_path: Path):
    path = written(tmp_path / "one")
    assert bytes(read_sealed(path, "test 1", "one")) == CONTENTS
    assert path.read_bytes().startswith(b"abele test 1\n")


@pytest.mark.parametrize(("kind", "key"), [("test 1", "two"), ("test 2", "one"), ("test", "1 one")])
def test_a_file_of_another_key_or_kind_is_broken(tmp_path: Path, kind: str, key: str):
    with pytest.raises(Broken, match=f"damaged, or no {kind} of this key"):
        read_sealed(written(tmp_path / "one"), kind, key)


def test_every_flipped_bit_is_found():
    data = sealed("test 1", "one", CONTENTS)
    for at in range(8 * len(data)):
        flipped = bytearray(data)
        flipped[at // 8] ^= 1 << at % 8
        with pytest.raises(Broken):
            unsealed("test 1", "one", bytes(flipped))


def test_a_file_that_is_cut_off_or_longer_is_broken():
    data = sealed("test 1", "one", CONTENTS)
    for other in (*(data[:left] for left in range(len(data))), data + b"\0"):
        with pytest.raises(Broken):
            unsealed("test 1", "one", other)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    (tmp_path / "folder").mkdir()
    for each in ("pipe", "endless", "folder", "nothing"):
        with pytest.raises(OSError, match=each):
            read_sealed(tmp_path / each, "test 1", "one")
        with pytest.raises(OSError, match=each):
            open_regular(tmp_path / each)


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path / "one")
    monkeypatch.setattr(sealed_file, "MOST_BYTES", 20)
    with pytest.raises(Broken, match="bytes; need at most 20"):
        read_sealed(path, "test 1", "one")


def test_what_is_no_file_gives_way_to_a_file(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for each in ("pipe", "endless"):
        assert read_sealed(written(tmp_path / each), "test 1", "one") == CONTENTS
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        written(tmp_path / "folder")
