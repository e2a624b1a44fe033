"""Dumps the program after each pass to numbered files."""

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
"""The file in a dump that lists the dump's other files with their SHA-256 digests."""

_NAME = re.compile(r"[0-9]{2}-[a-z0-9-]+\.mlir")


def file_name(number: int, name: str) -> str:
    """The name of the file for the program after a pass. number: the pass's position, from 1."""
    return f"{number:02d}-{name}.mlir"


def check_dump_folder(folder: Path, source: str) -> None:
    """Raise InputError if a program cannot be dumped into a folder.

    source: the file of the program, which the dump must not remove. A file with a dump's name must
    come from an earlier dump and be unchanged since.
    """
    check_folder(folder)
    file = Path(source)
    if file.exists() and file.resolve() in [each.resolve() for each in _named(folder)]:
        raise InputError(
            f"{folder}: {file.name} would be lost, since a dump removes the previous one; need "
            "another folder"
        )
    _previous_dump(folder)


def _previous_dump(folder: Path) -> list[Path]:
    """The files of an earlier dump. Raises InputError if one was changed or added by hand."""
    written = _written(folder)
    files = _named(folder)
    for each in files:
        if each.name not in written:
            what = "not written by a dump"
        elif not each.is_file() or _digest(each.read_bytes()) != written[each.name]:
            what = "changed since it was dumped"
        else:
            continue
        raise InputError(f"{each}: {what}, so abele keeps it; need another folder, or remove it")
    return files


def _named(folder: Path) -> list[Path]:
    """The files in a folder that have names as in a dump."""
    if not folder.is_dir():
        return []
    return [each for each in sorted(folder.iterdir()) if _NAME.fullmatch(each.name)]


def _written(folder: Path) -> dict[str, str]:
    """The digest of each file of the previous dump, by name; {} without a readable manifest."""
    try:
        found: object = json.loads((folder / MANIFEST).read_bytes())
    except (OSError, ValueError):
        return {}
    return cast("dict[str, str]", found) if isinstance(found, dict) else {}


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


class DumpIR(Instrument):
    """Write 00-input.mlir, then NN-pass-name.mlir for each pass that changed the text.

    When the first pass begins, the files of an earlier dump are removed, except for blobs, which
    other files may use. InputError is raised then if such a file was changed or added by hand.
    Files contain locations, and their blobs are in blobs/ beside them. A pipeline can continue from
    each of them.

    recorded: another instrument whose text to reuse; put it after this one among the instruments.
    """

    def __init__(self, directory: Path, recorded: RecordIR | None = None) -> None:
        self.directory = directory
        self._recorded = recorded
        self._previous = ""
        self._saved: set[str] = set()
        self._written: dict[str, str] = {}

    def before(self, step: Step, module: ModuleOp) -> None:
        """Before the first pass, remove the previous dump and write the input."""
        if step.index == 0:
            self._previous = ""
            for each in _previous_dump(self.directory):
                each.unlink()
            self._written = {}
            # The recording instrument runs later, so it has not printed the input yet.
            self._write(INPUT, print_module(module), module)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Write the program after the pass."""
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
        # Write the manifest first: an interrupted dump must not leave a file that it does not list.
        self._written[name] = _digest(content)
        with whole_file(self.directory / MANIFEST) as stream:
            stream.write(json.dumps(self._written, indent=1).encode())
        with whole_file(self.directory / name) as stream:
            stream.write(content)
