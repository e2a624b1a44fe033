"""The program after each pass, as numbered files."""

import re
from pathlib import Path

from ..errors import InputError
from ..pass_manager import Instrument, Step
from ..text import print_module, write_module
from ..upstream import ModuleOp
from ..whole_file import check_folder

INPUT = "00-input.mlir"

_NAME = re.compile(r"[0-9]{2}-[a-z0-9-]+\.mlir")


def check_dump_folder(folder: Path, source: str) -> None:
    """Raise InputError if a dump cannot go into a folder, or would remove its own source."""
    check_folder(folder)
    file = Path(source)
    if file.exists() and file.resolve() in [each.resolve() for each in _dumped(folder)]:
        raise InputError(
            f"{folder}: {file.name} would be lost: a dump removes the one before; need another "
            "folder"
        )


def _dumped(folder: Path) -> list[Path]:
    """The files of an earlier dump; a folder without a dump's first file has none."""
    if not (folder / INPUT).is_file():
        return []
    return [each for each in sorted(folder.iterdir()) if _NAME.fullmatch(each.name)]


class DumpIR(Instrument):
    """Write 00-input.mlir, then NN-pass-name.mlir for each pass that changed the text.

    What an earlier dump has left in the folder goes when the first pass begins, blobs excepted:
    others may name them. Files have locations, blobs lie beside them in blobs/, and each can be
    read and continued from.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._previous = ""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Remove the dump before, and write the input, once."""
        if step.index == 0:
            self._previous = ""
            for each in _dumped(self.directory):
                each.unlink()
            self._write(INPUT, module)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Write what the pass has made of it."""
        self._write(f"{step.index + 1:02d}-{step.current.name}.mlir", module)

    def _write(self, name: str, module: ModuleOp) -> None:
        text = print_module(module)
        if text != self._previous:
            write_module(module, self.directory / name)
            self._previous = text
