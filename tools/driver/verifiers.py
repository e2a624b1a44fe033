"""Instruments that verify a module before and after each pass: its level and its operations."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation

from ...dialects.levels import LEVEL_DIALECTS, LEVELS, NN, NN_CORE, known_level
from ...ir.instruments.verify_each import VerifyEach
from ...ir.level import Level
from ...ir.pass_levels import declared_levels
from ...ir.pass_manager import Instrument
from ...ir.provenance import place
from ...ir.step import RunningPass
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp, ModulePass
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
        found = refused(step.current, module)
        if found is not None:
            raise InputError(found.text)


@dataclass(frozen=True)
class Refused:
    """The first operation of a module for which a pass refuses it.

    Attributes:
        level: the only level whose modules the pass takes.
    """

    op: Operation
    by: ModulePass
    level: Level

    @property
    def text(self) -> str:
        """A description for users."""
        return f"{self.op.name} at {place(self.op)}: {self.by.name} takes modules of {self.level}"


def refused(each: ModulePass, module: ModuleOp) -> Refused | None:
    """The first operation of another level than a pass takes; None if the pass takes the module."""
    declared = declared_levels(type(each))
    level = declared.needs if declared else None
    if level is None:
        return None
    others = {other.name for other in LEVELS if other != level} | LEVEL_DIALECTS.keys()
    for op in operations(module):
        if op.name.partition(".")[0] in others and not level.is_legal(op.name):
            return Refused(op, each, level)
    return None
