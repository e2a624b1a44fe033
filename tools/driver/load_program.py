"""Read a compiled program from a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING

from ...backends import executable as program_file
from ...backends.target import Target
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.garbage import OPEN_FILE_BYTES, collect_if_grown, collection_paused, count_held
from ...ir.support.turns import COMPILING
from .executable import Executable

if TYPE_CHECKING:
    from ...ir.context import AbeleContext
    from ...ir.upstream import ModuleOp

with deferred(__name__):
    from ...dialects.levels import level_named
    from .context import new_context
    from .program import check_target, verified_level


def load_executable(
    path: str | os.PathLike[str],
    target: str | Target | None = None,
    context: Callable[[], AbeleContext] = new_context,
) -> Executable:
    """The program of an .abele file. Each module is parsed on first use.

    Raises InputError, DoesNotFit, and MachineFault as prove_addresses does.

    Args:
        target: must equal the program's own, if given.
        context: returns a context with the program's dialects.
    """
    path = os.fspath(path)
    collect_if_grown()
    start = perf_counter()
    program = program_file.load(path)
    count_held(OPEN_FILE_BYTES)
    check_target(program.target, target, path)
    loaders = {level: partial(_parsed, program, level, context) for level in program.texts}
    exe = Executable(program.target, loaders, path, reported=program.profile)
    with COMPILING, collection_paused():
        exe.check_memory()
        _ = exe.addresses
    exe.stages.add("read", perf_counter() - start)
    return exe


def _parsed(
    program: program_file.ProgramFile, level: str, context: Callable[[], AbeleContext]
) -> ModuleOp:
    """The module at a level of a program file, verified. Raises InputError."""
    wanted = level_named(level)
    module = program.module_at(level, context())
    found = verified_level(module, f"{program.path}:{level}.mlir")
    # A user's level is known by its operations, and a program may have none of them.
    if found not in (wanted, wanted.like):
        raise InputError(f"{program.path}: {level}.mlir is of level {found}")
    return module
