"""Generated programs of the lower levels."""

from __future__ import annotations

from random import Random

from ...ir.errors import DoesNotFit
from .decisions import lower
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
