"""Whether a run was right: its outputs against fp64, and every operation within its bound."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Operation
from xdsl.utils.hints import isa

from ...backends.check import OpCheck
from ...backends.codelets.scalar import float_limits
from ...backends.host.binders import best_binder
from ...backends.machine import Machine
from ...backends.reference import operation_value, run_reference
from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.partition import PartitionTensor
from ...dialects.program import Variable
from ...ir.upstream import ModuleOp
from ..driver.arrays import Array
from ..driver.executable import MACHINE, Executable
from ..driver.host_memory import refuse_too_little_memory

WIDE = 4
"""Bytes of a float that is not narrow."""

NN = "nn"
"""The level whose meaning the reference gives."""

TOLERANCE = 2e-3
"""The largest error of an output allowed, over the output's largest value, unless a dtype is so
narrow that one rounding is larger. Source: five runtimes agree on the light networks to 6e-4."""

ROUNDOFFS = 4
"""Unit roundoffs of the narrowest dtype that are allowed too: two steps between neighbouring
numbers. Fused programs round less often than the reference, which may move a result by one step
at its own rounding and by another for those before it. Of float16 they are 1.95e-3, which is below
TOLERANCE; of bfloat16 1.6e-2, where one step alone may be 7.8e-3."""


@dataclass(frozen=True)
class Verdict:
    """What a check found.

    error: the largest of an output, over its largest value; None if the program has no nn level to
    take a reference from. checked: operations held to their bounds. ratio: the largest error of
    any of their results, over its bound. not_finite: how many elements of the outputs are not, of
    how many, or "". problem: what is outside, or "".
    """

    error: float | None
    checked: int = 0
    ratio: float = 0.0
    problem: str = ""
    not_finite: str = ""

    @property
    def passed(self) -> bool:
        """Whether nothing was outside its bound."""
        return not self.problem

    @property
    def text(self) -> str:
        """For people."""
        whole = "no reference" if self.error is None else f"{self.error:.1e} of the largest value"
        if self.not_finite:
            whole = f"{whole}; {self.not_finite}"
        if not self.checked:
            return whole
        return f"{whole}; {self.checked} operations, {self.ratio:.3f} of a bound at most"


def tolerance(module: ModuleOp) -> float:
    """The largest error that is allowed of a program's outputs, over their largest value."""
    roundoffs = [float_limits(each).roundoff for each in _floats_of(module)]
    return max([TOLERANCE, *(ROUNDOFFS * each for each in roundoffs)])


def _floats_of(module: ModuleOp) -> set[np.dtype[Any]]:
    """The dtypes of floating point of a program's tensors, values or variables, at any level."""
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
    """Compare a first run's outputs with fp64; for the machine's, look into every operation too.

    Each vertex set is held to its bound on the operands that it really received, in a run of its
    own; a whole network's bound would say nothing.
    Outputs that are not finite are a problem unless an input is not: an infinity that the machine
    and the reference both reach says nothing of the distance between them. Nor does one that the
    reference alone reaches, which is a problem too: what cannot be compared has not passed. Of the
    machine's, the first operation that made them of finite operands is named.
    """
    error, problem = None, ""
    not_finite = _not_finite(outputs)
    if not_finite and not _not_finite(inputs):
        problem = f"{not_finite}, of finite inputs: nothing to compare"
    if NN in exe.levels:
        reference = run_reference(exe.module_at(NN), inputs).outputs
        errors = {name: relative_error(outputs[name], reference[name]) for name in reference}
        worst = max(errors, key=lambda name: errors[name], default="")
        error = errors.get(worst, 0.0)
        came, runs = exe.module_at(NN), exe.module_at(MACHINE)
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
                problem += "but not in the reference, which rounds after every operation and may "
                problem += "overflow where a fused one does not: nothing to compare"
    if at != MACHINE:
        return Verdict(error, problem=problem, not_finite=not_finite)
    refuse_too_little_memory(exe.memory)
    look = OpCheck()
    binder = best_binder(is_watched=True)
    Machine(exe.module_at(MACHINE), exe.target, observers=[look], binder=binder).run(inputs)
    if problem and not_finite and look.overflow is not None:
        problem = f"{problem}. {look.overflow}"
    found = str(look.first or problem)
    return Verdict(error, look.checked, look.largest_ratio, found, not_finite)


def _narrowed(came: ModuleOp, runs: ModuleOp) -> list[np.dtype[Any]]:
    """The narrow floats of a program as it runs that it did not come with."""
    return [each for each in _floats_of(runs) - _floats_of(came) if each.itemsize < WIDE]


def rounding_error(
    module: ModuleOp,
    inputs: Mapping[str, Array],
    reference: Mapping[str, Array],
    dtype: np.dtype[Any],
) -> float:
    """How far outputs move if every float32 value of a module of nn has as many bits as a dtype.

    reference: the outputs as they are otherwise. Over their largest value, the largest. Networks
    differ: of some, rounding the input alone moves outputs by a tenth. Ranges stay float32's:
    overflow is no rounding.
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
    """Where a result is a number and its reference is none."""
    if expected.dtype.kind in "biu":
        return np.zeros(expected.shape, bool)
    return np.isfinite(actual.astype(np.float64)) & ~np.isfinite(expected.astype(np.float64))


def _not_finite(arrays: Mapping[str, Array]) -> str:
    """How many of all elements are not finite, or "" if all are."""
    count = sum(int(np.count_nonzero(~np.isfinite(each))) for each in arrays.values())
    size = sum(each.size for each in arrays.values())
    return f"{count} of {size} elements are not finite" if count else ""


def relative_error(actual: Array, expected: Array) -> float:
    """The largest difference over the largest expected magnitude; inf where only one is finite."""
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
