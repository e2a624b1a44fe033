"""abele plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ..driver.energy import energy_text
from ..driver.files import check_files, write_text
from ..driver.io_tiles import read_io_tiles
from ..driver.request import machine_of
from ..views.planning.columns import chosen, csv_text
from ..views.planning.picture import draw_trade_offs, needs_matplotlib
from ..views.planning.plan import DTYPES, PlannedModel, plan_model, product_of_matrices
from ..views.planning.tables import (
    ALTERNATIVE_COLUMNS,
    OPERATOR_COLUMNS,
    memory_lines,
    operator_columns,
    plan_table,
    shown_alternatives,
    shown_operators,
    sparse_table,
    trade_off_table,
)
from ..views.terminal import Terminal, console
from ..views.user_errors import print_error_line, text_in, user_errors
from .compiling import Compilation, compiles_with
from .showing import warn


@compiles_with(
    *(
        "target",
        "chips",
        "io_tiles",
        "shard",
        "pipeline",
        "schedule",
        "stage_chips",
        "micro_batches",
        "dim",
        "inputs",
        "value",
        "batch",
        "load",
        "constraints",
        "memory_proportion",
    ),
    *("weights", "partial_weights", "lenient", "precision", "sparsity", "calibrate"),
    *("rounding", "recompute", "replicas", "remote", "partials"),
    *("stash", "train", "loss", "optimizer", "training", "verbose"),
)
def plan_command(
    model: Annotated[str, typer.Argument(metavar="MODEL", help="An .onnx or .mlir of nn.")] = "",
    matmul: Annotated[
        str, typer.Option(metavar="M,K,N", help="Plan an [M, K] input times a [K, N] weight.")
    ] = "",
    dtype: Annotated[
        str, typer.Option(metavar="|".join(DTYPES), help="Type for --matmul. Default: f16.")
    ] = "",
    *,
    how: Compilation,
    passes: Annotated[
        str,
        typer.Option(
            "-p",
            "--pass-pipeline",
            metavar="SPEC",
            help="Passes to run on the program first. Default: nn, with those that abele compile "
            "adds for products of the program.",
        ),
    ] = "",
    operator: Annotated[
        str, typer.Option(metavar="NAME", help="Show the alternatives for this operator.")
    ] = "",
    every: Annotated[
        bool, typer.Option("--every", help="With --operator: show all plans, not only the best.")
    ] = False,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Show only the N dearest operators.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --operator: draw its plans.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all figures here.")
    ] = None,
    columns: Annotated[
        str,
        typer.Option(
            "--columns",
            metavar="NAME,...",
            help="Show these columns. Default: all that fit into the terminal, or into 120 "
            "characters in a pipe; --csv writes all.",
        ),
    ] = "",
    table: Annotated[
        Path | None,
        typer.Option("--csv", metavar="OUT", help="Write the rows with all their columns here."),
    ] = None,
) -> None:
    """Show how each operator is split over tiles, what that costs, and the alternatives.

    Cycles are the planner's estimates. Bytes are those of the fullest tile. "Of peak" compares MACs
    with the peak of all tiles; for an operator that does not multiply, it compares bytes with the
    peak of the vector units or of the exchange.
    """
    with user_errors(text_in(model), model or "MODEL") as context:
        extensions = context.load(how.load)
        if not operator and (png is not None or every):
            raise InputError(f"{'--every' if png is None else '--png'}: need --operator NAME")
        if bool(model) == bool(matmul):
            raise InputError("need either a MODEL or --matmul M,K,N")
        if dtype and not matmul:
            raise InputError("--dtype is for --matmul; a model has its own types")
        if how.asked is not None and matmul:
            raise InputError("--train is for a MODEL; a product of matrices has no loss")
        read = {
            "the model": Path(model) if model else None,
            **how.files,
        }
        check_files(read, {"--png": png, "--json": output, "--csv": table})
        if png is not None:
            needs_matplotlib()
        if columns and operator:
            chosen(ALTERNATIVE_COLUMNS, columns)
        elif columns:
            chosen(OPERATOR_COLUMNS, columns)
        program = None
        if matmul:
            machine = machine_of(how.target, how.chips, read_io_tiles(how.io_tiles))
            program = product_of_matrices(*_shape(matmul), dtype or "f16", machine)
        with how.progress(extensions) as on_step:
            asked = replace(how, passes=passes or "nn").request(model, extensions, on_step)
            question = plan_model(replace(asked, tailored=not passes), program)
        _show(question, operator, every, top, png, columns)
        if table is not None:
            write_text(table, _csv(question, operator, every, top, columns))
        if output is not None:
            write_text(output, _json(question, operator))


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and 0 < len(p) < 10 for p in parts):
        raise InputError(f"--matmul {text}: need M,K,N, such as 512,1024,1024")
    m, k, n = map(int, parts)
    if 0 in (m, k, n):
        raise InputError(f"--matmul {text}: need sizes of at least 1")
    return m, k, n


def _show(
    question: PlannedModel,
    operator: str,
    every: bool,
    top: int | None,
    png: Path | None,
    columns: str,
) -> None:
    plan, width = question.plan, console().width
    if operator:
        found = question.trade_offs(question.operator(operator))
        table, hidden = trade_off_table(found, every=every, columns=columns, width=width)
        _print(table, hidden)
        if png is not None:
            draw_trade_offs(found, png)
    else:
        table, hidden = plan_table(plan, top, columns, width)
        terminal = _print(table, hidden)
        for line in (*memory_lines(plan), energy_text(plan.energy)):
            if line:
                terminal.print(line, highlight=False, soft_wrap=True)
        sparse = sparse_table(plan, width)
        if sparse is not None:
            terminal.print(sparse)
    warn(plan.relaxed)
    if not plan.fits:
        print_error_line(
            "warning: by this estimate the program does not fit: "
            f"{plan.resident_bytes + plan.live_bytes:,} bytes on the fullest tile, "
            f"{plan.target.usable_bytes_per_tile:,} are usable"
        )


def _print(table: Table, hidden: str) -> Terminal:
    terminal = console()
    terminal.print(table)
    if hidden:
        terminal.print(hidden, highlight=False, soft_wrap=True)
    return terminal


def _json(question: PlannedModel, operator: str) -> str:
    """All figures as JSON, with the trade-offs of an operator if given."""
    record = question.plan.to_dict()
    if operator:
        record["trade_offs"] = question.trade_offs(question.operator(operator)).to_dict()
    return json.dumps(record, indent=1) + "\n"


def _csv(question: PlannedModel, operator: str, every: bool, top: int | None, columns: str) -> str:
    """The rows of the table as CSV."""
    if operator:
        found = question.trade_offs(question.operator(operator))
        shown = chosen(ALTERNATIVE_COLUMNS, columns) if columns else ALTERNATIVE_COLUMNS
        return csv_text(shown, shown_alternatives(found, every=every))
    shown = chosen(OPERATOR_COLUMNS, columns) if columns else operator_columns(question.plan)
    return csv_text(shown, shown_operators(question.plan, top))
