"""Cases of a conformance suite, and verdicts on them."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from math import floor, inf, log2
from time import perf_counter
from types import FrameType
from typing import Any, NamedTuple, cast

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from ....ir.support.errors import DoesNotFit, InputError
from ....ir.support.number_kinds import is_floating
from ...driver.compile import compile_model
from ...driver.onnx_backend import TARGET
from ...importers.stablehlo.in_memory import StableHloModel

Array = NDArray[Any]

VERDICTS = ("passed", "near", "bound", "refused", "wrong", "crashed")
"""The results of a case.

near: elements differ by more than the tolerance, but by at most STEPS, by the rounding of the
largest element, or, for SUMS, by the tolerance of the largest element. Or results in double the
bits show that they are as good as the expected ones (`as_exact`, for complex numbers) or as their
inputs (`within_condition`, for SOLVERS). bound: it passed with constants in place of inputs.
refused: a message says what abele does not take. crashed: another exception, or no result within
SECONDS."""

PASSED = ("passed", "near", "bound")

SUMS = re.compile(
    r"stablehlo\.(?:add|subtract|dot_general|convolution|fft|reduce|reduce_window|scatter|while)\b"
)
"""The operations that add many numbers, each in an order of its own. Where terms cancel, results of
two orders differ by as much as the terms are rounded."""

SOLVERS = re.compile(r"stablehlo\.(?:cholesky|triangular_solve)\b|lapack_[sd](?:potrf|trsm)_ffi\b")
"""The operations that solve equations. The more nearly a matrix is singular, the further results
move when it is rounded."""

MOVES = 4
"""How many times inputs are moved at random, to see how far results move."""

STEPS = 2
"""The steps of a 16-bit float that two results may be apart."""

SECONDS = 120
"""The most seconds of a case."""

MOST_WHY = 400
"""The most characters of a reason that are kept."""

OPERATION = re.compile(r"\b(?:stablehlo|chlo|mhlo|func|sdy|interpreter)\.\w+")

CUSTOM_CALL = re.compile(r"@\w+")


class Refused(InputError):
    """A test that cannot become a case. The message says what of it is not supported.

    What abele refuses when it compiles a case is another InputError.
    """


class Tolerance(NamedTuple):
    """The largest difference from an expected element, absolute and relative to it."""

    absolute: float = 0.0
    relative: float = 0.0


Exact = Callable[[Sequence[Array]], Sequence[Array]]
"""Computes outputs for inputs in double the bits. It takes inputs of fewer bits too."""

OPEN = Tolerance(inf)
"""The tolerance of an output of which only shape and element type are defined."""


@dataclass(frozen=True)
class Case:
    """A module of StableHLO with inputs and expected outputs.

    Attributes:
        name: unique in its suite.
        group: of the report.
        text: of the module, in the generic form.
        inputs, expected: arrays in the order of the arguments and results of @main.
        tolerances: of the outputs.
        bound: the same case with inputs turned into constants, if there is one.
        exact: computes the outputs for inputs in double the bits, if there is a way.
    """

    name: str
    group: str
    text: str
    inputs: Sequence[Array]
    expected: Sequence[Array]
    tolerances: Sequence[Tolerance]
    bound: Case | None = None
    exact: Exact | None = None


@dataclass(frozen=True)
class Verdict:
    """The result of one case.

    Attributes:
        why: the message, if it did not pass.
        seconds: of compiling and running.
    """

    name: str
    group: str
    verdict: str
    why: str = ""
    seconds: float = 0.0

    @property
    def operation(self) -> str:
        """The operation that the message names; "other" if it names none."""
        found = OPERATION.search(self.why)
        if found is None:
            return "other"
        target = CUSTOM_CALL.search(self.why) if found[0].endswith("custom_call") else None
        return found[0] + (f" {target[0]}" if target else "")


def judge(case: Case) -> Verdict:
    """Compile and run one case, and compare its outputs.

    If it is refused, try again with constants in place of its inputs.
    """
    found = _judged(case)
    if found.verdict != "refused" or case.bound is None:
        return found
    again = _judged(case.bound)
    if again.verdict in PASSED:
        return replace(again, verdict="bound", why=found.why)
    return found if again.verdict == "refused" else again


def _judged(case: Case) -> Verdict:
    start = perf_counter()

    def verdict(kind: str, why: str = "") -> Verdict:
        seconds = round(perf_counter() - start, 3)
        return Verdict(case.name, case.group, kind, why[:MOST_WHY], seconds)

    try:
        with limited(SECONDS), np.errstate(all="ignore"):
            exe = compile_model(StableHloModel(case.text), TARGET, cache=False)
            names = [each.name for each in exe.inputs]
            found = exe.run(dict(zip(names, parts_of(case.inputs), strict=True)))
            results = [found[each.name] for each in exe.outputs]
    except (InputError, DoesNotFit) as error:
        return verdict("refused", str(error))
    except Exception as error:
        return verdict("crashed", f"{type(error).__name__}: {error}")
    sums = SUMS.search(case.text) is not None
    results = _joined(results, case.expected)
    found, why = compared(results, case.expected, case.tolerances, sums=sums)
    if found == "wrong" and case.exact is not None:
        near = as_exact(results, case.expected, case.exact(case.inputs)) or (
            SOLVERS.search(case.text) is not None and within_condition(results, case, case.exact)
        )
        found = "near" if near else found
    return verdict(found, why)


def parts_of(arrays: Sequence[Array]) -> list[Array]:
    """Arrays, with the real and the imaginary parts in place of each of complex numbers."""
    return [
        part
        for each in arrays
        for part in ((np.real(each), np.imag(each)) if each.dtype.kind == "c" else (each,))
    ]


def _joined(found: Sequence[Array], expected: Sequence[Array]) -> list[Array]:
    """The outputs of a program, with a complex array in place of both parts where one is due."""
    rest, made = list(found), list[Array]()
    for each in expected:
        if each.dtype.kind == "c" and len(rest) > 1 and rest[0].dtype == np.real(each).dtype:
            made.append(complex_of(rest.pop(0), rest.pop(0)))
        elif rest:
            made.append(rest.pop(0))
    return [*made, *rest]


def complex_of(real: Array, imag: Array) -> Array:
    """The complex numbers with these parts, to the bit."""
    parts = np.stack([real, imag], axis=-1)
    return parts.view(np.result_type(parts.dtype, np.complex64)).reshape(real.shape)


@contextmanager
def limited(seconds: int) -> Generator[None]:
    """Raise TimeoutError in the main thread after some seconds."""

    def stop(number: int, frame: FrameType | None) -> None:
        del number, frame
        raise TimeoutError(f"more than {seconds} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def compared(
    found: Sequence[Array],
    expected: Sequence[Array],
    tolerances: Sequence[Tolerance],
    *,
    sums: bool = False,
) -> tuple[str, str]:
    """The verdict on outputs, and why.

    Args:
        sums: whether elements are sums.
    """
    if len(found) != len(expected):
        return "wrong", f"{len(found)} outputs; need {len(expected)}"
    verdict, why = "passed", ""
    for i, (mine, other, allowed) in enumerate(zip(found, expected, tolerances, strict=True)):
        if (mine.shape, mine.dtype) != (other.shape, other.dtype):
            kinds = [f"{each.dtype.name}{list(each.shape)}" for each in (mine, other)]
            return "wrong", f"output {i}: {kinds[0]}; need {kinds[1]}"
        if allowed == OPEN:
            continue
        problem = _difference(mine, other, allowed)
        near = within_steps(mine, other) or within_rounding(mine, other, allowed.relative * sums)
        if problem and not near:
            return "wrong", f"output {i}: {problem}"
        if problem:
            verdict, why = "near", f"output {i}: {problem}"
    return verdict, why


def _difference(found: Array, expected: Array, allowed: Tolerance) -> str:
    """How two arrays of one shape and element type differ beyond a tolerance; "" if they do not."""
    if found.dtype.kind == "c":
        error, size = _of_parts(found, expected)
        apart = ~(error <= allowed.absolute + allowed.relative * size)
        worst = f", by at most {np.nanmax(error, initial=0.0):.3g}"
    elif not is_floating(found.dtype):
        apart = found != expected
        worst = ""
    else:
        mine, other = found.astype(np.float64), expected.astype(np.float64)
        same = (mine == other) | (np.isnan(mine) & np.isnan(other))
        with np.errstate(all="ignore"):
            error = np.where(same, 0.0, np.abs(mine - other))
            apart = ~same & ~(error <= allowed.absolute + allowed.relative * np.abs(other))
        worst = f", by at most {np.nanmax(error, initial=0.0):.3g}"
    if not apart.any():
        return ""
    first = tuple(int(i) for i in np.argwhere(apart)[0])
    return (
        f"{int(apart.sum())} of {apart.size} elements differ{worst}; the first is at {first}: "
        f"{found[first]}, expected {expected[first]}"
    )


def as_exact(found: Sequence[Array], expected: Sequence[Array], exact: Sequence[Array]) -> bool:
    """Whether complex outputs are at most STEPS times as far from exact ones as the expected are.

    It compares the largest distance, as a share of the exact number's distance from 0.
    """
    if any(each.dtype.kind != "c" for each in (*found, *expected)):
        return False
    for mine, other, wide in zip(found, expected, exact, strict=True):
        if mine.shape != other.shape or other.shape != wide.shape:
            return False
        worst: list[float] = []
        for each in (mine, other):
            apart, size = _of_parts(each, wide)
            shares = np.divide(apart, size, out=apart.copy(), where=size > 0)
            worst.append(float(shares.max(initial=0.0)))
        if not worst[0] <= STEPS * worst[1] < 1:
            return False
    return True


def within_condition(found: Sequence[Array], case: Case, exact: Exact) -> bool:
    """Whether float outputs are as near to exact ones as the rounding of inputs lets them be.

    All elements of the inputs move at random, by at most one step of the largest one, MOVES times.
    Each element of an output may be STEPS times as far from the exact one as that moves at most, or
    within the tolerance. A backward stable algorithm stays within about such a distance.
    """
    draw = np.random.default_rng(0)
    given = [each.astype(np.float64) if is_floating(each.dtype) else each for each in case.inputs]
    steps = [_step(each) if is_floating(each.dtype) else 0.0 for each in case.inputs]
    right = exact(given)
    pairs = list(zip(found, right, strict=True))
    if any(a.shape != b.shape or not is_floating(a.dtype) for a, b in pairs):
        return False
    reach: list[Array] = [
        allowed.absolute + allowed.relative * np.abs(each)
        for each, allowed in zip(right, case.tolerances, strict=True)
    ]
    for _ in range(MOVES):
        moved = exact(
            [
                each + draw.uniform(-1, 1, each.shape) * step if step else each
                for each, step in zip(given, steps, strict=True)
            ]
        )
        reach = [
            np.maximum(most, STEPS * np.abs(other - each))
            for most, other, each in zip(reach, moved, right, strict=True)
        ]
    return all(
        bool((np.isfinite(most) & (np.abs(mine - each) <= most)).all())
        for (mine, each), most in zip(pairs, reach, strict=True)
    )


def _of_parts(found: Array, expected: Array) -> tuple[Array, Array]:
    """How far apart complex numbers are, and how far the expected ones are from 0.

    A part that is infinite or NaN must be so in both, and does not count otherwise.
    """
    apart, size = np.zeros(found.shape), np.zeros(found.shape)
    for part in (np.real, np.imag):
        mine: Array = part(found)
        other: Array = part(expected)
        same = (mine == other) | (np.isnan(mine) & np.isnan(other))
        with np.errstate(all="ignore"):
            wide = np.abs(mine.astype(np.float64) - other)
        apart = np.hypot(apart, np.where(same, 0.0, np.where(np.isfinite(wide), wide, np.inf)))
        size = np.hypot(size, np.where(np.isfinite(other), other, 0.0))
    return apart, size


def within_steps(found: Array, expected: Array) -> bool:
    """Whether two arrays of 16-bit floats are at most STEPS apart; NaN is 0 steps from NaN."""
    if not is_floating(found.dtype) or found.dtype.itemsize != np.dtype(np.int16).itemsize:
        return False
    nans = [np.isnan(each.astype(np.float32)) for each in (found, expected)]
    steps = np.abs(_position(found) - _position(expected))
    return bool((np.where(nans[0], 0, steps)[nans[0] == nans[1]] <= STEPS).all()) and bool(
        (nans[0] == nans[1]).all()
    )


def _position(array: Array) -> NDArray[np.int64]:
    """The position of each 16-bit float in the order of all, from 0 for both zeros."""
    bits = np.ascontiguousarray(array).view(np.int16).astype(np.int64)
    return np.where(bits < 0, -(bits & 0x7FFF), bits)


def within_rounding(found: Array, expected: Array, share: float = 0.0) -> bool:
    """Whether floats differ by at most one step of the largest finite element that is expected.

    Args:
        share: 0 if the elements are no sums. Sums may also differ by this share of the largest
            element, and sums of 16 bits by STEPS of its steps.
    """
    if found.dtype.kind == "c":
        mine, other = (np.stack([np.real(each), np.imag(each)]) for each in (found, expected))
        return within_rounding(mine, other, share)
    narrow = found.dtype.itemsize == np.dtype(np.int16).itemsize
    if not is_floating(found.dtype) or (found.dtype != np.float32 and not (narrow and share)):
        return False
    mine, other = found.astype(np.float64), expected.astype(np.float64)
    most = max(_step(expected) * (STEPS if narrow else 1), share * _largest(expected))
    with np.errstate(all="ignore"):
        same = (mine == other) | (np.isnan(mine) & np.isnan(other))
        return bool((same | (np.abs(mine - other) <= most)).all())


def _step(array: Array) -> float:
    """The step between floats at the largest finite magnitude of an array; at 1 if all are 0."""
    epsilon = cast("float", ml_dtypes.finfo(array.dtype).eps)
    return float(epsilon) * 2.0 ** floor(log2(_largest(array) or 1.0))


def _largest(array: Array) -> float:
    """The largest finite magnitude of floats; 0 if there is none."""
    values = np.abs(array.astype(np.float64))
    return float(values[np.isfinite(values)].max(initial=0))
