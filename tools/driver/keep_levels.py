"""The instrument that keeps a module of each level that a pipeline passes through."""

from __future__ import annotations

from xdsl.dialects.builtin import StringAttr

from ...backends.reference import first_meaningless
from ...dialects.levels import NN, level_of
from ...ir.level import Level
from ...ir.pass_levels import level_after
from ...ir.pass_manager import Instrument
from ...ir.step import RunningPass
from ...ir.upstream import ModuleOp

AFTER = "abele.after"
"""The attribute of a kept module that names the pass after which it was kept."""


class KeepLevels(Instrument):
    """Keeps a clone of the module at each level, as the last pass of the level left it.

    The first is the original module: its composites are whole, so the reference can check how they
    were decomposed. If the original has operations that only a user's pass gives a meaning, the
    first is the module after that pass, and its attribute AFTER names the pass. The module of a
    user's level is the last one that has operations of its dialect.
    """

    def __init__(self, first: Level) -> None:
        self.modules: dict[Level, ModuleOp] = {}
        self._level = first
        self._before: ModuleOp | None = None
        self._waiting = False

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Clone before the first pass, and before each pass that may lead to another level."""
        if step.index == 0:
            self.modules[self._level] = module.clone()
            self._waiting = self._level == NN and first_meaningless(module) is not None
        leads = level_after(type(step.current), self._level) != self._level
        self._before = module.clone() if leads and self._level != NN else None

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Keep the clone if the pass led to another level, or made the program runnable."""
        level = level_after(type(step.current), self._level) or level_of(module)
        if level != self._level and self._before is not None:
            if self._level.like is None or self._level not in self.modules:
                self.modules[self._level] = self._before
        if level.like is not None and level_of(module) == level:
            # Its conversion out may be several passes, of which the first removes its operations.
            self.modules[level] = module.clone()
        if self._waiting and level == NN and first_meaningless(module) is None:
            self._waiting = False
            self.modules[NN] = module.clone()
            self.modules[NN].attributes[AFTER] = StringAttr(step.current.name)
        self._level, self._before = level, None


def kept_after(module: ModuleOp) -> str:
    """The name of the pass after which a module of nn was kept; "" if it is the original."""
    name = module.attributes.get(AFTER)
    return name.data if isinstance(name, StringAttr) else ""
