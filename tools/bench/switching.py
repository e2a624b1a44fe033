"""What it costs to change between programs of one network on one machine.

python -m abele.tools.bench.switching [--target mk2]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated

import typer
from rich.table import Table

from ..driver.compile import compile_model
from ..driver.executable import Executable
from ..driver.session import Session
from ..driver.training import Training
from ..importers.light_networks import seeded
from ..views.table import figure_table
from ..views.terminal import wide_enough

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


def _batches(name: str, sizes: tuple[int, ...], target: str) -> dict[str, Executable]:
    """A program for each batch size."""
    model = seeded(name)
    return {f"batch {n}": compile_model(model, target, batch=n, cache=False) for n in sizes}


def _train_and_infer(name: str, batch: int, target: str) -> dict[str, Executable]:
    """A step of training, and the program that is used afterwards, with the same weights."""
    model, step = seeded(name), Training()
    used = Training(update=False, outputs=True, reduction="none")
    return {
        "train": compile_model(model, target, batch=batch, train=step, cache=False),
        "infer": compile_model(model, target, batch=1, train=used, cache=False),
    }


PROGRAMS: Mapping[str, Callable[[str], dict[str, Executable]]] = {
    "resnet50": lambda target: _batches("resnet50", (1, 2, 4), target),
    "alexnet": lambda target: _train_and_infer("alexnet", 4, target),
}
"""The programs of each network, for a target."""


def add_rows(table: Table, network: str, session: Session) -> None:
    """Add a row for each change between two programs."""
    for each in session.costs():
        cycles = session.programs[each.after].profile["cycles"]
        sizes = (each.stay_bytes, each.in_bytes, each.out_bytes, each.code_bytes)
        table.add_row(
            network,
            f"{each.before} -> {each.after}",
            *(f"{size / 1e6:.1f}" for size in sizes),
            f"{each.cycles:,}",
            f"{each.cycles / session.target.clock_hz * 1e3:.2f}",
            f"{each.cycles / cycles:.1f}",
        )


@app.command()
def switching(target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2") -> None:
    """Print what each change moves over the link of the host, and how long that takes."""
    text = ("network", "change")
    columns = (*text, "stay MB", "in MB", "out MB", "code MB", "cycles", "ms", "runs")
    table = figure_table(f"changes between programs, {target}", columns, text)
    for network, programs in PROGRAMS.items():
        add_rows(table, network, Session(programs(target)))
    wide_enough(table).print(table)


if __name__ == "__main__":
    app()
