"""The command line: abele run, compile, opt and demo."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console

from ..backends.evaluate.control import IterationLimit
from ..backends.machine import MachineFault
from ..ir.errors import DoesNotFit, InputError
from ..ir.upstream import VerifyException
from ..ir.whole_file import check_file, whole_file
from ..passes.pipelines import LEVELS
from .arrays import checked, listed, read_npz, seeded, write_npz
from .check import Verdict, check_run
from .compile import PROGRAM_FILE, Watcher, compile_model
from .executable import MACHINE, Executable
from .opt import (
    AFTER,
    AFTER_CHANGE,
    BEFORE,
    STANDARD_INPUT,
    Options,
    listing,
    optimise,
    text_of,
    write_optimised,
)
from .table import console, summary

CHECK_FAILED, BAD_INPUT, TOO_LARGE = 1, 2, 3

TRACEBACK = "ABELE_TRACEBACK"
"""The environment variable that asks for a traceback where a message would do."""

app = typer.Typer(
    help="Compile neural networks for tile machines, and run them there.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
opt_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def main() -> None:
    """The command abele."""
    app()


def opt_main() -> None:
    """The command abele-opt: abele opt, under the name that users of mlir-opt expect."""
    opt_app()


ModelFile = Annotated[str, typer.Argument(help="An .onnx, .mlir (any level) or .abele file.")]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        help="A preset (tiny, mk1, mk2, bow, c600), NAME:TILES or a TOML file; "
        "if none is given, the model's own, else mk2.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="The size of a symbolic dimension."),
]
ProfileFile = Annotated[
    Path | None,
    typer.Option("--profile", metavar="P.json", help="Write counts, cycles and seconds here."),
]
DumpFolder = Annotated[
    Path | None,
    typer.Option("--dump-ir", metavar="DIR", help="Write the program after each pass here."),
]


@app.command()
def run(
    model: ModelFile,
    inputs: Annotated[
        Path | None,
        typer.Option(metavar="X.npz", help="Inputs by name; those missing get seeded values."),
    ] = None,
    outputs: Annotated[
        Path | None, typer.Option(metavar="Y.npz", help="Write the outputs here.")
    ] = None,
    target: TargetName = None,
    dim: Dims = None,
    at: Annotated[str, typer.Option(metavar="|".join(LEVELS), help="The level to run.")] = MACHINE,
    strict: Annotated[
        bool, typer.Option("--strict", help="Poison memory, and check every access.")
    ] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Hold result and operations to the reference.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, help="Of the values of missing inputs.")] = 0,
    profile: ProfileFile = None,
    dump_ir: DumpFolder = None,
) -> None:
    """Compile a model, or load a program, and run it once."""
    with _answers(_text_in(model)):
        _check_files(
            {"the model": Path(model), "--inputs": inputs},
            {"--outputs": outputs, "--profile": profile},
        )
        with _progress() as tell:
            exe = compile_model(model, target, dims=_sizes(dim), dump_ir=dump_ir, watch=tell)
            exe.module_at(at)
            given = {} if inputs is None else read_npz(inputs, exe.inputs)
            values = checked(seeded(exe.inputs, seed) | given, exe.inputs)
            missing = [each for each in exe.inputs if each.name not in given]
            if inputs is not None and missing:
                _say(f"{inputs}: not there, so seeded: {listed(missing)}")
            tell(f"run at {at}")
            results = exe.run(values, at=at, strict=strict)
            verdict = None
            if check:
                tell("check against the reference")
                verdict = check_run(exe, values, results, at)
            if outputs is not None:
                write_npz(outputs, results)
            if profile is not None:
                _write_profile(profile, exe)
        _show(exe, f"{model} at {at}", verdict)


@app.command("compile")
def compile_command(
    model: ModelFile,
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar=f"P{PROGRAM_FILE}", help="The program file.")
    ],
    target: TargetName = None,
    dim: Dims = None,
    profile: ProfileFile = None,
    dump_ir: DumpFolder = None,
) -> None:
    """Compile a model into a program file, which abele run takes."""
    with _answers(_text_in(model)):
        if output.suffix != PROGRAM_FILE:
            raise InputError(f"{output}: program files end in {PROGRAM_FILE}")
        _check_files({"the model": Path(model)}, {"-o": output, "--profile": profile})
        with _progress() as tell:
            exe = compile_model(model, target, dims=_sizes(dim), dump_ir=dump_ir, watch=tell)
            tell("write")
            exe.save(output)
            if profile is not None:
                _write_profile(profile, exe)
        _show(exe, f"{model} -> {output}", None)


@app.command()
def opt(
    file: Annotated[
        str, typer.Argument(metavar="FILE.mlir", help="- is standard input.")
    ] = STANDARD_INPUT,
    passes: Annotated[
        str,
        typer.Option(
            "-p", "--pass-pipeline", metavar="SPEC", help="Passes: 'a,b{option=1}', in order."
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("-o", metavar="OUT.mlir", help="Write here, blobs beside it in blobs/."),
    ] = None,
    verify_each: Annotated[bool, typer.Option(help="Verify after each pass.")] = True,
    split_input_file: Annotated[
        bool, typer.Option("--split-input-file", help="Treat parts between // ----- apart.")
    ] = False,
    timing: Annotated[
        bool, typer.Option("--timing", "--mlir-timing", help="Print what each pass took.")
    ] = False,
    before_all: Annotated[
        bool, typer.Option("--print-ir-before-all", "--mlir-print-ir-before-all")
    ] = False,
    after_all: Annotated[
        bool, typer.Option("--print-ir-after-all", "--mlir-print-ir-after-all")
    ] = False,
    after_change: Annotated[
        bool, typer.Option("--print-ir-after-change", "--mlir-print-ir-after-change")
    ] = False,
    debuginfo: Annotated[
        bool,
        typer.Option("--print-debuginfo", "--mlir-print-debuginfo", help="Print locations."),
    ] = False,
    allow_unregistered_dialect: Annotated[
        bool, typer.Option("--allow-unregistered-dialect")
    ] = False,
    dump_ir: DumpFolder = None,
    reproducer: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="If a pass fails, write what it was given here."),
    ] = None,
    list_passes: Annotated[
        bool, typer.Option("--list-passes", help="Say what passes there are, and stop.")
    ] = False,
) -> None:
    """Run passes on a module of any level, and print it."""
    wanted = {BEFORE: before_all, AFTER: after_all, AFTER_CHANGE: after_change}
    with _answers("<stdin>" if file == STANDARD_INPUT else file):
        if list_passes:
            for name, meaning in listing():
                sys.stdout.write(f"{name:28}{meaning}\n")
            return
        _check_files({"the input": None if file == STANDARD_INPUT else Path(file)}, {"-o": output})
        options = Options(
            split=split_input_file,
            verify_each=verify_each,
            timing=timing,
            allow_unregistered=allow_unregistered_dialect,
            show=tuple(when for when, yes in wanted.items() if yes),
            dump=dump_ir,
            reproducers=reproducer,
        )
        results = optimise(file, passes, options)
        for each in results:
            if each.timing:
                sys.stderr.write(f"{each.timing}\n")
        if output is None:
            sys.stdout.write(text_of(results, debuginfo))
        else:
            write_optimised(results, output)


opt_app.command()(opt)


@app.command()
def demo(
    target: TargetName = None,
    profile: ProfileFile = None,
    dump_ir: DumpFolder = None,
) -> None:
    """Compile AlexNet with seeded weights, run it on Mk2, check it, and show what it cost."""
    with _answers():
        _check_files({}, {"--profile": profile})
        with _progress() as tell:
            # Only here is onnx needed for what is no .onnx file.
            from .demo import demo_model  # noqa: PLC0415

            tell("seed AlexNet's weights")
            model, values = demo_model()
            exe = compile_model(model, target, dump_ir=dump_ir, watch=tell)
            tell("run")
            results = exe.run(values)
            tell("check against the reference")
            verdict = check_run(exe, values, results, MACHINE)
            if profile is not None:
                _write_profile(profile, exe)
        _show(exe, "AlexNet, seeded weights, one image", verdict)


# What all commands do


@contextmanager
def _answers(text: str = "") -> Generator[None]:
    """Turn what is nobody's bug into one message and an exit code.

    text: what a file of IR is called, if one is read. It may say anything that verifies; if that
    makes a pass or the machine stumble, it is refused too.
    """
    try:
        yield
    except DoesNotFit as error:
        _fail(TOO_LARGE, f"does not fit: {error}")
    except (InputError, IterationLimit) as error:
        _fail(BAD_INPUT, str(error))
    except (MachineFault, VerifyException) as error:
        _fail(CHECK_FAILED, "\n".join([str(error), *_notes(error)]))
    except MemoryError:
        _fail(BAD_INPUT, "this host has not enough memory for that")
    except RecursionError:
        _fail(BAD_INPUT, "the input is nested too deeply")
    except BrokenPipeError:
        # Whoever reads has had enough: no error, and nothing more to flush at exit.
        sys.stdout = None
        raise typer.Exit(0) from None
    except OSError as error:
        # A disk that is full, a folder that went away; paths are checked before.
        if os.environ.get(TRACEBACK):
            raise
        where = "" if error.filename is None else f"{error.filename}: "
        _fail(BAD_INPUT, f"{where}{error.strerror or error}")
    except (
        ArithmeticError,
        AssertionError,
        AttributeError,
        LookupError,
        TypeError,
        ValueError,
    ) as error:
        if not text or os.environ.get(TRACEBACK):
            raise
        what = f"{type(error).__name__}: {error}".splitlines()[0]
        advice = f"{TRACEBACK}=1 shows where"
        _fail(
            BAD_INPUT,
            "; ".join([f"{text}: cannot be compiled or run: {what}", *_notes(error), advice]),
        )


def _text_in(model: str) -> str:
    """The model's path if it is a text or a program file: not made by an importer; else ""."""
    return model if model.endswith((".mlir", PROGRAM_FILE)) else ""


def _check_files(read: Mapping[str, Path | None], written: Mapping[str, Path | None]) -> None:
    """Raise InputError unless every file can be written, and no two paths lead to the same one.

    A device may be named twice: nothing in it is lost.
    """
    names: dict[str | tuple[int, int], str] = {}
    for name, path in [*read.items(), *written.items()]:
        if path is None:
            continue
        if name in written:
            check_file(path)
        if path.exists() and not path.is_file():
            continue
        key = (path.stat().st_dev, path.stat().st_ino) if path.exists() else os.path.realpath(path)
        if key in names:
            raise InputError(f"{path}: both {names[key]} and {name}; need a file for each")
        names[key] = name


def _fail(code: int, message: str) -> NoReturn:
    _say(f"error: {message}")
    raise typer.Exit(code) from None


def _notes(error: BaseException) -> tuple[str, ...]:
    return tuple(getattr(error, "__notes__", ()))


@contextmanager
def _progress() -> Generator[Watcher]:
    """Something to tell what is going on; shown on a terminal only."""
    terminal = Console(stderr=True)
    if terminal.is_terminal:
        with terminal.status("") as status:
            yield status.update
    else:
        yield lambda _: None


def _say(message: str) -> None:
    sys.stderr.write(f"{message}\n")


def _show(exe: Executable, title: str, verdict: Verdict | None) -> None:
    """Print the table; exit when the check has failed."""
    console().print(summary(exe, title, verdict.text if verdict else ""))
    if verdict is not None and not verdict.passed:
        _say(f"check failed: {verdict.problem}")
        raise typer.Exit(CHECK_FAILED)


def _sizes(given: list[str] | None) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for each in given or ():
        name, _, size = each.rpartition("=")
        if not (name and size.isascii() and size.isdigit() and len(size) < 10):
            raise InputError(f"--dim {each}: need NAME=SIZE, such as batch=1")
        if sizes.setdefault(name, int(size)) != int(size):
            raise InputError(f"--dim {each}: {name} is {sizes[name]} already; need one size")
    return sizes


def _write_profile(path: Path, exe: Executable) -> None:
    try:
        with whole_file(path) as stream:
            stream.write(json.dumps(exe.profile, indent=2).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
