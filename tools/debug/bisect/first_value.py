"""Find the first value that differs between a right and a wrong program."""

from __future__ import annotations

import numpy as np
from xdsl.ir import Operation

from ....backends.op_check import tile_of
from ....ir.provenance import line_of
from ....ir.upstream import ModuleOp
from ...driver.arrays import Array
from ..run_check import relative_error
from ..run_level import ComputedValue
from .judge import Judge
from .made_from import is_step, made_from, node_of
from .verdict import WrongValue

MOST_ITERATIONS = 32
"""The most values kept of each operation. In a loop, these are the values of the first
iterations."""


def first_wrong_value(judge: Judge, right: ModuleOp, wrong: ModuleOp) -> WrongValue | None:
    """The first value, in program order, that differs between a right and a wrong program."""
    expected = _Expected(judge.allowed)
    judge.run(right, expected.keep)
    try:
        judge.run(wrong, expected.compare)
    except _FirstWrong as first:
        return first.value
    # A failed run still has a worst value up to its failure.
    except Exception:
        return expected.worst
    return expected.worst


class _FirstWrong(Exception):
    """Ends a run at its first wrong value."""

    def __init__(self, value: WrongValue) -> None:
        super().__init__()
        self.value = value


class _Expected:
    """The values of a right run by the nodes they come from, and how other runs differ from them.

    Attributes:
        allowed: the largest error for an output.
        worst: the largest allowed difference so far.
    """

    def __init__(self, allowed: float) -> None:
        self.allowed = allowed
        self.worst: WrongValue | None = None
        self._known: dict[tuple[str, ...], list[Array]] = {}
        self._with_steps: set[tuple[str, ...]] = set()

    def keep(self, value: ComputedValue) -> None:
        """Record a value of the right run."""
        names = made_from(value.op)
        known = self._known.setdefault(names, []) if names else []
        if len(known) < MOST_ITERATIONS:
            known.append(value.values)
        if is_step(value.op):
            self._with_steps.add(names)

    def compare(self, value: ComputedValue) -> None:
        """Raise _FirstWrong if a value has counterparts and differs from all of them.

        If a wrong operation has read a variable with wrong contents, the variable is to blame. An
        intermediate operation of a replacement has a counterpart only if the replaced operations
        had intermediate operations, too.
        """
        if is_step(value.op) and self._counterpart(value.op) not in self._with_steps:
            return
        found = self._deviation(value.op, value.values)
        if found is None:
            return
        expected, error = found
        if error <= self.allowed:
            if self.worst is None or error > (self.worst.error or 0.0):
                self.worst = _wrong(value, expected, error)
            return
        for held in value.operands():
            deviation = self._deviation(held.variable, held.values)
            if deviation is not None and deviation[1] > self.allowed:
                name = held.variable.symbol
                one = ComputedValue(held.variable, held.values, held.variable.placed, name)
                raise _FirstWrong(_wrong(one, *deviation))
        raise _FirstWrong(_wrong(value, expected, error))

    def _counterpart(self, op: Operation) -> tuple[str, ...] | None:
        """The key of the values that an operation should reproduce; None if there are no such
        values.

        The key is all nodes that it was made from, or the longest tail of them with known
        values: the result of a rule replaces the root, which is the last operation that the rule
        matches.
        """
        names = made_from(op)
        ends = (names[start:] for start in range(len(names)))
        return next((each for each in ends if each in self._known), None)

    def _deviation(self, op: Operation, values: Array) -> tuple[Array, float] | None:
        """The nearest counterpart and its distance; None if there is no counterpart or no
        difference.
        """
        known = self._counterpart(op)
        if known is None:
            return None
        candidates = [
            each.reshape(values.shape)
            for each in self._known[known]
            if each.size == values.size and each.dtype.kind == values.dtype.kind
        ]
        distances = [(relative_error(values, each), each) for each in candidates]
        if not distances:
            return None
        error, expected = min(distances, key=lambda pair: pair[0])
        return (expected, error) if error > 0 else None


def _wrong(value: ComputedValue, expected: Array, error: float) -> WrongValue:
    found = value.values
    with np.errstate(all="ignore"):
        distance = np.abs(found.astype(np.float64) - expected.astype(np.float64))
    # An element that is NaN on one side only has the largest distance.
    distance = np.where(np.isnan(distance) & (found != expected), np.inf, distance)
    at = tuple(int(i) for i in np.unravel_index(int(distance.argmax()), found.shape))
    tile = None
    if value.layout is not None:
        row = int(np.ravel_multi_index(at, found.shape)) if at else 0
        viewed = tuple(int(i) for i in np.unravel_index(row, value.layout.shape))
        tile = tile_of(value.layout, viewed)
    return WrongValue(
        value.op.name,
        node_of(value.op),
        value.variable,
        at,
        float(found[at]),
        float(expected[at]),
        error,
        tile,
        line=line_of(value.op),
    )
