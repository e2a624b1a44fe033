"""The file format of a compiled program: `.abele`.

One zip archive whose members are stored as they are, so that arrays need no copy once it is read:

    meta.json             format, target, inputs and outputs, profile; type and shape of every
                          array; the file and digest of every user's codelet
    exchange.mlir         the program that the machine runs, with locations
    nn.mlir, ...          the same program at other levels, if they were saved
    blobs/<digest>.bin    the arrays that the texts name, C order, 64-byte aligned; of a splat,
                          which repeats one element, that element

Loading executes nothing. Every text and array is compared with its digest.
"""

from __future__ import annotations

import io
import json
import mmap
import os
import re
import shutil
import struct
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from math import prod
from pathlib import Path
from threading import Thread
from types import MappingProxyType
from typing import Any, BinaryIO, cast
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ..ir.support.deferred import deferred
from ..ir.support.errors import InputError
from ..ir.support.file_format import FileFormat
from ..ir.support.sealed_file import open_regular
from ..ir.support.whole_file import whole_file
from .target import Target

with deferred(__name__):
    from ..dialects.dtypes import numpy_dtype
    from ..dialects.host import HostTexts, host_texts
    from ..dialects.steps import Input, Output
    from ..ir.blob import Blob, BlobStore
    from ..ir.context import AbeleContext
    from ..ir.text import blobs_of, parse_module, print_module
    from ..ir.upstream import ModuleOp
    from .codelets.needed import check_codelets, codelets_in

PROGRAM = FileFormat(
    "abele program",
    3,
    "compile the model again with abele compile",
    gone=("abele from before 24 November 2026", "abele from before 1 December 2026"),
)
"""The name and version of the format, as meta.json states them. The version also covers the texts.

Versions 2 and 3 have other operations at the exchange level than the one before.
"""

MACHINE = "exchange"
"""The level that every file has: the one that the machine runs."""

ALIGNMENT = 64

MOST_SPLAT_BYTES = 1 << 33
"""The largest splat that is read, in bytes of all its elements: more than any preset target holds.

Computing its digest takes time for each byte.
"""

META = "meta.json"
"""The member that says what the others are."""

_MEMBER = re.compile(r"meta\.json|[a-z]+\.mlir|blobs/[0-9a-f]{24}\.bin")
_BLOB_DIGEST = re.compile(r"[0-9a-f]{24}")
_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_PADDING = 0xD935
"""The kind of extra field that aligns a member. Source: Android's zipalign."""


@dataclass(frozen=True)
class Tensor:
    """An input or output of a program, by name.

    Attributes:
        texts: the strings that its integers stand for, if it holds strings.
        columns: the names of the entries along its last axis, if they have names.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    texts: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ProgramFile:
    """A program read from a file, not yet parsed or run.

    Attributes:
        texts: the text of the module at each level that was saved.
        blobs: the arrays that the texts name, or only those of the level that was asked for.
        profile: the figures that the compiler reported.
        codelets: the users' codelets that the program runs; for each, its file and the digest.
        digest: the digest of meta.json. It stands for the whole program, because meta.json holds
            the digests of all texts and arrays.
        check: a function that raises InputError if an array differs from its digest. `load` has
            called it, unless it was told to defer.
    """

    path: str
    target: Target
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    profile: Mapping[str, Any]
    texts: Mapping[str, str]
    blobs: BlobStore
    digest: str
    check: Callable[[], None]
    codelets: Mapping[str, Mapping[str, str]]

    def module_at(self, level: str, context: AbeleContext) -> ModuleOp:
        """The module at a level, parsed but not verified; its blobs are added to the context.

        Raises InputError if the file has no such level, or this version cannot parse its text.
        """
        if level not in self.texts:
            raise InputError(f"{self.path}: no level {level!r}; there is {', '.join(self.texts)}")
        for blob in self.blobs:
            context.blobs.add(blob)
        return parse_module(self.texts[level], context, f"{self.path}:{level}.mlir")


# Writing


def save(
    path: str | os.PathLike[str],
    module: ModuleOp,
    target: Target,
    *,
    levels: Mapping[str, ModuleOp] = MappingProxyType({}),
    profile: Mapping[str, Any] = MappingProxyType({}),
) -> None:
    """Write a program for the machine; the file is whole or absent.

    Args:
        module: the program at the exchange level.
        levels: the same program at other levels, to save with it.
        profile: values that JSON can represent.
    """
    modules = {MACHINE: module, **levels}
    # Equal programs make equal files, wherever they were compiled.
    texts = {level: print_module(m, folders=False).encode() for level, m in modules.items()}
    blobs = {blob.digest: blob for m in modules.values() for blob in blobs_of(m)}
    inputs = [op for op in module.walk() if isinstance(op, Input)]
    outputs = [op for op in module.walk() if isinstance(op, Output)]
    texts_of = host_texts(module)
    codelets = codelets_in(module)
    meta = {
        "format": PROGRAM.name,
        "version": PROGRAM.version,
        "target": target.to_toml(),
        "inputs": [_tensor(op, texts_of, texts_of.inputs) for op in inputs],
        "outputs": [_tensor(op, texts_of, texts_of.results) for op in outputs],
        "profile": dict(profile),
        **({"codelets": codelets} if codelets else {}),
        "texts": {level: _digest(text) for level, text in texts.items()},
        "blobs": {
            digest: {
                "dtype": blob.array.dtype.name,
                "shape": list(blob.array.shape),
                **({"splat": True} if blob.is_splat else {}),
            }
            for digest, blob in blobs.items()
        },
    }
    with whole_file(Path(path)) as stream, ZipFile(stream, "w", ZIP_STORED) as archive:
        _write(archive, stream, META, json.dumps(meta, indent=1).encode())
        for level, text in texts.items():
            _write(archive, stream, f"{level}.mlir", text)
        for digest, blob in blobs.items():
            _write(archive, stream, f"blobs/{digest}.bin", blob.stored.view(np.uint8))


def _tensor(op: Input | Output, texts: HostTexts, holding: Sequence[str]) -> dict[str, Any]:
    """What meta.json says of an input or output.

    Args:
        holding: the names of the inputs or outputs that hold strings.
    """
    name = op.host_name.data
    return {
        "name": name,
        "shape": list(op.tensor.get_shape()),
        "dtype": numpy_dtype(op.tensor.element_type).name,
        **({"texts": list(texts.table)} if name in holding else {}),
        **({"columns": list(texts.columns[name])} if name in texts.columns else {}),
    }


def _digest(data: bytes) -> str:
    return blake2b(data, digest_size=12).hexdigest()


def _write(archive: ZipFile, stream: BinaryIO, name: str, data: bytes | NDArray[np.uint8]) -> None:
    info = ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.external_attr = 0o644 << 16
    begin = stream.tell() + _LOCAL_HEADER.size + len(name) + 4
    padding = -begin % ALIGNMENT
    info.extra = struct.pack("<HH", _PADDING, padding) + bytes(padding)
    archive.writestr(info, data if isinstance(data, bytes) else cast(bytes, data.data))


# Reading


def load(path: str | os.PathLike[str], level: str = "", *, defer: bool = False) -> ProgramFile:
    """Read a program.

    Raises InputError for a file that is missing, damaged, of another kind or of another version,
    and for a program whose codelets are not loaded, or have changed.

    Args:
        level: read only the arrays of this level; "" for those of all levels.
        defer: compare arrays with their digests in another thread. The caller must call `check`
            before it uses an array. Until then it can parse the text, which needs no element.
    """
    name = os.fspath(path)
    try:
        with open_regular(name) as stream:
            program = _Reader(name, stream).program(level)
        if program.codelets:
            check_codelets(program.codelets, name)
        if not defer:
            program.check()
        return program
    except OSError as error:
        raise InputError(f"{name}: cannot be read: {error.strerror or error}") from None
    except BadZipFile as error:
        raise _refused(name, f"no .abele file, or a damaged one ({error})") from None
    except InputError:
        raise
    # Damage may show anywhere from the archive's directory to the last value of a field.
    except Exception as error:
        raise _refused(name, f"damaged: {error or type(error).__name__}") from error


def copied(source: Path, path: str | os.PathLike[str], digest: str) -> bool:
    """Copy a program file if it is complete and its program has this digest.

    The copy is complete or absent.

    Raises OSError if the copy cannot be written.
    """
    try:
        stream = open_regular(source)
    except OSError:
        return False
    with stream:
        try:
            found = _Reader(os.fspath(source), stream).program("")
            if found.digest != digest:
                return False
            found.check()
        except Exception:
            return False
        stream.seek(0)
        with whole_file(Path(path)) as written:
            shutil.copyfileobj(stream, written, 1 << 20)
    return True


def digest_of(path: Path) -> str:
    """The digest of a program that was just written. Raises OSError."""
    with open_regular(path) as stream, ZipFile(stream) as archive:
        return _digest(archive.read(META))


def _refused(path: str, what: str) -> InputError:
    return InputError(f"{path}: {what}; {PROGRAM.renew}")


class _Reader:
    def __init__(self, path: str, stream: BinaryIO) -> None:
        self.path = path
        self.stream = stream
        self.size = os.fstat(stream.fileno()).st_size
        if not self.size:
            raise _refused(path, "an empty file")

    def program(self, level: str) -> ProgramFile:
        with ZipFile(self.stream) as archive:
            members = self._members(archive)
            meta, digest = self._meta(archive, members)
            texts = {
                level: self._text(archive, members, level, str(digest))
                for level, digest in _mapping(meta, "texts").items()
            }
            if MACHINE not in texts:
                raise _refused(self.path, f"no {MACHINE}.mlir")
            kinds = _mapping(meta, "blobs")
            unnamed = set(members) - {META} - {f"{level}.mlir" for level in texts}
            unnamed -= {f"blobs/{digest}.bin" for digest in kinds}
            if unnamed:
                raise _refused(self.path, f"damaged: {min(unnamed)} is named nowhere")
            if level:
                named = set(_BLOB_DIGEST.findall(texts[level]))
                kinds = {digest: kind for digest, kind in kinds.items() if digest in named}
            blobs = self._blobs(members, kinds)
            return ProgramFile(
                self.path,
                Target.from_toml(str(meta["target"]), f"{self.path}: target"),
                _tensors(meta, "inputs"),
                _tensors(meta, "outputs"),
                _mapping(meta, "profile"),
                texts,
                blobs,
                digest,
                _in_thread(partial(_check, self.path, tuple(blobs))),
                _codelets(meta),
            )

    def _members(self, archive: ZipFile) -> dict[str, ZipInfo]:
        """The members by name. Each is of a kind that this module writes."""
        members: dict[str, ZipInfo] = {}
        for info in archive.infolist():
            if not _MEMBER.fullmatch(info.filename):
                raise _refused(self.path, f"no .abele file: it has a member {info.filename!r}")
            if info.filename in members:
                raise _refused(self.path, f"damaged: two members {info.filename}")
            if info.compress_type != ZIP_STORED or info.compress_size != info.file_size:
                raise _refused(self.path, f"damaged: {info.filename} is compressed")
            members[info.filename] = info
        total = sum(info.file_size for info in members.values())
        if total > self.size:
            raise _refused(self.path, f"damaged: {total} bytes in a file of {self.size}")
        return members

    def _meta(self, archive: ZipFile, members: Mapping[str, ZipInfo]) -> tuple[dict[str, Any], str]:
        """The contents of meta.json, and their digest."""
        if META not in members:
            raise _refused(self.path, "no .abele file: it has no meta.json")
        text = archive.read(META)
        meta: object = json.loads(text)
        if not isinstance(meta, dict) or meta.get("format") != PROGRAM.name:
            raise _refused(self.path, "no .abele file: its meta.json is of something else")
        found = cast(dict[str, Any], meta)
        PROGRAM.check(found.get("version"), self.path)
        return found, _digest(text)

    def _text(
        self, archive: ZipFile, members: Mapping[str, ZipInfo], level: str, digest: str
    ) -> str:
        name = f"{level}.mlir"
        if name not in members:
            raise _refused(self.path, f"damaged: no {name}")
        text = archive.read(name)
        if _digest(text) != digest:
            raise _refused(self.path, f"damaged: {name} has digest {_digest(text)}, not {digest}")
        return text.decode()

    def _blobs(self, members: Mapping[str, ZipInfo], kinds: Mapping[str, Any]) -> BlobStore:
        store = BlobStore()
        content = self._content(members, kinds)
        for digest, kind in kinds.items():
            name = f"blobs/{digest}.bin"
            if name not in members:
                raise _refused(self.path, f"damaged: no {name}")
            store.add(Blob.named(self._array(content, members[name], kind), digest))
        return store

    def _content(self, members: Mapping[str, ZipInfo], kinds: Mapping[str, Any]) -> mmap.mmap:
        """A copy of the file in memory, in which only the bytes of arrays are filled in.

        They are not mapped from the file: if it were cut or changed in place later, a read would
        end the process by a signal, or would see bytes that no digest was compared with.
        """
        content = mmap.mmap(-1, self.size)
        begins = sorted(info.header_offset for info in members.values())
        # A shorter file leaves zeros, which have another digest.
        for digest in kinds:
            info = members.get(f"blobs/{digest}.bin")
            if info is not None:
                begin = info.header_offset
                after = bisect_right(begins, begin)
                end = begins[after] if after < len(begins) else self.size
                self.stream.seek(begin)
                cast(io.BufferedReader, self.stream).readinto(memoryview(content)[begin:end])
        return content

    def _array(self, content: mmap.mmap, info: ZipInfo, kind: Mapping[str, Any]) -> NDArray[Any]:
        """The array in a member, at its place in the file's bytes."""
        dtype, shape = _dtype(str(kind["dtype"])), tuple(int(n) for n in kind["shape"])
        splat = bool(kind.get("splat"))
        stored = (1,) if splat else shape
        if min(shape, default=0) < 0 or prod(stored) * dtype.itemsize != info.file_size:
            raise _refused(self.path, f"damaged: {info.filename} has {info.file_size} bytes")
        if splat and prod(shape) * dtype.itemsize > MOST_SPLAT_BYTES:
            raise _refused(self.path, f"damaged: {info.filename} is repeated {prod(shape)} times")
        signature, *_, name, extra = _LOCAL_HEADER.unpack_from(content, info.header_offset)
        begin = info.header_offset + _LOCAL_HEADER.size + name + extra
        if signature != b"PK\3\4" or begin + info.file_size > self.size:
            raise _refused(self.path, f"damaged: {info.filename} lies elsewhere")
        if not info.file_size:
            return np.empty(shape, dtype)
        array = np.frombuffer(content, dtype, prod(stored), begin)
        array.flags.writeable = False
        return np.broadcast_to(array[0], shape) if splat else array.reshape(shape)


def _check(path: str, blobs: Sequence[Blob]) -> None:
    """Raise InputError unless each array has the digest by which it is named."""
    for named in blobs:
        found = Blob(named.array).digest
        if found != named.digest:
            raise _refused(path, f"damaged: blobs/{named.digest}.bin has digest {found}")


def _in_thread(work: Callable[[], None]) -> Callable[[], None]:
    """Begin work in a thread. Returns a function that waits for its end and raises its error."""
    done: Future[None] = Future()

    def run() -> None:
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    Thread(target=run, name="digests", daemon=True).start()
    return done.result


def _dtype(name: str) -> np.dtype[Any]:
    extension: object = getattr(ml_dtypes, name, None)
    dtype = np.dtype(extension if isinstance(extension, type) else name)
    if dtype.hasobject or dtype.name != name:
        raise ValueError(f"element type {name!r}")
    return dtype


def _mapping(meta: Mapping[str, Any], key: str) -> dict[str, Any]:
    value: object = meta[key]
    if not isinstance(value, dict):
        raise ValueError(f"{key} in meta.json")
    return cast(dict[str, Any], value)


def _codelets(meta: Mapping[str, Any]) -> dict[str, dict[str, str]]:
    """What meta.json says of users' codelets."""
    found = _mapping(meta, "codelets") if "codelets" in meta else {}
    return {
        name: {key: str(each[key]) for key in ("file", "digest")} for name, each in found.items()
    }


def _tensors(meta: Mapping[str, Any], key: str) -> tuple[Tensor, ...]:
    return tuple(
        Tensor(
            str(t["name"]),
            tuple(int(n) for n in t["shape"]),
            _dtype(str(t["dtype"])).name,
            tuple(map(str, t["texts"])) if "texts" in t else None,
            tuple(map(str, t.get("columns", ()))),
        )
        for t in meta[key]
    )
