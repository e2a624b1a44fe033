"""Run a module between two passes, and describe its problem."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from ....backends.evaluate.host import Run
from ....backends.evaluate.users_levels import runs_lowered
from ....backends.faults import MachineFault
from ....backends.reference import first_meaningless
from ....backends.target import Target
from ....dialects.levels import EXCHANGE, NN, SOURCES, known_level, level_of
from ....ir.support.errors import one_line
from ....ir.upstream import ModuleOp, VerifyException
from ....ir.verify import verify, verify_level
from ....passes.round_stores import OVERFLOW, overflowing_as
from ...driver.arrays import Array
from ...driver.program import target_of
from ..followed import KeptValues, follow_values, has_steps
from ..kernel_problem import module_kernel_problem
from ..machine_results import Difference, Results
from ..run_check import lost_too, not_finite, relative_error, tolerance
from ..run_level import ComputedValue, PhaseConflict, run_level
from ..wrong_kernel import REPORT
from .made_from import node_of
from .verdict import Kind, WrongValue

WORTH_COLLECTING = 1 << 26
"""The smallest memory of all tiles, in bytes, for which a garbage collection is worth its time."""


@dataclass(frozen=True)
class Problem:
    """A problem, in words.

    Attributes:
        value: the wrong value, if known without a comparison.
    """

    kind: Kind
    text: str
    value: WrongValue | None = None


class CannotRun(Exception):
    """Raised for a module on several levels at once, or on one that has no evaluator."""


@dataclass
class Judge:
    """Finds the problem of a module by comparison with a run of the module before all passes.

    Attributes:
        module: the module before all passes.
        reference: its run.
        allowed: the largest error for an output, relative to its largest value.
        worst: the largest error of any output so far.
    """

    inputs: Mapping[str, Array]
    target: Target
    module: ModuleOp | None = None
    reference: Run = field(default_factory=lambda: Run({}, {}))
    allowed: float = 0.0
    worst: float = 0.0
    _last: tuple[ModuleOp, Run] | None = None
    _limited: dict[str, Run] = field(default_factory=dict[str, Run])

    @staticmethod
    def of(module: ModuleOp, inputs: Mapping[str, Array], target: Target) -> Judge:
        """The judge of all modules that passes make from this module."""
        judge = Judge(inputs, target, module)
        judge.reference = judge.run(module)
        judge.allowed = tolerance(module)
        return judge

    def run(self, module: ModuleOp, watch: Callable[[ComputedValue], None] | None = None) -> Run:
        """Run a module on its level.

        Args:
            watch: called with each value, in program order.
        """
        level = level_of(module)
        on_machine = level not in (NN, *SOURCES)
        target = target_of(module, None, "<module>") if on_machine else self.target
        try:
            return run_level(level, module, target, self.inputs, watch)
        finally:
            # Evaluators are reference cycles: only a garbage collection frees the memory of their
            # tiles.
            if target.tiles * target.bytes_per_tile > WORTH_COLLECTING:
                gc.collect()

    def problem(self, module: ModuleOp) -> Problem | None:
        """The problem of a module, or None. Raises CannotRun."""
        found = invalid(module)
        if found is not None:
            return found
        if runs_lowered(level_of(module)):
            # A run would blame this module for what the passes after it do.
            raise CannotRun
        try:
            verify(module, level_of(module))
        except VerifyException as error:
            raise CannotRun from error
        try:
            run = self.run(module)
        except (MemoryError, CannotRun):
            raise
        except MachineFault as fault:
            return Problem("fault", str(fault), _of_fault(fault))
        except PhaseConflict as conflict:
            op, name = conflict.op, conflict.variable
            return Problem("fault", str(conflict), WrongValue(op.name, node_of(op), name))
        except Exception as error:
            return Problem("fault", f"cannot be run: {one_line(error)}")
        self._last = module, run
        # The pass may have changed the program to a narrower dtype.
        allowed = max(self.allowed, tolerance(module))
        expected = self._reference_for(module)
        problem = self._differs(run, expected, allowed)
        if problem is None or not self._steps_explain(module, allowed):
            return problem
        right = expected.outputs
        errors = [relative_error(run.outputs[name], array) for name, array in right.items()]
        self.worst = max(self.worst, *(each for each in errors if np.isfinite(each)))
        return None

    def _reference_for(self, module: ModuleOp) -> Run:
        """The run of the module before all passes, with stores that overflow as those of a module
        do."""
        if self.module is None or level_of(self.module) != NN:
            return self.reference
        same = overflowing_as(self.module, module)
        if same is self.module:
            return self.reference
        rule = str(module.attributes[OVERFLOW])
        if rule not in self._limited:
            self._limited[rule] = self.run(same)
        return self._limited[rule]

    def _steps_explain(self, module: ModuleOp, allowed: float) -> bool:
        """Whether the outputs of a module are within the bounds of a reference that follows its
        run.

        Numbers that are rounded to integers may come out on either side of a step.
        """
        if self.module is None or level_of(self.module) != NN or not has_steps(self.module):
            return False
        kept = KeptValues()
        run = self.run(module, kept.watch)
        if self.reference.state and not _are_near(run.state, self.reference.state, allowed):
            return False
        return follow_values(self.module, self.inputs, run.outputs, kept, allowed).is_right

    def kernel_problem(self, module: ModuleOp) -> str:
        """The wrong kernels of a right module of the exchange level, in words.

        Returns "" if no kernel is wrong, or for another level. The runs of this judge make NumPy's
        calls, and define every bit.
        """
        if level_of(module) != EXCHANGE:
            return ""
        done = self._last[1] if self._last and self._last[0] is module else self.run(module)
        target = target_of(module, None, "<module>")
        right = Results(done.outputs, done.state)
        found = module_kernel_problem(module, target, self.inputs, right)
        if isinstance(found, Difference):
            words = found.words("the plain run", "one of NumPy's calls")
            return f"the compiled kernels are wrong in no single operation: {words}. {REPORT}"
        return "" if found is None else str(found)

    def _differs(self, run: Run, right: Run, allowed: float) -> Problem | None:
        kinds = (("output", run.outputs, right.outputs), ("state", run.state, right.state))
        for kind, found, expected in kinds:
            for name, values in expected.items():
                if name not in found:
                    # A pass may remove unused states, but no output.
                    if kind == "output":
                        return Problem("value", f"output '{name}' is missing")
                    continue
                if found[name].shape != values.shape:
                    shapes = f"{list(found[name].shape)}; need {list(values.shape)}"
                    return Problem("value", f"{kind} '{name}' is {shapes}")
                if not not_finite(self.inputs):
                    # Where the program itself overflows, a pass may change the result.
                    values = lost_too(found[name], values)
                error = relative_error(found[name], values)
                if not error <= allowed:
                    described = _described(error, allowed)
                    return Problem("value", f"{kind} '{name}' is {described}")
                self.worst = max(self.worst, error)
        return None


def invalid(module: ModuleOp) -> Problem | None:
    """The reason why a module does not verify; None if it verifies."""
    try:
        verify(module, known_level(module))
    except VerifyException as error:
        return Problem("invalid", f"does not verify: {error}", _invalid(module))
    return None


def can_run(module: ModuleOp) -> bool:
    """Whether an evaluator can run a module: one level, with a meaning for each operation."""
    level = level_of(module)
    try:
        verify_level(module, level)
    except VerifyException:
        return False
    return level != NN or first_meaningless(module) is None


def _are_near(found: Mapping[str, Array], right: Mapping[str, Array], allowed: float) -> bool:
    """Whether all final states are as near to the right states as outputs have to be."""
    return all(
        found[name].shape == values.shape and relative_error(found[name], values) <= allowed
        for name, values in right.items()
        if name in found
    )


def _described(error: float, allowed: float) -> str:
    """An error relative to the largest value, in words; infinite for integers and for NaN."""
    if not np.isfinite(error):
        return "not what it should be"
    return f"off by {error:.3g} of its largest value; {allowed:g} is allowed"


def _invalid(module: ModuleOp) -> WrongValue | None:
    """The first operation that does not verify on its own."""
    for op in module.walk(region_first=True):
        try:
            op.verify(verify_nested_ops=False)
        except (VerifyException, ValueError):
            return WrongValue(op.name, node_of(op))
    return None


def _of_fault(fault: MachineFault) -> WrongValue:
    return WrongValue(
        fault.op or "exchange.variable",
        fault.node,
        fault.variable or "",
        tile=fault.tile,
        addresses=fault.addresses,
    )
