"""Compile a model into a program that runs: the pipeline, its instruments, and its checks."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from pathlib import Path
from time import perf_counter
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from ...backends.reference import tensor_kind
from ...backends.target import Target
from ...dialects import nn
from ...dialects.levels import EXCHANGE, LEVELS, NN, NN_CORE, level_of
from ...dialects.verify_symbols import verify_symbols
from ...ir.context import AbeleContext
from ...ir.errors import DoesNotFit, InputError
from ...ir.garbage import collect_if_much, uncollected
from ...ir.instruments.reproducer import Reproducer
from ...ir.instruments.timing import Timing
from ...ir.instruments.verify_each import VerifyEach
from ...ir.level import Level
from ...ir.pass_levels import declared_levels, level_after
from ...ir.pass_manager import Instrument, PassManager, Step, parse_pipeline, parse_specs
from ...ir.provenance import place
from ...ir.upstream import ModuleOp, ModulePass, VerifyException
from ...ir.verify import verify
from ...ir.whole_file import check_folder
from ...ir.xdsl.walk import operations
from ...passes.allocate import Allocate
from ...passes.decompose import Decompose
from ...passes.pipelines import PASSES, expand, level_after_all, levels_below, shorthand_from
from ...passes.pipelines import stages as stages_of
from ...passes.plan_splits import PlanSplits
from ...passes.planner.fineness import check_vertices
from ...passes.planner.limits import check_proportion
from ..importers.huge_weights import refusing_huge_weights
from .dump.instruments import NO_DUMP, check_dump, dump_instruments
from .executable import MACHINE, PROGRAM_FILE, Executable, Stages, load_executable
from .extensions.load import load_extensions
from .extensions.loaded import Extensions
from .program import Model, Program, plan_target, read_program
from .reduce import reduce_module

Watcher = Callable[[str], None]
"""Called with each step of the work, in a few words."""

PLANNED_ELEMENTS = 1 << 20
"""Tensors with at most this many elements are planned even if they cannot fit."""

PLANNED_STORED_ELEMENTS = 1 << 28
"""The same for states and constants. Planning them shows the size of each layer's weights."""

STORED = (nn.LoadOp, nn.ConstantOp)


def compile_model(
    model: Model,
    target: str | Target | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    passes: str = "",
    load: Sequence[str | os.PathLike[str]] | Extensions = (),
    constraints: str | os.PathLike[str] | None = None,
    memory_proportion: float | None = None,
    vertices_per_tile: int | None = None,
    unbounded: bool = False,
    dump_ir: str | os.PathLike[str] | None = None,
    reproducers: str | os.PathLike[str] | Callable[[str], Path] | None = None,
    verify_each: bool = True,
    watch: Watcher | None = None,
) -> Executable:
    """Compile a model, or load a compiled program.

    model: the path of an .onnx file, of an .mlir file of any level, or of a saved .abele program;
    or an onnx.ModelProto. target: as for resolve_target; the default is the model's own, else mk2.
    dims: sizes of symbolic dimensions. passes: a pipeline that leads to the last level, in which a
    level stands for the passes that lead there; "" for all of them. load: extension files, as for
    load_extensions. constraints: a JSON file of choices for operators. memory_proportion: the share
    of a tile's memory that one operator may take temporarily. vertices_per_tile: how fine the work
    of each compute set is split. unbounded: also compile a program that does not fit, for reports;
    it cannot run. dump_ir: a folder for the program after each pass, and for a page that shows what
    each pass did. reproducers: a folder for what reproduces a failure of a pass, or a function from
    the name of the pass to such a folder; dump_ir's folder takes precedence.
    Raises InputError, and DoesNotFit for a program too large for the target.
    """
    tell: Watcher = watch or silent
    extensions = load if isinstance(load, Extensions) else load_extensions(load)
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(PROGRAM_FILE):
        _refuse_for_program(model, dims, passes, dump_ir)
        if any(each is not None for each in (constraints, memory_proportion, vertices_per_tile)):
            raise InputError(
                f"{model}: compiled already, so it cannot be planned again; need the model"
            )
        tell("read")
        return load_executable(os.fspath(model), target, extensions.context)
    context = extensions.context()
    folder = None if dump_ir is None else Path(dump_ir)
    failures = folder if folder is not None or reproducers is None else _folder(reproducers)
    if folder is not None:
        check_dump(folder, os.fspath(model) if isinstance(model, str | os.PathLike) else "")
    if isinstance(failures, Path):
        check_folder(failures)
    collect_if_much()
    with uncollected():
        tell("read")
        start = perf_counter()
        program = read_program(model, context, dict(dims or {}), refusing_huge_weights(target))
        machine = plan_target(program.module, target, program.path)
        pipeline = limited(
            checked_pipeline(passes, program.level, machine.spelling(), extensions),
            constraints,
            memory_proportion,
            vertices_per_tile,
        )
        refuse_tensors_larger_than(program.module, machine)
        if unbounded:
            pipeline = tuple(
                replace(p, unbounded=True) if isinstance(p, Allocate) else p for p in pipeline
            )
        stages = Stages({"read": perf_counter() - start})
        instruments: list[Instrument] = [_Tell(tell)]
        verifying = verifiers(program.level) if verify_each else ()
        if failures is not None:
            instruments.append(
                Reproducer(
                    failures,
                    extensions.arguments,
                    checks=verifiers(program.level),
                    reduce=reduce_module,
                )
            )
        dump = dump_instruments(folder, machine, program.path) if folder is not None else NO_DUMP
        watching = (*instruments, *dump.around, *verifying, *dump.within)
        modules = _lower(program, context, pipeline, watching, stages)
    loaders = {level: partial(_given, module) for level, module in modules.items()}
    exe = Executable(machine, loaders, program.path, stages)
    # The compiler's own addresses fit. Those in a user's text may not.
    if program.level == EXCHANGE and not unbounded:
        exe.check_memory()
    return exe


def _refuse_for_program(
    model: str | os.PathLike[str],
    dims: Mapping[str, int] | None,
    passes: str,
    dump_ir: str | os.PathLike[str] | None,
) -> None:
    """Raise InputError for options that make no sense for a compiled program."""
    if dims:
        raise InputError(f"{model}: dimensions given ({', '.join(dims)}); a program has sizes")
    if passes:
        raise InputError(f"{model}: compiled already, so no pass is left to run; need the model")
    if dump_ir is not None:
        raise InputError(f"{model}: compiled already, so no pass is left to dump; need the model")


def _folder(given: str | os.PathLike[str] | Callable[[str], Path]) -> Path | Callable[[str], Path]:
    return given if callable(given) else Path(given)


def _given(module: ModuleOp) -> ModuleOp:
    return module


def refuse_tensors_larger_than(module: ModuleOp, target: Target) -> None:
    """Raise DoesNotFit for a huge tensor that all tiles together cannot hold.

    A plan shows best what fills the tiles of a program that is too large. But planning takes memory
    for each element of such a tensor.
    """
    available = target.usable_bytes_per_tile * target.tiles
    for op in module.walk():
        planned = PLANNED_STORED_ELEMENTS if isinstance(op, STORED) else PLANNED_ELEMENTS
        values = [*op.results, *(v for region in op.regions for b in region.blocks for v in b.args)]
        for value in values:
            if not isinstance(value.type, TensorType):
                continue
            shape, dtype = tensor_kind(cast(Attribute, value.type))
            if prod(shape) > planned and prod(shape) * dtype.itemsize > available:
                raise DoesNotFit(
                    f"{dtype.name}{list(shape)} of {op.name} at {place(op)}",
                    prod(shape) * dtype.itemsize,
                    available,
                    units="bytes on all tiles together",
                    remedy="a smaller batch, or a target with more memory",
                )


def checked_pipeline(
    spec: str, level: Level, target: str, extensions: Extensions
) -> tuple[ModulePass, ...]:
    """The passes of a pipeline from a level to the last level.

    spec: "" for all of them. Raises InputError for a bad pipeline, and for one that is known to end
    above the last level. A user's pass may lead to any level.
    """
    above = {str(each) for each in LEVELS if each not in levels_below(level)}
    for each in parse_specs(spec):
        if each.name in above:
            raise InputError(
                f"pipeline '{spec}': the program is at {level} already; leave out {each.name}"
            )
    passes = parse_pipeline(
        expand(spec or shorthand_from(level), target, extensions.passes), extensions.passes
    )
    _check_end(f"pipeline '{spec}'", level_after_all(passes, level))
    return passes


def limited(
    passes: tuple[ModulePass, ...],
    constraints: str | os.PathLike[str] | None,
    memory_proportion: float | None,
    vertices_per_tile: int | None = None,
) -> tuple[ModulePass, ...]:
    """Set the constraints, memory proportion and fineness of the pass that plans.

    Raises InputError if no pass plans.
    """
    more: dict[str, str | float] = {}
    if constraints is not None:
        more["constraints"] = os.fspath(constraints)
    if memory_proportion is not None:
        check_proportion(memory_proportion)
        more["memory_proportion"] = memory_proportion
    if vertices_per_tile is not None:
        check_vertices(vertices_per_tile)
        more["vertices_per_tile"] = vertices_per_tile
    if more and not any(isinstance(each, PlanSplits) for each in passes):
        raise InputError(f"{', '.join(more)}: no pass of the pipeline plans; add {PlanSplits.name}")
    return tuple(replace(p, **more) if isinstance(p, PlanSplits) else p for p in passes)


def _check_end(what: str, level: Level | None) -> None:
    """Raise InputError if a pipeline is known to end above the last level."""
    if level is not None and level != EXCHANGE:
        missing = ",".join(map(str, LEVELS[LEVELS.index(level) + 1 :]))
        raise InputError(f"{what} ends at {level}; the machine runs {MACHINE}: add {missing}")


def _check_all_down(program: Program) -> None:
    """Raise InputError for an operation that the machine would ignore."""
    try:
        verify(program.module, EXCHANGE.legal)
    except VerifyException as error:
        raise InputError(f"{program.path}: {error}; no pass of the pipeline lowers it") from None


def _lower(
    program: Program,
    context: AbeleContext,
    passes: tuple[ModulePass, ...],
    instruments: Sequence[Instrument],
    stages: Stages,
) -> dict[str, ModuleOp]:
    timing, keep = Timing(), _KeepLevels(program.level)
    PassManager(passes, (keep, *instruments, timing)).run(context, program.module)
    names = [each.name for each in passes]
    # What a user's pass declares is only a promise if nothing verifies it.
    if any(name not in PASSES for name in names):
        _check_end(f"{program.path}: the pipeline", level_of(program.module))
        _check_all_down(program)
    for each, stage in zip(timing.passes, stages_of(names), strict=True):
        stages.add(str(stage), each.seconds)
        stages.passes[each.name] = stages.passes.get(each.name, 0.0) + each.seconds
    return {str(level): module for level, module in keep.modules.items()} | {
        MACHINE: program.module
    }


def verifiers(level: Level | None) -> tuple[Instrument, ...]:
    """Instruments that verify a module after each pass. level: where it begins; None if unknown."""

    def legal_after(step: Step) -> Collection[str] | None:
        found = level_after_all(step.pipeline[: step.index + 1], level)
        if found == NN and isinstance(step.current, Decompose):
            found = NN_CORE
        return None if found is None else found.legal

    return CheckLevel(), VerifyEach(legal_after), VerifySymbols()


class _KeepLevels(Instrument):
    """Keeps a clone of the module at each level, as the last pass of the level left it.

    The first is the original module: its composites are whole, so the reference can check how they
    were decomposed.
    """

    def __init__(self, first: Level) -> None:
        self.modules: dict[Level, ModuleOp] = {}
        self._level = first
        self._before: ModuleOp | None = None

    def before(self, step: Step, module: ModuleOp) -> None:
        """Clone before the first pass, and before each pass that may lead to another level."""
        if step.index == 0:
            self.modules[self._level] = module.clone()
        leads = level_after(type(step.current), self._level) != self._level
        self._before = module.clone() if leads and self._level != NN else None

    def after(self, step: Step, module: ModuleOp) -> None:
        """Keep the clone if the pass led to another level."""
        level = level_after(type(step.current), self._level) or level_of(module)
        if level != self._level and self._before is not None:
            self.modules[self._level] = self._before
        self._level, self._before = level, None


class CheckLevel(Instrument):
    """Raises InputError for a pass on a module of another level than it takes."""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Search for an operation of another level."""
        declared = declared_levels(type(step.current))
        level = declared.needs if declared else None
        if level is None:
            return
        others = {each.name for each in LEVELS if each != level}
        for op in operations(module):
            if op.name.partition(".")[0] in others:
                raise InputError(
                    f"{op.name} at {place(op)}: {step.current.name} takes modules of {level}"
                )


class VerifySymbols(Instrument):
    """Raises VerifyException if a pass left an operation that disagrees with a symbol it names."""

    def after(self, step: Step, module: ModuleOp) -> None:
        """Verify all symbols after the pass."""
        try:
            verify_symbols(module)
        except VerifyException as error:
            raise VerifyException(f"after {step}: {error}") from None


class _Tell(Instrument):
    def __init__(self, tell: Watcher) -> None:
        self._tell = tell

    def before(self, step: Step, module: ModuleOp) -> None:
        self._tell(f"{step.current.name} ({step.index + 1} of {len(step.pipeline)})")


def silent(_: str) -> None:
    """A watcher that ignores all steps."""
