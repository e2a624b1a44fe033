"""What the operations of a network cost, for those who cut it into stages.

Cycles are the planner's estimates of the best split of each operation by itself. A function of
elements is computed with what it reads, so that it needs no sync of its own.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ...backends.links.links import routes_of
from ...backends.prices import cost
from ...backends.target import Target
from ...dialects import control, nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Movement, Structured
from ..gradients.way import read_by
from ..planner.candidates import splits
from ..planner.estimate import estimates
from ..planner.problem import Problem, movement_problem
from .cuts import Work


def work_of(
    main: FuncOp,
    forward: Sequence[Operation],
    others: Mapping[Operation, int],
    target: Target,
    *,
    is_trained: bool,
    with_cycles: bool = True,
) -> Work:
    """What the forward operations of a network cost.

    Args:
        others: the other operations of a micro-batch, each with the index of the forward operation
            that it belongs to.
        is_trained: whether the others are backward operations.
        with_cycles: whether cycles are wanted, and not only bytes.
    """
    count, alone = len(forward), target.one_chip
    at = {op: i for i, op in enumerate(forward)}
    cycles, held, stashed, working = (np.zeros(count) for _ in range(4))
    crossing = np.zeros(count + 1)
    for op, i in (*at.items(), *others.items()) if with_cycles else ():
        needed = _needed(op, alone)
        cycles[i] += needed.cycles
        working[i] = max(working[i], needed.bytes)
    for op, i in at.items():
        for value in op.results:
            users = {use.operation for use in value.uses}
            readers = [at[user] for user in users if user in at]
            crossing[i + 1 : max(readers, default=i) + 1] += _bytes(value)
            if is_trained and any(user in others for user in users):
                stashed[i] += _bytes(value)
    _hold(main, at, others, held, is_trained=is_trained)
    both_ways = 2 if is_trained else 1
    # Values that only later operations read are held while an operation computes.
    working += crossing[1:]
    crossing *= both_ways * _cycles_per_byte(target)
    return Work(cycles, held, stashed, crossing, working)


def _cycles_per_byte(target: Target) -> float:
    """The cycles that a byte takes from a chip to its neighbour; 0 if there is one chip."""
    if target.chips == 1:
        return 0.0
    seconds = routes_of(target.links).seconds(np.array([1]), np.array([1 << 20]))
    return float(seconds.max()) * target.clock_hz / (1 << 20)


def _hold(
    main: FuncOp,
    at: Mapping[Operation, int],
    others: Container[Operation],
    held: np.ndarray,
    *,
    is_trained: bool,
) -> None:
    """Add the bytes of weights and constants to the operations that read them first.

    A weight that is trained has a sum of gradients, and its share of what the optimiser keeps.

    Args:
        at: the index of each forward operation.
        others: as of `work_of`.
    """
    rest = 0
    for op in main.walk():
        if not isinstance(op, nn.LoadOp | nn.ConstantOp):
            continue
        readers = [at[user] for user in _users(op, at, others) if user in at]
        size = _bytes(op.results[0])
        if readers:
            summed = is_trained and isinstance(op, nn.LoadOp)
            held[min(readers)] += size + (_sum_bytes(op.results[0]) if summed else 0)
        elif isinstance(op, nn.LoadOp):
            rest += size
    if held.any():
        held *= 1 + rest / held.sum()


def _users(
    op: Operation, forward: Container[Operation], others: Container[Operation]
) -> Collection[Operation]:
    """The operations that read a weight, perhaps through others that only prepare it: those that
    are neither forward operations nor the other ones of a micro-batch."""
    found: dict[Operation, None] = {}
    pending = [op]
    while pending:
        for use in pending.pop().results[0].uses:
            user = use.operation
            if user not in found:
                found[user] = None
                if user not in forward and user not in others and len(user.results) == 1:
                    pending.append(user)
    return found


class Needed(NamedTuple):
    """What an operation needs on one chip, with its fastest split.

    Attributes:
        bytes: on all tiles, while it computes.
    """

    cycles: float = 0.0
    bytes: float = 0.0


def _needed(op: Operation, target: Target) -> Needed:
    """What an operation needs on one chip, by the planner's estimates."""
    if isinstance(op, control.RepeatOp):
        own = [_needed(each, target) for each in op.body.block.ops]
        most = max((each.bytes for each in own), default=0.0)
        return Needed(op.iterations * sum(each.cycles for each in own), most)
    if not isinstance(op, Structured | Movement):
        return Needed()
    result, *further = (numpy_dtype(nn.element_of(value)) for value in op.results)
    if isinstance(op, Movement):
        return _least(movement_problem(op.moves(), result), target)
    structure = op.structure()
    dtypes = tuple(numpy_dtype(nn.element_of(value)) for value in op.operands)
    resident = tuple(isinstance(value.owner, nn.LoadOp | nn.ConstantOp) for value in op.operands)
    problem = Problem(structure, dtypes, result, resident, further_dtypes=tuple(further))
    joins = not structure.space.of_kind("reduction") and not structure.space.relations
    found = _least(problem, target)
    # A function of elements is computed with what it reads.
    return Needed(found.cycles - cost.sync_cycles(target), 0.0) if joins else found


@lru_cache(maxsize=4096)
def _least(problem: Problem, target: Target) -> Needed:
    """What the fastest split of an operation needs."""
    found = estimates(problem, splits(problem, target.tiles), target, quick=False)
    best = int(found.cycles.argmin())
    return Needed(float(found.cycles[best]), float(found.temporary[best]) * target.tiles)


def _bytes(value: SSAValue) -> int:
    shape = nn.shape_of(value)
    return prod(shape) * numpy_dtype(nn.element_of(value)).itemsize


def _sum_bytes(value: SSAValue) -> int:
    """The bytes of a sum of gradients of a weight: its type is wide enough for sums."""
    return prod(nn.shape_of(value)) * numpy_dtype(nn.wide_element(nn.element_of(value))).itemsize


def makers(op: Operation) -> list[Operation]:
    """The operations that make what an operation reads."""
    return [v.owner for v in read_by(op) if isinstance(v.owner, Operation)]
