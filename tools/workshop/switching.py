"""The cost of changing between programs of one network on one machine.

python -m abele.tools.workshop.switching [--target mk2] [--runs 10] [--network NAME]
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any

import typer
from rich.table import Table

from ..bench.named import names_in
from ..driver.compile import compile_model
from ..driver.request import RUNS
from ..driver.session import CHANGE_COLUMNS, PROGRAM_COLUMNS, Session
from ..driver.training import Training
from ..importers.light_networks import seeded
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console
from .transformers.graphs import BERT_BASE, encoder

Programs = Mapping[str, Mapping[str, Any]]
"""Programs of a network, each with its options of compile_model, in the order of compilation."""

USED = Training(update=False, outputs=True, reduction="none")
"""The settings of a network between steps of training."""

TOKENS = (128, 64)
"""Tokens of BERT's programs."""


def _batches(name: str, sizes: Sequence[int]) -> Programs:
    """A program for each batch size."""
    model = seeded(name)
    return {f"batch {n}": {"model": model, "batch": n} for n in sizes}


def _train_and_infer(name: str, batch: int) -> Programs:
    """A step of training, and the program that is used afterwards, with the same weights."""
    model = seeded(name)
    return {
        f"train, batch {batch}": {"model": model, "batch": batch, "train": Training()},
        "infer": {"model": model, "batch": 1, "train": USED},
    }


def _lengths(layers: int) -> Programs:
    """A program for each number of tokens."""
    shapes = [replace(BERT_BASE, layers=layers, tokens=n) for n in TOKENS]
    return {f"{s.tokens} tokens": {"model": encoder(s, longest=TOKENS[0])} for s in shapes}


NETWORKS: Mapping[str, Callable[[], Programs]] = {
    "resnet50": lambda: _batches("resnet50", (1, 4)),
    "resnet50 from 4": lambda: _batches("resnet50", (4, 1)),
    "bert": lambda: _lengths(2),
    "squeezenet": lambda: _train_and_infer("squeezenet", 4),
    "alexnet": lambda: _train_and_infer("alexnet", 4),
}
"""The programs of each network. BERT has two layers, which fit the tiles of one chip in float32."""


def sessions(programs: Programs, target: str, runs: Sequence[float]) -> dict[str, Session]:
    """The session of programs that are compiled alone, and one for each number of runs."""
    alone = {n: compile_model(**own, target=target, cache=False) for n, own in programs.items()}
    cycles = {name: exe.profile["cycles"] for name, exe in alone.items()}
    found = {"alone": Session(alone, cycles)}
    for each in runs:
        made = Session.compiled(None, programs, target, runs=each, cache=False)
        found[f"{each:g} runs"] = Session(made.programs, cycles)
    return found


def add_rows(programs: Table, changes: Table, network: str, how: str, session: Session) -> None:
    """Add a row for each program, and for each change between two of them."""
    for row in session.program_rows():
        programs.add_row(network, how, *row)
    for row in session.change_rows():
        changes.add_row(network, how, *row)


def tables(target: str) -> tuple[Table, Table]:
    """Empty tables of programs and of changes between them."""

    def empty(title: str, columns: Sequence[str]) -> Table:
        words = ("network", "for", columns[0])
        return figure_table(f"{title}, {target}", ("network", "for", *columns), words)

    return empty("programs", PROGRAM_COLUMNS), empty("changes", CHANGE_COLUMNS)


def switching(
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
    runs: Annotated[
        list[float] | None, typer.Option(help="Runs between two changes; may be repeated.")
    ] = None,
    network: Annotated[
        list[str] | None, typer.Option(help="A network; all of them by default.")
    ] = None,
) -> None:
    """Print what runs and changes cost, for programs compiled alone and beside each other."""
    names = names_in("--network", ",".join(network), NETWORKS) if network else NETWORKS
    programs, changes = tables(target)
    for name in names:
        for how, session in sessions(NETWORKS[name](), target, runs or [RUNS]).items():
            add_rows(programs, changes, name, how, session)
    for table in (programs, changes):
        console().print(table)


if __name__ == "__main__":
    run_script(switching)
