"""Callbacks for the steps of long work, such as showing progress."""

from __future__ import annotations

from collections.abc import Callable

from ...ir.pass_manager import Instrument, Step
from ...ir.upstream import ModuleOp

OnStep = Callable[[str], None]
"""Called with each step of the work, in a few words."""


def ignore_step(_: str) -> None:
    """Do nothing at a step."""


class CallOnStep(Instrument):
    """Calls a callback with the name of each pass before it runs, and its place in the pipeline."""

    def __init__(self, on_step: OnStep) -> None:
        self._on_step = on_step

    def before(self, step: Step, module: ModuleOp) -> None:
        """Call the callback."""
        self._on_step(f"{step.current.name} ({step.index + 1} of {len(step.pipeline)})")
