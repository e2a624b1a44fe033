"""Checks operations against the variables and states that they name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any, TypeVar, cast

import numpy as np
from xdsl.ir import Operation

from ..ir.provenance import place
from ..ir.upstream import ModuleOp, VerifyException
from ..ir.xdsl.walk import operations
from . import exchange, nn, partition
from .abele import LayoutAttr
from .control import ITERATION_NUMBER, RepeatOp, run_around
from .partition import PartitionTensor, verify_moves, verify_result_types
from .tile import IN_A_SUPERSTEP, CopyOp, InputOp, OutputOp, ReadOp, SuperstepOp, VerticesOp
from .variable import Variable

T = TypeVar("T")

_OfState = nn.LoadOp | nn.StoreOp | partition.LoadOp | partition.StoreOp


def verify_symbols(module: ModuleOp) -> None:
    """Check that the variables an operation names exist, in the layouts that it needs.

    Where variables have addresses, each step of the program must be in a superstep. A state that a
    loop of runs stores to is loaded and stored to in this loop alone.
    Raises VerifyException naming the operation, the variable and what is wrong.
    """
    ops = module.body.block.ops
    declared = _Declared(
        {op.symbol: op for op in ops if isinstance(op, Variable)},
        {op.sym_name.data: op.type for op in ops if isinstance(op, partition.StateOp)},
    )
    on_bytes = any(isinstance(op, exchange.VariableOp) for op in ops)
    of_states: list[_OfState] = []
    for op in operations(module):
        kind = type(op)
        if _is_of_state(kind):
            of_states.append(cast(_OfState, op))
        check = _check_of(kind)
        if check is None:
            continue
        try:
            check(op, declared)
            if on_bytes:
                _verify_superstep(op)
        except VerifyException as error:
            raise VerifyException(f"{op.name} at {place(op)}: {error}") from None
    _verify_runs(of_states)


@dataclass(frozen=True)
class _Declared:
    """What operations name: variables and states."""

    variables: Mapping[str, Variable]
    states: Mapping[str, PartitionTensor]


def _named(name: str, known: Mapping[str, T], what: str) -> T:
    if name not in known:
        raise VerifyException(f"no {what} @{name}")
    return known[name]


def verify_use(op: VerticesOp | CopyOp, variables: Mapping[str, Variable]) -> None:
    """Check an operation against the variables that it names. Raises VerifyException."""
    sources = [_named(n, variables, "variable") for n in op.sources]
    destination, *further = (_named(n, variables, "variable") for n in op.destinations)
    if isinstance(op, VerticesOp):
        made = (destination, *further)
        verify_result_types(op.body.data, [each.tensor.element_type for each in made])
        for variable, need in zip((*sources, *made), op.layouts(), strict=True):
            if variable.placed != need:
                raise VerifyException(
                    f"@{variable.symbol} has layout {LayoutAttr(variable.placed).text()}; the "
                    f"split needs {LayoutAttr(need).text()}"
                )
        return
    verify_moves(op.moves, [v.placed.shape for v in sources], destination.placed.shape)
    for v in sources:
        if v.dtype != destination.dtype:
            raise VerifyException(f"copies {v.dtype} @{v.symbol} into {destination.dtype}")
        if not v.placed.is_partition:
            raise VerifyException(f"blocks of @{v.symbol} overlap: elements have no one owner")


def _verify_program(op: VerticesOp | CopyOp, declared: _Declared) -> None:
    verify_use(op, declared.variables)


def _verify_superstep(op: Operation) -> None:
    if isinstance(op, IN_A_SUPERSTEP) and not isinstance(op.parent_op(), SuperstepOp):
        raise VerifyException("in no superstep; need one around it, as variables have addresses")


def _verify_host(op: InputOp | OutputOp, declared: _Declared) -> None:
    name = (op.writes if isinstance(op, InputOp) else op.reads).string_value()
    variable = _named(name, declared.variables, "variable")
    if prod(op.tensor.get_shape()) != prod(variable.placed.shape):
        raise VerifyException(f"@{name} is {variable.tensor}; the host's tensor is {op.tensor}")
    if op.tensor.element_type != variable.tensor.element_type:
        raise VerifyException(f"@{name} is {variable.tensor}; the host's tensor is {op.tensor}")


def _verify_predicate(op: ReadOp, declared: _Declared) -> None:
    variable = _named(op.variable.string_value(), declared.variables, "variable")
    if variable.dtype != np.bool_ or prod(variable.placed.shape) != 1:
        raise VerifyException(f"@{variable.symbol} is {variable.tensor}; need a single i1")


def _verify_iteration(op: RepeatOp, declared: _Declared) -> None:
    name = op.iteration_variable
    if name is not None:
        variable = _named(name, declared.variables, "variable")
        if variable.tensor != ITERATION_NUMBER or variable.is_resident:
            raise VerifyException(
                f"@{name} is {variable.tensor}; need a temporary {ITERATION_NUMBER}"
            )


def _verify_state(op: partition.LoadOp | partition.StoreOp, declared: _Declared) -> None:
    value = op.result if isinstance(op, partition.LoadOp) else op.value
    type_ = _named(op.state.string_value(), declared.states, "state")
    if value.type != type_:
        raise VerifyException(f"{op.state} is {type_}; the operation says {value.type}")


def _verify_runs(ops: Sequence[_OfState]) -> None:
    """Check that a state which a loop of runs stores to is loaded and stored to only in it."""
    loops = {
        op.state.string_value(): run
        for op in ops
        if isinstance(op, nn.StoreOp | partition.StoreOp) and (run := run_around(op)) is not None
    }
    for op in ops:
        name = op.state.string_value()
        if name in loops and run_around(op) is not loops[name]:
            what = "is loaded" if isinstance(op, nn.LoadOp | partition.LoadOp) else "gets a value"
            raise VerifyException(
                f"{op.name} at {place(op)}: a loop of runs stores to state {name!r}, which {what} "
                "outside of it; move the operation into the loop"
            )


_CHECKS: dict[type[Operation], Callable[[Any, _Declared], None]] = {
    VerticesOp: _verify_program,
    CopyOp: _verify_program,
    InputOp: _verify_host,
    OutputOp: _verify_host,
    ReadOp: _verify_predicate,
    RepeatOp: _verify_iteration,
    partition.LoadOp: _verify_state,
    partition.StoreOp: _verify_state,
}
"""What has to hold between an operation and what it names."""


@cache
def _is_of_state(kind: type[Operation]) -> bool:
    return issubclass(kind, _OfState)


@cache
def _check_of(kind: type[Operation]) -> Callable[[Any, _Declared], None] | None:
    return next((check for known, check in _CHECKS.items() if issubclass(kind, known)), None)
