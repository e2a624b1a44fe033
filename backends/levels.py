"""How a program of each level runs: an interpreter, or the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from numpy.typing import NDArray

from ..dialects.levels import EXCHANGE, NN, PARTITION, TILE
from ..ir.level import Level
from ..ir.upstream import ModuleOp
from .evaluate.partition import run_partition
from .evaluate.tile import run_tile
from .host.binders import best_binder
from .machine import Machine
from .reference import run_reference
from .target import Target

Array = NDArray[Any]


class Runner(Protocol):
    """A loaded program. Its state (weights, counters) keeps its values between runs."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run @main once; outputs by name."""
        ...


class _Run(Protocol):
    @property
    def outputs(self) -> dict[str, Array]: ...

    @property
    def state(self) -> dict[str, Array]: ...


class Interpreter(Protocol):
    """Runs a module once, from its initial state or from the given one."""

    def __call__(
        self,
        module: ModuleOp,
        inputs: Mapping[str, Array],
        state: Mapping[str, Array] | None = None,
        /,
    ) -> _Run:
        """Run @main once; outputs and the state afterwards, by name."""
        ...


class _Interpreted:
    """A program that an interpreter runs. It passes the state of one run to the next."""

    def __init__(self, interpret: Interpreter, module: ModuleOp) -> None:
        self._interpret = interpret
        self._module = module
        self._state: Mapping[str, Array] | None = None

    def run(self, inputs: Mapping[str, Array]) -> dict[str, Array]:
        done = self._interpret(self._module, inputs, self._state)
        self._state = done.state
        return done.outputs


def _interpreted_by(interpret: Interpreter) -> Callable[[ModuleOp, Target, bool], Runner]:
    return lambda module, target, strict: _Interpreted(interpret, module)


def _machine(module: ModuleOp, target: Target, strict: bool) -> Runner:
    return Machine(module, target, strict=strict, binder=best_binder())


RUNNERS: dict[Level, Callable[[ModuleOp, Target, bool], Runner]] = {
    NN: _interpreted_by(run_reference),
    PARTITION: _interpreted_by(run_partition),
    TILE: _interpreted_by(run_tile),
    EXCHANGE: _machine,
}
"""What loads a module of each level, given the target and whether the machine is strict."""
