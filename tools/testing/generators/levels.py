"""Generated programs of the lower levels, and the kind of programs that a pass is tested on."""

from __future__ import annotations

from random import Random

from ....dialects.levels import LEVELS, NN
from ....ir.errors import DoesNotFit
from ....ir.pass_levels import declared_levels
from ....ir.upstream import ModulePass
from .decisions import lower
from .program import Program


def at_level(program: Program, level: str) -> Program | None:
    """A generated program of nn, lowered to a level by random decisions that its sketch seeds.

    None if it does not fit its machine.
    """
    if level == "nn" or program.sketch is None:
        return program
    module = program.module.clone()
    try:
        lower(module, level, program.target, Random(program.sketch.seed))
    except DoesNotFit:
        return None
    return Program(
        module,
        program.context,
        program.inputs,
        program.target,
        source=program.module,
        sketch=program.sketch,
    )


def level_before(tested: type[ModulePass]) -> str:
    """The kind of programs to test a pass on: what its declarations say; nn if they say nothing."""
    declared = declared_levels(tested)
    if declared is None:
        return NN.name
    return declared.decided or str(declared.takes or NN)


KNOWN = (*map(str, LEVELS), *(each for level in LEVELS for each in level.decisions))
"""The kinds of programs that can be generated."""
