"""Generated programs of the lower levels, and the kind of programs that a pass is tested on."""

from __future__ import annotations

from random import Random

from ....dialects.levels import LEVELS, NN
from ....ir.errors import DoesNotFit
from ....ir.pass_levels import declared_levels
from ....ir.upstream import ModulePass
from .decisions import PLANNED, STAGES, lower
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
    """The kind of programs to test a pass on: what its declarations say; nn if they say nothing.

    The passes of the default pipeline want programs that are decided as far as the passes before
    them have decided them.
    """
    declared = declared_levels(tested)
    level = declared.takes if declared and declared.takes else NN
    return NEEDS.get(tested.name, level.name)


NEEDS = {
    "convert-nn-to-partition": PLANNED,
    "schedule-supersteps": "plain",
    "allocate": "placed",
    "group-supersteps": "addressed",
    "convert-tile-to-exchange": "grouped",
}
"""What is decided in a program when a pass of the default pipeline gets it, where the level leaves
that open."""

KNOWN = (*map(str, LEVELS), PLANNED, *STAGES)
"""The kinds of programs that can be generated."""
