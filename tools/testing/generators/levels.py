"""Generated programs of lower levels, and the level that each pass is tested on."""

from __future__ import annotations

from random import Random

from ....ir.errors import DoesNotFit
from ....passes.pipelines import LEVELS, TAKES
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


def level_before(name: str) -> str:
    """The level of the programs that a pass is tested on; nn if it is not one of abele's passes."""
    return NEEDS.get(name) or TAKES.get(name, "nn")


NEEDS = {
    "convert-nn-to-partition": PLANNED,
    "schedule-supersteps": "plain",
    "allocate": "placed",
    "group-supersteps": "addressed",
    "convert-tile-to-exchange": "grouped",
}
"""How far decided the programs of a pass must be, where its level alone does not say it."""

KNOWN = (*LEVELS, PLANNED, *STAGES)
"""Every level and stage that programs can be generated for."""
