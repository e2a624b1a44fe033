"""Dumps of a pipeline: numbered files, and the page that shows what every pass did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....backends.target import Target
from ....ir.errors import InputError
from ....ir.instruments.dump_ir import DumpIR, check_dump_folder
from ....ir.instruments.record_ir import RecordIR
from ....ir.instruments.timing import Timing
from ....ir.pass_manager import Instrument, Step
from ....ir.upstream import ModuleOp
from ....ir.whole_file import whole_file
from .page import MARK, page
from .price_each import PriceEach

PAGE = "index.html"


@dataclass(frozen=True)
class Dump:
    """Instruments of a dump. around: for outside of what verifies; within: for the last place."""

    around: tuple[Instrument, ...]
    within: tuple[Instrument, ...]


NO_DUMP = Dump((), ())


def dump_instruments(folder: Path, target: Target, title: str) -> Dump:
    """Instruments that write DIR/NN-pass-name.mlir, and DIR/index.html once the passes are done.

    target: for programs that name none. title: what the page calls the program.
    """
    timing, recorded, priced = Timing(), RecordIR(), PriceEach(target)
    shown = _WritePage(folder / PAGE, recorded, priced, timing, title, target)
    return Dump((shown, priced, DumpIR(folder, recorded), recorded), (timing,))


def check_dump(folder: Path, source: str) -> None:
    """Raise InputError if a dump cannot go into a folder, or would replace what is no dump.

    source: the path that the program is read from.
    """
    check_dump_folder(folder, source)
    file = folder / PAGE
    if file.exists() and not _is_ours(file):
        raise InputError(f"{file}: not a page of abele's, so it stays; need another folder")


def _is_ours(file: Path) -> bool:
    try:
        with open(file, "rb") as stream:
            return MARK.encode() in stream.read(256)
    except OSError:
        return False


@dataclass
class _WritePage(Instrument):
    file: Path
    recorded: RecordIR
    priced: PriceEach
    timing: Timing
    title: str
    target: Target

    def before(self, step: Step, module: ModuleOp) -> None:
        """Forget the run before."""
        if step.index == 0:
            self.timing.passes.clear()

    def after(self, step: Step, module: ModuleOp) -> None:
        """Write the page after the last pass."""
        if step.index + 1 == len(step.pipeline):
            self._write(priced=True)

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Write what there is to see: the pass that failed, and those before it."""
        try:
            self._write(priced=False)
        except Exception as problem:  # whatever it is, the pass's own error matters more
            error.add_note(f"{self.file}: not written: {problem}")

    def _write(self, *, priced: bool) -> None:
        seconds = [each.seconds for each in self.timing.passes]
        stages = self.recorded.stages
        changed = [stage.listing is not None for stage in stages]
        figures = self.priced.figures(changed, sum(seconds)) if priced else []
        text = page(stages, figures, seconds, self.title, self.target.spelling())
        with whole_file(self.file) as stream:
            stream.write(text.encode())
