"""The program after each pass, as numbered files."""

import json
import re
from hashlib import sha256
from pathlib import Path
from typing import cast

from ..blob import BlobStore
from ..errors import InputError
from ..pass_manager import Instrument, Step
from ..text import BLOBS, blobs_of, print_module
from ..upstream import ModuleOp
from ..whole_file import check_folder, whole_file
from .record_ir import RecordIR

INPUT = "00-input.mlir"

MANIFEST = ".abele-dump.json"
"""Beside a dump: its files, with the SHA-256 of what was written into each."""

_NAME = re.compile(r"[0-9]{2}-[a-z0-9-]+\.mlir")


def file_name(number: int, name: str) -> str:
    """What the dump after a pass is called. number: from 1."""
    return f"{number:02d}-{name}.mlir"


def check_dump_folder(folder: Path, source: str) -> None:
    """Raise InputError if a dump cannot go into a folder, or would remove its own source, or what
    is no dump of abele's, or is one no more.
    """
    check_folder(folder)
    file = Path(source)
    if file.exists() and file.resolve() in [each.resolve() for each in _named(folder)]:
        raise InputError(
            f"{folder}: {file.name} would be lost: a dump removes the one before; need another "
            "folder"
        )
    _dump_before(folder)


def _dump_before(folder: Path) -> list[Path]:
    """The files of an earlier dump. Raises InputError if somebody has changed or added one."""
    written = _written(folder)
    files = _named(folder)
    for each in files:
        if each.name not in written:
            what = "not written by a dump"
        elif not each.is_file() or _digest(each.read_bytes()) != written[each.name]:
            what = "changed since it was dumped"
        else:
            continue
        raise InputError(f"{each}: {what}, so it stays; need another folder, or remove it")
    return files


def _named(folder: Path) -> list[Path]:
    """What is called as the files of a dump are."""
    if not folder.is_dir():
        return []
    return [each for each in sorted(folder.iterdir()) if _NAME.fullmatch(each.name)]


def _written(folder: Path) -> dict[str, str]:
    """The digest of each file that the dump before has written; none if nothing tells."""
    try:
        found: object = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, str]", found) if isinstance(found, dict) else {}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


class DumpIR(Instrument):
    """Write 00-input.mlir, then NN-pass-name.mlir for each pass that changed the text.

    What an earlier dump has left in the folder goes when the first pass begins, blobs excepted:
    others may name them. InputError is raised then if somebody has changed or added a file of such
    a name. Files have locations, blobs lie beside them in blobs/, and each can be
    read and continued from.

    recorded: has printed the program already; put it after this one among the instruments.
    """

    def __init__(self, directory: Path, recorded: RecordIR | None = None) -> None:
        self.directory = directory
        self._recorded = recorded
        self._previous = ""
        self._saved: set[str] = set()
        self._written: dict[str, str] = {}

    def before(self, step: Step, module: ModuleOp) -> None:
        """Remove the dump before, and write the input, once."""
        if step.index == 0:
            self._previous = ""
            for each in _dump_before(self.directory):
                each.unlink()
            self._written = {}
            # What is recorded is not printed yet: it comes after this one.
            self._write(INPUT, print_module(module), module)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Write what the pass has made of it."""
        recorded = self._recorded
        text = print_module(module) if recorded is None else recorded.listing.text
        self._write(file_name(step.index + 1, step.current.name), text, module)

    def _write(self, name: str, text: str, module: ModuleOp) -> None:
        if text == self._previous:
            return
        self._previous = text
        blobs = BlobStore()
        for blob in blobs_of(module):
            if blob.digest not in self._saved:
                blobs.add(blob)
        if len(blobs):
            blobs.save(self.directory / BLOBS)
            self._saved.update(blob.digest for blob in blobs)
        content = text.encode()
        # First who wrote it: a dump that is broken off must not leave a file of nobody's.
        self._written[name] = _digest(content)
        with whole_file(self.directory / MANIFEST) as stream:
            stream.write(json.dumps(self._written, indent=1).encode())
        with whole_file(self.directory / name) as stream:
            stream.write(content)
