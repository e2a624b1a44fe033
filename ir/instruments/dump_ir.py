"""Dumps the program after each pass to numbered files."""

from pathlib import Path

from ..blob import BlobStore
from ..pass_manager import Instrument
from ..step import RunningPass
from ..support.whole_file import whole_file
from ..text import BLOBS, blobs_of, print_module
from ..text_version import with_version
from ..upstream import ModuleOp
from .record_ir import RecordIR

INPUT = "00-input.mlir"


def file_name(number: int, name: str) -> str:
    """The name of the file for the program after a pass.

    Args:
        number: the pass's position, from 1.
    """
    return f"{number:02d}-{name}.mlir"


class DumpIR(Instrument):
    """Write 00-input.mlir, then NN-pass-name.mlir for each pass that changed the text.

    Files contain locations, and their blobs are in blobs/ beside them. A pipeline can continue from
    each of them. Files of the same names are replaced, and others stay: give it a new folder, such
    as one of `whole_folder`.

    Attributes:
        recorded: another instrument whose text to reuse; put it after this one among the
            instruments.
    """

    def __init__(self, directory: Path, recorded: RecordIR | None = None) -> None:
        self.directory = directory
        self._recorded = recorded
        self._previous = ""
        self._saved: set[str] = set()

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Before the first pass, write the input."""
        if step.index == 0:
            self._previous = ""
            # The recording instrument runs later, so it has not printed the input yet.
            self._write(INPUT, print_module(module), module)

    def after(self, step: RunningPass, module: ModuleOp) -> None:
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
        with whole_file(self.directory / name) as stream:
            stream.write(with_version(text).encode())
