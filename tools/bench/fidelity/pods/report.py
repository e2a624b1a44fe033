"""The table and figures of steps on pods."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.table import Table

from ....views.table import figure_table
from .price import Priced


def pods_table(found: Sequence[Priced]) -> Table:
    """A table with a row for each step, in cycles of an update."""
    table = figure_table(
        "an update of training on a pod, in cycles",
        ("row", "measured", "predicted", "ratio", "compiled for", "a sample", "samples")
        + ("update", "sum over replicas"),
        ("row",),
    )
    for each in found:
        table.add_row(
            each.row.name,
            f"{each.row.cycles:,.0f}",
            f"{each.cycles:,.0f}",
            f"{each.cycles / each.row.cycles:.2f}",
            f"{each.micro_batch} of {each.row.micro_batch}",
            f"{each.sample:,.0f}",
            f"{each.samples:,.0f}",
            f"{each.update:,.0f}",
            f"{each.sums:,.0f}",
        )
    return table


def left_out(found: Sequence[Priced]) -> Iterator[str]:
    """Lines about what the predictions leave out."""
    for each in found:
        for what, cycles in each.left_out.items():
            yield f"{each.row.name} leaves out: {what}, {cycles:,.0f} cycles if nothing hides it"
    by_notes: dict[tuple[str, ...], list[str]] = {}
    for each in found:
        by_notes.setdefault(each.notes, []).append(each.row.name)
    for notes, names in by_notes.items():
        yield f"{', '.join(names)} without a price: {'; '.join(notes)}"


def pods_figures(found: Sequence[Priced]) -> dict[str, Mapping[str, object]]:
    """The figures for JSON, by row."""
    return {
        each.row.name: {
            "measured": each.row.cycles,
            "predicted": each.cycles,
            "micro_batch": each.micro_batch,
            "sample": each.sample,
            "samples": each.samples,
            "update": each.update,
            "sums": each.sums,
            "left_out": dict(each.left_out),
        }
        for each in found
    }
