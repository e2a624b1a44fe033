"""An instrument that tells which pass runs."""

from __future__ import annotations

from ..pass_manager import Instrument
from ..step import RunningPass
from ..support.on_step import OnStep
from ..upstream import ModuleOp


class CallOnStep(Instrument):
    """Calls a callback with the name of each pass before it runs, and its place in the pipeline."""

    def __init__(self, on_step: OnStep) -> None:
        self._on_step = on_step

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Call the callback."""
        self._on_step(f"{step.current.name} ({step.index + 1} of {len(step.pipeline)})")
