"""The function of `abele opt`: run passes on text, with options that users of mlir-opt know."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from xdsl.dialects import get_all_dialects

from ...backends.target import DEFAULT_TARGET, resolve_target
from ...dialects.levels import known_level
from ...ir.context import AbeleContext
from ...ir.instruments.print_ir import Chosen, PrintIR, Sink, Style, into_stream, into_tree
from ...ir.instruments.reproducer import HEADING, Reproducer
from ...ir.instruments.statistics import Statistics
from ...ir.instruments.timing import Timing
from ...ir.pass_manager import Instrument, PassManager
from ...ir.step import RunningPass
from ...ir.support.deferred import deferred
from ...ir.support.errors import InputError
from ...ir.support.whole_file import check_folder, whole_file
from ...ir.text import BLOBS, blobs_of, parse_module
from ...ir.text_version import with_version
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.verify import verify
from ...passes.pipelines import source_of
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE
from ..driver.verifiers import verifiers
from ..importers.front_ends import front_end_at
from ..views.syntax.colour import ir_for
from .diagnostics import Expectations

with deferred(__name__):
    from ..importers.onnx_models.files import write_onnx
    from ..importers.onnx_models.reader import read_model

SPLIT = "// -----"
STANDARD_INPUT = "-"

MODEL_FILE = ".onnx"
"""How the names of files of ONNX end, which are read as modules of the onnx dialect."""

TREE = "printed modules of abele"
"""The description of the contents of --print-ir-tree-dir."""


@dataclass(frozen=True)
class Options:
    """Options besides the passes.

    Attributes:
        target: for level names in the pipeline; "" for the module's own, else mk2.
        expected: compare errors with the comments that expect them.
        printed: the modules to print around passes, to standard error or, with tree, into that
            folder.
        dump: a folder for the module after each pass.
        reproducers: a folder for the input of a failing pass, or a function that finds a folder.
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
class _Written:
    """The options, and the temporary folders in place of the folders that the options name.

    Attributes:
        place: the folder that commands name for `reproducers`, if that is moved there later.
    """

    given: Options
    dump: Path | None
    tree: Path | None
    reproducers: Path | Callable[[str], Path] | None
    place: Path | None


@dataclass(frozen=True)
class Optimised:
    """The result of one part of the input: the module after all passes, or their error.

    Attributes:
        module: None if an error stopped the passes, expected or not.
        figures: tables of times and statistics.
        problems: the differences between errors and expected errors.
        error: the error that stopped a split part for which no errors are expected.
    """

    module: ModuleOp | None
    figures: str = ""
    problems: tuple[str, ...] = ()
    error: Exception | None = None


def optimise(path: str, spec: str, options: Options, extensions: Extensions) -> list[Optimised]:
    """Run passes on the module, or the split parts, of a file; "-" is standard input.

    Raises InputError for bad text, a module that does not verify, and a bad pipeline;
    VerifyException for a module that a pass broke. An error in one split part does not stop the
    others.

    Args:
        spec: a pipeline, in which a level stands for the passes that lead there;
            builtin.module(...) around it is removed.
    """
    target = resolve_target(options.target).spelling() if options.target else ""
    # Before the file is read: a pipeline may be bad whatever the module.
    extensions.pipeline(_inner(spec), target)
    if options.dump is not None or options.tree is not None:
        # As for the instruments of a dump.
        from ...ir.support.whole_folder import check_whole_folder  # noqa: PLC0415
        from ..driver.dump.folder import check_dump  # noqa: PLC0415

        if options.dump is not None:
            check_dump(options.dump, path)
        if options.tree is not None:
            check_whole_folder(options.tree, TREE)
    if isinstance(options.reproducers, Path) and options.reproducers != options.dump:
        check_folder(options.reproducers)
    model = Path(path) if path.endswith(MODEL_FILE) else None
    if model is not None and (options.split or options.expected):
        raise InputError(f"{path}: a file of ONNX has no parts and no comments; need a .mlir")
    text = b"" if model is not None else _read(path)
    name = "<stdin>" if path == STANDARD_INPUT else path
    blobs = Path(path).parent / BLOBS if path != STANDARD_INPUT else Path(BLOBS)
    context = extensions.context()
    context.allow_unregistered = options.allow_unregistered
    registered = set(context.registered_dialect_names)
    # Passes of xDSL read and make operations of its dialects, such as pdl.
    for dialect, load in get_all_dialects().items():
        if dialect not in registered:
            context.register_dialect(dialect, load)
    if blobs.is_dir():
        try:
            context.blobs.load(blobs)
        except ValueError as error:
            raise InputError(str(error)) from error
    parts = list(_parts(text)) if options.split else [text]
    with _folders(options) as written:
        runs = [
            _Run(
                part,
                name,
                spec,
                target,
                context,
                written,
                extensions,
                f"part-{number}" * options.split,
                model,
            )
            for number, part in enumerate(parts, start=1)
        ]
        if options.expected:
            return [run.expecting() for run in runs]
        return [run.with_error() if options.split else run.optimised() for run in runs]


@contextmanager
def _folders(options: Options) -> Generator[_Written]:
    """The folders to write to. They replace the options' own folders when the block ends."""
    with ExitStack() as stack:
        dump, tree, reproducers, place = options.dump, options.tree, options.reproducers, None
        if dump is not None or tree is not None:
            # As for the instruments of a dump.
            from ...ir.support.whole_folder import folder_until_failure  # noqa: PLC0415
            from ..driver.dump.folder import KIND  # noqa: PLC0415

            if dump is not None:
                dump = stack.enter_context(folder_until_failure(dump, KIND))
                if reproducers == options.dump:
                    reproducers, place = dump, options.dump
            if tree is not None:
                tree = stack.enter_context(folder_until_failure(tree, TREE))
        yield _Written(options, dump, tree, reproducers, place)


def text_of(results: Sequence[Optimised], style: Style, saved: Callable[[str], str] = str) -> str:
    """The modules as text, separated as in the input. A part that failed is empty.

    Args:
        saved: what makes each text into that of a file.
    """
    texts = [
        "" if each.module is None else saved(style.text(each.module))
        for each in results
        if each.module is not None or each.error is not None
    ]
    return f"\n{SPLIT}\n\n".join(texts)


def write_optimised(results: Sequence[Optimised], path: Path, style: Style, source: str) -> None:
    """Write the modules with locations, and their blobs beside the file. Raises InputError.

    A file of ONNX takes a module of ONNX.

    Args:
        source: the path of the file that was read.
    """
    if path.name.endswith(MODEL_FILE):
        if len(results) != 1:
            raise InputError(f"{path}: {len(results)} modules; a file of ONNX holds one")
        module = results[0].module or ModuleOp([])
        write_onnx(module, path, Path(source) if source.endswith(MODEL_FILE) else None)
        return
    try:
        for each in results:
            blobs = blobs_of(each.module or ModuleOp([]))
            if len(blobs):
                blobs.save(path.parent / BLOBS)
        with whole_file(path) as stream:
            placed = Style(style.generic, locations=True)
            stream.write(text_of(results, placed, with_version).encode())
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def _read(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    front_end = front_end_at(path)
    if path.endswith(PROGRAM_FILE) or (front_end is not None and not front_end.is_text):
        advice = "abele compile --dump-ir DIR writes the text of a model"
        raise InputError(f"{path}: opt takes .mlir and .onnx; {advice}")
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None


def _inner(spec: str) -> str:
    """A pipeline without the builtin.module(...) of mlir-opt around it."""
    plain = spec.strip()
    if plain.startswith("builtin.module(") and plain.endswith(")"):
        return plain.removeprefix("builtin.module(").removesuffix(")")
    return plain


def _parts(text: bytes) -> Iterator[bytes]:
    """The parts between lines of // -----, each after enough empty lines to keep line numbers."""
    marker = SPLIT.encode()
    part: list[bytes] = []
    for number, line in enumerate(text.split(b"\n")):
        if line.strip() == marker:
            yield b"\n".join(part)
            part = [b""] * (number + 1)
        else:
            part.append(line)
    yield b"\n".join(part)


def _in_colour(sink: Sink) -> Sink:
    """A sink for standard error that highlights its text on a terminal."""

    def write(when: str, step: RunningPass, text: str) -> None:
        sink(when, step, ir_for(text, sys.stderr))

    return write


def _reduced(module: ModuleOp, fails: Callable[[ModuleOp], bool]) -> ModuleOp:
    """A smaller module that still fails."""
    # Imported here, since only a failing pass needs it.
    from ..driver.reduce import reduce_module  # noqa: PLC0415

    return reduce_module(module, fails)


@dataclass(frozen=True)
class _Run:
    """A run of the passes on one part of the input.

    Attributes:
        spec: the pipeline.
        target: a spelling of the target for level names in it.
        folder: its subfolder of all output folders.
        model: the file of ONNX to read instead of the text.
    """

    text: bytes
    name: str
    spec: str
    target: str
    context: AbeleContext
    written: _Written
    extensions: Extensions
    folder: str
    model: Path | None = None

    def optimised(self) -> Optimised:
        """Run the passes, and raise any error."""
        if self.model is None:
            module = parse_module(self.text, self.context, self.name)
        else:
            module = read_model(self.model, self.context)
        try:
            verify(module, known_level(module))
        except VerifyException as error:
            message = str(error)
            raise InputError(
                message if self.name in message else f"{self.name}: {message}"
            ) from None
        passes = self.extensions.pipeline(_inner(self.spec), self.target, source_of(module))
        timing, statistics = Timing(), Statistics()
        asked = [timing] * self.written.given.timing + [statistics] * self.written.given.statistics
        instruments = [*self._outer(), *reversed(asked)]
        PassManager(passes, tuple(instruments)).run(self.context, module)
        return Optimised(module, "\n".join(each.table() for each in asked))

    def with_error(self) -> Optimised:
        """Run the passes, and keep any error in the result."""
        try:
            return self.optimised()
        except Exception as error:  # from any pass: the other parts still run
            return Optimised(None, error=error)

    def expecting(self) -> Optimised:
        """Run the passes, and compare an error with the comments that expect errors."""
        expectations = Expectations(self.text.decode(errors="replace"), self.name)
        module, problem = None, ""
        try:
            module = self.optimised().module
        except Exception as error:  # from any pass: the comments say which ones are right
            problem = expectations.match(error)
        problems = filter(None, [problem, *expectations.unmatched()])
        return Optimised(module, problems=tuple(problems))

    def _outer(self) -> list[Instrument]:
        written, options, instruments = self.written, self.written.given, list[Instrument]()
        # A reproducer that fails again needs no new reproducer.
        again = self.text.startswith(HEADING.encode()) and not isinstance(written.reproducers, Path)
        if written.reproducers is not None and not options.expected and not again:
            flags = {
                "--allow-unregistered-dialect": options.allow_unregistered,
                "--no-verify-each": not options.verify_each,
            }
            arguments = [*self.extensions.arguments, *(flag for flag, on in flags.items() if on)]
            checks = self._verifiers()
            instruments.append(
                Reproducer(
                    written.reproducers,
                    arguments,
                    checks=checks,
                    reduce=_reduced,
                    place=written.place,
                )
            )
        if options.printed != Chosen():
            sink = into_tree(written.tree / self.folder) if written.tree else None
            sink = sink or _in_colour(into_stream(sys.stderr))
            instruments.append(PrintIR(options.printed, sink, options.style))
        if written.dump is None:
            return [*instruments, *self._verifiers()]
        # Imported here, since only dumps have prices, which need most of abele: a quarter of the
        # start-up.
        from ..driver.dump.instruments import dump_instruments  # noqa: PLC0415

        target = resolve_target(options.target or DEFAULT_TARGET)
        place = written.dump / self.folder
        dump = dump_instruments(place, target, self.name, self.extensions)
        return [*instruments, *dump.around, *self._verifiers(), *dump.within]

    def _verifiers(self) -> tuple[Instrument, ...]:
        return verifiers(None) if self.written.given.verify_each else ()
