"""The health of what a program computes: counts of the results of each operation of a run.

A second machine repeats the run, from the same states and on the same inputs. It writes every byte,
which the program's own machine need not do, and its results are counted as they are computed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from ....backends.host.binders import best_binder
from ....backends.machine import Machine, Observer
from ....dialects.control import RepeatOp
from ....dialects.settable import listed_names
from ....ir.support.arrays import Array
from ....ir.support.number_kinds import is_floating
from ....ir.upstream import LocationAttr
from ....ir.well_known import TRAINED
from ..host_memory import refuse_too_little_memory
from ..modules import MACHINE
from .tally import Tally, tally

if TYPE_CHECKING:
    from ....dialects.steps import Vertices
    from ..executable import Executable

Key = tuple[int, LocationAttr, np.dtype[Any]]
"""The number of a step in its run, a location, and the type of results."""


@dataclass(frozen=True)
class Seen:
    """The counts of the results that operations of one location have in one step.

    Attributes:
        step: the number of the step in the run, from 0.
        dtype: the type of the results.
    """

    step: int
    location: LocationAttr
    dtype: np.dtype[Any]
    tally: Tally


class WatchedProgram:
    """A program on a machine of its own, whose results are counted.

    It takes as much memory of the host as the program itself, once it is used.
    """

    def __init__(self, exe: Executable) -> None:
        self._exe = exe

    def run(self, inputs: Mapping[str, Array], states: Mapping[str, Array]) -> list[Seen]:
        """The counts of a run, in the order in which results are computed.

        Raises InputError if this host has too little memory, and for inputs that do not fit.

        Args:
            states: all that a run may change, as it is before the run.
        """
        machine, look = self._machine
        look.begin()
        for name, values in states.items():
            machine.write(name, values)
        machine.run(inputs)
        return [Seen(*key, counts) for key, counts in look.found.items()]

    @cached_property
    def steps(self) -> int:
        """How many steps a run does."""
        trains = listed_names(self._exe.module_at(MACHINE), TRAINED) is not None
        return self._exe.training.steps if trains else 1

    @cached_property
    def _machine(self) -> tuple[Machine, _Look]:
        exe = self._exe
        module = exe.module_at(MACHINE)
        refuse_too_little_memory(exe.memory)
        look = _Look(self.steps)
        binder = best_binder(is_watched=True)
        return Machine(module, exe.target, observers=[look], binder=binder), look


@dataclass
class _Look(Observer):
    """Counts the results of vertices.

    Attributes:
        steps: how many steps a run does. If there are several, the first loop that begins with a
            number has an iteration for each.
    """

    steps: int
    found: dict[Key, Tally] = field(default_factory=dict[Key, Tally])
    _step: int = 0
    _loop: RepeatOp | None = None

    def begin(self) -> None:
        """Forget the run before."""
        self.found, self._step, self._loop = {}, 0, None

    def on_iteration(self, op: RepeatOp, machine: Machine) -> None:
        """Count the steps of the run."""
        if self.steps == 1:
            return
        if self._loop is None:
            self._loop = op
        elif op is self._loop:
            self._step += 1

    def on_compute(self, op: Vertices, machine: Machine) -> None:
        """Count the results of vertices."""
        for name in op.destinations:
            dtype = machine.variables[name].dtype
            if is_floating(dtype):
                key = self._step, op.location, dtype
                counts = tally(machine.read(name))
                self.found[key] = self.found.get(key, Tally()) | counts
