"""Compile a model into a program that runs on the machine."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from time import perf_counter

from numpy.typing import ArrayLike

from ...backends.target import Target
from ...dialects.levels import EXCHANGE, level_of
from ...ir.context import AbeleContext
from ...ir.errors import InputError
from ...ir.garbage import collect_if_grown, collection_paused
from ...ir.instruments.reproducer import Reproducer
from ...ir.instruments.timing import Timing
from ...ir.pass_manager import Instrument, PassManager
from ...ir.upstream import ModuleOp, ModulePass
from ...ir.whole_file import check_folder
from ...passes.allocate import Allocate
from ...passes.pipelines import PASSES
from ...passes.pipelines import stages as stages_of
from ...passes.train import Train
from ..importers.huge_weights import refusing_huge_weights
from .arrays import Tensor
from .cache.key import Request, parts_of
from .cache.programs import cached
from .dump.folder import check_dump, dump_folder
from .dump.instruments import NO_DUMP, dump_instruments
from .executable import MACHINE, Executable, Stages, load_executable
from .extensions.load import load_extensions
from .extensions.loaded import Extensions
from .files import PROGRAM_FILE
from .keep_levels import KeepLevels
from .keep_plans import KeepPlans
from .kept_states import keep_states
from .lowering_advice import advising_on_lowering
from .on_step import CallOnStep, OnStep, ignore_step
from .program import Model, Program, plan_target, read_program, signature
from .reduce import reduce_module
from .tensor_sizes import refuse_tensors_larger_than
from .training import asked_training, make_train, part_of_batch
from .users_pipeline import check_all_down, check_end, checked_pipeline, limited
from .verifiers import verifiers


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
    that are known now; the program does not take them. batch: the number of samples of an ONNX
    model, as for import_onnx. keep: inputs that become states on the device, each with the output
    that it receives in the next run; see keep_states. passes: a pipeline that leads to the last
    level, in which a level stands for the passes that lead there; "" for all of them. load:
    extension files, as for load_extensions. constraints: a JSON file of choices for operators.
    memory_proportion: the share of a tile's memory that one operator may take temporarily.
    vertices_per_tile: how fine the work of each compute set is split. unbounded: also compile a
    program that does not fit, for reports; it cannot run. lenient: also take an ONNX model that
    breaks rules of ONNX, such as one with an unknown attribute or a false output type. train: how
    the program's weights are trained; it then computes a step of training, of which batch is the
    number of samples. dump_ir: a
    folder for the program after each pass, and for a page that shows what each pass did.
    reproducers: a folder for what reproduces a failure of a pass, or a function from the name of
    the pass to such a folder; dump_ir's folder takes precedence. on_read: called with a model's
    program before any pass runs; it may raise. on_inputs: called with the program's inputs before
    any pass runs, so that values for them can be checked first; it may raise. cache:
    take the program from the cache if it was compiled before, and keep it there otherwise; not with
    dump_ir, nor with an extension in Python, which may import anything.
    Raises InputError, DoesNotFit for a program too large for the target, and MachineFault for a
    program whose addresses do not suit its lifetimes (see prove_addresses).
    """
    on_step: OnStep = watch or ignore_step
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(PROGRAM_FILE):
        _refuse_for_program(model, dims, values, keep, passes, dump_ir)
        if batch is not None:
            raise InputError(f"{model}: --batch {batch} is given; need the model")
        if train is not None:
            raise InputError(f"{model}: compiled already, so it cannot be trained; need the model")
        if any(each is not None for each in (constraints, memory_proportion, vertices_per_tile)):
            raise InputError(
                f"{model}: compiled already, so it cannot be planned again; need the model"
            )
        on_step("read")
        return load_executable(os.fspath(model), target, extensions.context)
    request = Request(
        model,
        target,
        dict(dims or {}),
        dict(values or {}),
        batch,
        dict(keep or {}),
        passes,
        constraints,
        memory_proportion,
        vertices_per_tile,
        lenient,
        train,
    )
    anew = partial(
        _compiled,
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
    if exe.anew is not None:
        if on_read is not None:
            on_read(_read(request, extensions.context()))
        if on_inputs is not None:
            on_inputs(exe.inputs)
    return exe


def _heard(_: Program) -> None:
    """Do nothing with a program."""


def _compiled(
    request: Request,
    extensions: Extensions,
    *,
    unbounded: bool,
    dump_ir: str | os.PathLike[str] | None,
    reproducers: str | os.PathLike[str] | Callable[[str], Path] | None,
    verify_each: bool,
    on_step: OnStep,
    on_read: Callable[[Program], None] = _heard,
) -> Executable:
    """The program of a request, compiled now. The parameters are those of compile_model."""
    context, train = extensions.context(), request.train
    folder = None if dump_ir is None else Path(dump_ir)
    failures = folder if folder is not None or reproducers is None else _folder(reproducers)
    if folder is not None:
        check_dump(
            folder, os.fspath(request.model) if isinstance(request.model, str | os.PathLike) else ""
        )
    elif isinstance(failures, Path):
        check_folder(failures)
    collect_if_grown()
    with collection_paused():
        on_step("read")
        start = perf_counter()
        program = _read(request, context)
        on_read(program)
        machine = plan_target(program.module, request.target, program.path)
        pipeline = limited(
            checked_pipeline(request.passes, program.level, machine.spelling(), extensions),
            request.constraints,
            request.memory_proportion,
            request.vertices_per_tile,
        )
        asked = asked_training(train, program)
        if asked is not None:
            make_train(asked, program, pipeline, context)
        refuse_tensors_larger_than(program.module, machine)
        if unbounded:
            pipeline = tuple(
                replace(p, unbounded=True) if isinstance(p, Allocate) else p for p in pipeline
            )
        stages = Stages({"read": perf_counter() - start})
        verifying = verifiers(program.level) if verify_each else ()
        with (
            nullcontext(failures) if folder is None else dump_folder(folder) as written,
            advising_on_lowering(pipeline, extensions),
        ):
            instruments: list[Instrument] = [CallOnStep(on_step)]
            if written is not None:
                instruments.append(
                    Reproducer(
                        written,
                        extensions.arguments,
                        checks=verifiers(program.level),
                        reduce=reduce_module,
                        place=folder,
                    )
                )
            dump = NO_DUMP
            if isinstance(written, Path) and folder is not None:
                dump = dump_instruments(written, machine, program.path)
            watching = (*instruments, *dump.around, *verifying, *dump.within)
            modules = _lower(program, context, pipeline, watching, stages)
    loaders = {level: partial(_given, module) for level, module in modules.items()}
    exe = Executable(machine, loaders, program.path, stages)
    # The compiler's own addresses fit. Those in a user's text may not.
    if program.level == EXCHANGE and not unbounded:
        exe.check_memory()
    if not unbounded:
        _ = exe.addresses
    return exe


def _read(request: Request, context: AbeleContext) -> Program:
    """The program of a request's model, before any pass."""
    train = request.train
    program = read_program(
        request.model,
        context,
        dict(request.dims),
        refusing_huge_weights(request.target),
        values=request.values,
        batch=request.batch if train is None else part_of_batch(train, request.batch),
        lenient=request.lenient,
        training=train is not None and train.update,
    )
    keep_states(program.module, request.keep, program.path)
    return program


def _refuse_for_program(
    model: str | os.PathLike[str],
    dims: Mapping[str, int] | None,
    values: Mapping[str, ArrayLike] | None,
    keep: Mapping[str, str] | None,
    passes: str,
    dump_ir: str | os.PathLike[str] | None,
) -> None:
    """Raise InputError for options that make no sense for a compiled program."""
    if dims:
        raise InputError(f"{model}: dimensions given ({', '.join(dims)}); a program has sizes")
    if keep:
        raise InputError(f"{model}: inputs to keep given ({', '.join(keep)}); need the model")
    if values:
        raise InputError(f"{model}: values given ({', '.join(values)}); need the model")
    if passes:
        raise InputError(f"{model}: compiled already, so no pass is left to run; need the model")
    if dump_ir is not None:
        raise InputError(f"{model}: compiled already, so no pass is left to dump; need the model")


def _folder(given: str | os.PathLike[str] | Callable[[str], Path]) -> Path | Callable[[str], Path]:
    return given if callable(given) else Path(given)


def _given(module: ModuleOp) -> ModuleOp:
    return module


def _lower(
    program: Program,
    context: AbeleContext,
    passes: tuple[ModulePass, ...],
    instruments: Sequence[Instrument],
    stages: Stages,
) -> dict[str, ModuleOp]:
    timing, keep, plans = Timing(), KeepLevels(program.level), KeepPlans()
    PassManager(passes, (keep, plans, *instruments, timing)).run(context, program.module)
    names = [each.name for each in passes]
    # What a user's pass declares is only a promise if nothing verifies it.
    if any(name not in PASSES for name in names):
        check_end(f"{program.path}: the pipeline", level_of(program.module))
        check_all_down(program)
    for each, stage in zip(timing.passes, stages_of(names), strict=True):
        stages.add(str(stage), each.seconds)
        stages.passes[each.name] = stages.passes.get(each.name, 0.0) + each.seconds
    stages.timings += timing.passes
    stages.plans = plans.kept
    return {str(level): module for level, module in keep.modules.items()} | {
        MACHINE: program.module
    }
