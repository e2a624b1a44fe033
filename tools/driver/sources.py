"""Lead a program that was read above nn to nn, where abele's pipeline begins."""

from __future__ import annotations

from dataclasses import replace

from ...dialects.levels import SOURCES
from ...ir.context import AbeleContext
from ...ir.pass_manager import PassManager, parse_pipeline
from ...passes.pipelines import FROM_SOURCES, PASSES
from .program import ReadProgram, verified_level


def from_source(program: ReadProgram, context: AbeleContext, passes: str) -> ReadProgram:
    """The program, lowered to nn if it is on a level above; any other is returned as it is.

    Raises InputError for what no pass lowers.

    Args:
        passes: the pipeline that a user gives. If it names the passes that lead to nn, they are
            left to it.
    """
    if program.level not in SOURCES:
        return program
    names = FROM_SOURCES[program.level]
    if any(name in passes for name in names):
        return program
    source = program.module.clone()
    # The program was verified when it was read, and is verified again below.
    PassManager(parse_pipeline(",".join(names), PASSES)).run(context, program.module)
    level = verified_level(program.module, program.path)
    return replace(program, level=level, source=source)
