"""What the fidelity bench shows and writes: errors by family, rows, and what was skipped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from .predict import Prediction, Statistics
from .rows import Skipped

Families = Mapping[str, tuple[Statistics, Statistics]]


def family_table(families: Families) -> Table:
    """A row a family: errors calibrated, and with no fitted constant."""
    table = Table(
        title="predicted against measured cycles, error in % of the measured", title_justify="left"
    )
    table.add_column("family", no_wrap=True)
    table.add_column("rows", justify="right")
    for name in ("median", "p90", "worst"):
        table.add_column(name, justify="right")
    for name in ("median", "p90", "worst"):
        table.add_column(f"{name}, nothing fitted", justify="right")
    for family, (calibrated, without) in families.items():
        table.add_row(
            family,
            str(calibrated.rows),
            *(_percent(e) for s in (calibrated, without) for e in (s.median, s.p90, s.worst)),
        )
    return table


def row_table(found: Sequence[Prediction]) -> Table:
    """A row a measurement, with the phases of its prediction."""
    table = Table(title="rows", title_justify="left")
    for name in ("row", "family"):
        table.add_column(name, no_wrap=True)
    for name in ("measured", "predicted", "error", "nothing fitted"):
        table.add_column(name, justify="right")
    table.add_column("cycles by phase", overflow="fold")
    for each in found:
        measured = each.measurement
        table.add_row(
            measured.name,
            measured.family,
            f"{measured.cycles:,.0f}",
            f"{each.cycles:,.0f}",
            _percent(each.error, signed=True),
            _percent(each.error_without, signed=True),
            " ".join(f"{name} {cycles:,.0f}" for name, cycles in each.phases.items()),
        )
    return table


def skipped_table(skipped: Sequence[Skipped]) -> Table:
    """The rows that no price was found for, and why."""
    table = Table(title="skipped", title_justify="left")
    for name in ("row", "family"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", overflow="fold")
    for each in skipped:
        table.add_row(each.name, each.family or "?", each.reason)
    return table


def figures(families: Families) -> dict[str, dict[str, float]]:
    """What is written as JSON: calibrated errors as fractions, by family."""
    return {
        family: {
            "rows": calibrated.rows,
            "median": calibrated.median,
            "p90": calibrated.p90,
            "worst": calibrated.worst,
        }
        for family, (calibrated, _) in families.items()
    }


def _percent(error: float, *, signed: bool = False) -> str:
    return f"{100 * error:+.1f}" if signed else f"{100 * error:.2f}"
