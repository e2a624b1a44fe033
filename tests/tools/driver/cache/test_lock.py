"""A lock is free once its holder has ended, and nobody waits for ever."""

import os
import signal
import time
from pathlib import Path

import pytest

from abele.tools.driver.cache.lock import locked


def holder(path: Path) -> int:
    """A process that holds the lock of a path."""
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        with locked(path, lambda: None):
            os.write(write, b"x")
            time.sleep(60)
        os._exit(0)
    os.read(read, 1)
    os.close(read)
    os.close(write)
    return process


def test_a_lock_leaves_no_file(tmp_path: Path):
    with locked(tmp_path / "lock", lambda: None) as problem:
        assert problem is None
        assert (tmp_path / "lock").exists()
    assert not (tmp_path / "lock").exists()


def test_a_dead_holder_leaves_a_file_that_locks_nothing(tmp_path: Path):
    process = holder(tmp_path / "lock")
    os.kill(process, signal.SIGKILL)
    os.waitpid(process, 0)
    assert (tmp_path / "lock").exists()
    waited: list[int] = []
    with locked(tmp_path / "lock", lambda: waited.append(1)) as problem:
        assert (problem, waited) == (None, [])


def test_the_wait_for_a_process_that_hangs_ends(tmp_path: Path):
    process = holder(tmp_path / "lock")
    os.kill(process, signal.SIGSTOP)
    waited: list[int] = []
    try:
        with locked(tmp_path / "lock", lambda: waited.append(1), patience=0.1) as problem:
            assert (problem, waited) == (None, [1])
    finally:
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
    assert (tmp_path / "lock").exists()


def test_a_folder_without_room_is_told(tmp_path: Path):
    (tmp_path / "file").touch()
    with locked(tmp_path / "file" / "lock", lambda: None) as problem:
        assert isinstance(problem, NotADirectoryError)


def test_an_error_of_the_block_is_not_taken_for_one_of_the_lock(tmp_path: Path):
    with pytest.raises(OSError, match="of the block"), locked(tmp_path / "lock", lambda: None):
        raise OSError("of the block")
    assert not (tmp_path / "lock").exists()
