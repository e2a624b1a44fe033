"""abele plan."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from ...backends.target import DEFAULT_TARGET, resolve_target
from ...ir.errors import InputError
from ...ir.whole_file import whole_file
from ..driver.files import check_files
from ..views.planning.picture import draw_trade_offs, needs_matplotlib
from ..views.planning.plan import DTYPES, PlannedModel, plan_model, product_of_matrices
from ..views.planning.tables import memory_lines, plan_table, trade_off_table, wide_enough
from ..views.progress import progress
from .answers import answers, say, text_in
from .arguments import ConstraintsFile, Dims, Load, MemoryProportion, TargetName, sizes
from .showing import warn


def plan_command(
    model: Annotated[str, typer.Argument(metavar="[MODEL]", help="An .onnx or .mlir of nn.")] = "",
    matmul: Annotated[
        str, typer.Option(metavar="M,K,N", help="Plan an [M, K] that comes in times a [K, N].")
    ] = "",
    dtype: Annotated[
        str, typer.Option(metavar="|".join(DTYPES), help="Of --matmul; f16 if none is given.")
    ] = "",
    target: TargetName = None,
    dim: Dims = None,
    passes: Annotated[
        str,
        typer.Option(
            "-p",
            "--pass-pipeline",
            metavar="SPEC",
            help="Passes that the program goes through first.",
        ),
    ] = "nn",
    load: Load = None,
    constraints: ConstraintsFile = None,
    memory_proportion: MemoryProportion = None,
    operator: Annotated[
        str, typer.Option(metavar="NAME", help="Show what else there was for this operator.")
    ] = "",
    every: Annotated[
        bool, typer.Option("--every", help="With --operator: all plans priced, not the best only.")
    ] = False,
    top: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="The N dearest operators only.")
    ] = None,
    png: Annotated[
        Path | None, typer.Option(metavar="FILE", help="With --operator: its plans as a picture.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all figures here.")
    ] = None,
) -> None:
    """Say how each operator is cut over the tiles, what that costs, and what else there is.

    Cycles are the planner's estimates. Bytes are of the fullest tile. Of peak: MACs over all tiles
    of the machine; of what multiplies nothing, bytes through the vector units or the exchange.
    """
    with answers(text_in(model)) as about:
        extensions = about.load(load)
        if not operator and (png is not None or every):
            raise InputError(f"{'--every' if png is None else '--png'}: of which --operator?")
        if bool(model) == bool(matmul):
            raise InputError("need a MODEL or --matmul M,K,N, and one of them only")
        if dtype and not matmul:
            raise InputError("--dtype is for --matmul; a model has its own types")
        read = {"the model": Path(model) if model else None, "--constraints": constraints}
        check_files(read, {"--png": png, "--json": output})
        if png is not None:
            needs_matplotlib()
        program = model
        if matmul:
            machine = resolve_target(target or DEFAULT_TARGET)
            program = product_of_matrices(*_shape(matmul), dtype or "f16", machine)
        with progress() as tell:
            question = plan_model(
                program,
                target,
                dims=sizes(dim),
                passes=passes,
                load=extensions,
                constraints=constraints,
                memory_proportion=memory_proportion,
                watch=tell,
            )
        _show(question, operator, every, top, png)
        if output is not None:
            _write(output, question, operator)


def _shape(text: str) -> tuple[int, int, int]:
    parts = text.split(",")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and 0 < len(p) < 10 for p in parts):
        raise InputError(f"--matmul {text}: need M,K,N, such as 512,1024,1024")
    m, k, n = map(int, parts)
    if 0 in (m, k, n):
        raise InputError(f"--matmul {text}: need sizes of at least 1")
    return m, k, n


def _show(
    question: PlannedModel, operator: str, every: bool, top: int | None, png: Path | None
) -> None:
    plan = question.plan
    if operator:
        found = question.trade_offs(question.operator(operator))
        table = trade_off_table(found, every=every)
        wide_enough(table).print(table)
        if png is not None:
            draw_trade_offs(found, png)
    else:
        table = plan_table(plan, top)
        terminal = wide_enough(table)
        terminal.print(table)
        for line in memory_lines(plan):
            terminal.print(line, highlight=False, markup=False, soft_wrap=True)
    warn(plan.relaxed)
    if not plan.fits:
        say(
            "warning: by this estimate the program does not fit: "
            f"{plan.resident_bytes + plan.live_bytes:,} bytes on the fullest tile, "
            f"{plan.target.usable_bytes_per_tile:,} are usable"
        )


def _write(path: Path, question: PlannedModel, operator: str) -> None:
    """Write all figures as JSON, the Pareto set of an operator among them. Raises InputError."""
    record = question.plan.to_dict()
    if operator:
        record["trade_offs"] = question.trade_offs(question.operator(operator)).to_dict()
    try:
        with whole_file(path) as stream:
            stream.write(json.dumps(record, indent=1).encode() + b"\n")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None
