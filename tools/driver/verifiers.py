"""Instruments that verify a module before and after each pass: its level and its operations."""

from __future__ import annotations

from ...dialects.levels import LEVEL_DIALECTS, LEVELS, NN, NN_CORE, known_level
from ...ir.instruments.verify_each import VerifyEach
from ...ir.level import Level
from ...ir.pass_levels import declared_levels
from ...ir.pass_manager import Instrument
from ...ir.provenance import place
from ...ir.step import RunningPass
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations
from ...passes.pipelines import level_after_all

DECOMPOSE = "decompose"
"""The pass that leaves only core operations of nn."""


def verifiers(level: Level | None) -> tuple[Instrument, ...]:
    """Instruments that verify a module after each pass.

    Args:
        level: the level at which the pipeline begins; None if unknown.
    """

    def level_after(step: RunningPass, module: ModuleOp) -> Level:
        found = level_after_all(step.pipeline[: step.index + 1], level) or known_level(module)
        return NN_CORE if found == NN and step.current.name == DECOMPOSE else found

    return CheckLevel(), VerifyEach(level_after)


class CheckLevel(Instrument):
    """Raises InputError for a pass on a module of another level than it takes."""

    def before(self, step: RunningPass, module: ModuleOp) -> None:
        """Search for an operation of another level."""
        declared = declared_levels(type(step.current))
        level = declared.needs if declared else None
        if level is None:
            return
        others = {each.name for each in LEVELS if each != level} | LEVEL_DIALECTS.keys()
        for op in operations(module):
            if op.name.partition(".")[0] in others and not level.is_legal(op.name):
                raise InputError(
                    f"{op.name} at {place(op)}: {step.current.name} takes modules of {level}"
                )
