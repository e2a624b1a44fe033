"""abele report."""

from __future__ import annotations

import webbrowser
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import copyfile
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ...dialects.levels import LEVELS
from ...ir.support.errors import DoesNotFit, InputError
from ...ir.support.on_step import OnStep
from ...ir.support.whole_folder import MANIFEST
from ..driver.compile import compiled
from ..driver.executable import Executable
from ..driver.files import PROGRAM_FILE, check_files, write_bytes, write_text
from ..driver.program import ReadProgram
from ..driver.request import AUTO_IO, Request
from ..views.layer_names import names_in, source_lines
from ..views.report.chip_picture import chip_picture
from ..views.report.collect import Report, collect
from ..views.report.compare import Comparison, compared, markdown_lines
from ..views.report.condition import Condition, figures_of, read_condition
from ..views.report.files import files_of
from ..views.report.folder import (
    check_report_folder,
    needs_libraries,
    read_report,
    write_report,
)
from ..views.report.outline import outline, unplanned
from ..views.report.page import PAGE, page_text
from ..views.report.perfetto_trace import check_tiles, needs_perfetto, trace_bytes
from ..views.report.text import comparison_lines, report_lines
from ..views.scan.needs import needs_libraries as needs_libraries_of_scan
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, TOO_LARGE, print_error_line, text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn, warn_of_unpriced

PASSES, SCAN = "passes", "scan"
"""Folders of a report with other pages."""

SCAN_PIXELS = 2048
"""Width and height of the pictures of a scan in a report."""

Link = dict[str, str]
"""The addresses of other pages, by name; {} stands for a node, {layer} for the layer of a scan."""


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
    timeline: Annotated[
        Path | None,
        typer.Option(
            "--timeline",
            metavar="FILE.svg",
            help="Draw what each chip does over time: a row for each chip.",
        ),
    ] = None,
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
    program that does not fit, too, and then exits with 3. With --fail-if, --markdown or --timeline,
    -o may be left out.
    """
    asked = _Asked(
        model,
        baseline,
        output,
        markdown,
        perfetto,
        timeline,
        passes_page,
        scan_page,
        opened,
        tuple(fail_if or ()),
    )
    with user_errors(text_in(model), model) as context, TemporaryDirectory() as scratch:
        extensions = context.load(how.load)
        check_files(
            {
                "the model": Path(model),
                **how.files,
            },
            {"--markdown": markdown, "--perfetto": perfetto, "--timeline": timeline},
        )
        shown_tiles = check_tiles(tiles)
        conditions = [read_condition(text) for text in asked.conditions]
        _check_use(asked, tiles, how)
        before = _earlier(baseline)
        if passes_page:
            how = replace(how, dump_ir=Path(scratch, PASSES))
        with how.progress(extensions) as on_step:
            # The cache has neither other plans nor the times of passes.
            request = replace(how.request(model, extensions, on_step), unbounded=True, cache=False)
            exe, report = _reported(request)
            if baseline and before is None:
                _, before = _reported(replace(request, model=baseline, dump_ir=None))
            found = _judged(report, before, baseline, conditions)
            trace = b""
            if perfetto is not None and report.program["planned"]:
                on_step("trace")
                trace = trace_bytes(report, shown_tiles)
            if output is not None:
                on_step("write")
                _write(exe, found, asked, Path(scratch, PASSES), on_step)
            if perfetto is not None and trace:
                write_bytes(perfetto, trace)
            if timeline is not None and report.program["planned"]:
                chip_picture(report).save(timeline)
            if markdown is not None and found.beside is not None:
                lines = markdown_lines(found.beside, found.verdicts)
                write_text(markdown, "\n".join(lines) + "\n")
        _say(exe, found, asked)


@dataclass(frozen=True)
class _Asked:
    """The options of the command."""

    model: str
    baseline: str
    output: Path | None
    markdown: Path | None
    perfetto: Path | None
    timeline: Path | None
    passes: bool
    scan: bool
    opened: bool
    conditions: tuple[str, ...]


@dataclass(frozen=True)
class _Judged:
    """A report, its differences from a baseline, and whether each condition holds."""

    report: Report
    beside: Comparison | None
    verdicts: dict[str, bool]


def _reported(request: Request) -> tuple[Executable, Report]:
    """A program and its report. A program too large to be planned has a report without a plan.

    Raises what compile_model raises; DoesNotFit if not even the weights were read.
    """
    try:
        exe = compiled(request)
    except DoesNotFit as error:
        read = _read(request, error)
        if read is None or read.level != LEVELS[0]:
            raise
        request.on_step("collect")
        # No number of I/O tiles was chosen for a program that was not planned.
        asked = replace(request, io_tiles=None) if request.io_tiles == AUTO_IO else request
        exe = unplanned(read, asked.machine(read))
        return exe, outline(exe, names_in(request.model), error, source_lines(request.model))
    request.on_step("collect")
    return exe, collect(exe, names_in(request.model), source_lines(request.model))


def _read(request: Request, error: DoesNotFit) -> ReadProgram | None:
    """The program of a model before any pass; None if it is too large to be read."""
    found: list[ReadProgram] = []

    def stop(program: ReadProgram) -> None:
        found.append(program)
        raise error

    with suppress(DoesNotFit):
        _ = compiled(replace(request, dump_ir=None, on_read=stop))
    return found[0] if found else None


def _judged(
    report: Report, before: Report | None, baseline: str, conditions: Sequence[Condition]
) -> _Judged:
    """Compare a report with a baseline. Raises InputError for figures that are not known."""
    if before is not None and not before.program.get("planned", True):
        raise InputError(f"{baseline}: not planned, as it is too large; need one with plans")
    if not report.program["planned"]:
        return _Judged(report, None, {})
    beside = None if before is None else compared(report, before, baseline)
    now = figures_of(report.program)
    was = None if before is None else figures_of(before.program)
    return _Judged(report, beside, {each.text: each.holds(now, was) for each in conditions})


def _write(exe: Executable, found: _Judged, asked: _Asked, dump: Path, on_step: OnStep) -> None:
    """Write the folder of the report.

    Args:
        dump: the folder in which the passes were dumped.
    """
    links: Link = {}
    more: list[Callable[[Path], None]] = []
    if asked.passes:
        links["what passes did"] = f"{PASSES}/index.html?report={{}}"
        more.append(partial(_copy, dump))
    if asked.scan and found.report.program["planned"]:
        links["in the scan"] = f"{SCAN}/index.html?report={{layer}}"
        more.append(partial(_scan, exe, asked.model, on_step))
    facts = None if found.beside is None else found.beside.to_dict()
    page = page_text(found.report, facts, links)
    assert asked.output is not None
    write_report(found.report, asked.output, files_of(exe, found.report, page), more)


def _say(exe: Executable, found: _Judged, asked: _Asked) -> None:
    """Print the first figures, and exit with the code that they call for."""
    report = found.report
    if report.program["planned"]:
        warn(exe.relaxed)
        warn_of_unpriced(exe.target)
    for line in (*report_lines(report, asked.output), *comparison_lines(found.beside)):
        console().print(line, highlight=False, soft_wrap=True)
    if asked.opened and asked.output is not None:
        webbrowser.open((asked.output / PAGE).resolve().as_uri())
    if failed := [text for text, bad in found.verdicts.items() if bad]:
        print_error_line(f"check failed: {'; '.join(failed)}")
    if not report.program["fits"]:
        shows = "what fills the tiles" if report.program["planned"] else "what is large"
        print_error_line(
            f"error: does not fit: {report.program['shortage']}; the report says {shows}"
        )
        raise typer.Exit(TOO_LARGE)
    if failed:
        raise typer.Exit(CHECK_FAILED)


def _check_use(asked: _Asked, tiles: str, how: Compilation) -> None:
    """Raise InputError for options that lead to no result, or whose libraries are missing."""
    in_folder = asked.passes or asked.scan or asked.opened
    files = (asked.markdown, asked.perfetto, asked.timeline)
    others = asked.conditions or any(each is not None for each in files)
    if asked.perfetto is not None:
        needs_perfetto()
    if asked.output is None and (in_folder or not others):
        raise InputError("no folder to write to; need -o DIR")
    if asked.markdown is not None and not asked.baseline:
        raise InputError("--markdown: nothing to compare with; need BASELINE")
    if asked.timeline is not None and asked.timeline.suffix != ".svg":
        raise InputError(f"--timeline {asked.timeline}: the picture is SVG; need FILE.svg")
    if tiles and asked.perfetto is None:
        raise InputError("--tiles without --perfetto; need both")
    if asked.passes and asked.model.endswith(PROGRAM_FILE):
        raise InputError(f"{asked.model}: compiled already; --passes needs the model")
    if asked.passes and how.dump_ir is not None:
        raise InputError("--passes and --dump-ir: need one of the two")
    needs_libraries()
    if asked.scan:
        needs_libraries_of_scan()
    if asked.output is not None:
        check_report_folder(asked.output)


def _earlier(baseline: str) -> Report | None:
    """The report in a folder that is the baseline; None if the baseline is no folder."""
    return read_report(Path(baseline)) if baseline and Path(baseline).is_dir() else None


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
    subject = subject_of(exe, Path(model).stem, source_lines(model))
    laid = laid_out(graph, subject, SCAN_PIXELS, 0, 1, on_step)
    write_zoom(laid, folder / SCAN, SCAN_PIXELS, on_step)
    (folder / SCAN / MANIFEST).unlink()
