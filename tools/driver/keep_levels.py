"""The instrument that keeps a module of each level that a pipeline passes through."""

from __future__ import annotations

from ...dialects.levels import NN, level_of
from ...ir.level import Level
from ...ir.pass_levels import level_after
from ...ir.pass_manager import Instrument, Step
from ...ir.upstream import ModuleOp


class KeepLevels(Instrument):
    """Keeps a clone of the module at each level, as the last pass of the level left it.

    The first is the original module: its composites are whole, so the reference can check how they
    were decomposed.
    """

    def __init__(self, first: Level) -> None:
        self.modules: dict[Level, ModuleOp] = {}
        self._level = first
        self._before: ModuleOp | None = None

    def before(self, step: Step, module: ModuleOp) -> None:
        """Clone before the first pass, and before each pass that may lead to another level."""
        if step.index == 0:
            self.modules[self._level] = module.clone()
        leads = level_after(type(step.current), self._level) != self._level
        self._before = module.clone() if leads and self._level != NN else None

    def after(self, step: Step, module: ModuleOp) -> None:
        """Keep the clone if the pass led to another level."""
        level = level_after(type(step.current), self._level) or level_of(module)
        if level != self._level and self._before is not None:
            self.modules[self._level] = self._before
        self._level, self._before = level, None
