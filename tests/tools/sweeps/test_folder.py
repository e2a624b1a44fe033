import errno
import subprocess
import sys
from pathlib import Path

import pytest

from abele.ir.support.errors import InputError
from abele.tools.sweeps.folder import LOG, Record, locked_folder


def record(digest: str, cycles: int = 1, *, final: bool = True) -> Record:
    return Record(digest, {"cycles": cycles, "reason": "a\nb"}, final, {"compile_seconds": 0.5})


def written(path: Path, *records: Record) -> dict[str, Record]:
    """The records of a folder after some are added."""
    with locked_folder(path) as folder:
        for each in records:
            folder.add(each)
        return folder.records


def test_records_are_read_back_and_the_last_one_of_a_digest_counts(tmp_path: Path):
    folder = tmp_path / "f"
    written(folder, record("a"), record("b"), record("a", 2))
    assert written(folder) == {"a": record("a", 2), "b": record("b")}


def test_a_line_that_was_being_written_is_dropped_and_the_log_goes_on(tmp_path: Path):
    written(tmp_path, record("a"), record("b"))
    whole = (tmp_path / LOG).read_bytes()
    for cut in range(1, len(record("b").line()) + 1, 7):
        (tmp_path / LOG).write_bytes(whole[:-cut])
        assert written(tmp_path) == {"a": record("a")}
        assert written(tmp_path, record("b")) == {"a": record("a"), "b": record("b")}
        assert (tmp_path / LOG).read_bytes() == whole


def test_a_short_line_takes_the_place_of_a_long_one_that_was_being_written(tmp_path: Path):
    long = Record("b", {"reason": "b" * 1000}, True)
    written(tmp_path, record("a"), long)
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes()[:-1])
    written(tmp_path, record("c"))
    with locked_folder(tmp_path) as folder:
        assert (folder.records, folder.damaged) == ({"a": record("a"), "c": record("c")}, 0)
    assert log.read_bytes().endswith(record("c").line())


def test_a_damaged_line_is_missing(tmp_path: Path):
    written(tmp_path, record("a"), record("b"))
    log = tmp_path / LOG
    log.write_bytes(log.read_bytes().replace(b'"digest": "a"', b'"digest": "c"'))
    with locked_folder(tmp_path) as folder:
        assert (folder.records, folder.damaged) == ({"b": record("b")}, 1)


def test_a_log_that_was_begun_is_begun_again(tmp_path: Path):
    (tmp_path / LOG).write_bytes(b"abele sw")
    assert written(tmp_path, record("a")) == {"a": record("a")}
    assert written(tmp_path) == {"a": record("a")}


def test_a_folder_with_something_else_is_refused(tmp_path: Path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(InputError, match="it holds thesis.tex, and no sweep"):
        written(tmp_path)


def test_a_log_of_something_else_is_refused(tmp_path: Path):
    (tmp_path / LOG).write_text("12:00 disk full\n")
    with pytest.raises(InputError, match="not the log of a sweep"):
        written(tmp_path)
    assert (tmp_path / LOG).read_text() == "12:00 disk full\n"


def test_a_file_is_no_folder(tmp_path: Path):
    (tmp_path / "f").write_text("")
    with pytest.raises(InputError, match="is not a folder"):
        written(tmp_path / "f")


def test_two_sweeps_do_not_write_into_one_folder(tmp_path: Path):
    with locked_folder(tmp_path), pytest.raises(InputError, match="another sweep writes into it"):
        written(tmp_path)


HOLDER = """
import sys, time
from pathlib import Path
from abele.tools.sweeps.folder import locked_folder
with locked_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


def test_a_killed_sweep_leaves_no_lock(tmp_path: Path):
    holder = subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE)
    assert holder.stdout is not None
    assert holder.stdout.readline() == b"locked\n"
    with pytest.raises(InputError, match="another sweep"):
        written(tmp_path)
    holder.kill()
    holder.wait()
    holder.stdout.close()
    assert written(tmp_path, record("a")) == {"a": record("a")}


def test_a_full_disk_is_one_message_and_the_log_stays_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with locked_folder(tmp_path) as folder:
        folder.add(record("a"))
        with monkeypatch.context() as patch:
            patch.setattr("abele.tools.sweeps.folder.os.fsync", full)
            with pytest.raises(InputError, match="No space left on device; what was computed"):
                folder.add(record("b"))
        folder.add(record("c"))
    assert written(tmp_path) == {"a": record("a"), "c": record("c")}
