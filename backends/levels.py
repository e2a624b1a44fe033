"""How a program of each level runs: an interpreter, or the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from ..dialects import nn, partition
from ..dialects.levels import EXCHANGE, NN, PARTITION, STABLEHLO, TILE
from ..dialects.steps import first_values
from ..ir.level import Level
from ..ir.support.arrays import Array
from ..ir.upstream import ModuleOp
from .evaluate.partition import run_partition
from .evaluate.tile import run_tile
from .evaluate.users_levels import as_own
from .host.binders import best_binder
from .machine import Machine
from .reference import run_reference
from .stablehlo import run_stablehlo
from .target import Target


class Runner(Protocol):
    """A loaded program. Its state (weights, counters) keeps its values between runs."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Run @main once; outputs by name."""
        ...

    @property
    def states(self) -> Mapping[str, Array]:
        """The value of each state that a run may change, by name."""
        ...

    def state(self, name: str) -> Array:
        """The value of one state."""
        ...

    def set_state(self, name: str, value: Array) -> None:
        """Set the value that the next run finds in a state."""
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

    @property
    def states(self) -> dict[str, Array]:
        first = initial_states(self._module)
        return first if self._state is None else {name: self._state[name] for name in first}

    def state(self, name: str) -> Array:
        return self.states[name]

    def set_state(self, name: str, value: Array) -> None:
        self._state = {**initial_states(self._module), **(self._state or {}), name: value}


def initial_states(module: ModuleOp) -> dict[str, Array]:
    """The first value of each state of a program of any level, by name."""
    found: dict[str, Array] = {}
    for op in module.body.block.ops:
        if isinstance(op, nn.StateOp):
            found[op.sym_name.data] = op.value.array
        elif isinstance(op, partition.StateOp):
            found[op.sym_name.data] = op.initial.array
    return found | {name: first.array for name, first in first_values(module).items()}


def _interpreted_by(interpret: Interpreter) -> Callable[[ModuleOp, Target, bool], Runner]:
    return lambda module, target, strict: _Interpreted(interpret, module)


class _Loaded(Machine):
    """A machine, seen as a runner."""

    @property
    def states(self) -> dict[str, Array]:
        held = (name for name, op in self.variables.items() if op.state)
        return {name: self.read(name) for name in (*held, *self.remote_states)}

    def state(self, name: str) -> Array:
        return self.read(name)

    def set_state(self, name: str, value: Array) -> None:
        self.write(name, value)


def _machine(module: ModuleOp, target: Target, strict: bool) -> Runner:
    return _Loaded(module, target, strict=strict, binder=best_binder())


RUNNERS: dict[Level, Callable[[ModuleOp, Target, bool], Runner]] = {
    NN: _interpreted_by(run_reference),
    PARTITION: _interpreted_by(run_partition),
    TILE: _interpreted_by(run_tile),
    EXCHANGE: _machine,
}
"""What loads a module of each of abele's levels, given the target and whether the machine is
strict."""


SOURCE_RUNNERS: dict[Level, Callable[[ModuleOp, Target, bool], Runner]] = {
    STABLEHLO: _interpreted_by(run_stablehlo),
}
"""What loads a module of each level above nn."""


def loaded(level: Level, module: ModuleOp, target: Target, strict: bool = False) -> Runner:
    """A program of any level, ready to run. Raises what its evaluator raises.

    Args:
        strict: whether the machine is strict, which it can be at exchange alone.
    """
    if level in SOURCE_RUNNERS:
        return SOURCE_RUNNERS[level](module, target, strict)
    own, runnable = as_own(level, module, target)
    return RUNNERS[own](runnable, target, strict)
