"""Check a run: its outputs against exact arithmetic, every operation against its error bound."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from concurrent.futures import CancelledError, Executor, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from threading import Event
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType
from xdsl.ir import Attribute, Operation

from ...backends.addresses.prove import AddressProof
from ...backends.codelets.conversion import float_limits
from ...backends.faults import IndexFault
from ...backends.host.binders import best_binder
from ...backends.host.judges import best_judge
from ...backends.host.threads import THREADS
from ...backends.machine import Machine, Observer
from ...backends.op_check import OpCheck
from ...backends.reference import (
    TooManyIterations,
    first_meaningless,
    operation_value,
    run_reference,
    unrounded_outputs,
)
from ...dialects import nn
from ...dialects.abele import BodyAttr
from ...dialects.dtypes import numpy_dtype
from ...dialects.levels import NN
from ...dialects.partition import PartitionTensor
from ...dialects.steps import Superstep
from ...dialects.variable import Variable
from ...ir.support.errors import one_line
from ...ir.support.number_kinds import bit_width, is_floating, is_whole
from ...ir.support.on_step import OnStep, ignore_step
from ...ir.upstream import ModuleOp, isa
from ...passes.round_stores import overflowing_as
from ..driver.arrays import Array
from ..driver.executable import MACHINE, Executable
from ..driver.host_memory import refuse_too_little_memory
from ..driver.keep_levels import kept_after
from ..driver.program import signature
from ..driver.stages import CHECK
from .followed import follow, has_steps
from .kernel_problem import kernel_problem
from .machine_results import Results, states_of
from .made_not_finite import Traced, traced_reference

WIDE = 4
"""Bytes of a float32; floats with fewer bytes are narrow."""


QUANTISED_BITS = 16
"""The most bits of the integers in which quantised numbers are stored."""

MANY_STEPS = 0.25
"""The share of integers that may be one step off without further proof that the run is right."""

TOLERANCE = 2e-3
"""The largest allowed error of an output, relative to the output's largest value. A dtype whose
rounding error is larger allows more. Source: five runtimes agree on the light networks to 6e-4."""

ROUNDOFFS = 4
"""The allowed error in unit roundoffs of the narrowest dtype: two steps between neighbouring
numbers. Fused programs round less often than the reference. That can move a result by one step at
its own rounding, and by a second step for the roundings before it. For float16 this is 1.95e-3,
below TOLERANCE; for bfloat16 it is 1.6e-2, where one step alone can be 7.8e-3.
"""


@dataclass(frozen=True)
class Verdict:
    """The result of a check.

    Attributes:
        error: the largest difference of an output from exact arithmetic, relative to the output's
            largest value; None if the program has no nn level that a reference can run, or if a
            loop does not end without rounding.
        rounded: the same difference from the reference that rounds the result of every operation;
            None if exact arithmetic decides.
        checked: the number of operations compared with their bounds.
        ratio: the largest error of their results, divided by its bound.
        not_finite: the number of elements of the outputs that are not finite, and their source; ""
            if all are finite.
        problem: the result outside its bound, or "".
        after: the pass after which the references begin; "" for the program as it was read.
        proof: the proof about the program's addresses when it was loaded.
        followed: the findings of a reference that follows the run, if they decide; else "".
        stepped: the output of integers with many elements one step off; else "".
    """

    error: float | None
    checked: int = 0
    ratio: float = 0.0
    problem: str = ""
    not_finite: str = ""
    after: str = ""
    rounded: float | None = None
    proof: AddressProof | None = None
    followed: str = ""
    stepped: str = ""

    @property
    def passed(self) -> bool:
        """Whether everything is within its bound."""
        return not self.problem

    @property
    def rows(self) -> list[tuple[str, str]]:
        """Names and values of what was compared, for the table that a command prints."""
        compared: list[str] = []
        if self.error is not None:
            compared.append(f"{_in_words(self.error)}, against exact arithmetic (float64)")
        if self.rounded is not None:
            compared.append(f"{_in_words(self.rounded)}, against float64 rounded per operation")
        if self.followed:
            compared.append(self.followed)
        if self.after:
            compared.append(f"compared with the program after {self.after}")
        rows = [("largest error", "; ".join(compared or ["no reference for the outputs"]))]
        if self.not_finite:
            rows.append(("not finite", self.not_finite))
        if self.checked:
            worst = f"the worst error is {100 * self.ratio:.1f} % of its bound"
            rows.append(("operations checked", f"{self.checked:,}; {worst}"))
        if self.proof is not None:
            rows.append(("addresses proved", str(self.proof)))
        return rows


def _in_words(error: float) -> str:
    """A relative error as text. It is infinite for different integers, and for lost finite
    values."""
    if np.isinf(error):
        return "integers, infinities or NaN differ"
    return f"{error:.1e} of the largest value"


def tolerance(module: ModuleOp) -> float:
    """The largest error that outputs of a program may have, relative to their largest value.

    It is twice as large where random words round partial sums: each rounding then has an error of
    up to a step instead of half a step, and there are more of them.
    """
    roundoffs = [float_limits(each).roundoff for each in _floats_of(module)]
    steps = ROUNDOFFS * (2 if _rounds_sums_by_words(module) else 1)
    return max([TOLERANCE, *(steps * each for each in roundoffs)])


def _rounds_sums_by_words(module: ModuleOp) -> bool:
    """Whether random words round the partial sums of an operation."""
    bodies = (op.properties.get("body") for op in module.walk())
    return any(
        isinstance(each, BodyAttr) and each.data.rounding_of_sums is not None for each in bodies
    )


def allowed_error(exe: Executable) -> float:
    """The largest relative error that outputs of a compiled program may have.

    It is relative to their largest value. A pass may have changed the program to narrower floats.
    """
    return max(tolerance(exe.module_at(level)) for level in (NN.name, MACHINE))


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
    exe: Executable,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    at: str,
    on_step: OnStep = ignore_step,
) -> Verdict:
    """Compare the outputs of a first run with float64; for the machine, check all operations too.

    The outputs are compared with exact arithmetic: float64 throughout, nothing rounded. A program
    of narrow floats may be far from that because of its own rounding, and a comparison or a cast to
    integers may have another result. Outputs that are too far off are therefore also compared with
    the reference that rounds the result of every operation. A group of fused operations rounds less
    often, so some elements may be near the first reference and some near the second: outputs are
    right if every element is near one of the two references.

    A second run compares every vertex set with its error bound, given the operands that it really
    received: a bound of the whole network would be too wide to be useful. That run writes every
    byte, so its calls differ from those of the run whose outputs the user gets. Its outputs and
    states must have the same bits as the given outputs, and as one more plain run of a warm
    program. If they differ, the problem names the operation and its kernels, whatever the bounds
    are.

    An output may have elements that are not finite although all inputs are finite. They are right
    where the rounding reference has infinities or NaN, too, whichever of them: after an overflow,
    the order of operations decides between infinities and NaN. The verdict then names the operation
    of the model that makes them. Elsewhere they are a problem, and so are finite elements where
    neither reference is finite. For the machine, the problem names the first operation that made an
    infinity or NaN from finite operands. If there is no reference, the machine's operations are the
    model, and each must be within its bound. If some operations get a meaning only from passes, the
    references run the program after these passes.

    Args:
        on_step: called with what is being checked.
    """
    outputs = exe.signature.computed(outputs)
    # Modules are made on first use: two threads must not make them at once.
    for level in {NN.name, MACHINE, at} & {*exe.levels}:
        exe.module_at(level)
    is_over = Event()
    with _threads(is_over) as pool:
        compared = pool.submit(_compared, exe, inputs, outputs, is_over) if pool else None
        look, watched = OpCheck(pool, THREADS.count, best_judge()), Results({})
        if at == MACHINE:
            refuse_too_little_memory(exe.memory)
            watched = _watched(exe, inputs, look, on_step)
        on_step(f"{CHECK} (outputs)")
        verdict = compared.result() if compared else _compared(exe, inputs, outputs, is_over)
        if at != MACHINE:
            return verdict
        on_step(f"{CHECK} (bits of a plain run)")
        unlike = kernel_problem(exe, inputs, outputs, watched, look.first)
        if unlike is not None and unlike.is_found:
            verdict = replace(verdict, problem=unlike.text)
        else:
            verdict = _with_operations(exe, inputs, outputs, verdict, look)
            if unlike is not None:
                others = f". {verdict.problem}" if verdict.problem else ""
                verdict = replace(verdict, problem=f"{unlike.text}{others}")
        if watched.unequal and not verdict.problem:
            names = ", ".join(f"@{name}" for name in watched.unequal)
            problem = f"tiles that repeat elements of {names} hold different bits of them"
            verdict = replace(verdict, problem=problem)
        return replace(verdict, checked=look.checked, ratio=look.largest_ratio)


def _with_operations(
    exe: Executable,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    verdict: Verdict,
    look: OpCheck,
) -> Verdict:
    """The verdict on outputs, completed by the findings of the machine's operations."""
    if look.first is not None:
        return replace(verdict, problem=str(look.first))
    if verdict.problem or verdict.stepped:
        verdict = _followed(exe, inputs, outputs, verdict)
    if verdict.not_finite and (verdict.error, verdict.rounded) == (None, None):
        # There is no reference: the operations of the machine are the model.
        made = str(look.overflow or "no operation makes them of finite values")
        return replace(verdict, problem="", not_finite=f"{verdict.not_finite}: {made}")
    if verdict.problem and verdict.not_finite and look.overflow is not None:
        return replace(verdict, problem=f"{verdict.problem}. {look.overflow}")
    return verdict


class _Telling(Observer):
    """Tells how many supersteps have run."""

    def __init__(self, exe: Executable, on_step: OnStep) -> None:
        self._done, self._all, self._on_step = 0, exe.profile["supersteps"], on_step

    def on_superstep(self, op: Superstep, machine: Machine) -> None:
        """Tell it."""
        self._done += 1
        self._on_step(f"{CHECK} (superstep {self._done:,} of {self._all:,})")


def _watched(
    exe: Executable, inputs: Mapping[str, Array], look: OpCheck, on_step: OnStep
) -> Results:
    """The results of a run that writes every byte, from the first states."""
    module, binder = exe.module_at(MACHINE), best_binder(is_watched=True)
    machine = Machine(module, exe.target, observers=[look, _Telling(exe, on_step)], binder=binder)
    try:
        outputs = exe.signature.trimmed(machine.run(inputs))
    except IndexFault as fault:
        # The plain run has ended with results.
        return Results({}, fault=one_line(fault))
    return Results(outputs, states_of(machine), unequal=machine.unequal_replicas())


def _followed(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], verdict: Verdict
) -> Verdict:
    """The verdict on a run whose outputs are too far off although each operation is right.

    A program may round numbers to integers: a number near a step may then come out on either side.
    """
    if (verdict.error, verdict.rounded) == (None, None):
        return verdict
    if has_steps(exe.module_at(NN.name)):
        found = follow(exe, inputs, outputs, allowed_error(exe))
        if found.is_right:
            return replace(verdict, problem="", followed=str(found))
    return replace(verdict, problem=verdict.problem or verdict.stepped)


@contextmanager
def _threads(is_over: Event) -> Generator[Executor | None]:
    """The threads that check a run; None for a single thread.

    Args:
        is_over: set when the results are no longer needed.
    """
    count = THREADS.count
    if count == 1:
        yield None
        return
    pool = ThreadPoolExecutor(count)
    try:
        yield pool
    finally:
        # After an interrupt, the work of the threads is no longer needed.
        is_over.set()
        pool.shutdown(cancel_futures=True)


def _compared(
    exe: Executable, inputs: Mapping[str, Array], outputs: Mapping[str, Array], is_over: Event
) -> Verdict:
    """Compare the outputs with float64, as check_run describes. Raises CancelledError if it is
    over.
    """

    def go_on() -> None:
        if is_over.is_set():
            raise CancelledError

    error, rounded, problem, after, stepped = None, None, "", "", ""
    lost = not_finite(outputs)
    is_made = bool(lost) and not not_finite(inputs)
    if NN.name in exe.levels and first_meaningless(exe.module_at(NN.name)) is None:
        came = exe.module_at(NN.name)
        after = kept_after(came)
        allowed = allowed_error(exe)
        exact = _unrounded(came, inputs, go_on)
        error = None if exact is None else _worst_output(outputs, exact)[1]
        rounding = overflowing_as(came, exe.module_at(MACHINE))
        if is_made or error is None or not error <= allowed:
            traced = traced_reference(rounding, inputs, go_on)
            reference = signature(came).trimmed(traced.outputs)
            _, rounded = _worst_output(outputs, reference)
            near = reference if exact is None else _nearer(outputs, exact, reference)
            if is_made:
                near = {name: lost_too(outputs[name], each) for name, each in near.items()}
                lost += _made_by(traced)
            if not _worst_output(outputs, near)[1] <= allowed:
                problem = _too_far(exe, inputs, outputs, reference, allowed)
                if error is not None and np.isinf(rounded) and np.isfinite(error):
                    problem += f"; off by {error:.3g} from exact arithmetic"
        if not problem and exact is not None and _stepped(outputs, exact):
            traced = traced_reference(rounding, inputs, go_on)
            reference = signature(came).trimmed(traced.outputs)
            stepped = _stepped(outputs, reference)
    elif is_made:
        problem = f"{lost}, although all inputs are, and no reference has them"
    return Verdict(error, 0, 0.0, problem, lost, after, rounded, exe.addresses, stepped=stepped)


def _stepped(outputs: Mapping[str, Array], reference: Mapping[str, Array]) -> str:
    """The output of integers of which many elements differ from the reference, in words.

    Returns "" if there is no such output.
    """
    for name, right in reference.items():
        found = outputs[name]
        if is_whole(right.dtype) and found.shape == right.shape:
            apart = int(np.count_nonzero(found != right))
            if apart > MANY_STEPS * right.size:
                return f"output {name!r}: {apart} of {right.size} integers are one step off"
    return ""


def _made_by(traced: Traced) -> str:
    """The source of outputs that are not finite, in words; "" if it is not known."""
    made = dict.fromkeys(map(str, traced.made.values()))
    return f": {'; '.join(made)}" if made else ""


def _unrounded(
    module: ModuleOp, inputs: Mapping[str, Array], go_on: Callable[[], None]
) -> Mapping[str, Array] | None:
    """The outputs in exact arithmetic; None if a loop does not end there.

    Args:
        go_on: called before each operation.
    """
    try:
        outputs = unrounded_outputs(module, inputs, on_operation=go_on)
        return signature(module).trimmed(outputs)
    except TooManyIterations:
        return None


def _nearer(
    outputs: Mapping[str, Array], exact: Mapping[str, Array], rounded: Mapping[str, Array]
) -> dict[str, Array]:
    """The rounded reference, except for float elements whose exact reference is nearer.

    If the shapes of an output in the two references differ, because its size depends on values, the
    rounded reference is taken.
    """
    near = dict(rounded)
    for name, reference in rounded.items():
        of_floats = is_floating(reference.dtype)
        if of_floats and outputs[name].shape == exact[name].shape == reference.shape:
            got, first, second = (
                each[name].astype(np.float64) for each in (outputs, exact, rounded)
            )
            near[name] = np.where(_distance(got, first) < _distance(got, second), first, second)
    return near


def lost_too(output: Array, reference: Array) -> Array:
    """The reference, but with an output's elements where neither output nor reference is finite.

    After an overflow, the order of operations decides between infinities and NaN.
    """
    if output.shape != reference.shape or not is_floating(reference.dtype):
        return reference
    lost = ~np.isfinite(output.astype(np.float64)) & ~np.isfinite(reference.astype(np.float64))
    return np.where(lost, output, reference)


def _distance(left: Array, right: Array) -> Array:
    """The distances of elements: 0 for equal infinities or two NaN; infinite if only one is
    finite."""
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    with np.errstate(invalid="ignore"):
        apart = np.abs(left - right)
    return np.where(same, 0.0, np.where(np.isnan(apart), np.inf, apart))


def _worst_output(
    outputs: Mapping[str, Array], reference: Mapping[str, Array]
) -> tuple[str, float]:
    """The name of the output with the largest error relative to its largest value, and this
    error."""
    errors = {name: relative_error(outputs[name], each) for name, each in reference.items()}
    worst = max(errors, key=lambda name: errors[name], default="")
    return worst, errors.get(worst, 0.0)


def _too_far(
    exe: Executable,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    reference: Mapping[str, Array],
    allowed: float,
) -> str:
    """The errors of outputs that are too far off, and the errors that rounding alone causes, in
    words.
    """
    worst, error = _worst_output(outputs, reference)
    lost = int(np.count_nonzero(_lost(outputs[worst], reference[worst])))
    if lost:
        return (
            f"output {worst!r}: {lost} of {outputs[worst].size} elements are finite, but infinite "
            "or NaN in the reference that rounds after every operation"
        )
    made = int(np.count_nonzero(_lost(reference[worst], outputs[worst])))
    if made:
        return (
            f"output {worst!r}: {made} of {outputs[worst].size} elements are infinite or NaN, but "
            "finite in the reference that rounds after every operation"
        )
    problem = f"output {worst!r}: off by {error:.3g} of its largest value; {allowed:g} is allowed"
    came = exe.module_at(NN.name)
    for dtype in _narrowed(came, exe.module_at(MACHINE)):
        moved = rounding_error(came, inputs, reference, dtype)
        problem += f"; rounding to {dtype.name} alone moves outputs by {moved:.3g}"
    return problem


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

    Returns the largest error, relative to the largest value of its output. Networks differ: in some
    of them, rounding only the input moves outputs by a tenth. Values keep the range of float32,
    because overflow is not rounding.

    Args:
        reference: the outputs without rounding.
    """
    step = float_limits(dtype).roundoff

    def rounded(array: Array) -> Array:
        if array.dtype != np.float32:
            return array
        mantissa, exponent = np.frexp(array)
        return np.ldexp(np.rint(mantissa / step) * step, exponent).astype(np.float32)

    def evaluate(op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
        return rounded(operation_value(op, operands, result))

    states = (op for op in module.walk() if isinstance(op, nn.StateOp))
    run = run_reference(
        module,
        {name: rounded(array) for name, array in inputs.items()},
        {op.sym_name.data: rounded(op.value.array) for op in states},
        evaluate=evaluate,
    )
    moved = signature(module).trimmed(run.outputs)
    return max((relative_error(moved[name], each) for name, each in reference.items()), default=0.0)


def _lost(actual: Array, expected: Array) -> Array:
    """The elements that are finite in a result but not in its reference."""
    if not is_floating(expected.dtype):
        return np.zeros(expected.shape, bool)
    return np.isfinite(actual.astype(np.float64)) & ~np.isfinite(expected.astype(np.float64))


def not_finite(arrays: Mapping[str, Array]) -> str:
    """The number of elements that are not finite, in words; "" if all are finite."""
    count = sum(int(np.count_nonzero(~np.isfinite(each))) for each in arrays.values())
    size = sum(each.size for each in arrays.values())
    return f"{count} of {size} elements are not finite" if count else ""


def relative_error(actual: Array, expected: Array) -> float:
    """The largest difference, relative to the largest expected magnitude.

    Infinite where only one side is finite, for different integers, and for different shapes: the
    size of a result may depend on values. Integers of at most 16 bits may be quantised numbers: a
    difference of one step between them does not count, because a number half way between two steps
    may be rounded either way.
    """
    if actual.shape != expected.shape:
        return float("inf")
    if actual.size == 0:
        return 0.0
    if not is_floating(expected.dtype):
        if is_whole(expected.dtype) and bit_width(expected.dtype) <= QUANTISED_BITS:
            apart = np.abs(actual.astype(np.int64) - expected.astype(np.int64)).max()
            return 0.0 if apart <= 1 else float("inf")
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
