"""Check a run: its outputs against float64, and every operation against its error bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Operation

from ...backends.check import OpCheck
from ...backends.codelets.scalar import float_limits
from ...backends.host.binders import best_binder
from ...backends.machine import Machine
from ...backends.reference import first_meaningless, operation_value, run_reference
from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.levels import NN
from ...dialects.partition import PartitionTensor
from ...dialects.variable import Variable
from ...ir.upstream import ModuleOp, isa
from ..driver.arrays import Array
from ..driver.executable import MACHINE, Executable
from ..driver.host_memory import refuse_too_little_memory
from ..driver.keep_levels import kept_after

WIDE = 4
"""Bytes of a float32; floats with fewer bytes are narrow."""


TOLERANCE = 2e-3
"""The largest allowed error of an output, relative to the output's largest value. A dtype whose
rounding error is larger allows more. Source: five runtimes agree on the light networks to 6e-4."""

ROUNDOFFS = 4
"""Allowed errors in unit roundoffs of the narrowest dtype: two steps between neighbouring numbers.
Fused programs round less often than the reference. That can move a result by one step at its own
rounding, and by another for the roundings before it. For float16 this is 1.95e-3, below TOLERANCE;
for bfloat16 it is 1.6e-2, where one step alone can be 7.8e-3."""


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    error: the largest error of an output, relative to its largest value; None if the program has no
    nn level that the reference can run. checked: the number of operations compared with their
    bounds. ratio: the largest error of their results, divided by its bound. not_finite: how many
    elements of the outputs are not finite, or "". problem: what is outside its bound, or "". after:
    the pass after which the reference begins; "" for the program as it was read.
    """

    error: float | None
    checked: int = 0
    ratio: float = 0.0
    problem: str = ""
    not_finite: str = ""
    after: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything is within its bound."""
        return not self.problem

    @property
    def text(self) -> str:
        """A description for users."""
        text = "no reference" if self.error is None else f"{self.error:.1e} of the largest value"
        if self.after:
            text = f"{text}; compared with the program after {self.after}"
        if self.not_finite:
            text = f"{text}; {self.not_finite}"
        if not self.checked:
            return text
        operations = "operation" if self.checked == 1 else "operations"
        text += f"; {self.checked} {operations} checked; "
        return text + f"the worst error is {100 * self.ratio:.1f} % of its bound"


def tolerance(module: ModuleOp) -> float:
    """The largest error that outputs of a program may have, relative to their largest value."""
    roundoffs = [float_limits(each).roundoff for each in _floats_of(module)]
    return max([TOLERANCE, *(ROUNDOFFS * each for each in roundoffs)])


def _floats_of(module: ModuleOp) -> set[np.dtype[Any]]:
    """The floating-point dtypes of a program's values and variables, at any level."""
    types: set[Attribute] = set()
    for op in module.walk():
        types.update(each.type for each in (*op.operands, *op.results))
        if isinstance(op, Variable):
            types.add(op.tensor)
    tensors = {each.tensor if isinstance(each, PartitionTensor) else each for each in types}
    elements = {each.element_type for each in tensors if isa(each, TensorType)}
    return {numpy_dtype(each) for each in elements if isinstance(each, AnyFloat)}


def check_run(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], at: str
) -> Verdict:
    """Compare the outputs of a first run with float64; for the machine, check all operations too.

    A second run compares every vertex set with its error bound, given the operands that it really
    received: a bound of the whole network would be too wide to be useful.
    Outputs that are not finite are a problem, unless some input is not finite either. Two equal
    infinities say nothing about the distance between results, so the check cannot pass. The same
    holds if only the reference is infinite. If only passes give some operations a meaning, the
    reference runs the program after these passes. For the machine, the problem names the first
    operation that made an infinity or NaN from finite operands.
    """
    error, problem, after = None, "", ""
    not_finite = _not_finite(outputs)
    if not_finite and not _not_finite(inputs):
        problem = f"{not_finite}, but the inputs are: nothing to compare"
    if NN.name in exe.levels and first_meaningless(exe.module_at(NN.name)) is None:
        after = kept_after(exe.module_at(NN.name))
        reference = run_reference(exe.module_at(NN.name), inputs).outputs
        errors = {name: relative_error(outputs[name], reference[name]) for name in reference}
        worst = max(errors, key=lambda name: errors[name], default="")
        error = errors.get(worst, 0.0)
        came, runs = exe.module_at(NN.name), exe.module_at(MACHINE)
        allowed = max(tolerance(came), tolerance(runs))
        if not error <= allowed:
            lost = int(np.count_nonzero(_lost(outputs[worst], reference[worst])))
            problem = f"output {worst!r}: off by {error:.3g} of its largest value"
            problem += f"; {allowed:g} is allowed"
            for dtype in _narrowed(came, runs):
                moved = rounding_error(came, inputs, reference, dtype)
                problem += f"; rounding to {dtype.name} alone moves outputs by {moved:.3g}"
            if lost:
                problem = f"output {worst!r}: {lost} of {outputs[worst].size} elements are finite, "
                problem += "but infinite or NaN in the reference, which rounds after every "
                problem += "operation and may overflow where a fused one does not: nothing to "
                problem += "compare"
    if at != MACHINE:
        return Verdict(error, problem=problem, not_finite=not_finite, after=after)
    refuse_too_little_memory(exe.memory)
    look = OpCheck()
    binder = best_binder(is_watched=True)
    Machine(exe.module_at(MACHINE), exe.target, observers=[look], binder=binder).run(inputs)
    if problem and not_finite and look.overflow is not None:
        problem = f"{problem}. {look.overflow}"
    found = str(look.first or problem)
    return Verdict(error, look.checked, look.largest_ratio, found, not_finite, after)


def _narrowed(came: ModuleOp, runs: ModuleOp) -> list[np.dtype[Any]]:
    """The narrow floats of a compiled program that the original program does not use."""
    return [each for each in _floats_of(runs) - _floats_of(came) if each.itemsize < WIDE]


def rounding_error(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    reference: Mapping[str, Array],
    dtype: np.dtype[Any],
) -> float:
    """The error of outputs if all float32 values of an nn module are rounded as a narrower dtype.

    reference: the outputs without rounding. Returns the largest error, relative to the largest
    value of its output. Networks differ: in some of them, rounding only the input moves outputs by
    a tenth. Values keep the range of float32, because overflow is not rounding.
    """
    step = float_limits(dtype).roundoff

    def rounded(array: Array) -> Array:
        if array.dtype != np.float32:
            return array
        mantissa, exponent = np.frexp(array)
        return np.ldexp(np.rint(mantissa / step) * step, exponent).astype(np.float32)

    def evaluate(op: Operation, operands: Sequence[Array]) -> Array:
        return rounded(operation_value(op, operands))

    states = (op for op in module.walk() if isinstance(op, nn.StateOp))
    moved = run_reference(
        module,
        {name: rounded(array) for name, array in inputs.items()},
        {op.sym_name.data: rounded(op.value.array) for op in states},
        evaluate=evaluate,
    ).outputs
    return max((relative_error(moved[name], each) for name, each in reference.items()), default=0.0)


def _lost(actual: Array, expected: Array) -> Array:
    """The elements that are finite in a result but not in its reference."""
    if expected.dtype.kind in "biu":
        return np.zeros(expected.shape, bool)
    return np.isfinite(actual.astype(np.float64)) & ~np.isfinite(expected.astype(np.float64))


def _not_finite(arrays: Mapping[str, Array]) -> str:
    """How many elements are not finite, in words; "" if all are."""
    count = sum(int(np.count_nonzero(~np.isfinite(each))) for each in arrays.values())
    size = sum(each.size for each in arrays.values())
    return f"{count} of {size} elements are not finite" if count else ""


def relative_error(actual: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected magnitude.

    Infinite where only one of the two is finite, and for integers that differ.
    """
    if actual.size == 0:
        return 0.0
    if expected.dtype.kind in "biu":
        return 0.0 if np.array_equal(actual, expected) else float("inf")
    got, want = actual.astype(np.float64), expected.astype(np.float64)
    finite = np.isfinite(want)
    if not np.array_equal(got[~finite], want[~finite], equal_nan=True):
        return float("inf")
    if not finite.any():
        return 0.0
    largest = np.abs(want[finite]).max()
    difference = np.abs(got[finite] - want[finite]).max()
    if np.isnan(difference):
        return float("inf")
    return float(difference / largest) if largest else float(difference)
