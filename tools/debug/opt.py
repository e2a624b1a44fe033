"""Passes on text: what abele opt does, as users of mlir-opt expect it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ...backends.target import DEFAULT_TARGET, resolve_target
from ...dialects.program import verify_symbols
from ...ir.context import AbeleContext
from ...ir.errors import InputError
from ...ir.instruments.print_ir import Chosen, PrintIR, Style, into_stream, into_tree
from ...ir.instruments.reproducer import HEADING, Reproducer
from ...ir.instruments.statistics import Statistics
from ...ir.instruments.timing import Timing
from ...ir.pass_manager import Instrument, PassManager, parse_pipeline
from ...ir.text import BLOBS, blobs_of, parse_module
from ...ir.upstream import ModuleOp, ModulePass, VerifyException
from ...ir.verify import verify
from ...ir.whole_file import check_folder, whole_file
from ...passes.pipelines import expand
from ..driver.compile import verifiers
from ..driver.dump.instruments import NO_DUMP, check_dump, dump_instruments
from ..driver.executable import PROGRAM_FILE
from ..driver.extensions.loaded import Extensions
from ..driver.reduce import reduce_module
from .diagnostics import Expectations

SPLIT = "// -----"
STANDARD_INPUT = "-"


@dataclass(frozen=True)
class Options:
    """What to do besides running the passes.

    target: for the shorthand of a pipeline; "" leaves it to the module, which is for mk2 if it
    names none. expected: hold errors to the comments that expect them. printed: what to print
    around passes, to standard error or, with tree, into that folder. dump: a folder for the module
    after each pass. reproducers: a folder for what a failing pass was given, or what finds one.
    """

    target: str = ""
    split: bool = False
    verify_each: bool = True
    expected: bool = False
    timing: bool = False
    statistics: bool = False
    allow_unregistered: bool = False
    printed: Chosen = field(default_factory=Chosen)
    style: Style = field(default_factory=Style)
    tree: Path | None = None
    dump: Path | None = None
    reproducers: Path | Callable[[str], Path] | None = None


@dataclass(frozen=True)
class Optimised:
    """A part of the input: the module that the passes have left, or the problem that stopped them.

    module: None if an error that was expected, or one that was not, has stopped it. figures: tables
    of times and statistics. problems: how its errors differ from those that were expected. error:
    what has stopped a split part, where none is expected.
    """

    module: ModuleOp | None
    figures: str = ""
    problems: tuple[str, ...] = ()
    error: Exception | None = None


def optimise(path: str, spec: str, options: Options, extensions: Extensions) -> list[Optimised]:
    """Run passes on the module, or the split parts, of a file; "-" is standard input.

    spec: a pipeline, a level's name standing for its passes; builtin.module(...) around it is taken
    off. Raises InputError for bad text, a module that does not verify and a bad pipeline;
    VerifyException for what a pass has broken. What is wrong with a split part stops no other.
    """
    target = resolve_target(options.target).spelling() if options.target else ""
    passes = parse_pipeline(expand(_inner(spec), target, extensions.passes), extensions.passes)
    if options.dump is not None:
        check_dump(options.dump, path)
    for folder in (options.reproducers, options.tree):
        if isinstance(folder, Path):
            check_folder(folder)
    text = _read(path)
    name = "<stdin>" if path == STANDARD_INPUT else path
    blobs = Path(path).parent / BLOBS if path != STANDARD_INPUT else Path(BLOBS)
    context = extensions.context()
    context.allow_unregistered = options.allow_unregistered
    if blobs.is_dir():
        try:
            context.blobs.load(blobs)
        except ValueError as error:
            raise InputError(str(error)) from error
    parts = list(_parts(text)) if options.split else [text]
    runs = [
        _Run(part, name, passes, context, options, extensions, f"part-{number}" * options.split)
        for number, part in enumerate(parts, start=1)
    ]
    if options.dump is not None and options.split:
        for run in runs:
            check_dump(options.dump / run.folder, path)
    if options.expected:
        return [run.expecting() for run in runs]
    return [run.apart() if options.split else run.optimised() for run in runs]


def text_of(results: Sequence[Optimised], style: Style) -> str:
    """The modules as text, split parts as they came; one that failed is empty."""
    texts = [
        "" if each.module is None else style.text(each.module)
        for each in results
        if each.module is not None or each.error is not None
    ]
    return f"\n{SPLIT}\n\n".join(texts)


def write_optimised(results: Sequence[Optimised], path: Path, style: Style) -> None:
    """Write the modules with locations, and their blobs beside the file. Raises InputError."""
    try:
        for each in results:
            blobs = blobs_of(each.module or ModuleOp([]))
            if len(blobs):
                blobs.save(path.parent / BLOBS)
        with whole_file(path) as stream:
            stream.write(text_of(results, Style(style.generic, locations=True)).encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


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


@dataclass(frozen=True)
class _Run:
    """The passes on one part of the input. folder: its own below each folder that is written."""

    text: bytes
    name: str
    passes: tuple[ModulePass, ...]
    context: AbeleContext
    options: Options
    extensions: Extensions
    folder: str

    def optimised(self) -> Optimised:
        """Run them; any error is raised."""
        module = parse_module(self.text, self.context, self.name)
        try:
            verify(module)
            verify_symbols(module)
        except VerifyException as error:
            message = str(error)
            raise InputError(
                message if self.name in message else f"{self.name}: {message}"
            ) from None
        timing, statistics = Timing(), Statistics()
        asked = [timing] * self.options.timing + [statistics] * self.options.statistics
        instruments = [*self._outer(), *reversed(asked)]
        PassManager(self.passes, tuple(instruments)).run(self.context, module)
        return Optimised(module, "\n".join(each.table() for each in asked))

    def apart(self) -> Optimised:
        """Run them; any error is kept."""
        try:
            return self.optimised()
        except Exception as error:  # of any pass: other parts have theirs to tell
            return Optimised(None, error=error)

    def expecting(self) -> Optimised:
        """Run them; an error is held to the comments that expect some."""
        expectations = Expectations(self.text.decode(errors="replace"), self.name)
        module, problem = None, ""
        try:
            module = self.optimised().module
        except Exception as error:  # of any pass: the text says which are right
            problem = expectations.meet(error)
        return Optimised(module, problems=tuple(filter(None, [problem, *expectations.unmet()])))

    def _outer(self) -> list[Instrument]:
        options, instruments = self.options, list[Instrument]()
        # A reproducer that fails again is its own reproducer.
        again = self.text.startswith(HEADING.encode()) and not isinstance(options.reproducers, Path)
        if options.reproducers is not None and not options.expected and not again:
            flags = {
                "--allow-unregistered-dialect": options.allow_unregistered,
                "--no-verify-each": not options.verify_each,
            }
            arguments = [*self.extensions.arguments, *(flag for flag, on in flags.items() if on)]
            checks = self._verifiers()
            instruments.append(
                Reproducer(options.reproducers, arguments, checks=checks, reduce=reduce_module)
            )
        if options.printed != Chosen():
            sink = into_tree(options.tree / self.folder) if options.tree else None
            sink = sink or into_stream(sys.stderr)
            instruments.append(PrintIR(options.printed, sink, options.style))
        dump = NO_DUMP
        if options.dump is not None:
            target = resolve_target(options.target or DEFAULT_TARGET)
            dump = dump_instruments(options.dump / self.folder, target, self.name)
        return [*instruments, *dump.around, *self._verifiers(), *dump.within]

    def _verifiers(self) -> tuple[Instrument, ...]:
        return verifiers(None) if self.options.verify_each else ()
