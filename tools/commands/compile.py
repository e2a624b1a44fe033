"""abele compile."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from ...ir.support.errors import InputError
from ..driver.compile import compiled
from ..driver.executable import Executable
from ..driver.extensions.loaded import Extensions
from ..driver.files import PROGRAM_FILE, check_files, write_text
from ..driver.load_program import load_executable
from ..driver.profile_file import write_profile
from ..driver.request import RUNS
from ..views.layer_names import source_lines
from ..views.trace import trace_text
from ..views.user_errors import text_in, user_errors
from .arguments import ModelFile, ProfileFile, TraceFile
from .compiling import Compilation, compiles
from .showing import figure, show


@compiles
def compile_command(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar=f"P{PROGRAM_FILE}",
            help="The program file. Required unless --list-ops is given.",
        ),
    ] = None,
    *,
    how: Compilation,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--beside",
            metavar="P.abele",
            help="A program with which this one takes turns on one machine: weights get the "
            "layouts and addresses that they have there, where that pays. May be repeated.",
        ),
    ] = None,
    runs: Annotated[
        float | None,
        typer.Option(
            "--runs",
            metavar="N",
            help="With --beside: how often a program runs between two changes. With more runs, "
            f"fewer weights stay. Default: {RUNS}.",
        ),
    ] = None,
    profile: ProfileFile = None,
    trace: TraceFile = None,
) -> None:
    """Compile a model into a program file, which `abele run` runs."""
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        if output is None:
            raise InputError(f"no program file to write; need -o P{PROGRAM_FILE}")
        if output.suffix != PROGRAM_FILE:
            raise InputError(f"{output}: need a program file that ends in {PROGRAM_FILE}")
        check_files(
            {
                "the model": Path(model),
                **how.files,
                **{f"--beside {each}": each for each in beside or ()},
            },
            {"-o": output, "--profile": profile, "--trace": trace},
        )
        with how.progress(extensions) as on_step:
            others = [_program(each, extensions) for each in beside or ()] or None
            if others is None and runs is not None:
                raise InputError("--runs is given; need --beside too")
            runs = RUNS if runs is None else runs
            request = how.request(model, extensions, on_step)
            exe = compiled(replace(request, beside=others, runs=runs))
            on_step("write")
            with exe.stages.timed("write"):
                exe.save(output)
            on_step("figures")
            figure(exe)
            if profile is not None:
                write_profile(profile, exe, source_lines(model))
            if trace is not None:
                on_step("trace")
                write_text(trace, trace_text(exe, source_lines(model)))
        show(exe, f"{model} -> {output}", None, request.values or (), verbose=how.verbose)


def _program(path: Path, extensions: Extensions) -> Executable:
    """A program that --beside names. Raises InputError."""
    if path.suffix != PROGRAM_FILE:
        raise InputError(f"--beside {path}: need a program file that ends in {PROGRAM_FILE}")
    return load_executable(path, context=extensions.context)
