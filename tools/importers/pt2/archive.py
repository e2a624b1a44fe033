"""The archive in which torch.export saves a program: a zip of JSON texts and raw tensors.

    NAME/archive_format                                  pt2
    NAME/models/model.json                               the graph
    NAME/data/weights/model_weights_config.json          shapes, strides and files of the weights
    NAME/data/weights/weight_0                           the bytes of a storage
    NAME/data/constants/model_constants_config.json      the same for constants
    NAME/data/constants/tensor_0

Members are stored, not compressed, so each is a piece of the file. Some members are pickles, such
as the sample inputs; they are never opened.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZIP_STORED, BadZipFile, ZipFile, ZipInfo

import numpy as np
from numpy.typing import NDArray

from ....ir.support.errors import InputError
from ..errors import UnsupportedError

Bytes = NDArray[np.uint8]

HEADER = struct.Struct("<4s22xHH")
"""A member's own header: its magic, and the lengths of its name and of further fields."""

MAGIC = b"PK\3\4"
LINK = 0o120000
KIND_OF_FILE = 0o170000

MODELS = "models/"
FORMAT = "archive_format"
BYTE_ORDER = "byteorder"
OLD = "serialized_exported_program.json"
"""The graph in archives of older torch, whose weights are pickles."""

COMPILED = "data/aotinductor/"
PICKLES = ("data/weights/{}.pt", "data/constants/{}.pt")

SAVE_AGAIN = "save it again with a newer torch: torch.export.save(torch.export.load(FILE), FILE)"


@dataclass(frozen=True)
class Archive:
    """An archive that was opened.

    Attributes:
        place: its name in messages.
        data: its bytes, mapped into memory.
        members: by name, without the folder that holds all of them.
        model: the name of its only model.
    """

    place: str
    data: Bytes
    members: dict[str, ZipInfo]
    model: str

    def bad(self, message: str) -> InputError:
        """An error in the archive."""
        return InputError(f"{self.place}: {message}")

    def bytes_of(self, name: str) -> Bytes:
        """The bytes of a member, which are not copied. Raises InputError if there is no such."""
        info = self.members.get(name)
        if info is None:
            raise self.bad(f"damaged archive: there is no {name[:200]!r}")
        return _piece(self.data, info, self.place)

    def json_of(self, name: str) -> Any:
        """The value of a member that is JSON. Raises InputError."""
        try:
            return json.loads(bytes(self.bytes_of(name)).decode())
        except RecursionError:
            raise self.bad(f"{name}: JSON that is nested too deeply") from None
        except ValueError as error:
            raise self.bad(f"{name}: no JSON: {str(error)[:200]}") from None

    def graph(self) -> Any:
        """The graph, as torch.export writes it."""
        return self.json_of(f"{MODELS}{self.model}.json")

    def config(self, kind: str) -> Any:
        """The description of all tensors of a kind; an empty one if the archive has none.

        Args:
            kind: weights or constants.
        """
        name = f"data/{kind}/{self.model}_{kind}_config.json"
        return self.json_of(name) if name in self.members else {"config": {}}


def read_archive(source: str | Path | bytes, place: str) -> Archive:
    """Open an archive, in a file or in memory. Raises InputError."""
    try:
        data = _mapped(source)
        with ZipFile(BytesIO(source) if isinstance(source, bytes) else source) as file:
            infos = file.infolist()
    except (BadZipFile, struct.error, ValueError, NotImplementedError, EOFError) as error:
        raise InputError(
            f"{place}: no archive of torch.export, or damaged: {str(error)[:200]}"
        ) from None
    except OSError as error:
        raise InputError(f"{place}: cannot read it: {error.strerror or error}") from None
    members = _members(infos, place)
    return Archive(place, data, members, _only_model(members, data, place))


def _mapped(source: str | Path | bytes) -> Bytes:
    if isinstance(source, bytes):
        return np.frombuffer(source, np.uint8)
    if not Path(source).stat().st_size:
        # An empty file cannot be mapped.
        return np.empty(0, np.uint8)
    return np.memmap(source, np.uint8, "r")


def _members(infos: list[ZipInfo], place: str) -> dict[str, ZipInfo]:
    """The members by name, without the folder that holds all of them."""
    found: dict[str, ZipInfo] = {}
    roots = {info.filename.partition("/")[0] for info in infos if "/" in info.filename}
    is_below = len(roots) == 1 and all("/" in info.filename for info in infos)
    for info in infos:
        name = info.filename.partition("/")[2] if is_below else info.filename
        if name in found:
            raise InputError(f"{place}: damaged archive: two members {name[:200]!r}")
        found[name] = info
    return found


def _only_model(members: dict[str, ZipInfo], data: Bytes, place: str) -> str:
    """The name of the only model. Raises InputError for what is no archive of one model."""
    models = [
        name.removeprefix(MODELS).removesuffix(".json")
        for name in members
        if name.startswith(MODELS) and name.endswith(".json")
    ]
    if OLD in members:
        raise UnsupportedError(f"{place}: an archive of an older torch; {SAVE_AGAIN}")
    if not models and any(name.startswith(COMPILED) for name in members):
        raise UnsupportedError(
            f"{place}: code that AOTInductor has compiled, not a graph; need an archive of "
            "torch.export.save"
        )
    if not models or FORMAT not in members:
        raise InputError(f"{place}: no archive of torch.export: a zip without {MODELS}*.json")
    if len(models) > 1:
        raise UnsupportedError(
            f"{place}: {len(models)} models ({', '.join(models)[:200]}); need an archive of one"
        )
    form = bytes(_piece(data, members[FORMAT], place))[:40]
    if form.strip() != b"pt2":
        raise InputError(f"{place}: archive_format {form!r}; need pt2")
    if BYTE_ORDER in members:
        order = bytes(_piece(data, members[BYTE_ORDER], place))[:40]
        if order.strip() != b"little":
            raise UnsupportedError(f"{place}: tensors with byte order {order!r}; need little")
    for pattern in PICKLES:
        name = pattern.format(models[0])
        if name in members:
            raise UnsupportedError(
                f"{place}: {name} is a pickle, as an older torch wrote it; {SAVE_AGAIN}"
            )
    return models[0]


def _piece(data: Bytes, info: ZipInfo, place: str) -> Bytes:
    """The bytes of a member."""
    name, begin = info.filename[:200], info.header_offset
    if info.compress_type != ZIP_STORED or info.flag_bits & 1:
        raise UnsupportedError(
            f"{place}: {name!r} is compressed or encrypted; need an archive as torch.export.save "
            "writes it, with stored members"
        )
    if info.external_attr >> 16 & KIND_OF_FILE == LINK:
        raise InputError(f"{place}: {name!r} is a link; need a file")
    header = bytes(data[begin : begin + HEADER.size]) if begin >= 0 else b""
    if len(header) < HEADER.size:
        raise InputError(f"{place}: damaged archive: {name!r} begins at {begin} of {len(data)}")
    magic, *lengths = HEADER.unpack(header)
    first = begin + HEADER.size + sum(lengths)
    if magic != MAGIC or first + info.file_size > len(data) or info.file_size < 0:
        raise InputError(f"{place}: damaged archive: {name!r} is not where its table says")
    return data[first : first + info.file_size]
