"""Compile a model now: read it, and run the passes on it.

compile_model imports this module if the cache does not have the program: the passes, and the rules
of which they are made, take a third of a warm start to import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from time import perf_counter

from ...backends.target import Target
from ...dialects.levels import EXCHANGE, NN, level_of
from ...ir.context import AbeleContext
from ...ir.instruments.call_on_step import CallOnStep
from ...ir.instruments.reproducer import Reproducer
from ...ir.instruments.timing import Timing
from ...ir.pass_manager import Instrument, PassManager, parse_specs
from ...ir.support.errors import InputError
from ...ir.support.garbage import collect_if_grown, collection_paused
from ...ir.support.whole_file import check_folder
from ...ir.text import write_module
from ...ir.upstream import ModuleOp, ModulePass
from ...ir.well_known import LEVEL_NAMES
from ...passes.allocate import Allocate
from ...passes.pipelines import PASSES
from ...passes.pipelines import stages as stages_of
from ...passes.plans.beside import write_beside
from ...passes.plans.sparse_prices import read_sparse_prices, told_sparse_prices
from ..importers.front_end import Reading
from ..importers.front_ends import weight_files
from ..importers.given_weights import given_weights
from ..importers.huge_weights import refusing_huge_weights
from ..importers.notes import read_notes, write_notes
from .block_buckets import bucket_blocks
from .decoding.decoding import decode
from .dump.folder import check_dump, dump_folder
from .dump.instruments import NO_DUMP, dump_instruments
from .executable import MACHINE, Executable
from .keep_levels import KeepLevels
from .keep_plans import KeepPlans
from .kept_reads import kept_or_read
from .kept_states import keep_states
from .lowering_advice import advising_on_lowering
from .merging import with_products
from .ordered_messages import with_orders
from .pipelines import make_parts, part_of_batch
from .program import ReadProgram, read_program
from .pruning import prune, with_sparse_products
from .recomputation.asked import automatic_types, check_bound, read_recompute
from .recomputation.automatic import Changes, Result, within
from .reduce import reduce_module
from .request import Request, found_front_end
from .roomier_stages import in_roomier_stages
from .shared_states import told_shares
from .sources import from_source
from .spare import fitting
from .sparsity import read_sparsity
from .stages import Stages
from .sums_of_parts import told_sums
from .tensor_sizes import refuse_tensors_larger_than
from .training import asked_training, make_train
from .users_pipeline import (
    check_all_down,
    check_end,
    checked_pipeline,
    limited,
    with_changed_values,
)
from .verifiers import verifiers

TRIALS = "trials"
"""The stage of compiles whose programs were not chosen."""


def compile_anew(request: Request) -> Executable:
    """The program of a settled request, compiled now.

    Raises InputError for a bound of memory that recomputing cannot reach.
    """
    start, compiles = perf_counter(), _Compiles()
    exe = (_recomputed if request.recompute else _fitting)(request, compiles)
    if request.train is not None and request.train.micro_batches > 1 and exe.stages.plans:
        request.tell(told_sums(exe.stages.plans.module.clone()))
    if request.train is not None and request.train.shard:
        machine = exe.target
        module = exe.module_at(MACHINE)
        request.tell(told_shares(module, machine.chips, machine.tiles_per_chip))
    if compiles.number > 1:
        rest = perf_counter() - start - sum(exe.stages.seconds.values())
        exe.stages.add(TRIALS, max(rest, 0.0))
    return exe


@dataclass
class _Compiles:
    """Compiles for one request.

    Attributes:
        number: how many there were.
    """

    number: int = 0

    def __call__(self, request: Request, spare: int = 0) -> Executable:
        """Compile a request, with plans of so many bytes less."""
        self.number += 1
        return _compile_once(request, spare)


def _recomputed(request: Request, compile_once: _Compiles) -> Executable:
    """The program of a request, with as much computed again as its bound of memory asks for."""
    bound = read_recompute(request.recompute).bound
    found = _chosen(request, bound, compile_once)
    exe = found.exe
    if not request.unbounded:
        check_bound(request.recompute, exe.memory.max_tile_bytes)
        exe.check_memory()
        _ = exe.addresses
    if request.dump_ir is not None:
        last = replace(request, recompute="")
        return compile_once(_changed(last, found.changes), found.spare)
    return exe


def with_chosen(request: Request) -> Request:
    """A settled request with the pass that its recomputation chooses; the program is compiled for
    that, perhaps several times.

    For what runs or plans the passes of a program itself. Its pipeline may end above the machine.
    If the compiler also chose smaller plans, the request does not ask for them.
    """
    if not request.recompute:
        return request
    named = {each.name for each in parse_specs(request.passes)} if request.passes else set[str]()
    rest = [name for name in LEVEL_NAMES if request.passes and name not in named]
    whole = replace(request, passes=",".join(filter(None, (request.passes, *rest))))
    found = _chosen(whole, read_recompute(request.recompute).bound, _Compiles())
    return _changed(replace(request, recompute=""), found.changes)


def _chosen(request: Request, bound: int | None, compile_once: _Compiles) -> Result:
    """The program that comes closest to a bound, and the pass that makes it."""
    trial = replace(request, recompute="", unbounded=True, dump_ir=None)
    return within(
        bound,
        lambda changes, spare: compile_once(_changed(trial, changes), spare),
        automatic_types(request.stash),
    )


def _changed(request: Request, changes: Changes) -> Request:
    """The request with passes that change what is kept."""
    if not changes:
        return request
    passes = request.passes
    for each in reversed(changes):
        # with_changed_values inserts its pass before those of earlier calls.
        passes = with_changed_values(passes, each)
    return replace(request, recompute="", stash=(), passes=passes, on_read=None)


def _fitting(request: Request, compile_once: _Compiles) -> Executable:
    """The program of a request, with smaller plans and roomier stages if it does not fit
    otherwise."""

    def compile_with(passes: str) -> Executable:
        again = request if passes == request.passes else replace(request, on_read=None)
        return _planned(replace(again, passes=passes), compile_once)

    return in_roomier_stages(compile_with, request.passes, request.tell)


def _planned(request: Request, compile_once: _Compiles) -> Executable:
    """The program of a request, with smaller plans if it does not fit otherwise."""
    if request.beside:
        # Keeping what other programs hold comes first: see compile_model.
        return compile_once(request)

    def compile_with(spare: int) -> Executable:
        again = replace(request, on_read=None, on_note=None)
        return compile_once(again if spare else request, spare)

    return fitting(compile_with, request.tell, unbounded=request.unbounded)


def _compile_once(request: Request, spare: int = 0) -> Executable:
    extensions, context = request.extensions, request.extensions.context()
    folder = None if request.dump_ir is None else Path(request.dump_ir)
    failures = folder or _folder(request.reproducers)
    if folder is not None:
        check_dump(folder, request.file)
    elif isinstance(failures, Path):
        check_folder(failures)
    collect_if_grown()
    with collection_paused():
        request.on_step("read")
        start = perf_counter()
        program = read_model(request, context)
        if request.on_read is not None:
            request.on_read(program)
        machine = request.machine(program)
        pipeline = limited(
            checked_pipeline(request.passes, program.level, machine.spelling(), extensions),
            request.constraints,
            request.memory_proportion,
            request.vertices_per_tile,
            spare,
            request.shard,
        )
        bucket_blocks(program, context, machine.spelling())
        asked = asked_training(request.train, program)
        pipeline = tailored(pipeline, request, program, machine)
        if asked is not None:
            make_train(asked, program, pipeline, context)
        make_parts(request.micro_batches, asked, program)
        refuse_tensors_larger_than(program.module, machine)
        held = request.held
        if held and program.level != NN:
            raise InputError(
                f"{program.path}: a program of {program.level.name}, so it cannot be laid out "
                f"beside others; need one of {NN.name}"
            )
        if held is not None:
            write_beside(program.module, held)
        if request.unbounded:
            pipeline = tuple(
                replace(p, unbounded=True) if isinstance(p, Allocate) else p for p in pipeline
            )
        stages = Stages({"read": perf_counter() - start})
        verifying = verifiers(program.level) if request.verify_each else ()
        with (
            nullcontext(failures) if folder is None else dump_folder(folder) as written,
            advising_on_lowering(pipeline, extensions),
        ):
            instruments: list[Instrument] = [CallOnStep(request.on_step)]
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
            if isinstance(written, Path) and program.source is not None:
                file = f"{level_of(program.source).name}.mlir"
                write_module(program.source, written / file)
            dump = NO_DUMP
            if isinstance(written, Path) and folder is not None:
                dump = dump_instruments(written, machine, program.path, extensions)
            watching = (*instruments, *dump.around, *verifying, *dump.within)
            modules = _lower(program, context, pipeline, watching, stages)
    told = told_sparse_prices(read_sparse_prices(program.module))
    write_notes(program.module, (*read_notes(program.module), *told))
    request.tell(told)
    loaders = {level: partial(_given, module) for level, module in modules.items()}
    # What follows from options, such as kept states, the program as it was read does not have.
    if program.source is not None and not request.keep and asked is None:
        loaders[level_of(program.source).name] = partial(_given, program.source)
    exe = Executable(machine, loaders, program.path, stages)
    # The compiler's own addresses fit. Those in a user's text may not.
    if program.level == EXCHANGE and not request.unbounded:
        exe.check_memory()
    if not request.unbounded:
        _ = exe.addresses
    return exe


def tailored(
    pipeline: tuple[ModulePass, ...], request: Request, program: ReadProgram, machine: Target
) -> tuple[ModulePass, ...]:
    """The pipeline of a request, with the passes that its program needs besides."""
    pipeline = with_sparse_products(pipeline, program, machine.spelling())
    if not request.tailored:
        return pipeline
    if request.train is None:
        # The programs of a decoder share weights, whose form the one for one token decides.
        rows = 0 if request.decoding is None else 1
        pipeline = with_products(pipeline, program, machine, rows)
    return with_orders(pipeline, machine)


def reading_of(request: Request, context: AbeleContext) -> Reading:
    """How the model of a request is read."""
    train = request.train
    return Reading(
        context,
        request.path,
        dict(request.dims or {}),
        dict(request.values or {}),
        part_of_batch(
            request.batch, request.micro_batches if train is None else train.micro_batches
        ),
        request.lenient,
        train is not None and train.update,
        None
        if request.weights is None
        else given_weights(request.weights, request.partial_weights, weight_files()),
        check=refusing_huge_weights(request.target),
    )


def read_model(request: Request, context: AbeleContext) -> ReadProgram:
    """The program of a request's model, before any pass."""
    front_end = found_front_end(request.model)
    program = kept_or_read(
        request.model,
        reading_of(request, context),
        partial(read_program, request.model, front_end),
        (front_end.name, *request.extensions.load),
    )
    request.tell(read_notes(program.module))
    program = from_source(program, context, request.passes)
    kept, folded = request.keep or {}, front_end.folds_weights
    if request.decoding is not None:
        if program.level != NN:
            raise InputError(f"{program.path}: a program of {program.level.name}; need one of nn")
        kept = decode(program.module, request.decoding, kept, program.path)
    keep_states(program.module, kept, program.path, folded=folded)
    if request.sparsity:
        request.tell(prune(read_sparsity(request.sparsity), program, context))
    return program


def _folder(
    given: str | os.PathLike[str] | Callable[[str], Path] | None,
) -> Path | Callable[[str], Path] | None:
    return given if given is None or callable(given) else Path(given)


def _given(module: ModuleOp) -> ModuleOp:
    return module


def _lower(
    program: ReadProgram,
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
