"""Operations between processes, in a program that runs as one: all groups have one process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.ir import SSAValue

from ...dialects import nn, stablehlo
from .conversion import Lower, ToNn

INSTEAD = "a program runs as one process, and --replicas and the planner use several chips"


def _alone(op: Any, new: ToNn) -> Sequence[SSAValue]:
    """The values themselves."""
    count = op.groups.shape[1]
    if count != 1:
        raise new.unsupported(f"a group of {count} processes", INSTEAD)
    return _same(op, new)


def _same(op: Any, new: ToNn) -> Sequence[SSAValue]:
    for value, made in zip(op.inputs, op.made, strict=True):
        if value.type != made.type:
            raise new.bad(f"one process makes {made.type} of {value.type}")
    return new.operands(op)


def _permuted(op: stablehlo.CollectivePermuteOp, new: ToNn) -> Sequence[SSAValue]:
    """The values themselves if the process sends to itself; else zeros."""
    if op.pairs.any():
        raise new.unsupported(f"a process {int(op.pairs.max())}", INSTEAD)
    if op.pairs.size:
        return _same(op, new)
    zeros = (new.number(0, value) for value in _same(op, new))
    return [new.expand(each, nn.shape_of(made)) for each, made in zip(zeros, op.made, strict=True)]


def _number(op: Any, new: ToNn) -> Sequence[SSAValue]:
    return [new.constant(np.uint32(0))]


TABLE: Mapping[str, Lower] = {
    **{each.name: _alone for each in stablehlo.GROUPED},
    "stablehlo.collective_permute": _permuted,
    "stablehlo.partition_id": _number,
    "stablehlo.replica_id": _number,
}
"""What lowers each operation between processes, by name."""
