"""How programs of users' levels run: as the programs of abele's levels that they mean.

A user says of each operation of a level what it means, in operations of the level that the added
one is like; or how it is computed on arrays; or of the whole level that its programs run only once
they are lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...ir.level import Level
from ...ir.provenance import located, place
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ...ir.support.user_entries import add_entry
from ...ir.upstream import Builder, InsertPoint, ModuleOp, VerifyException
from ...ir.verify import verify
from ...ir.xdsl.walk import operations
from ..target import Target

Meaning = Callable[[Any, Builder], Sequence[SSAValue]]
"""Builds what an operation means. Returns one value per result."""

Evaluator = Callable[[Any, Sequence[Array]], Sequence[Array]]
"""Computes the results of an operation from those of its operands, as whole tensors."""

Lower = Callable[[ModuleOp, Target], Level]
"""Lowers a module, in place, to the level below its own, and returns that."""

MEANINGS: dict[str, Meaning] = {}
"""What operations of users' levels mean, by their names."""

EVALUATORS: dict[str, Evaluator] = {}
"""What computes operations of users' levels that have no meaning in other operations."""

LOWERED: dict[str, Lower] = {}
"""The users' levels, by name, whose programs run at the level below, and what leads there."""

MOST_ROUNDS = 64
"""The most times in a row that what an operation means has operations with meanings in it."""


def register_meaning(op: type[Operation], meaning: Meaning, owner: str) -> None:
    """Let an operation mean others. Raises InputError if it has a meaning already."""
    add_entry(MEANINGS, "meaning of operation", op.name, meaning, owner, EVALUATORS)


def register_evaluator(op: type[Operation], evaluator: Evaluator, owner: str) -> None:
    """Let a function compute an operation. Raises InputError if it has a meaning already."""
    add_entry(EVALUATORS, "evaluator of operation", op.name, evaluator, owner, MEANINGS)


def runs_lowered(level: Level) -> bool:
    """Whether programs of a level run only once they are lowered."""
    return level.name in LOWERED


def as_own(level: Level, module: ModuleOp, target: Target) -> tuple[Level, ModuleOp]:
    """A level of abele's, and a module that does there what the given one does.

    A module of one of abele's levels is returned as it is. Any other module stays as it is too.
    Raises InputError if a meaning is wrong, and what lowering raises.
    """
    while level.like is not None and level.name in LOWERED:
        lower, module = LOWERED[level.name], module.clone()
        level = lower(module, target)
    if level.like is None:
        return level, module
    return level.form, meant(level, module)


def meant(level: Level, module: ModuleOp) -> ModuleOp:
    """A clone of a module in which operations are replaced by what they mean.

    Raises InputError if an operation means operations without end, if the number of values is
    wrong, and if the clone does not verify.
    """
    clone, rounds = module.clone(), 0
    while found := [op for op in operations(clone) if op.name in MEANINGS]:
        if rounds == MOST_ROUNDS:
            raise InputError(f"{found[0].name} at {place(found[0])}: it means itself, without end")
        rounds += 1
        for op in found:
            # The meaning of an operation around it may have replaced it already.
            if op.get_toplevel_object() is clone:
                _replace(op)
    try:
        # An evaluator may compute operations that are not legal on a level of abele's.
        verify(clone, replace(level.form, open=True))
    except VerifyException as error:
        raise InputError(f"what operations of {level} mean does not verify: {error}") from None
    return clone


def _replace(op: Operation) -> None:
    builder = Builder(InsertPoint.before(op))
    with located(builder, op):
        values = MEANINGS[op.name](op, builder)
    if len(values) != len(op.results):
        raise InputError(
            f"{op.name} at {place(op)}: its meaning returns {len(values)} values; need "
            f"{len(op.results)}"
        )
    for result, value in zip(op.results, values, strict=True):
        result.replace_all_uses_with(value)
    op.detach()
    op.erase()


def computed(
    op: Operation, operands: Sequence[Array], kinds: Sequence[tuple[tuple[int, ...], np.dtype[Any]]]
) -> list[Array]:
    """The results of an operation that has an evaluator, as its types say.

    Raises InputError if the evaluator returns anything else.

    Args:
        kinds: the shape and the dtype of each result.
    """
    found = EVALUATORS[op.name](op, operands)
    shapes = [np.shape(each) for each in found]
    wanted = [shape for shape, _ in kinds]
    if shapes != wanted:
        listed = [list(each) for each in shapes]
        raise InputError(
            f"{op.name} at {place(op)}: its evaluator returns arrays of {listed}; need "
            f"{[list(each) for each in wanted]}"
        )
    return [np.asarray(each, dtype) for each, (_, dtype) in zip(found, kinds, strict=True)]
