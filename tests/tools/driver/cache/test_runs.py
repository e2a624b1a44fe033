"""A program of the cache starts without its text and without binding, and gives the same bytes."""

import errno
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from time import sleep
from typing import Any, BinaryIO

import numpy as np
import onnx
import pytest
from some_models import products, relu

from abele.backends import executable as program_file
from abele.backends.host import fusion, write_bound_program
from abele.backends.host.machine_code import kernel_stamp
from abele.backends.host.read_bound_program import BoundProgram
from abele.ir.support import sealed_file
from abele.ir.support.turns import COMPILING
from abele.ir.support.whole_file import whole_file
from abele.tools import Executable, compile_model
from abele.tools.debug.run_check import Verdict, check_run
from abele.tools.driver.arrays import seeded
from abele.tools.driver.cache import runs
from abele.tools.driver.cache.store import store_here

pytest.importorskip("numba")

TARGET = "tiny:8"


def results(exe: Executable) -> list[bytes]:
    return [array.tobytes() for array in exe.run(seeded(exe.inputs)).values()]


@pytest.fixture
def expected(folder: Path) -> list[bytes]:
    """The results of a program, which is kept, and ready to run."""
    found = results(compile_model("net.onnx", TARGET))
    assert run_file(folder).is_file()
    return found


def run_file(folder: Path) -> Path:
    return run_file_of(folder, kernel_stamp())


def run_file_of(folder: Path, stamp: str) -> Path:
    (entry,) = folder.glob("*.abele")
    return store_here().run(entry.stem, stamp[: runs.HOST_DIGITS])


def flipped(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


def test_the_second_start_neither_parses_nor_binds(
    expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    def refused(*_: object) -> None:
        raise AssertionError("not needed")

    monkeypatch.setattr(program_file.ProgramFile, "module_at", refused)
    monkeypatch.setattr(fusion.FusedBinder, "bind", refused)
    exe = compile_model("net.onnx", TARGET)
    assert results(exe) == expected
    assert exe.relaxed == ()
    assert [each.name for each in exe.outputs] == ["y"]
    assert exe.runners.last is not None


def test_a_loaded_program_from_the_cache_is_kept_ready_to_run(folder: Path, expected: list[bytes]):
    run_file(folder).unlink()
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert run_file(folder).is_file()


def test_a_program_that_cannot_be_kept_for_lack_of_memory_runs(
    folder: Path, expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    def refused(*_: object) -> None:
        raise MemoryError

    run_file(folder).unlink()
    monkeypatch.setattr(write_bound_program, "contents_of", refused)
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert not run_file(folder).exists()


def test_a_full_disk_keeps_no_part_of_a_file(
    folder: Path, expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    @contextmanager
    def full(path: Path) -> Iterator[BinaryIO]:
        with whole_file(path) as stream:
            yield stream
            raise OSError(errno.ENOSPC, "No space left on device")

    run_file(folder).unlink()
    monkeypatch.setattr(sealed_file, "whole_file", full)
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert {path.suffix for path in folder.iterdir()} == {".abele", ".json"}


@pytest.mark.parametrize("at", [0, 30, 200, -1])
def test_a_flipped_byte_is_bound_again(folder: Path, expected: list[bytes], at: int):
    flipped(run_file(folder), at)
    damaged = run_file(folder).read_bytes()
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert run_file(folder).read_bytes() != damaged
    exe = compile_model("net.onnx", TARGET)
    assert results(exe) == expected
    assert exe.runners.prepared() is exe.runners._ready


def test_a_check_says_if_only_the_program_that_is_kept_is_wrong(
    expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    def check() -> Verdict:
        exe = compile_model("net.onnx", TARGET)
        inputs = seeded(exe.inputs)
        return check_run(exe, inputs, exe.run(inputs), "exchange")

    assert check().passed
    run = BoundProgram.run
    monkeypatch.setattr(BoundProgram, "run", lambda *a: {n: x + 1 for n, x in run(*a).items()})
    assert "bound anew it gives the right bits. `--no-cache`" in check().problem


def test_a_flipped_byte_of_a_weight_is_compiled_again(folder: Path, expected: list[bytes]):
    (entry,) = folder.glob("*.abele")
    whole = entry.read_bytes()
    flipped(entry, whole.index(products().graph.initializer[0].raw_data) + 5)
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert entry.read_bytes() == whole


def test_without_kernels_it_is_not_used(
    folder: Path, expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    path = run_file(folder)
    flipped(path, 0)
    damaged = path.read_bytes()
    monkeypatch.setenv("ABELE_KERNELS", "plain")
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert path.read_bytes() == damaged


def test_strict_runs_and_other_levels_load_the_program(expected: list[bytes]):
    exe = compile_model("net.onnx", TARGET)
    given = seeded(exe.inputs)
    strict = exe.run(given, strict=True)
    assert [array.tobytes() for array in strict.values()] == expected
    (nn,) = exe.run(given, at="nn").values()
    np.testing.assert_allclose(nn, strict["y"], rtol=1e-3)


def test_it_counts_with_its_program_and_goes_with_it(folder: Path, expected: list[bytes]):
    del expected
    store = store_here()
    (entry,) = store.entries()
    path = run_file(folder)
    assert entry.size == path.stat().st_size + entry.path.stat().st_size
    store.remove(entry.key)
    assert not list(folder.glob("*"))


def test_clearing_the_cache_removes_it(folder: Path, expected: list[bytes]):
    del expected
    store_here().clear()
    assert not list(folder.glob("*"))


def test_a_file_of_another_program_is_bound_again(expected: list[bytes], folder: Path):
    """As if files had been exchanged: the other one would give the answer of the other program."""
    ours = run_file(folder)
    onnx.save(relu(), "other.onnx")
    other = compile_model("other.onnx", TARGET)
    theirs = results(other)
    (others,) = {*folder.glob("*.run")} - {ours}
    ours.rename("kept")
    others.rename(ours)
    Path("kept").rename(others)
    for _ in range(2):
        assert results(compile_model("net.onnx", TARGET)) == expected
        assert results(compile_model("other.onnx", TARGET)) == theirs


def test_a_file_of_another_host_is_bound_again_and_hosts_keep_a_file_each(
    expected: list[bytes], folder: Path, monkeypatch: pytest.MonkeyPatch
):
    ours = run_file(folder)
    kept, stamp = ours.read_bytes(), kernel_stamp()
    monkeypatch.setattr(runs, "kernel_stamp", lambda: stamp[::-1])
    theirs = run_file_of(folder, stamp[::-1])
    theirs.write_bytes(kept)
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert theirs.read_bytes() != kept
    assert ours.read_bytes() == kept


def test_a_few_hosts_keep_a_file_each(expected: list[bytes], folder: Path):
    ours = run_file(folder)
    hosts = [run_file_of(folder, f"{i:064}"[::-1]) for i in range(1, 2 * runs.MOST_HOSTS)]
    for i, path in enumerate(hosts):
        path.touch()
        os.utime(path, (i, i))
    ours.unlink()
    assert results(compile_model("net.onnx", TARGET)) == expected
    kept = {*folder.glob("*.run")}
    assert kept == {ours, *hosts[-runs.MOST_HOSTS + 1 :]}


@pytest.mark.parametrize("what", ["pipe", "endless", "folder"])
def test_what_is_no_file_is_not_waited_for(expected: list[bytes], folder: Path, what: str):
    path = run_file(folder)
    path.unlink()
    {
        "pipe": lambda: os.mkfifo(path),
        "endless": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }[what]()
    assert results(compile_model("net.onnx", TARGET)) == expected
    assert path.is_file() == (what != "folder")


def test_threads_that_run_one_program_of_the_cache_get_their_own_answers(expected: list[bytes]):
    exe = compile_model("net.onnx", TARGET)
    given = [seeded(exe.inputs, seed) for seed in range(3)]
    wanted = [exe.run(each)["y"] for each in given]
    assert wanted[0].tobytes() == expected[0]

    def runs(number: int) -> bool:
        found = [exe.run(given[number])["y"] for _ in range(100)]
        return all(np.array_equal(each, wanted[number]) for each in found)

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(runs, range(3))) == [True] * 3


def test_threads_that_first_run_a_program_of_the_cache_load_it_once(
    expected: list[bytes], monkeypatch: pytest.MonkeyPatch
):
    made: list[BoundProgram] = []

    def make(*given: Any) -> BoundProgram:
        sleep(0.02)
        made.append(BoundProgram(*given))
        return made[-1]

    monkeypatch.setattr(runs, "BoundProgram", make)
    exe = compile_model("net.onnx", TARGET)
    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(lambda _: results(exe), range(3))) == [expected] * 3
    assert len(made) == 1


def test_a_program_that_is_ready_to_run_does_not_wait_for_a_thread_that_compiles(
    expected: list[bytes],
):
    exe = compile_model("net.onnx", TARGET)
    with COMPILING, ThreadPoolExecutor(1) as pool:
        assert pool.submit(results, exe).result(20) == expected
