"""abele report."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ...ir.errors import InputError
from ...ir.whole_folder import MANIFEST
from ..driver.executable import Executable
from ..driver.files import PROGRAM_FILE, check_files, write_bytes, write_text
from ..driver.on_step import OnStep
from ..views.layer_names import names_in
from ..views.report.collect import Report, collect
from ..views.report.compare import compared, markdown_lines
from ..views.report.condition import Condition, figures_of, read_condition
from ..views.report.files import files_of
from ..views.report.folder import (
    check_report_folder,
    needs_libraries,
    read_report,
    write_report,
)
from ..views.report.page import PAGE, page_text
from ..views.report.perfetto_trace import check_tiles, needs_perfetto, trace_bytes
from ..views.report.text import comparison_lines, report_lines
from ..views.scan.needs import needs_libraries as needs_libraries_of_scan
from ..views.terminal import console
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn
from .user_errors import CHECK_FAILED, TOO_LARGE, print_error_line, text_in, user_errors

PASSES, SCAN = "passes", "scan"
"""Folders of a report with other pages."""

SCAN_PIXELS = 2048
"""Width and height of the pictures of a scan in a report."""

Link = dict[str, str]
"""Addresses of other pages by name; {} stands for a node, {layer} for the layer of a scan."""


@compiles
def report_command(
    model: ModelFile,
    baseline: Annotated[
        str,
        typer.Argument(
            metavar="BASELINE",
            help="Compare with this: the folder of a report, or a model or program, which takes "
            "the same options.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Write the report into this folder."),
    ] = None,
    fail_if: Annotated[
        list[str] | None,
        typer.Option(
            "--fail-if",
            metavar="CONDITION",
            help="Exit with 1 if this is true, such as 'cycles > 1.02 * baseline.cycles'. Figures "
            "are those of `program` in report.json. May be repeated.",
        ),
    ] = None,
    markdown: Annotated[
        Path | None,
        typer.Option(
            "--markdown", metavar="FILE", help="Write the comparison with BASELINE as Markdown."
        ),
    ] = None,
    perfetto: Annotated[
        Path | None,
        typer.Option(
            "--perfetto", metavar="FILE", help="Write a trace for https://ui.perfetto.dev."
        ),
    ] = None,
    tiles: Annotated[
        str,
        typer.Option(
            "--tiles",
            metavar="N,...",
            help="Tiles with a row in the trace. Default: the slowest, median and fastest.",
        ),
    ] = "",
    passes_page: Annotated[
        bool,
        typer.Option("--passes", help="Add the page of --dump-ir, which shows what passes did."),
    ] = False,
    scan_page: Annotated[
        bool, typer.Option("--scan", help="Add the page of abele scan --zoom: all vertices.")
    ] = False,
    opened: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    *,
    how: Compilation,
) -> None:
    """Write a report of what a program does, and where its memory and cycles go.

    DIR/index.html is the page; it needs no network. Beside it are the tables behind it. Reports a
    program that does not fit, too, and then exits with 3. With --fail-if or --markdown, -o may be
    left out.
    """
    with user_errors(text_in(model), model) as context, TemporaryDirectory() as scratch:
        extensions = context.load(how.load)
        check_files(
            {"the model": Path(model), "--constraints": how.constraints},
            {"--markdown": markdown, "--perfetto": perfetto},
        )
        shown_tiles = check_tiles(tiles)
        if perfetto is not None:
            needs_perfetto()
        conditions = [read_condition(text) for text in fail_if or ()]
        others = bool(conditions) or markdown is not None or perfetto is not None
        _check_use(output, baseline, markdown, others, passes_page or scan_page or opened)
        if tiles and perfetto is None:
            raise InputError("--tiles without --perfetto; need both")
        if passes_page and model.endswith(PROGRAM_FILE):
            raise InputError(f"{model}: compiled already; --passes needs the model")
        if passes_page and how.dump_ir is not None:
            raise InputError("--passes and --dump-ir: need one of the two")
        needs_libraries()
        if scan_page:
            needs_libraries_of_scan()
        if output is not None:
            check_report_folder(output)
        before = _earlier(baseline)
        dump = Path(scratch, PASSES)
        if passes_page:
            how = replace(how, dump_ir=dump)
        with how.progress(extensions) as on_step:
            # What the passes did, and what other plans cost, only compiling knows.
            exe = how.compiled(model, extensions, on_step, unbounded=True, cache=False)
            on_step("collect")
            report = collect(exe, names_in(model))
            if baseline and before is None:
                other = replace(how, dump_ir=None).compiled(
                    baseline, extensions, on_step, unbounded=True, cache=False
                )
                before = collect(other, names_in(baseline))
            beside = None if before is None else compared(report, before, baseline)
            links: Link = {}
            more: list[Callable[[Path], None]] = []
            if passes_page:
                links["what passes did"] = f"{PASSES}/index.html?report={{}}"
                more.append(partial(_copy, dump))
            if scan_page:
                links["in the scan"] = f"{SCAN}/index.html?report={{layer}}"
                more.append(partial(_scan, exe, model, on_step))
            verdicts = _verdicts(conditions, report, before)
            trace = b""
            if perfetto is not None:
                on_step("trace")
                trace = trace_bytes(report, shown_tiles)
            if output is not None:
                on_step("write")
                facts = None if beside is None else beside.to_dict()
                page = page_text(report, facts, links)
                write_report(report, output, files_of(exe, report, page), more)
            if perfetto is not None:
                write_bytes(perfetto, trace)
            if markdown is not None and beside is not None:
                write_text(markdown, "\n".join(markdown_lines(beside, verdicts)) + "\n")
        warn(exe.relaxed)
        for line in (*report_lines(report, output), *comparison_lines(beside)):
            console().print(line, highlight=False, soft_wrap=True)
        if opened and output is not None:
            webbrowser.open((output / PAGE).resolve().as_uri())
        if failed := [text for text, bad in verdicts.items() if bad]:
            print_error_line(f"check failed: {'; '.join(failed)}")
        if not report.program["fits"]:
            shortage = report.program["shortage"]
            print_error_line(
                f"error: does not fit: {shortage}; the report says what fills the tiles"
            )
            raise typer.Exit(TOO_LARGE)
        if failed:
            raise typer.Exit(CHECK_FAILED)


def _check_use(
    output: Path | None, baseline: str, markdown: Path | None, others: bool, in_folder: bool
) -> None:
    """Raise InputError for options that lead to no result.

    others: whether something is asked for besides the folder. in_folder: whether something is asked
    for that lies in the folder.
    """
    if output is None and (in_folder or not others):
        raise InputError("no folder to write to; need -o DIR")
    if markdown is not None and not baseline:
        raise InputError("--markdown: nothing to compare with; need BASELINE")


def _earlier(baseline: str) -> Report | None:
    """The report in a folder that is the baseline; None if the baseline is no folder."""
    return read_report(Path(baseline)) if baseline and Path(baseline).is_dir() else None


def _verdicts(
    conditions: Sequence[Condition], report: Report, before: Report | None
) -> dict[str, bool]:
    """For each condition, whether it holds. Raises InputError for figures that are not known."""
    now = figures_of(report.program)
    was = None if before is None else figures_of(before.program)
    return {each.text: each.holds(now, was) for each in conditions}


def _copy(dump: Path, folder: Path) -> None:
    """Copy the page of a dump into the folder of the report, without the programs beside it."""
    (folder / PASSES).mkdir()
    copyfile(dump / PAGE, folder / PASSES / PAGE)


def _scan(exe: Executable, model: str, on_step: OnStep, folder: Path) -> None:
    """Write the page of a scan into the folder of the report."""
    # Only drawing needs these libraries.
    from ..views.scan.compiled import graph_of_program, subject_of  # noqa: PLC0415
    from ..views.scan.scan import laid_out  # noqa: PLC0415
    from ..views.scan.zoom import write_zoom  # noqa: PLC0415

    graph = graph_of_program(exe, names_in(model))
    laid = laid_out(graph, subject_of(exe, Path(model).stem), SCAN_PIXELS, 0, 1, on_step)
    write_zoom(laid, folder / SCAN, SCAN_PIXELS, on_step)
    (folder / SCAN / MANIFEST).unlink()
