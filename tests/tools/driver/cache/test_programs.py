"""A program comes from the cache if nothing that decides it has changed, and is the same then."""

import errno
import os
import shutil
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import products, relu

from abele.tools import Executable, compile_model
from abele.tools.driver import compile_anew as compiling
from abele.tools.driver.arrays import seeded
from abele.tools.driver.cache import store
from abele.tools.driver.cache.lock import locked
from abele.tools.driver.cache.store import Store, most_bytes

TARGET = "tiny:8"


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The models that were compiled."""
    found: list[str] = []
    real = compiling.compile_anew

    def counted(request: compiling.Request, *others: object, **more: object) -> Executable:
        found.append(request.path)
        return real(request, *others, **more)

    monkeypatch.setattr(compiling, "compile_anew", counted)
    return found


def results(exe: Executable) -> list[bytes]:
    return [array.tobytes() for array in exe.run(seeded(exe.inputs)).values()]


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.abele"))


def test_the_second_time_nothing_is_compiled(folder: Path, compilations: list[str]):
    first = compile_model("net.onnx", TARGET)
    second = compile_model("net.onnx", TARGET)
    assert compilations == ["net.onnx"]
    assert second.path == first.path
    assert second.target == first.target
    assert [each.name for each in second.inputs] == ["x"]
    assert results(second) == results(first)
    times = ("seconds", "seconds_by_pass")
    one, other = ({k: v for k, v in e.profile.items() if k not in times} for e in (first, second))
    assert one == other
    for level in first.levels:
        assert len(list(second.module_at(level).walk())) == len(list(first.module_at(level).walk()))
    assert compilations == ["net.onnx"]


def test_a_note_about_a_choice_is_on_programs_from_the_cache_and_in_their_files(folder: Path):
    first, second = (compile_model("net.onnx", "tiny:8", io_tiles="auto") for _ in range(2))
    assert (first.is_from_cache, second.is_from_cache) == (False, True)
    assert "I/O tiles of each chip" in first.notes[-1]
    assert second.notes == first.notes
    assert second.profile["notes"] == list(first.notes)
    second.save("net.abele")
    saved = compile_model("net.abele")
    assert saved.notes == first.notes
    assert saved.profile["notes"] == list(first.notes)


def test_an_entry_is_the_file_that_compile_writes(folder: Path):
    compile_model("net.onnx", TARGET, cache=False).save("net.abele")
    compile_model("net.onnx", TARGET).save("cold.abele")
    compile_model("net.onnx", TARGET).save("warm.abele")
    (entry,) = kept(folder)
    found = {Path(each).read_bytes() for each in ("net.abele", "cold.abele", "warm.abele", entry)}
    assert len(found) == 1


def test_a_copy_of_a_damaged_entry_is_written_anew(folder: Path):
    compile_model("net.onnx", TARGET).save("cold.abele")
    exe = compile_model("net.onnx", TARGET)
    (entry,) = kept(folder)
    data = bytearray(entry.read_bytes())
    data[data.index(b"nn.matmul")] ^= 1
    entry.write_bytes(data)
    exe.save("warm.abele")
    assert Path("warm.abele").read_bytes() == Path("cold.abele").read_bytes()


def test_it_is_compiled_for_other_options_and_for_another_model(
    folder: Path, compilations: list[str]
):
    for _ in range(2):
        compile_model("net.onnx", TARGET)
        compile_model("net.onnx", "tiny:7")
        compile_model(products(), TARGET)
    assert compilations == ["net.onnx", "net.onnx", "<model>"]
    onnx.save(relu(), "net.onnx")
    assert [each.shape for each in compile_model("net.onnx", TARGET).inputs] == [(2, 3)]


def test_the_cache_can_be_turned_off(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
):
    compile_model("net.onnx", TARGET, cache=False)
    compile_model("net.onnx", TARGET, dump_ir="dump")
    monkeypatch.setenv("ABELE_CACHE_BYTES", "0")
    compile_model("net.onnx", TARGET)
    assert compilations == ["net.onnx"] * 3
    assert not folder.exists()


def test_a_program_that_does_not_fit_is_not_kept(folder: Path):
    exe = compile_model("net.onnx", "tiny:2,memory.bytes_per_tile=32768", unbounded=True)
    assert exe.memory.problem() is not None
    assert not kept(folder)


def test_a_report_in_a_notebook_compiles_again(folder: Path, compilations: list[str]):
    compile_model("net.onnx", TARGET)
    exe = compile_model("net.onnx", TARGET)
    assert exe.anew is not None
    assert exe.anew().stages.plans is not None
    assert compilations == ["net.onnx"] * 2


# What may be wrong with an entry


@pytest.mark.parametrize("part", [0.001, 0.05, 0.2, 0.5, 0.9, 0.999])
def test_a_flipped_byte_is_found_or_changes_nothing(folder: Path, part: float):
    first = results(compile_model("net.onnx", TARGET))
    (entry,) = kept(folder)
    data = bytearray(entry.read_bytes())
    data[int(part * len(data))] ^= 0x40
    entry.write_bytes(data)
    again = compile_model("net.onnx", TARGET)
    assert results(again) == first
    assert results(compile_model("net.onnx", TARGET)) == first


def test_a_flipped_byte_of_a_weight_is_compiled_again(folder: Path, compilations: list[str]):
    first = compile_model("net.onnx", TARGET)
    (entry,) = kept(folder)
    whole = entry.read_bytes()
    weight = products().graph.initializer[0].raw_data
    data = bytearray(whole)
    data[whole.index(weight[:64])] ^= 1
    entry.write_bytes(data)
    assert results(compile_model("net.onnx", TARGET)) == results(first)
    assert compilations == ["net.onnx"] * 2
    assert entry.read_bytes() == whole


@pytest.mark.parametrize("text", [b"", b"PK", b"no program"])
def test_what_is_no_program_is_compiled_again(folder: Path, compilations: list[str], text: bytes):
    compile_model("net.onnx", TARGET)
    (entry,) = kept(folder)
    whole = entry.read_bytes()
    entry.write_bytes(text)
    compile_model("net.onnx", TARGET)
    assert entry.read_bytes() == whole
    assert len(compilations) == 2


def test_an_entry_of_another_version_is_compiled_again(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
):
    from abele.backends import executable

    newer = replace(executable.PROGRAM, version=executable.PROGRAM.version + 1)
    monkeypatch.setattr(executable, "PROGRAM", newer)
    compile_model("net.onnx", TARGET)
    monkeypatch.undo()
    monkeypatch.setenv("ABELE_CACHE", str(folder.parent))
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100000000")
    monkeypatch.chdir(folder.parents[1])
    first = compile_model("net.onnx", TARGET)
    assert results(compile_model("net.onnx", TARGET)) == results(first)
    assert len(kept(folder)) == 1


def test_a_level_that_is_gone_is_compiled_again(folder: Path, compilations: list[str]):
    compile_model("net.onnx", TARGET)
    exe = compile_model("net.onnx", TARGET)
    (entry,) = kept(folder)
    entry.unlink()
    assert results(exe)
    assert len(compilations) == 1
    assert exe.run(seeded(exe.inputs), at="nn")
    assert len(compilations) == 2


def test_a_model_that_changes_while_it_is_compiled_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    real = compiling.compile_anew

    def slow(*given: object, **more: object) -> Executable:
        exe = real(*given, **more)
        onnx.save(relu(), "net.onnx")
        return exe

    monkeypatch.setattr(compiling, "compile_anew", slow)
    compile_model("net.onnx", TARGET)
    assert not kept(folder)


# Several processes


def test_eight_processes_compile_a_program_once(folder: Path):
    """Each writes a line when it compiles, and one when it has the right results."""
    wanted = results(compile_model("net.onnx", TARGET, cache=False))
    record = Path("record")
    real = compiling.compile_anew

    def counted(*given: object, **more: object) -> Executable:
        with record.open("a") as stream:
            stream.write("compiled\n")
        time.sleep(0.2)
        return real(*given, **more)

    children = []
    for _ in range(8):
        process = os.fork()
        if process == 0:
            try:
                compiling.compile_anew = counted
                if results(compile_model("net.onnx", TARGET)) == wanted:
                    with record.open("a") as stream:
                        stream.write("right\n")
            finally:
                os._exit(0)
        children.append(process)
    for process in children:
        os.waitpid(process, 0)
    assert sorted(record.read_text().split()) == ["compiled"] + ["right"] * 8
    # Without kernels, there is no file of a run.
    found = sorted(each.suffix for each in folder.iterdir() if each.suffix != ".run")
    assert found == [".abele", ".json"]


def test_who_waits_is_told(folder: Path, compilations: list[str]):
    from abele.tools.driver.cache import lock, programs

    steps: list[str] = []
    compile_model("net.onnx", TARGET)
    (entry,) = kept(folder)
    other = Store(folder, 1).lock(entry.stem)
    whole = entry.read_bytes()
    entry.unlink()
    process = os.fork()
    if process == 0:
        with locked(other, lambda: None):
            (folder / "ready").touch()
            time.sleep(0.3)
            entry.write_bytes(whole)
        os._exit(0)
    while not (folder / "ready").exists():
        time.sleep(0.01)
    compile_model("net.onnx", TARGET, watch=steps.append)
    os.waitpid(process, 0)
    assert steps == [programs.WAITING, "read"]
    assert len(compilations) == 1
    assert lock.PATIENCE > 60


# Folders that cannot be used


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return capsys.readouterr().err


def test_a_folder_that_others_can_write_to_is_ignored_with_one_warning(
    folder: Path, compilations: list[str], capsys: pytest.CaptureFixture[str]
):
    compile_model("net.onnx", TARGET)
    folder.chmod(0o777)
    store.intrusion.cache_clear()
    for _ in range(2):
        compile_model("net.onnx", TARGET)
    assert len(compilations) == 3
    assert said(capsys) == (
        f"warning: {folder}: compiled programs are not kept: others can write to {folder}; "
        "set ABELE_CACHE to a folder that only you can write to, or give --no-cache\n"
    )


def test_a_file_at_the_place_of_the_folder_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
):
    folder.parent.mkdir()
    folder.write_text("mine")
    for _ in range(2):
        compile_model("net.onnx", TARGET)
    assert said(capsys).count("warning") == 1
    assert folder.read_text() == "mine"


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EDQUOT])
def test_a_folder_that_takes_no_file_is_no_failure(
    folder: Path,
    number: int,
    compilations: list[str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    from abele.backends import executable

    def full(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(executable, "save", full)
    for _ in range(2):
        assert results(compile_model("net.onnx", TARGET))
    assert len(compilations) == 2
    assert said(capsys).count(os.strerror(number)) == 1
    assert not list(folder.iterdir())


@pytest.mark.skipif(os.geteuid() != 0, reason="needs two users")
@pytest.mark.parametrize("mode", [0o500, 0o000])
def test_a_folder_that_cannot_be_written_to_or_read(
    folder: Path, mode: int, monkeypatch: pytest.MonkeyPatch
):
    """A user who is not the superuser gets one warning, and the right results."""
    wanted = results(compile_model("net.onnx", TARGET, cache=False))
    # Only this user can reach the folder of this test.
    reachable = Path(tempfile.mkdtemp())
    reachable.chmod(0o755)
    monkeypatch.setenv("ABELE_CACHE", str(reachable))
    closed = reachable / "programs"
    closed.mkdir()
    os.chown(closed, 65534, 65534)
    closed.chmod(mode)
    model = products()
    read, write = os.pipe()
    process = os.fork()
    if process == 0:
        try:
            sys.stderr = os.fdopen(write, "w")
            os.setuid(65534)
            found = [results(compile_model(model, TARGET)) == wanted for _ in range(2)]
            print(found, file=sys.stderr, flush=True)
        finally:
            os._exit(0)
    os.close(write)
    os.waitpid(process, 0)
    shutil.rmtree(reachable)
    text = os.read(read, 10_000).decode()
    assert text.count("warning") == 1
    assert text.endswith("[True, True]\n")


def test_what_was_kept_is_read_where_nothing_can_be_written(
    folder: Path, compilations: list[str], monkeypatch: pytest.MonkeyPatch
):
    compile_model("net.onnx", TARGET)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for name in ("utime", "mkdir", "unlink", "replace"):
        monkeypatch.setattr(os, name, refuse)
    compile_model("net.onnx", TARGET)
    assert len(compilations) == 1


# The limit


def size_of_one(folder: Path) -> int:
    (entry,) = kept(folder)
    return entry.stat().st_size


def test_what_was_not_used_for_longest_is_removed(folder: Path, monkeypatch: pytest.MonkeyPatch):
    compile_model("net.onnx", "tiny:4")
    monkeypatch.setenv("ABELE_CACHE_BYTES", str(int(2.5 * size_of_one(folder))))
    compile_model("net.onnx", "tiny:5")
    compile_model("net.onnx", "tiny:4")
    compile_model("net.onnx", "tiny:6")
    left = {Store(folder, 0).program(e.stem).stem for e in kept(folder)}
    targets = {e.parts["target"].split()[0] for e in Store(folder, 0).entries() if e.key in left}
    assert targets == {"tiny", "tiny:6"}
    assert len(list(folder.glob("*.json"))) == 2


def test_a_program_larger_than_the_limit_is_not_kept(folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ABELE_CACHE_BYTES", "100")
    assert results(compile_model("net.onnx", TARGET))
    assert not list(folder.iterdir())


def test_a_clock_that_goes_backwards_does_not_change_the_order(
    folder: Path, monkeypatch: pytest.MonkeyPatch
):
    hours = iter(range(100, 0, -1))
    monkeypatch.setattr(store, "time_ns", lambda: next(hours) * 3_600_000_000_000)
    compile_model("net.onnx", "tiny:4")
    monkeypatch.setenv("ABELE_CACHE_BYTES", str(int(2.5 * size_of_one(folder))))
    for tiles in (5, 6, 7):
        compile_model("net.onnx", f"tiny:{tiles}")
    found = sorted(Store(folder, 0).entries(), key=lambda each: each.used)
    assert [each.parts["target"].split()[0] for each in found] == ["tiny:6", "tiny:7"]


def test_a_limit_that_is_no_number_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch):
    from abele.ir.errors import InputError

    for text in ("-1", "1 GB", "", "1e9", "9" * 40):
        monkeypatch.setenv("ABELE_CACHE_BYTES", text)
        with pytest.raises(InputError, match="need a number of bytes"):
            most_bytes()


def test_training_programs_are_kept(folder: Path, compilations: list[str]):
    from abele.passes.train import Train

    step = Train(loss="mean_square")
    for _ in range(2):
        exe = compile_model("net.onnx", TARGET, train=step)
        values = {each.name: np.ones(each.shape, each.dtype) for each in exe.inputs}
        loss = exe.step(values)["loss"]
        assert np.isfinite(loss)
    assert len(compilations) == 1


@pytest.mark.parametrize("endings", [(".abele",), (".json",), (".abele", ".json")])
def test_programs_that_were_exchanged_are_compiled_again(
    folder: Path, compilations: list[str], endings: tuple[str, ...]
):
    """Else a model would get the answer of the other one."""
    onnx.save(relu(), "other.onnx")
    names = ("net.onnx", "other.onnx")
    expected = [results(compile_model(name, TARGET)) for name in names]
    one, other = kept(folder)
    for ending in endings:
        first, second = one.with_suffix(ending), other.with_suffix(ending)
        first.rename("first")
        second.rename(first)
        Path("first").rename(second)
    assert [results(compile_model(name, TARGET)) for name in names] == expected
    assert compilations == [*names, *names]
    assert [results(compile_model(name, TARGET)) for name in names] == expected
    assert compilations == [*names, *names]


def test_a_program_that_is_exchanged_later_is_not_read_or_copied(
    folder: Path, compilations: list[str]
):
    onnx.save(relu(), "other.onnx")
    expected = results(compile_model("net.onnx", TARGET))
    (net,) = kept(folder)
    compile_model("net.onnx", TARGET, cache=False).save("alone.abele")
    exes = [compile_model("net.onnx", TARGET) for _ in range(2)]
    compile_model("other.onnx", TARGET)
    (other,) = {*kept(folder)} - {net}
    shutil.copy(other, net)
    exes[0].save("saved.abele")
    assert Path("saved.abele").read_bytes() == Path("alone.abele").read_bytes()
    shutil.copy(other, net)
    names = [each.name for each in exes[1].module_at("nn").walk()]
    assert names == [each.name for each in exes[0].module_at("nn").walk()]
    assert results(exes[1]) == expected


@pytest.mark.parametrize("ending", [".abele", ".json", ".lock"])
@pytest.mark.parametrize("what", ["pipe", "endless"])
def test_what_is_no_file_is_not_waited_for(
    folder: Path, compilations: list[str], ending: str, what: str
):
    expected = results(compile_model("net.onnx", TARGET))
    (path,) = kept(folder)
    path = path.with_suffix(ending)
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")
    for _ in range(2):
        assert results(compile_model("net.onnx", TARGET)) == expected
    assert len(compilations) == (1 if ending == ".lock" else 2)
    assert store.warned == []
