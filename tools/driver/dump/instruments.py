"""Instruments that write a dump: numbered files, and the page that shows what every pass did."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ....backends.target import Target
from ....ir.instruments.dump_ir import DumpIR
from ....ir.instruments.record_ir import RecordIR
from ....ir.instruments.timing import Timing
from ....ir.pass_manager import Instrument
from ....ir.step import RunningPass
from ....ir.support.whole_file import whole_file
from ....ir.upstream import ModuleOp
from ..extensions.loaded import Extensions
from .folder import PAGE
from .page import page
from .price_each import PriceEach


@dataclass(frozen=True)
class Dump:
    """The instruments of a dump.

    Attributes:
        around: run before and after the instruments that verify.
        within: run last, next to the pass.
    """

    around: tuple[Instrument, ...]
    within: tuple[Instrument, ...]


NO_DUMP = Dump((), ())


def dump_instruments(folder: Path, target: Target, title: str, extensions: Extensions) -> Dump:
    """Instruments that write DIR/NN-pass-name.mlir, and DIR/index.html after the last pass.

    Args:
        target: for programs that name none.
        title: the name of the program on the page.
        extensions: with the levels that the pipeline goes through.
    """
    timing, recorded, priced = Timing(), RecordIR(), PriceEach(target, extensions)
    shown = _WritePage(folder / PAGE, recorded, priced, timing, title, target)
    return Dump((shown, priced, DumpIR(folder, recorded), recorded), (timing,))


@dataclass
class _WritePage(Instrument):
    file: Path
    recorded: RecordIR
    priced: PriceEach
    timing: Timing
    title: str
    target: Target

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Forget an earlier run."""
        if step.index == 0:
            self.timing.passes.clear()

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Write the page after the last pass."""
        if step.index + 1 == len(step.pipeline):
            self._write(module)

    def failed(self, step: RunningPass, module: ModuleOp, error: Exception) -> None:
        """Write the page up to the pass that failed."""
        try:
            self._write(None)
        except Exception as problem:  # the pass's own error matters more than any of ours
            error.add_note(f"{self.file}: not written: {problem}")

    def _write(self, finished: ModuleOp | None) -> None:
        """Write the page.

        Args:
            finished: the program after the last pass; None if a pass failed.
        """
        seconds = [each.seconds for each in self.timing.passes]
        stages = self.recorded.stages
        changed = [stage.listing is not None for stage in stages]
        figures = [] if finished is None else self.priced.figures(changed, sum(seconds))
        costs = {} if finished is None else self.priced.operations(finished)
        text = page(stages, figures, seconds, self.title, self.target.spelling(), costs)
        with whole_file(self.file) as stream:
            stream.write(text.encode())
