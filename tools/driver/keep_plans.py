"""The instrument that keeps a program as plan-splits left it."""

from __future__ import annotations

from dataclasses import dataclass

from ...ir.pass_manager import Instrument
from ...ir.step import RunningPass
from ...ir.upstream import ModuleOp
from ...passes.plan_splits import PlanSplits


@dataclass(frozen=True)
class KeptPlans:
    """A module at nn with a plan on every operator.

    Attributes:
        proportion: the memory proportion that the pass was given; None for its default.
    """

    module: ModuleOp
    proportion: float | None


class KeepPlans(Instrument):
    """Keeps a clone of the module after plan-splits, so that reports can ask for other plans."""

    def __init__(self) -> None:
        self.kept: KeptPlans | None = None

    def after(self, step: RunningPass, module: ModuleOp) -> None:
        """Clone after the pass that writes plans."""
        if isinstance(step.current, PlanSplits):
            self.kept = KeptPlans(module.clone(), step.current.memory_proportion)
