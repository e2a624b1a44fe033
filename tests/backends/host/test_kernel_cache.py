"""Kernels run where they cannot be kept, and are kept again where what was kept is damaged."""

import os
import sys
import traceback
from pathlib import Path

import pytest

numba = pytest.importorskip("numba")

# Two functions of the real decorator, one compiled at once and one when it is called: the kernels
# themselves take a minute.
SOURCE = """
from abele.backends.host.kernel_cache import compiled

@compiled("int64(int64)")
def at_once(n):
    return n + 1

@compiled()
def called(n):
    return at_once(n) + 1
"""

CALL = """
sys.path.insert(0, ".")
import kept
found = kept.called(1)
print(found, *(sum(each.stats.cache_hits.values()) for each in (kept.at_once, kept.called)))
"""

FULL = """
import errno
from abele.backends.host.kernel_cache import SealedFiles
def full(*_):
    raise OSError(errno.ENOSPC, "No space left on device")
SealedFiles._save_data = full
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of kernels, which holds nothing else."""
    (tmp_path / "kept.py").write_text(SOURCE)
    return tmp_path


def called(folder: Path, before: str = "", **environment: str) -> tuple[str, str]:
    """What a process that calls kernels prints, with how many it found kept, and on stderr.

    The process is a fork of this one, which has imported numba: that takes a second.
    """
    outputs = [folder / "printed", folder / "said"]
    process = os.fork()
    if process == 0:
        status = 1
        try:
            os.chdir(folder)
            sys.stdout, sys.stderr = (path.open("w") for path in outputs)
            sys.dont_write_bytecode = True
            os.environ |= {"NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
            numba.core.config.reload_config()
            exec(before + CALL, {"sys": sys})
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            for stream in (sys.stdout, sys.stderr):
                stream.close()
            os._exit(status)
    _, status = os.waitpid(process, 0)
    printed, said = (path.read_text() for path in outputs)
    for path in outputs:
        path.unlink()
    assert status == 0, said
    return printed.strip(), said


def files(folder: Path, ending: str) -> list[Path]:
    return list(folder.glob(f"cache/**/*.{ending}"))


def test_kernels_are_cached_without_output(folder: Path):
    assert called(folder) == ("3 0 0", "")
    assert called(folder) == ("3 1 1", "")


def test_kernels_are_compiled_again_when_another_file_of_their_folder_changes(folder: Path):
    (folder / "one.py").write_text("ONE = 1\n")
    (folder / "kept.py").write_text("from one import ONE\n" + SOURCE.replace("n + 1", "n + ONE"))
    assert called(folder) == ("3 0 0", "")
    assert called(folder) == ("3 1 1", "")
    (folder / "one.py").write_text("ONE = 2\n")
    assert called(folder) == ("4 0 0", "")
    (folder / "more.py").touch()
    assert called(folder) == ("4 0 0", "")
    assert called(folder) == ("4 1 1", "")


def test_kernels_whose_folder_changes_before_they_are_compiled_are_not_kept(folder: Path):
    change = "import kept; open('other.py', 'w').close()\n"
    assert called(folder, f"sys.path.insert(0, '.'); {change}") == ("3 0 0", "")
    # The one that is compiled at once was kept before the change, for the old sources.
    assert len(files(folder, "nbc")) == 1


def test_without_any_folder_to_keep_them_in_kernels_run_with_a_warning(folder: Path):
    # A file stands where each of the folders would be: not even the superuser makes one there.
    (folder / "file").touch()
    (folder / "__pycache__").touch()
    nowhere = str(folder / "file")
    homes = {"HOME": nowhere, "XDG_CACHE_HOME": nowhere, "ABELE_CACHE": nowhere}
    printed, said = called(folder, NUMBA_CACHE_DIR=nowhere, **homes)
    assert printed == "3 0 0"
    assert said.startswith(f"warning: {nowhere}: compiled kernels cannot be kept (no folder")
    assert "NUMBA_CACHE_DIR" in said
    assert said.count("\n") == 1


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 5])
def test_kernels_of_damaged_files_are_compiled_and_kept_again(folder: Path, ending: str, left: int):
    called(folder)
    damaged = files(folder, ending)
    for path in damaged:
        path.write_bytes(path.read_bytes()[:left])
    printed, said = called(folder)
    assert (len(damaged), printed) == (2, "3 0 0")
    assert said.startswith(f"warning: {damaged[0].parent}: compiled kernels cannot be read (")
    assert said.count("\n") == 1
    assert called(folder) == ("3 1 1", "")


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_kernels_whose_files_were_exchanged_are_compiled_and_kept_again(folder: Path, ending: str):
    called(folder)
    one, other = files(folder, ending)
    kept = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(kept)
    printed, said = called(folder)
    assert printed == "3 0 0"
    assert said.startswith(f"warning: {one.parent}: compiled kernels cannot be read (damaged)")
    assert said.count("\n") == 1
    assert called(folder) == ("3 1 1", "")


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_what_is_no_file_is_not_waited_for(folder: Path, ending: str):
    called(folder)
    for path in files(folder, ending):
        path.unlink()
        os.mkfifo(path)
    printed, said = called(folder)
    assert printed == "3 0 0"
    assert said.count("\n") <= 1
    assert called(folder) == ("3 1 1", "")


def test_a_form_that_was_compiled_from_other_sources_is_not_used(folder: Path):
    """As if a process had ended between writing the index and writing the form."""
    called(folder)
    old = {path: path.read_bytes() for path in files(folder, "nbc")}
    (folder / "kept.py").write_text(SOURCE.replace("n + 1", "n + 3"))
    assert called(folder) == ("5 0 0", "")
    for path, data in old.items():
        path.write_bytes(data)
    printed, said = called(folder)
    assert printed == "5 0 0"
    assert said.count("\n") == 1


def test_on_a_full_disk_kernels_run_with_a_warning_that_names_the_folder(folder: Path):
    printed, said = called(folder, before=FULL)
    assert printed == "3 0 0"
    assert said.startswith(f"warning: {folder}/cache/")
    assert "cannot be kept (No space left on device)" in said
    assert said.count("\n") == 1


def test_a_folder_that_others_can_write_to_is_ignored_and_a_private_one_used(folder: Path):
    home = str(folder / "home")
    (folder / "cache").mkdir()
    (folder / "cache").chmod(0o777)
    printed, said = called(folder, ABELE_CACHE=home)
    assert printed == "3 0 0"
    assert said.startswith(f"warning: others can write to {folder}/cache, so compiled kernels ")
    assert f"there are ignored; {home}/kernels/" in said
    assert said.count("\n") == 1
    assert not files(folder, "nbc")
    (kept,) = (folder / "home").glob("kernels/*")
    assert len(list(kept.glob("*.nbc"))) == 2
    # Not that one either: nothing is read from files.
    kept.chmod(0o722)
    printed, said = called(folder, ABELE_CACHE=home)
    assert printed == "3 0 0"
    assert f"compiled kernels cannot be kept (others can write to {kept})" in said
    assert said.count("\n") == 1
