"""The share of the machine's peak that plans reach, layer by layer, and what limits each layer.

python -m abele.tools.workshop.utilisation [--target mk2]

The networks, in float16, are ResNet-50 for one image and the matrix products of BERT for one
sequence. Equal layers share a row.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from ...backends.target import resolve_target
from ..driver.request import Request
from ..views.planning.figures import OperatorPlan
from ..views.planning.plan import plan_model, product_of_matrices
from ..views.script import run_script
from ..views.terminal import console
from .planning import LAYERS, resnet

SEQUENCE = 384
"""Tokens of the sequence."""

BERT = {
    f"{size} {name}": (SEQUENCE, depth, columns)
    for size, hidden in (("base", 768), ("large", 1024))
    for name, depth, columns in (
        ("query, key and value", hidden, 3 * hidden),
        ("attention output", hidden, hidden),
        ("feed-forward in", hidden, 4 * hidden),
        ("feed-forward out", 4 * hidden, hidden),
    )
}
"""Rows, depth and columns of the products with weights in a layer, by name of the product."""


def utilisation(
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print the plans of ResNet-50 and of BERT's products in float16, and what limits each."""
    network = plan_model(Request(resnet(LAYERS[50], dtype=np.float16), target, passes="nn")).plan
    tables = (
        _table(f"ResNet-50, float16, one image, {target}", _alike(network.operators)),
        _table(f"BERT, float16, {SEQUENCE} tokens, {target}", products(target)),
    )
    for table in tables:
        console().print(table)


def products(target: str) -> Iterator[tuple[str, int, OperatorPlan]]:
    """Each product of BERT: its name, how often it occurs (once), and its plan by itself."""
    machine = resolve_target(target)
    for name, (rows, depth, columns) in BERT.items():
        question = plan_model(
            Request("", machine, passes="nn"),
            product_of_matrices(rows, depth, columns, "f16", machine),
        )
        yield name, 1, question.plan.operators[0]


def _alike(operators: Iterable[OperatorPlan]) -> Iterator[tuple[str, int, OperatorPlan]]:
    """The operators that multiply. Those with the same shape and plan are one row, with a count."""
    first: dict[tuple[str, str, str], OperatorPlan] = {}
    count: Counter[tuple[str, str, str]] = Counter()
    for each in operators:
        key = each.space, each.split, each.plan.method
        if each.peak == "MACs":
            first.setdefault(key, each)
            count[key] += each.times
    for key, each in first.items():
        yield each.node, count[key], each


def _table(title: str, rows: Iterable[tuple[str, int, OperatorPlan]]) -> Table:
    table = Table(title=title, title_justify="left")
    for name in ("what", "times", "space", "split", "method", "cycles", "of peak", "limited by"):
        table.add_column(
            name, justify="right" if name in ("times", "cycles", "of peak") else "left"
        )
    work = cycles = 0.0
    for name, times, each in rows:
        method, peak = each.plan.method, f"{each.utilisation:.1%}"
        table.add_row(
            name,
            str(times),
            each.space,
            each.split,
            method,
            f"{each.cycles:,.0f}",
            peak,
            each.limited_by,
        )
        work += times * each.utilisation * each.cycles
        cycles += times * each.cycles
    table.add_section()
    table.add_row("all", "", "", "", "", f"{cycles:,.0f}", f"{work / max(cycles, 1):.1%}", "")
    return table


if __name__ == "__main__":
    run_script(utilisation)
