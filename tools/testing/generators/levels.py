"""Generated programs of the lower levels, and what level a pass is tested on."""

from __future__ import annotations

from random import Random

from ....ir.errors import DoesNotFit
from ....passes.pipelines import LEVELS, TAKES
from .decisions import PLANNED, STAGES, lower
from .program import Program


def at_level(program: Program, level: str) -> Program | None:
    """A generated program of nn, taken down to a level by the decisions that its sketch says.

    None where it does not fit its machine.
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


def level_before(name: str) -> str:
    """What programs a pass is for; those of nn if it is not one of abele's."""
    return NEEDS.get(name) or TAKES.get(name, "nn")


NEEDS = {
    "convert-nn-to-partition": PLANNED,
    "schedule-supersteps": "plain",
    "allocate": "placed",
    "group-supersteps": "addressed",
    "convert-tile-to-exchange": "grouped",
}
"""What is decided in a program where a pass stands on the way down, if its level leaves it open."""

KNOWN = (*LEVELS, PLANNED, *STAGES)
"""All that programs can be asked for."""
