"""Generated programs of lower levels, and the level or stage for testing a pass."""

from __future__ import annotations

from random import Random

from ....dialects.levels import LEVELS, NN, SOURCES, STABLEHLO, STAGED
from ....ir.pass_levels import declared_levels
from ....ir.support.errors import DoesNotFit, InputError
from ....ir.upstream import ModulePass
from .decisions import lower
from .pipelines import pipelined
from .program import Program
from .replicas import shared
from .stablehlo_programs.program import random_program


def at_level(program: Program, level: str) -> Program | None:
    """A generated program of nn, lowered to a level by random decisions.

    Some programs for several chips are shared among replicas first, and some become pipelines. The
    seed of its sketch seeds the decisions. Returns None if the program does not fit its machine.
    """
    if program.sketch is None:
        return program
    if level == STABLEHLO.name:
        # It is no lower form of any program, so the sketch only says which one it is.
        return random_program(Random(repr(program.sketch)), key=repr(program.sketch))
    if level == NN.name:
        several = shared(program)
        # A pass may be wrong for loops and branches of @main alone, so these stay there.
        has_control = any(step.within for step in program.sketch.steps)
        return several if has_control else pipelined(several)
    try:
        return lowered(program, level, Random(program.sketch.seed))
    except DoesNotFit:
        return None


def lowered(program: Program, level: str, random: Random) -> Program:
    """A program of nn, lowered to a level by random decisions. Raises DoesNotFit.

    Replicas and pipelines are among the decisions: the source of what is returned has none.
    """
    several = shared(program)
    # The pass under test makes the pipeline of a program that has stages.
    several = several if level == STAGED else pipelined(several)
    module = several.module.clone()
    lower(module, level, program.target, random)
    return Program(
        module,
        program.context,
        program.inputs,
        program.target,
        source=program.module,
        sketch=program.sketch,
        plans=program.plans,
    )


def level_before(tested: type[ModulePass]) -> str:
    """The level, or stage of a level, of the programs for testing a pass.

    It is the level that the pass declares to take, or nn if it declares none.
    Raises InputError for a level of which no programs are generated.
    """
    declared = declared_levels(tested)
    if declared is None:
        return NN.name
    found = declared.decided or str(declared.takes or NN)
    if found not in known_levels():
        raise InputError(
            f"pass '{tested.name}' takes {found}, of which no programs are generated; test its "
            "rules by pytest --rules FILE.rw, and a function of models by check_onnx_transform"
        )
    return found


def known_levels() -> tuple[str, ...]:
    """The levels, and decisions of levels, that programs can be generated at."""
    return (
        *map(str, SOURCES),
        *map(str, LEVELS),
        *(each for level in LEVELS for each in level.decisions),
    )
