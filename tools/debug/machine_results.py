"""The results of a machine's runs, and differences between the bits of two runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...backends.machine import Machine
from ...ir.support.errors import one_line
from ...ir.support.number_kinds import is_floating
from ..driver.arrays import Array


@dataclass(frozen=True)
class Results:
    """The outputs and the final states of a run, by name.

    Attributes:
        fault: the error that ended the run, in words; "" if it ended with results.
        unequal: the states of which two tiles hold different bits of the same elements.
    """

    outputs: Mapping[str, Array]
    states: Mapping[str, Array] = field(default_factory=dict[str, Array])
    fault: str = ""
    unequal: Sequence[str] = ()


@dataclass(frozen=True)
class Difference:
    """The first output or state whose bits differ between two runs.

    Attributes:
        what: its name, as in "output 'y'".
        index: of the first different element; None if the two shapes differ, or if only one run
            ended with results.
        count, size: the number of different elements, and of all elements.
    """

    what: str
    found: object
    right: object
    index: tuple[int, ...] | None = None
    count: int = 0
    size: int = 0

    def words(self, found: str, right: str) -> str:
        """The difference in words.

        Args:
            found, right: the names of the two runs.
        """
        if self.index is None:
            return f"{self.what}: {self.found} in {found}; {self.right} in {right}"
        return (
            f"{self.what}: {self.count} of {self.size} elements differ; element "
            f"{list(self.index)} is {self.found!r} in {found} and {self.right!r} in {right}"
        )


def difference(found: Results, right: Results) -> Difference | None:
    """The difference of two runs; None if all bits are equal.

    All NaN are equal: an operation on two NaN may return either.
    """
    if found.fault or right.fault:
        first, second = (each.fault or "it ends with results" for each in (found, right))
        return None if found.fault == right.fault else Difference("the run", first, second)
    kinds = ("output", found.outputs, right.outputs), ("state", found.states, right.states)
    for kind, got, wanted in kinds:
        for name, expected in wanted.items():
            if name in got:
                differs = _first(f"{kind} {name!r}", got[name], expected)
                if differs is not None:
                    return differs
    return None


def _first(what: str, found: Array, right: Array) -> Difference | None:
    if found.shape != right.shape:
        return Difference(what, f"shape {list(found.shape)}", f"shape {list(right.shape)}")
    apart = _bits(found) != _bits(right)
    if not apart.any():
        return None
    if is_floating(right.dtype):
        apart &= ~(np.isnan(found.astype(np.float64)) & np.isnan(right.astype(np.float64)))
        if not apart.any():
            return None
    at = tuple(int(i) for i in np.unravel_index(int(apart.argmax()), apart.shape))
    count = int(np.count_nonzero(apart))
    return Difference(what, _number(found[at]), _number(right[at]), at, count, apart.size)


def _bits(array: Array) -> Array:
    return array if array.dtype.kind == "b" else array.view(f"u{array.dtype.itemsize}")


def _number(element: Any) -> object:
    """An element as a number of Python, which has a short text."""
    return float(element) if is_floating(element.dtype) else int(element)


def first_states(machine: Machine) -> dict[str, Array]:
    """The first value of each state of a machine's program, by name."""
    return {
        name: op.initial.array.reshape(op.tensor.get_shape())
        for name, op in machine.variables.items()
        if op.state is not None and op.initial is not None
    } | {name: op.first_value for name, op in machine.remote_states.items()}


def results_of(machine: Machine, inputs: Mapping[str, Array]) -> Results:
    """The results of a machine's run, from its current states."""
    try:
        outputs = machine.run(inputs)
    except MemoryError:
        raise
    except Exception as error:
        return Results({}, fault=one_line(error))
    return Results(outputs, states_of(machine))


def states_of(machine: Machine) -> dict[str, Array]:
    """The current states of a machine, by name."""
    return {name: machine.read(name) for name in first_states(machine)}
