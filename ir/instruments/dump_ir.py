"""The program after each pass, as numbered files."""

from pathlib import Path

from ..pass_manager import Instrument, Step
from ..text import print_module, write_module
from ..upstream import ModuleOp


class DumpIR(Instrument):
    """Write 00-input.mlir, then NN-pass-name.mlir for each pass that changed the text.

    Files have locations, blobs lie beside them in blobs/, and each can be read and continued from.
    """

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._previous = ""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Write the input, once."""
        if step.index == 0:
            self._previous = ""
            self._write("00-input.mlir", module)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Write what the pass has made of it."""
        self._write(f"{step.index + 1:02d}-{step.current.name}.mlir", module)

    def _write(self, name: str, module: ModuleOp) -> None:
        text = print_module(module)
        if text != self._previous:
            write_module(module, self.directory / name)
            self._previous = text
