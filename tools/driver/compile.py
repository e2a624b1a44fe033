"""Compile a model into a program that runs on the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from numpy.typing import ArrayLike

from ...backends.target import DEFAULT_TARGET, Target, named_target, resolve_target
from ...ir.support.deferred import deferred
from ...ir.support.errors import DoesNotFit, InputError
from ...ir.support.turns import COMPILING
from .argument_kinds import (
    ARRAYS,
    COUNT,
    FUNCTION,
    NAMES,
    NONE,
    NUMBER,
    PATH,
    PATHS,
    SIZES,
    TARGET,
    TEXT,
    TRAINING,
    Kind,
    check_arguments,
)
from .arrays import Tensor
from .cache.key import Request, parts_of
from .cache.programs import cached
from .executable import Executable, load_executable
from .extensions.load import load_extensions
from .extensions.loaded import Extensions
from .files import PROGRAM_FILE
from .on_step import OnStep, ignore_step
from .runs_between import RUNS

if TYPE_CHECKING:
    from ...passes.train import Train
    from .beside import held_by
    from .program import Model, Program, signature
else:
    held_by = deferred(".beside", "held_by", __package__)
    signature = deferred(".program", "signature", __package__)


MODEL = Kind(
    lambda value: PATH.accepts(value) or hasattr(value, "SerializeToString"),
    "the path of an .onnx, .mlir or .abele file, or an onnx.ModelProto",
)

PROGRAMS = Kind(
    lambda value: (
        isinstance(value, list | tuple)
        and all(isinstance(each, Executable) for each in cast("Sequence[object]", value))
    ),
    "a list of executables",
)

EXTENSIONS = Kind(lambda value: isinstance(value, Extensions), "loaded extensions")

KINDS: Mapping[str, Kind] = {
    "model": MODEL,
    "target": TARGET | NONE,
    "dims": SIZES | NONE,
    "values": ARRAYS | NONE,
    "batch": COUNT | NONE,
    "keep": NAMES | NONE,
    "passes": Kind(TEXT.accepts, 'a pipeline as text, or "" for all passes'),
    "load": PATHS | EXTENSIONS,
    "constraints": PATH | NONE,
    "memory_proportion": NUMBER | NONE,
    "vertices_per_tile": COUNT | NONE,
    "train": TRAINING | NONE,
    "beside": PROGRAMS | NONE,
    "runs": NUMBER,
    "dump_ir": PATH | NONE,
    "reproducers": PATH | FUNCTION | NONE,
    "watch": FUNCTION | NONE,
    "on_read": FUNCTION | NONE,
    "on_inputs": FUNCTION | NONE,
}
"""The kinds of compile_model's arguments, by parameter. Truth values may be anything."""


def compile_model(
    model: Model,
    target: str | Target | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    values: Mapping[str, ArrayLike] | None = None,
    batch: int | None = None,
    keep: Mapping[str, str] | None = None,
    passes: str = "",
    load: Sequence[str | os.PathLike[str]] | Extensions = (),
    constraints: str | os.PathLike[str] | None = None,
    memory_proportion: float | None = None,
    vertices_per_tile: int | None = None,
    unbounded: bool = False,
    lenient: bool = False,
    train: Train | None = None,
    beside: Sequence[Executable] | None = None,
    runs: float = RUNS,
    dump_ir: str | os.PathLike[str] | None = None,
    reproducers: str | os.PathLike[str] | Callable[[str], Path] | None = None,
    verify_each: bool = True,
    watch: OnStep | None = None,
    on_read: Callable[[Program], None] | None = None,
    on_inputs: Callable[[Sequence[Tensor]], None] | None = None,
    cache: bool = True,
) -> Executable:
    """Compile a model, or load a compiled program.

    model: the path of an .onnx file, of an .mlir file of any level, or of a saved .abele program;
    or an onnx.ModelProto. target: as for resolve_target; the default is the model's own, else mk2.
    dims: sizes of free dimensions, by symbol or by "INPUT:AXIS". values: inputs of an ONNX model
    that are known now; the program does not take them. The value of an input that has one in the
    model, which is a weight, replaces it. batch: the number of samples of an ONNX
    model, as for import_onnx. keep: inputs that become states on the device, each with the output
    that it receives in the next run; see keep_states. passes: a pipeline that leads to the last
    level, in which a level stands for the passes that lead there; "" for all of them. load:
    extension files, as for load_extensions. constraints: a JSON file of choices for operators.
    memory_proportion: the share of a tile's memory that one operator may take temporarily.
    vertices_per_tile: how fine the work of each compute set is split. unbounded: also compile a
    program that does not fit, for reports; it cannot run. lenient: also take an ONNX model that
    breaks rules of ONNX, such as one with an unknown attribute or a false output type. train: how
    the program's weights are trained; it then computes a step of training, of which batch is the
    number of samples. beside: programs with which it shares a machine, as in a Session; an empty
    list for the first of them. Its states and constants get the layouts and addresses that they
    have there, where that pays, and the default of target is theirs. runs: how many it does between
    two changes of programs, which decides what pays. dump_ir: a folder for the program after each
    pass, and for a page that shows what each pass did. reproducers: a folder for what reproduces a
    failure of a pass, or a function from the name of the pass to such a folder; dump_ir's folder
    takes precedence. on_read: called with a model's program before any pass runs; it may raise.
    on_inputs: called with the program's inputs before any pass runs, so that values for them can be
    checked first; it may raise. cache: take the program from the cache if it was compiled before,
    and keep it there otherwise; not with dump_ir, nor with an extension in Python, which may import
    anything.
    Threads may call this at the same time: they compile one after another.
    Raises InputError, DoesNotFit for a program too large for the target, and MachineFault for a
    program whose addresses do not suit its lifetimes (see prove_addresses).
    """
    check_arguments("compile_model", KINDS, locals())
    on_step: OnStep = watch or ignore_step
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if target is None and beside:
        target = beside[0].target
    held = None
    if beside is not None:
        with COMPILING:
            held = held_by(beside, _target_of(target), runs)
    request = Request(
        model,
        target,
        {name: int(size) for name, size in (dims or {}).items()},
        dict(values or {}),
        batch,
        dict(keep or {}),
        passes,
        constraints,
        memory_proportion,
        vertices_per_tile,
        lenient,
        train,
        held,
    )
    if request.file.endswith(PROGRAM_FILE):
        _refuse_for_program(request, dump_ir)
        on_step("read")
        return load_executable(request.file, target, extensions.context)
    anew = partial(
        _compile_anew,
        request,
        extensions,
        unbounded=unbounded,
        dump_ir=dump_ir,
        reproducers=reproducers,
        verify_each=verify_each,
        on_step=on_step,
    )

    def tell(program: Program) -> None:
        if on_read is not None:
            on_read(program)
        if on_inputs is not None:
            on_inputs(signature(program.module, program.path).inputs)

    first = partial(anew, on_read=tell)
    if not cache or dump_ir is not None:
        return first()
    parts = partial(parts_of, request, extensions)
    exe = cached(parts, first, anew, request.path, extensions.context, on_step)
    if exe.is_from_cache:
        if on_read is not None:
            with COMPILING:
                on_read(_home().read_model(request, extensions.context()))
        if on_inputs is not None:
            on_inputs(exe.inputs)
    return exe


def _compile_anew(request: Request, *given: Any, **options: Any) -> Executable:
    with COMPILING:
        try:
            return _home().compile_anew(request, *given, **options)
        except DoesNotFit:
            if not request.beside:
                raise
        # What fits alone also fits beside others, if it keeps nothing of what they hold.
        return _home().compile_anew(replace(request, beside={}), *given, **options)


def _target_of(target: str | Target | None) -> Target:
    if target is None:
        return named_target(DEFAULT_TARGET)
    return resolve_target(target) if isinstance(target, str) else target


def _home() -> Any:
    """The module that compiles, which a program from the cache does not need."""
    return import_module(".compile_anew", __package__)


def _refuse_for_program(asked: Request, dump_ir: str | os.PathLike[str] | None) -> None:
    """Raise InputError for options that make no sense for a compiled program."""
    model = asked.file
    if asked.dims:
        raise InputError(
            f"{model}: dimensions given ({', '.join(asked.dims)}); a program has sizes"
        )
    if asked.keep:
        raise InputError(f"{model}: inputs to keep given ({', '.join(asked.keep)}); need the model")
    if asked.values:
        raise InputError(f"{model}: values given ({', '.join(asked.values)}); need the model")
    if asked.passes:
        raise InputError(f"{model}: compiled already, so no pass is left to run; need the model")
    if dump_ir is not None:
        raise InputError(f"{model}: compiled already, so no pass is left to dump; need the model")
    if asked.batch is not None:
        raise InputError(f"{model}: --batch {asked.batch} is given; need the model")
    if asked.train is not None:
        raise InputError(f"{model}: compiled already, so it cannot be trained; need the model")
    plans = asked.constraints, asked.memory_proportion, asked.vertices_per_tile
    if any(each is not None for each in plans):
        raise InputError(
            f"{model}: compiled already, so it cannot be planned again; need the model"
        )
    if asked.beside:
        raise InputError(
            f"{model}: compiled already, so it cannot be laid out beside others; need the model, "
            "or compile the others beside it"
        )
