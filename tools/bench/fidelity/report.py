"""The tables and figures of the fidelity bench: errors by family, rows, and skipped rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.table import Table

from .measured import Skipped
from .predict import Prediction, Statistics

MOST_RATIO = 20
"""Numbers below this are printed with two decimals."""

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
            _number(measured.cycles),
            _number(each.cycles),
            _percent(each.error, signed=True),
            _percent(each.error_without, signed=True),
            _cycles(each.phases) + (f", without {_cycles(each.left_out)}" if each.left_out else ""),
        )
    return table


def decisions_line(same: int, rows: int) -> str:
    """A sentence about the rows in which the faster product is predicted to be faster."""
    return (
        f"spmm: {same} of {rows} rows whose speed-up is not near 1 are predicted on the right side "
        f"of it ({100 * same / rows:.1f} %)"
    )


def skipped_table(skipped: Sequence[Skipped]) -> Table:
    """A table of the rows that cannot be priced, with the reasons."""
    table = Table(title="skipped", title_justify="left")
    for name in ("row", "family"):
        table.add_column(name, no_wrap=True)
    table.add_column("why", overflow="fold")
    for each in skipped:
        table.add_row(each.name, each.family or "?", each.reason)
    return table


def figures(families: Families, decisions: tuple[int, int]) -> dict[str, dict[str, float]]:
    """The figures for JSON: errors with the fitted constants as fractions, by family.

    Args:
        decisions: in how many rows of speed-ups the faster product is predicted to be faster, and
            of how many rows that can be said.
    """
    same, told = decisions
    return {
        family: ({"right_side": same / told} if family == "spmm" and told else {})
        | {
            "rows": calibrated.rows,
            "median": calibrated.median,
            "p90": calibrated.p90,
            "worst": calibrated.worst,
        }
        for family, (calibrated, _) in families.items()
    }


def _cycles(phases: Mapping[str, float]) -> str:
    return " ".join(f"{name} {_number(cycles)}" for name, cycles in phases.items())


def _number(value: float) -> str:
    """Whole cycles, or a ratio."""
    return f"{value:,.0f}" if value >= MOST_RATIO else f"{value:.2f}"


def _percent(error: float, *, signed: bool = False) -> str:
    return f"{100 * error:+.1f}" if signed else f"{100 * error:.2f}"
