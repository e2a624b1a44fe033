"""abele opt."""

from __future__ import annotations

import sys
from collections.abc import Container, Mapping
from pathlib import Path
from typing import Annotated

import typer

from ...ir.instruments.print_ir import EVERY, Chosen, Style
from ...ir.instruments.reproducer import fresh_folder
from ...ir.pass_manager import PassEntry, load_pass
from ...passes.names import pipeline_passes
from ..debug.opt import STANDARD_INPUT, Options, optimise, text_of, write_optimised
from ..driver.files import check_files
from ..views.pass_listing import description, listing
from ..views.syntax.colour import ir_for
from ..views.user_errors import CHECK_FAILED, print_error_line, report_errors, user_errors
from .arguments import DumpFolder, Load


def _names(name: str) -> tuple[str, str]:
    """The names of an option: abele's and mlir-opt's."""
    return f"--{name}", f"--mlir-{name}"


def opt(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE.mlir",
            help="The module; - is standard input. An .onnx is read as a module of ONNX.",
        ),
    ] = STANDARD_INPUT,
    passes: Annotated[
        str,
        typer.Option(
            "-p",
            "--pass-pipeline",
            metavar="SPEC",
            help="Passes in order: 'a,b{option=1}'. nn, partition, tile and exchange stand for the "
            "default passes that lead there. A name that abele does not use is xDSL's pass; "
            "abele-a and xdsl-a say whose is meant.",
        ),
    ] = "",
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            metavar="OUT.mlir",
            help="Write the result here, blobs to blobs/. An .onnx takes a module of ONNX.",
        ),
    ] = None,
    target: Annotated[
        str,
        typer.Option(
            "--target",
            help="The target for partition in SPEC. Default: the module's own, else mk2.",
        ),
    ] = "",
    load: Load = None,
    verify_each: Annotated[bool, typer.Option(help="Verify after each pass.")] = True,
    split_input_file: Annotated[
        bool,
        typer.Option(
            *_names("split-input-file"), help="Treat the parts between // ----- as files."
        ),
    ] = False,
    verify_diagnostics: Annotated[
        bool,
        typer.Option(
            *_names("verify-diagnostics"),
            help="Compare errors with comments // expected-error@+1 {{text}}.",
        ),
    ] = False,
    timing: Annotated[
        bool, typer.Option(*_names("timing"), help="Print the time of each pass.")
    ] = False,
    statistics: Annotated[
        bool,
        typer.Option(
            "--statistics",
            *_names("pass-statistics"),
            help="Print operations, rewrites per rule and counts for each pass.",
        ),
    ] = False,
    before: Annotated[
        list[str] | None,
        typer.Option(
            *_names("print-ir-before"), metavar="PASS,...", help="Print before these passes."
        ),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            *_names("print-ir-after"), metavar="PASS,...", help="Print after these passes."
        ),
    ] = None,
    before_all: Annotated[
        bool, typer.Option(*_names("print-ir-before-all"), help="Print before every pass.")
    ] = False,
    after_all: Annotated[
        bool, typer.Option(*_names("print-ir-after-all"), help="Print after every pass.")
    ] = False,
    after_change: Annotated[
        bool,
        typer.Option(
            *_names("print-ir-after-change"), help="Print after each pass that changes something."
        ),
    ] = False,
    after_failure: Annotated[
        bool,
        typer.Option(*_names("print-ir-after-failure"), help="Print the module of a failed pass."),
    ] = False,
    tree: Annotated[
        Path | None,
        typer.Option(
            *_names("print-ir-tree-dir"),
            metavar="DIR",
            help="Write what --print-ir options select to this folder, one file per module. "
            "Default: after all passes.",
        ),
    ] = None,
    generic: Annotated[
        bool, typer.Option(*_names("print-op-generic"), help="Print the generic form.")
    ] = False,
    debuginfo: Annotated[
        bool, typer.Option(*_names("print-debuginfo"), help="Print locations.")
    ] = False,
    allow_unregistered_dialect: Annotated[
        bool,
        typer.Option(
            *_names("allow-unregistered-dialect"), help="Accept operations of unknown dialects."
        ),
    ] = False,
    dump_ir: DumpFolder = None,
    reproducer: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="If a pass fails, write its input to this folder instead of a new one.",
        ),
    ] = None,
    list_passes: Annotated[
        bool, typer.Option("--list-passes", help="List all passes, and stop.")
    ] = False,
    help_pass: Annotated[
        str, typer.Option("--help-pass", metavar="PASS", help="Describe a pass, and stop.")
    ] = "",
) -> None:
    """Run passes on a module of any level, and print the result."""
    with user_errors("<stdin>" if file == STANDARD_INPUT else file) as context:
        extensions = context.load(load)
        names = pipeline_passes(extensions.passes)
        if list_passes or help_pass:
            sys.stdout.write(description(help_pass, names) if help_pass else listing(extensions))
            return
        check_files({"the input": None if file == STANDARD_INPUT else Path(file)}, {"-o": output})
        chosen = Chosen(
            EVERY if before_all else _chosen(before, names),
            EVERY if after_all else _chosen(after, names),
            after_change,
            after_failure,
        )
        options = Options(
            target=target,
            split=split_input_file,
            verify_each=verify_each,
            expected=verify_diagnostics,
            timing=timing,
            statistics=statistics,
            allow_unregistered=allow_unregistered_dialect,
            printed=Chosen(after=EVERY) if tree is not None and chosen == Chosen() else chosen,
            style=Style(generic, debuginfo),
            tree=tree,
            dump=dump_ir,
            reproducers=reproducer or dump_ir or fresh_folder,
        )
        results = optimise(file, passes, options, extensions)
        for each in results:
            if each.figures:
                sys.stderr.write(f"{each.figures}\n")
        failed = [each.error for each in results if each.error is not None]
        if output is None:
            sys.stdout.write(ir_for(text_of(results, options.style), sys.stdout))
        elif not failed:
            write_optimised(results, output, options.style, file)
        report_errors(failed, context)
        problems = [problem for each in results for problem in each.problems]
        for problem in problems:
            print_error_line(problem)
        if problems:
            raise typer.Exit(CHECK_FAILED)


def _chosen(names: list[str] | None, passes: Mapping[str, PassEntry]) -> Container[str]:
    """The passes of options that may list several, separated by commas. Raises InputError."""
    found = tuple(name.strip() for each in names or () for name in each.split(","))
    for name in found:
        load_pass(name, passes)
    return found
