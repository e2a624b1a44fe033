"""Passes on text: what abele opt does, as users of mlir-opt expect it."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from ..dialects.levels import legal_ops
from ..dialects.program import verify_symbols
from ..ir.context import AbeleContext
from ..ir.errors import InputError
from ..ir.instruments.dump_ir import DumpIR, check_dump_folder
from ..ir.instruments.reproducer import Reproducer
from ..ir.instruments.timing import Timing
from ..ir.instruments.verify_each import VerifyEach
from ..ir.pass_manager import (
    Instrument,
    PassManager,
    Step,
    load_pass,
    parse_pipeline,
)
from ..ir.text import BLOBS, blobs_of, parse_module, print_module
from ..ir.upstream import ModuleOp, ModulePass, VerifyException
from ..ir.verify import verify
from ..ir.whole_file import check_folder, whole_file
from ..passes.pipelines import PASSES
from .compile import LEVEL_AFTER, PROGRAM_FILE, VerifySymbols
from .program import new_context

SPLIT = "// -----"
STANDARD_INPUT = "-"

BEFORE, AFTER, AFTER_CHANGE = "before", "after", "after change"


@dataclass(frozen=True)
class Options:
    """What to do besides running the passes.

    show: which of BEFORE, AFTER and AFTER_CHANGE to print to standard error. dump: a folder for
    the module after each pass. reproducers: a folder for what a failing pass was given.
    """

    split: bool = False
    verify_each: bool = True
    timing: bool = False
    allow_unregistered: bool = False
    show: Collection[str] = ()
    dump: Path | None = None
    reproducers: Path | None = None


@dataclass(frozen=True)
class Optimised:
    """A module that the passes have left. timing: a table, or ''."""

    module: ModuleOp
    timing: str = ""


def optimise(path: str, spec: str, options: Options) -> list[Optimised]:
    """Run passes on the module, or the split parts, of a file; "-" is standard input.

    spec: a pipeline; builtin.module(...) around it is taken off. Raises InputError for bad text, a
    module that does not verify and a bad pipeline; VerifyException for what a pass has broken.
    """
    passes = parse_pipeline(_inner(spec), PASSES) if spec.strip() else ()
    if options.dump is not None:
        check_dump_folder(options.dump, path)
    if options.reproducers is not None:
        check_folder(options.reproducers)
    text = _read(path)
    name = "<stdin>" if path == STANDARD_INPUT else path
    folder = Path(path).parent / BLOBS if path != STANDARD_INPUT else Path(BLOBS)
    context = new_context()
    context.allow_unregistered = options.allow_unregistered
    if folder.is_dir():
        try:
            context.blobs.load(folder)
        except ValueError as error:
            raise InputError(str(error)) from error
    parts = _parts(text) if options.split else [text]
    return [_optimise(part, name, passes, context, options) for part in parts]


def text_of(results: Sequence[Optimised], locations: bool) -> str:
    """The modules as text, split parts as they came."""
    texts = [print_module(each.module, locations) for each in results]
    return f"\n{SPLIT}\n\n".join(texts)


def write_optimised(results: Sequence[Optimised], path: Path) -> None:
    """Write the modules with locations, and their blobs beside the file. Raises InputError."""
    try:
        for each in results:
            blobs = blobs_of(each.module)
            if len(blobs):
                blobs.save(path.parent / BLOBS)
        with whole_file(path) as stream:
            stream.write(text_of(results, locations=True).encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def listing() -> list[tuple[str, str]]:
    """Every pass, with the first line of what it says of itself."""
    return [
        (name, (load_pass(name, PASSES).__doc__ or "").strip().partition("\n")[0])
        for name in PASSES
    ]


def _read(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    if path.endswith((".onnx", PROGRAM_FILE)):
        advice = "abele compile --dump-ir DIR writes the text of a model"
        raise InputError(f"{path}: opt takes .mlir; {advice}")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _inner(spec: str) -> str:
    """A pipeline without mlir-opt's anchor."""
    plain = spec.strip()
    if plain.startswith("builtin.module(") and plain.endswith(")"):
        return plain.removeprefix("builtin.module(").removesuffix(")")
    return plain


def _parts(text: bytes) -> Iterator[bytes]:
    """What stands between lines of // -----, each part at the line where it was."""
    marker = SPLIT.encode()
    part: list[bytes] = []
    for number, line in enumerate(text.split(b"\n")):
        if line.strip() == marker:
            yield b"\n".join(part)
            part = [b""] * (number + 1)
        else:
            part.append(line)
    yield b"\n".join(part)


def _optimise(
    text: bytes,
    name: str,
    passes: tuple[ModulePass, ...],
    context: AbeleContext,
    options: Options,
) -> Optimised:
    module = parse_module(text, context, name)
    try:
        verify(module)
        verify_symbols(module)
    except VerifyException as error:
        message = str(error)
        raise InputError(message if name in message else f"{name}: {message}") from None
    timing = Timing()
    instruments: list[Instrument] = []
    if options.reproducers is not None:
        instruments.append(Reproducer(options.reproducers))
    if options.show:
        instruments.append(_Show(options.show, sys.stderr))
    if options.dump is not None:
        instruments.append(DumpIR(options.dump))
    if options.verify_each:
        instruments += [VerifyEach(_legal_after), VerifySymbols()]
    PassManager(passes, (*instruments, timing)).run(context, module)
    return Optimised(module, timing.table() if options.timing else "")


def _legal_after(each: ModulePass) -> Collection[str] | None:
    """What a conversion may leave; a pass that stays on its level may be run on any."""
    level = LEVEL_AFTER.get(each.name)
    return legal_ops(level) if level and each.name.endswith(f"-to-{level}") else None


class _Show(Instrument):
    """Print the module around passes, under mlir-opt's headings."""

    def __init__(self, when: Collection[str], stream: TextIO) -> None:
        self._when = when
        self._stream = stream
        self._previous = ""

    def before(self, step: Step, module: ModuleOp) -> None:
        """Remember the text, to see what changes."""
        self._previous = print_module(module, locations=False)
        if BEFORE in self._when:
            self._print("Before", step, self._previous)

    def after(self, step: Step, module: ModuleOp) -> None:
        """Print it if it is wanted."""
        text = print_module(module, locations=False)
        changed = AFTER_CHANGE in self._when and text != self._previous
        if AFTER in self._when or changed:
            self._print("After", step, text)

    def failed(self, step: Step, module: ModuleOp, error: Exception) -> None:
        """Print what a failing pass has left, as far as it can be printed."""
        self._print("After failed", step, print_module(module, locations=False))

    def _print(self, when: str, step: Step, text: str) -> None:
        heading = f"// {SPLIT.removeprefix('// ')}// IR Dump {when} {step.current.name} //----- //"
        self._stream.write(f"{heading}\n{text}\n")
