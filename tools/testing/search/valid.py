"""Tests whether a program is valid by itself: it runs, and abele compiles it correctly.

A reproducer must be valid by itself, or its failure says nothing about the pass under test. So
shrinking keeps a smaller program only if the passes of abele that lead from its level to the
machine accept it and do not change its results.
"""

from __future__ import annotations

from collections.abc import Callable

from ....dialects.home import ADDRESS
from ....dialects.levels import LEVELS, NN, TILE
from ....dialects.steps import Superstep
from ....dialects.tile import VariableOp
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModuleOp, VerifyException
from ....passes.convert_nn_to_partition import ConvertNnToPartition
from ....passes.pipelines import (
    FROM_SOURCES,
    levels_below,
    passes_down,
    shorthand_from,
    with_target,
)
from ....passes.plans.planned import TARGET
from ....passes.schedule_supersteps import SUPERSTEP
from ..generators.program import Program, invalidity
from ..limits import TooLong, at_most
from ..oracle.oracles import run
from .failures import AtFault, StrategyFailed
from .judge import Judge
from .run import PassList, Refused
from .settings import CheckSettings


def valid_like(program: Program, limit: float) -> Callable[[Program], bool]:
    """A validity test of programs, with only the conditions that a given program meets.

    A smaller form of a program that abele does not compile correctly need not be compiled
    correctly.

    Args:
        limit: CPU seconds for one program.
    """
    needed = [each for each in (_runs, _compiles) if each(program, limit)]
    return lambda candidate: all(each(candidate, limit) for each in needed)


def _runs(program: Program, limit: float) -> bool:
    """Whether a program verifies and runs on its own level, in the strict mode of the machine."""
    if invalidity(program.module) is not None:
        return False
    try:
        with at_most(limit):
            run(program)
    except (MemoryError, KeyboardInterrupt):
        raise
    # Whatever an evaluator raises, the program cannot be run.
    except (Exception, TooLong):
        return False
    return True


def _compiles(program: Program, limit: float) -> bool:
    """Whether abele's own passes compile a program to the machine, with the same results."""
    passes = PassList(passes_to_the_machine(program))
    settings = CheckSettings(limit=limit, kernels=0, parts=0)
    judge = Judge(passes, settings, looks_for="value")
    try:
        return judge.wrong(program) is None
    except (Refused, AtFault, StrategyFailed, InputError, DoesNotFit, VerifyException):
        return False


def passes_to_the_machine(program: Program) -> tuple[str, ...]:
    """The rest of the default pipeline for a program, which may be partly decided."""
    module, level = program.module, program.level
    if level in FROM_SOURCES:
        return (*FROM_SOURCES[level], shorthand_from(NN))
    # The way out of a user's level leads to one of abele's levels, never to another user's level.
    used = [each for each in LEVELS if each.like is None or each == level]
    down = passes_down(used)
    names = [name for each in levels_below(level, used) for name in down[each]]
    if level == TILE:
        names = names[_steps_done(module) :]
    elif level == NN and TARGET in module.attributes:
        names = names[names.index(ConvertNnToPartition.name) :]
    return tuple(with_target(names, program.target.spelling()))


def _steps_done(module: ModuleOp) -> int:
    """The number of passes from tile to exchange that have run already."""
    ops = tuple(module.walk())
    if any(isinstance(op, Superstep) for op in ops):
        return 3
    variables = [op for op in ops if isinstance(op, VariableOp)]
    if variables and all(ADDRESS in op.attributes for op in variables):
        return 2
    return int(any(SUPERSTEP in op.attributes for op in ops))
