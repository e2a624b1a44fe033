"""From a model to a program that runs: every pass on the way down, under instruments."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Collection, Generator, Mapping
from contextlib import contextmanager
from functools import partial
from math import prod
from pathlib import Path
from time import perf_counter
from typing import cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from ..backends.reference import tensor_kind
from ..backends.target import Target
from ..dialects import nn
from ..dialects.levels import legal_ops
from ..dialects.program import verify_symbols
from ..ir.context import AbeleContext
from ..ir.errors import DoesNotFit, InputError
from ..ir.instruments.dump_ir import DumpIR, check_dump_folder
from ..ir.instruments.reproducer import Reproducer
from ..ir.instruments.timing import Timing
from ..ir.instruments.verify_each import VerifyEach
from ..ir.pass_manager import Instrument, PassManager, Step, parse_pipeline
from ..ir.provenance import place
from ..ir.upstream import ModuleOp, ModulePass, VerifyException
from ..ir.whole_file import check_folder
from ..passes.pipelines import DOWN, LEVELS, PASSES, pipeline
from .executable import MACHINE, Executable, Stages, load_executable
from .program import Model, Program, new_context, read_program, target_of

Watcher = Callable[[str], None]
"""Told what is going on, in a few words."""

PROGRAM_FILE = ".abele"

PLANNED_ELEMENTS = 1 << 20
"""Tensors up to this size are planned even if they cannot fit."""

PLANNED_STORED_ELEMENTS = 1 << 28
"""States and constants up to this size are: so a layer's weights are told from all the others."""

STORED = (nn.LoadOp, nn.ConstantOp)


def compile_model(
    model: Model,
    target: str | Target | None = None,
    *,
    dims: Mapping[str, int] | None = None,
    dump_ir: str | os.PathLike[str] | None = None,
    reproducers: str | os.PathLike[str] | None = None,
    verify_each: bool = True,
    watch: Watcher | None = None,
) -> Executable:
    """Compile a model, or load a program that was compiled.

    model: the path of an .onnx file, of an .mlir file of any level, or of a saved .abele program;
    or an onnx.ModelProto. target: as resolve_target takes it; the model's own, else mk2, if none
    is given. dims: sizes of symbolic dimensions. dump_ir: a folder for the program after each
    pass. reproducers: a folder for what is needed to see a pass fail again; dump_ir's, if that is
    given. Raises InputError, and DoesNotFit for a program too large for the target.
    """
    tell: Watcher = watch or _silent
    if isinstance(model, str | os.PathLike) and os.fspath(model).endswith(PROGRAM_FILE):
        if dims:
            raise InputError(f"{model}: dimensions given ({', '.join(dims)}); a program has sizes")
        if dump_ir is not None:
            raise InputError(
                f"{model}: compiled already, so no pass is left to dump; need its model"
            )
        tell("read")
        return load_executable(os.fspath(model), target)
    context = new_context()
    folder = None if dump_ir is None else Path(dump_ir)
    failures = folder if reproducers is None else Path(reproducers)
    if folder is not None:
        check_dump_folder(folder, os.fspath(model) if isinstance(model, str | os.PathLike) else "")
    if failures is not None:
        check_folder(failures)
    with _without_garbage_collection():
        tell("read")
        start = perf_counter()
        program = read_program(model, context, dict(dims or {}))
        machine = target_of(program.module, target, program.path)
        refuse_tensors_larger_than(program.module, machine)
        stages = Stages({"read": perf_counter() - start})
        modules = _lower(program, context, machine, stages, folder, failures, verify_each, tell)
    loaders = {level: partial(_given, module) for level, module in modules.items()}
    exe = Executable(machine, loaders, program.path, stages)
    # Addresses that the compiler gave fit; those in somebody's text may not.
    if program.level == MACHINE:
        exe.check_memory()
    return exe


def _given(module: ModuleOp) -> ModuleOp:
    return module


def refuse_tensors_larger_than(module: ModuleOp, target: Target) -> None:
    """Raise DoesNotFit for a huge tensor that all tiles together cannot hold.

    What lies where, of a program that is too large, can be said once it is planned; but planning
    takes memory for each element of such a tensor.
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


def _lower(
    program: Program,
    context: AbeleContext,
    target: Target,
    stages: Stages,
    dump: Path | None,
    failures: Path | None,
    verify_each: bool,
    tell: Watcher,
) -> dict[str, ModuleOp]:
    spec = pipeline(program.level, LEVELS[-1], target.spelling())
    timing, keep = Timing(), _KeepLevels(program.level)
    instruments: list[Instrument] = [_Tell(tell)]
    if failures is not None:
        instruments.append(Reproducer(failures))
    if dump is not None:
        instruments.append(DumpIR(dump))
    if verify_each:
        instruments += [VerifyEach(legal_after), VerifySymbols()]
    PassManager(parse_pipeline(spec, PASSES) if spec else (), (*instruments, keep, timing)).run(
        context, program.module
    )
    for each in timing.passes:
        stages.add(LEVEL_OF_PASS[each.name], each.seconds)
        stages.passes[each.name] = each.seconds
    return keep.modules | {LEVELS[-1]: program.module}


LEVEL_OF_PASS = {name.partition("{")[0]: level for level, names in DOWN.items() for name in names}
"""The level at the end of whose stage a pass stands."""


def _levels_after() -> dict[str, str]:
    """The level that each pass of the way down leaves its module on."""
    levels: dict[str, str] = {}
    current = LEVELS[0]
    for name in LEVEL_OF_PASS:
        for level in LEVELS:
            if name == f"convert-{current}-to-{level}":
                current = level
                break
        levels[name] = current
    return levels


LEVEL_AFTER = _levels_after()


def legal_after(each: ModulePass) -> Collection[str] | None:
    """What may be in a module after a pass of the way down; anything after any other pass."""
    level = LEVEL_AFTER.get(each.name)
    return None if level is None else legal_ops(level)


class _KeepLevels(Instrument):
    """Keep a clone of the module of each level, as the passes of the level have left it.

    The first is the module as it came: composites are whole, so the reference has something to
    say about how they were decomposed.
    """

    def __init__(self, first: str) -> None:
        self.modules: dict[str, ModuleOp] = {}
        self._level = first

    def before(self, step: Step, module: ModuleOp) -> None:
        """Clone before the first pass, and before each that leads to another level."""
        if step.index == 0:
            self.modules[self._level] = module.clone()
        after = LEVEL_AFTER.get(step.current.name, self._level)
        if after != self._level:
            if self._level != LEVELS[0]:
                self.modules[self._level] = module.clone()
            self._level = after


class VerifySymbols(Instrument):
    """Raise VerifyException if a pass left an operation that does not suit what it names."""

    def after(self, step: Step, module: ModuleOp) -> None:
        """Verify what the pass has left."""
        try:
            verify_symbols(module)
        except VerifyException as error:
            raise VerifyException(f"after {step}: {error}") from None


class _Tell(Instrument):
    def __init__(self, tell: Watcher) -> None:
        self._tell = tell

    def before(self, step: Step, module: ModuleOp) -> None:
        self._tell(f"{step.current.name} ({step.index + 1} of {len(step.pipeline)})")


def _silent(_: str) -> None:
    return


@contextmanager
def _without_garbage_collection() -> Generator[None]:
    """Operations form cycles that live as long as their module: looking for dead ones is vain."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
