"""Plans as tables: one row per operator, or one row per plan of one operator."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console
from rich.table import Table

from ....ir.geometry.space import Dim
from ....passes.planner.choice import Choice
from .figures import OperatorPlan, split_text
from .plan import ProgramPlan, TradeOffs

NAMES = ("node", "op", "space", "split", "method")
NUMBERS = (
    "cycles",
    "compute",
    "exchange",
    "sync",
    "combine",
    "temporary",
    "resident",
    "tiles",
    "of peak",
)
WORDS = ("limited by", "runner-up")


def wide_enough(table: Table) -> Console:
    """Standard output. In a pipe or file, wide enough for all columns of a table."""
    terminal = Console()
    if terminal.is_terminal:
        return terminal
    return Console(width=max(160, Console(width=10_000).measure(table).maximum))


def plan_table(plan: ProgramPlan, top: int | None = None) -> Table:
    """One row per operator, in program order; with top, only the dearest, sorted.

    Cycles are those of one execution; in the last row, of a run.
    """
    table = Table(title=plan.title, title_justify="left", show_footer=False)
    for name in NAMES:
        table.add_column(name, overflow="fold")
    for name in NUMBERS:
        table.add_column(name, justify="right", no_wrap=True)
    for name in WORDS:
        table.add_column(name, overflow="fold")
    shown = plan.operators
    if top is not None:
        shown = tuple(sorted(shown, key=lambda each: -each.times * each.cycles))[:top]
    for each in shown:
        table.add_row(*_names(each), *_numbers(each), each.limited_by, _runner_up(each))
    table.add_section()
    if plan.between_cycles >= 1:
        table.add_row("between operators", *[""] * (len(NAMES) - 1), f"{plan.between_cycles:,.0f}")
    table.add_row(*_totals(plan))
    return table


def _names(each: OperatorPlan) -> tuple[str, ...]:
    node = f"{each.node} x{each.times}" if each.times > 1 else each.node
    return node, each.op, each.space, each.split, each.plan.method or "-"


def _numbers(each: OperatorPlan) -> tuple[str, ...]:
    cycles = (
        each.cycles,
        each.compute_cycles,
        each.exchange_cycles,
        each.sync_cycles,
        each.combine_cycles,
    )
    whole = (each.temporary_bytes, each.resident_bytes, each.tiles)
    return (
        *(f"{n:,.0f}" for n in cycles),
        *(f"{n:,}" for n in whole),
        f"{each.utilisation:.2%} {each.peak}",
    )


def _runner_up(each: OperatorPlan) -> str:
    if each.runner_up is None:
        return "-"
    found = each.runner_up
    method = f" {found.plan.method}" if found.plan.method != each.plan.method else ""
    return f"{split_text(each.dims, found.plan)}{method} {found.slower:+.1%}"


def _totals(plan: ProgramPlan) -> tuple[str, ...]:
    def total(name: str) -> str:
        return f"{sum(each.times * getattr(each, name) for each in plan.operators):,.0f}"

    phases = (f"{phase}_cycles" for phase in NUMBERS[1:5])
    return (
        f"all {len(plan.operators)}",
        *[""] * (len(NAMES) - 1),
        f"{plan.cycles:,.0f}",
        *map(total, phases),
        *[""] * 3,
        f"{plan.utilisation:.2%} MACs",
        "",
        "",
    )


def memory_lines(plan: ProgramPlan) -> Iterable[str]:
    """Lines about the contents of the fullest tile, and the memory limit for operators."""
    usable = plan.target.usable_bytes_per_tile
    yield (
        f"fullest tile: {plan.resident_bytes + plan.live_bytes:,} of {usable:,} bytes, "
        f"{plan.resident_bytes:,} of weights and constants; one operator may take "
        f"{plan.proportion:.3g} of a tile"
    )
    if plan.fits and 0 < plan.bound_bytes < usable:
        yield (
            f"bounded to {plan.bound_bytes / usable:.2g} of a tile each, weights included, so that "
            "all fit together"
        )
    for each in plan.relaxed:
        yield f"relaxed: {each}"


def trade_off_table(found: TradeOffs, *, every: bool = False) -> Table:
    """The Pareto set of an operator, fastest first. every: all priced plans."""
    dims = found.question.problem.structure.space.dims
    front = found.pareto
    shown = (
        found.choices if every else (*front, *(() if found.chosen in front else (found.chosen,)))
    )
    table = Table(title=f"{found.node}: cycles for bytes of a tile", title_justify="left")
    for name in ("split", "combine", "method"):
        table.add_column(name, overflow="fold")
    for name in ("cycles", "resident", "temporary", "tiles"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("")
    for each in shown:
        table.add_row(*_choice(dims, each), "chosen" if each is found.chosen else "")
    return table


def _choice(dims: tuple[Dim, ...], choice: Choice) -> tuple[str, ...]:
    combine = choice.plan.combine
    return (
        split_text(dims, choice.plan),
        "-" if combine is None else str(list(combine.split)),
        choice.plan.method or "-",
        f"{choice.cycles:,.0f}",
        f"{choice.resident_bytes:,}",
        f"{choice.temporary_bytes:,}",
        f"{choice.cells:,}",
    )
