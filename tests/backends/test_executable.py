"""Program files: what is saved comes back, and what is damaged is refused."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable
from pathlib import Path

import hypothesis.strategies as st
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends import executable
from abele.backends.executable import ProgramFile, Tensor, load, save
from abele.backends.target import Target, resolve_target
from abele.ir.errors import InputError
from abele.ir.text import print_module

from ..strategies import context
from .exchange_text import exchange_module, relu, step, variable

TARGET = resolve_target("tiny:5,exchange.sync_cycles=200")
BODY = (
    step("in", 'exchange.input "image" -> @a : tensor<24xf32>', zone="external")
    + step("work", relu("a", "b"))
    + step("out", 'exchange.output @b -> "out" : tensor<24xf32>', zone="external")
)


def module() -> ModuleOp:
    return exchange_module(BODY)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "p.abele"
    save(path, module(), TARGET, profile={"cycles": 7, "ops": {"tile": 2}})
    return path


def same(a: ProgramFile, b: ProgramFile) -> bool:
    def content(p: ProgramFile) -> object:
        arrays = {blob.digest: blob.array.tobytes() for blob in p.blobs}
        return p.target, p.inputs, p.outputs, dict(p.profile), dict(p.texts), arrays

    return content(a) == content(b)


def rewritten(file: Path, change: Callable[[dict[str, bytes]], object], **options: int) -> Path:
    """The file with its members changed."""
    with zipfile.ZipFile(file) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(file, "w", **options) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return file


def test_a_saved_program_is_read_back_whole(file: Path):
    found = load(file)
    assert found.target == TARGET
    assert found.inputs == (Tensor("image", (24,), "float32"),)
    assert found.outputs == (Tensor("out", (24,), "float32"),)
    assert found.profile == {"cycles": 7, "ops": {"tile": 2}}
    again = found.module_at("exchange", context())
    assert print_module(again) == print_module(module())
    again.verify()
    assert os.listdir(file.parent) == ["p.abele"]


def test_arrays_are_read_only_and_aligned(file: Path):
    (blob,) = load(file).blobs
    np.testing.assert_array_equal(blob.array, np.arange(-12, 12, dtype=np.float32))
    assert not blob.array.flags.writeable
    assert not blob.array.flags.owndata
    assert blob.array.ctypes.data % executable.ALIGNMENT == 0


def test_a_file_that_is_cut_or_changed_in_place_changes_no_loaded_program(file: Path):
    (blob,) = load(file).blobs
    content = file.read_bytes()
    with open(file, "r+b") as stream:
        stream.write(b"\xff" * len(content))
        stream.flush()
        np.testing.assert_array_equal(blob.array, np.arange(-12, 12, dtype=np.float32))
        stream.truncate(0)
    # A mapped file would end the process by SIGBUS here.
    np.testing.assert_array_equal(blob.array, np.arange(-12, 12, dtype=np.float32))


def test_other_levels_are_kept_if_given(tmp_path: Path):
    other = exchange_module(step("other", relu("w", "a")))
    save(tmp_path / "p.abele", module(), TARGET, levels={"tile": other})
    found = load(tmp_path / "p.abele")
    assert print_module(found.module_at("tile", context())) == print_module(other)
    with pytest.raises(InputError, match="no level 'nn'; there is exchange, tile"):
        found.module_at("nn", context())


@pytest.mark.parametrize(
    "array",
    [
        np.array(3.0),
        np.zeros((0, 3), np.int8),
        np.array([True, False]),
        np.arange(5).astype(ml_dtypes.bfloat16),
        np.arange(5).astype(ml_dtypes.float8_e4m3fn),
        np.broadcast_to(np.float32(0.02), (3, 4)),
        np.broadcast_to(np.asarray(1).astype(ml_dtypes.bfloat16), (2, 1)),
    ],
)
def test_arrays_of_every_kind_come_back(tmp_path: Path, array: np.ndarray):
    made = context()
    digest = made.blobs.add(array).digest
    one = exchange_module("")
    one.attributes["extra"] = _blob_attr(made.blobs.get(digest))
    save(tmp_path / "p.abele", one, TARGET)
    blobs = {b.digest: b.array for b in load(tmp_path / "p.abele").blobs}
    assert blobs[digest].dtype == array.dtype
    assert blobs[digest].shape == array.shape
    assert blobs[digest].tobytes() == array.tobytes()


def with_a_splat(path: Path, shape: tuple[int, ...]) -> Path:
    made = context()
    one = exchange_module("")
    one.attributes["splat"] = _blob_attr(made.blobs.add(np.broadcast_to(np.float32(0.02), shape)))
    save(path, one, TARGET)
    return path


def test_one_element_of_a_splat_is_stored(tmp_path: Path):
    path = with_a_splat(tmp_path / "p.abele", (4096, 1024))
    assert path.stat().st_size < 100_000
    (blob,) = (each for each in load(path).blobs if each.is_splat)
    assert blob.array.shape == (4096, 1024)
    assert blob.array[17, 3] == np.float32(0.02)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("shape", [1 << 40], "is repeated 1099511627776 times"),
        ("shape", [12], "has digest"),
        ("shape", [-3], "has 4 bytes"),
        ("dtype", "float64", "has 4 bytes"),
        ("splat", False, "has 4 bytes"),
    ],
)
def test_a_wrong_splat_is_named(tmp_path: Path, key: str, value: object, message: str):
    def change(members: dict[str, bytes]) -> None:
        meta = json.loads(members["meta.json"])
        (kind,) = (each for each in meta["blobs"].values() if "splat" in each)
        kind[key] = value
        members["meta.json"] = json.dumps(meta).encode()

    path = with_a_splat(tmp_path / "p.abele", (13,))
    with pytest.raises(InputError, match=message):
        load(rewritten(path, change))


def _blob_attr(blob: object):
    from abele.dialects.blob_attr import BlobAttr

    return BlobAttr(blob)


def test_saving_twice_gives_equal_bytes(file: Path):
    before = file.read_bytes()
    save(file, module(), TARGET, profile={"cycles": 7, "ops": {"tile": 2}})
    assert file.read_bytes() == before


def test_nothing_is_left_when_saving_fails(file: Path):
    before = file.read_bytes()
    with pytest.raises(TypeError):
        save(file, module(), TARGET, profile={"no": object()})
    assert file.read_bytes() == before
    assert os.listdir(file.parent) == ["p.abele"]


# Damage


def test_any_flipped_bit_is_refused_or_harmless(file: Path):
    whole, good = file.read_bytes(), load(file)
    random = np.random.default_rng(0)
    refused = 0
    # One byte of the file changes and changes back: to write the file anew takes a disk 5 ms.
    with open(file, "r+b", buffering=0) as stream:
        for place in range(0, len(whole), 3):
            flipped = whole[place] ^ 1 << int(random.integers(8))
            os.pwrite(stream.fileno(), bytes([flipped]), place)
            try:
                found = load(file)
            except InputError as error:
                assert str(file) in str(error)
                refused += 1
            else:
                assert same(found, good)
            os.pwrite(stream.fileno(), whole[place : place + 1], place)
    assert refused > len(whole) / 3 / 2


@given(cut=st.floats(0, 1, exclude_max=True))
@settings(max_examples=30)
def test_a_truncated_file_is_refused(cut: float, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("cut") / "p.abele"
    save(path, module(), TARGET)
    data = path.read_bytes()
    path.write_bytes(data[: int(cut * len(data))])
    with pytest.raises(InputError, match="compile the model again"):
        load(path)


@given(data=st.binary(max_size=200))
@settings(max_examples=30)
def test_other_bytes_are_refused(data: bytes, tmp_path_factory: pytest.TempPathFactory):
    path = tmp_path_factory.mktemp("other") / "p.abele"
    path.write_bytes(data)
    with pytest.raises(InputError, match=r"p\.abele: "):
        load(path)


def test_a_missing_file_and_a_folder_are_refused(tmp_path: Path):
    with pytest.raises(InputError, match="none.abele: cannot be read: No such file"):
        load(tmp_path / "none.abele")
    with pytest.raises(InputError, match="cannot be read"):
        load(tmp_path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda m: m.pop("meta.json"), "no meta.json"),
        (lambda m: m.pop("exchange.mlir"), "no exchange.mlir"),
        (lambda m: m.pop(next(n for n in m if n.startswith("blobs/"))), "no blobs/"),
        (lambda m: m.update({"../evil.mlir": b""}), r"a member '\.\./evil\.mlir'"),
        (lambda m: m.update({"/etc/passwd": b""}), "a member '/etc/passwd'"),
        (lambda m: m.update({"data.pkl": b""}), "a member 'data.pkl'"),
        (lambda m: m.update({"tile.mlir": b""}), "tile.mlir is named nowhere"),
        (lambda m: m.update({"exchange.mlir": b"other"}), "exchange.mlir has digest"),
        (lambda m: m.update({"meta.json": b"{}"}), "its meta.json is of something else"),
        (lambda m: m.update({"meta.json": b"["}), "damaged"),
        (lambda m: m.update({"meta.json": b"[" * 100_000}), "damaged"),
    ],
)
def test_wrong_members_are_named(file: Path, change: Callable[..., object], message: str):
    with pytest.raises(InputError, match=message):
        load(rewritten(file, change))


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "version",
            1,
            "version 1 of abele program, which abele from before 24 Nov.* reads;",
        ),
        (
            "version",
            2,
            "version 2 of abele program, which abele from before 1 December 2026 reads;",
        ),
        (
            "version",
            4,
            "version 4 of abele program is of a newer abele; .*; update abele, or ",
        ),
        ("version", None, "version None of abele program; need version 3"),
        ("version", 3.0, "version 3.0 of abele program; need version 3"),
        ("version", -2, "version -2 of abele program; need version 3"),
        ("version", 10**3000, "version of 9,966 bits of abele program; need version 3"),
        ("version", "x" * 10**6, r"version 'x{39}\.\.\. of abele program; need version 3$"),
        ("target", 'base = "mk9"', "target:1: base: 'mk9'"),
        ("inputs", [{"name": "x", "shape": ["a"], "dtype": "float32"}], "damaged"),
        ("inputs", [{"name": "x", "shape": [1], "dtype": "object"}], "damaged"),
        ("blobs", [], "blobs in meta.json"),
        ("texts", {"exchange": "0"}, "has digest"),
    ],
)
def test_wrong_values_are_named(file: Path, key: str, value: object, message: str):
    def change(members: dict[str, bytes]) -> None:
        meta = json.loads(members["meta.json"])
        meta[key] = value
        members["meta.json"] = json.dumps(meta).encode()

    with pytest.raises(InputError, match=message):
        load(rewritten(file, change))


def test_compressed_members_are_refused_before_they_are_expanded(file: Path):
    def bomb(members: dict[str, bytes]) -> None:
        members["exchange.mlir"] = bytes(50_000_000)

    with pytest.raises(InputError, match="is compressed"):
        load(rewritten(file, bomb, compression=zipfile.ZIP_DEFLATED))


def test_members_that_share_bytes_are_refused(file: Path):
    """A directory may name one member's bytes many times over."""
    data = file.read_bytes()
    with zipfile.ZipFile(file) as archive:
        start = archive.start_dir
        name = next(n for n in archive.namelist() if n.startswith("blobs/"))
    end = data.index(b"PK\5\6", start)
    at = data.index(name.encode(), start) - 46
    length = 46 + sum(int.from_bytes(data[at + i : at + i + 2], "little") for i in (28, 30, 32))
    entry = data[at : at + length]
    copies = b"".join(
        entry.replace(name.encode(), f"blobs/{i:024x}.bin".encode()) for i in range(999)
    )
    count = (3 + 999).to_bytes(2, "little")
    tail = bytearray(data[end:])
    tail[8:10] = tail[10:12] = count
    tail[12:16] = (end - start + len(copies)).to_bytes(4, "little")
    file.write_bytes(data[:end] + copies + tail)
    with pytest.raises(InputError, match="bytes in a file of|damaged"):
        load(file)


def test_a_target_of_the_users_own_comes_back(tmp_path: Path):
    target = Target.from_toml('base = "mk1"\nname = "mine"\ntiles = 7\n')
    save(tmp_path / "p.abele", exchange_module("", variable("z", 2000)), target)
    assert load(tmp_path / "p.abele").target == target
