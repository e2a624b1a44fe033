"""The tables and figures of the fidelity bench: errors by family, rows, and skipped rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from .predict import Prediction, Statistics
from .rows import Skipped

Families = Mapping[str, tuple[Statistics, Statistics]]


def family_table(families: Families) -> Table:
    """A table of errors with the fitted constants and without them, with a row per family."""
    table = Table(title="error of predicted cycles, in % of measured cycles", title_justify="left")
    table.add_column("family", no_wrap=True)
    table.add_column("rows", justify="right")
    for name in ("median", "p90", "worst"):
        table.add_column(name, justify="right")
    for name in ("median", "p90", "worst"):
        table.add_column(f"{name}, not fitted", justify="right")
    for family, (calibrated, without) in families.items():
        table.add_row(
            family,
            str(calibrated.rows),
            *(_percent(e) for s in (calibrated, without) for e in (s.median, s.p90, s.worst)),
        )
    return table


def row_table(found: Sequence[Prediction]) -> Table:
    """A table of predictions by phase, with a row per measurement."""
    table = Table(title="rows", title_justify="left")
    for name in ("row", "family"):
        table.add_column(name, no_wrap=True)
    for name in ("measured", "predicted", "error", "not fitted"):
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
            _cycles(each.phases) + (f", without {_cycles(each.left_out)}" if each.left_out else ""),
        )
    return table


def skipped_table(skipped: Sequence[Skipped]) -> Table:
    """A table of the rows that cannot be priced, with the reasons."""
    table = Table(title="skipped", title_justify="left")
    for name in ("row", "family"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", overflow="fold")
    for each in skipped:
        table.add_row(each.name, each.family or "?", each.reason)
    return table


def figures(families: Families) -> dict[str, dict[str, float]]:
    """The figures for JSON: errors with the fitted constants as fractions, by family."""
    return {
        family: {
            "rows": calibrated.rows,
            "median": calibrated.median,
            "p90": calibrated.p90,
            "worst": calibrated.worst,
        }
        for family, (calibrated, _) in families.items()
    }


def _cycles(phases: Mapping[str, float]) -> str:
    return " ".join(f"{name} {cycles:,.0f}" for name, cycles in phases.items())


def _percent(error: float, *, signed: bool = False) -> str:
    return f"{100 * error:+.1f}" if signed else f"{100 * error:.2f}"
