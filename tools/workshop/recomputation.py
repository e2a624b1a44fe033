"""Compare automatic recomputation with PopART's schedule.

For each network, a step of training is compiled as it is, with `--recompute sqrt`, and with
`--recompute auto:BYTES`, where BYTES is what the schedule takes. The table has bytes of the fullest
tile, cycles, and the number of choices:

    python -m abele.tools.workshop.recomputation [--networks alexnet:16,...] [--target mk2]
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer
from rich.table import Table

from ...backends.target import named_target
from ...ir.support.errors import InputError
from ...passes.train import Train
from ..bench.measure import write_network
from ..driver.compile import compile_model
from ..driver.executable import Executable
from ..views.script import run_script
from ..views.terminal import console
from .steps import chosen_steps

NETWORKS = ("alexnet:16", "squeezenet:8")


def recomputation(
    networks: Annotated[
        str, typer.Option(help="NAME:BATCH of light networks, separated by commas.")
    ] = ",".join(NETWORKS),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Compare automatic recomputation with PopART's schedule in steps of training."""
    _ = named_target(target)
    chosen = chosen_steps(networks)
    table = Table()
    for name in ("network", "recomputes", "fullest tile", "cycles", "choices"):
        table.add_column(name, justify="left" if name in ("network", "recomputes") else "right")
    with TemporaryDirectory() as folder:
        for name, batch in chosen:
            path = Path(folder, f"{name}.onnx")
            write_network(name, path)
            _compare(table, path, batch, target)
    console().print(table)


def _compare(table: Table, path: Path, batch: int, target: str) -> None:
    def row(how: str) -> Executable:
        exe = _compiled(path, batch, target, how)
        size, cycles = exe.memory.max_tile_bytes, int(exe.profile["cycles"])
        row = f"{path.stem}, batch {batch}", how or "nothing", f"{size:,}", f"{cycles:,}"
        table.add_row(*row, str(len(exe.recomputed)) if "auto" in how else "")
        console().print(*row, highlight=False)
        return exe

    row("")
    try:
        row(f"auto:{row('sqrt').memory.max_tile_bytes}")
    except InputError as error:
        console().print(str(error), highlight=False)


def _compiled(path: Path, batch: int, target: str, recompute: str) -> Executable:
    """A step of training, even if it does not fit."""
    return compile_model(
        path,
        target,
        batch=batch,
        train=Train(),
        recompute=recompute,
        unbounded=True,
        cache=False,
    )


if __name__ == "__main__":
    run_script(recomputation)
