"""Compile a model into a program that runs on the machine."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

from ...ir.support.deferred import deferred
from ...ir.support.errors import DoesNotFit
from ...ir.support.turns import COMPILING
from .cache.key import parts_of
from .cache.programs import cached
from .executable import Executable
from .files import PROGRAM_FILE
from .request import AUTO_IO, Request, with_fields_of

with deferred(__name__):
    from .io_tiles import with_best_io_tiles
    from .load_program import load_executable
    from .program import ReadProgram, signature


@with_fields_of(Request)
def compile_model(request: Request) -> Executable:
    """Compile a model, or load a compiled program.

    Threads may call this at the same time: they compile one after another.
    Raises InputError, DoesNotFit for a program too large for the target, and MachineFault for a
    program whose addresses do not suit its lifetimes (see prove_addresses).
    """
    return compiled(request)


def compiled(request: Request) -> Executable:
    """The program that a request asks for. Raises what compile_model raises."""
    request.check(compile_model.__name__)
    if request.io_tiles == AUTO_IO and not request.file.endswith(PROGRAM_FILE):
        return _with_best_io_tiles(request)
    request = request.settled()
    context = request.extensions.context
    if request.file.endswith(PROGRAM_FILE):
        request.refuse_for_program()
        request.on_step("read")
        exe = load_executable(request.file, request.target, context)
        request.tell(exe.notes)
        return exe

    def tell(program: ReadProgram) -> None:
        if request.on_read is not None:
            request.on_read(program)
        if request.on_inputs is not None:
            request.on_inputs(signature(program.module, program.path).inputs)

    first = partial(_compile_anew, replace(request, on_read=tell))
    if not request.cache or request.dump_ir is not None:
        return first()
    anew = partial(_compile_anew, replace(request, on_read=None))
    parts = partial(parts_of, request)
    exe = cached(parts, first, anew, request.path, context, request.on_step)
    if exe.is_from_cache:
        request.tell(exe.notes)
        if request.on_read is not None:
            with COMPILING:
                request.on_read(_home().read_model(request, context()))
        if request.on_inputs is not None:
            request.on_inputs(exe.inputs)
    return exe


def _with_best_io_tiles(request: Request) -> Executable:
    """The program of a request that leaves the number of I/O tiles open."""
    # The user is told once of what the model says, and asked once for inputs.
    again = replace(request, on_read=None, on_inputs=None, on_note=None)

    def compile_with(number: int) -> Executable:
        first = request if number == 0 else again
        return compiled(replace(first, io_tiles=number, dump_ir=None))

    best = with_best_io_tiles(compile_with, request.tell, unbounded=request.unbounded)
    if request.dump_ir is not None:
        _ = compiled(replace(again, io_tiles=best.target.io_tiles))
    return best


def _compile_anew(request: Request) -> Executable:
    with COMPILING:
        try:
            return _home().compile_anew(request)
        except DoesNotFit:
            if not request.beside:
                raise
        # What fits alone also fits beside others, if it keeps nothing of what they hold.
        return _home().compile_anew(replace(request, beside={}))


def _home() -> Any:
    """The module that compiles, which a program from the cache does not need."""
    return import_module(".compile_anew", __package__)
