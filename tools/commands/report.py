"""abele report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...ir.errors import InputError
from ..driver.files import check_files
from ..views.layer_names import names_in
from ..views.report.collect import collect
from ..views.report.folder import check_report_folder, needs_libraries, write_report
from ..views.report.text import report_lines
from ..views.terminal import console
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn
from .user_errors import TOO_LARGE, print_error_line, text_in, user_errors


@compiles
def report_command(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the report into this folder."),
    ] = None,
    *,
    how: Compilation,
) -> None:
    """Write a report of what a program does, and where its memory and cycles go.

    Reports a program that does not fit, too, and then exits with 3.
    """
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        check_files({"the model": Path(model), "--constraints": how.constraints}, {})
        if output is None:
            raise InputError("no folder to write to; need -o DIR")
        needs_libraries()
        check_report_folder(output)
        with how.progress(extensions) as on_step:
            exe = how.compiled(model, extensions, on_step, unbounded=True)
            on_step("collect")
            report = collect(exe, names_in(model))
            on_step("write")
            write_report(report, output)
        warn(exe.relaxed)
        for line in report_lines(report, output):
            console().print(line, highlight=False, soft_wrap=True)
        if not report.program["fits"]:
            print_error_line(_too_large(report.program["over_bytes"], exe.memory.fullest_tile))
            raise typer.Exit(TOO_LARGE)


def _too_large(over: int, tile: int) -> str:
    return (
        f"error: does not fit: tile {tile} needs {over:,} bytes more than it has; "
        "the report says what they are"
    )
