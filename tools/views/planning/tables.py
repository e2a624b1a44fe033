"""Plans as tables: one row per operator, or one row per plan of one operator."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite, isnan

from rich.table import Table

from ....ir.geometry.chip_groups import ranges_of
from ....ir.geometry.space import Dim
from ....passes.planner.choice import Choice
from ....passes.plans.sparse_prices import SparsePrice
from .columns import Column, Row, add_columns, chosen, fitting, hidden_line
from .figures import OperatorPlan, split_text
from .plan import ProgramPlan, TradeOffs


def _node(each: OperatorPlan) -> str:
    return f"{each.layer} x{each.times}" if each.times > 1 else each.layer


def _runner_up(each: OperatorPlan) -> str:
    if each.runner_up is None:
        return "-"
    found = each.runner_up
    method = f" {found.plan.method}" if found.plan.method != each.plan.method else ""
    return f"{split_text(each.dims, found.plan)}{method} {found.slower:+.1%}"


def chips_text(chips: Sequence[int]) -> str:
    """Chips for people: "0", "0..3", or "1..7 by 2"."""
    return ", ".join(
        str(first) if first == last else f"{first}..{last}" + (f" by {step}" if step > 1 else "")
        for first, last, step in ranges_of(chips)
    )


def _part(name: str, keep: int) -> Column[OperatorPlan]:
    def value(each: OperatorPlan) -> float:
        return getattr(each, f"{name}_cycles")

    return Column(name, value, lambda each: f"{value(each):,.0f}", keep)


PARTS = ("compute", "exchange", "sync", "combine")

PHASE = "phase"
"""The column of phases, which only a step of training has."""

LINE = "line"
"""The column of lines of the user's files, which not every model has."""

CHIPS = "chips"
"""The column of chips, which only a machine of several has."""

PARTIALS = "partials"
"""The column of the types of partial sums."""

OPERATOR_COLUMNS: tuple[Column[OperatorPlan], ...] = (
    Column("node", _node, keep=16, fold=24),
    Column(LINE, lambda each: each.line, keep=13, fold=12),
    Column(PHASE, lambda each: each.phase, keep=9, fold=8),
    Column("op", lambda each: each.op, keep=5, fold=9),
    Column("space", lambda each: each.space, keep=6, fold=16),
    Column("split", lambda each: each.split, keep=14, fold=14),
    Column("method", lambda each: each.plan.method or "-", keep=10, fold=6),
    Column(PARTIALS, lambda each: each.partials or "-", keep=2, fold=7),
    Column("cycles", lambda each: each.cycles, lambda each: f"{each.cycles:,.0f}", 15),
    _part("compute", 9),
    _part("exchange", 8),
    _part("sync", 1),
    _part("combine", 4),
    Column(
        "temporary", lambda each: each.temporary_bytes, lambda each: f"{each.temporary_bytes:,}", 7
    ),
    Column(
        "resident", lambda each: each.resident_bytes, lambda each: f"{each.resident_bytes:,}", 2
    ),
    Column("tiles", lambda each: each.tiles, lambda each: f"{each.tiles:,}", 13),
    Column(CHIPS, lambda each: chips_text(each.chips), keep=12, fold=8),
    Column(
        "of peak",
        lambda each: each.utilisation,
        lambda each: f"{each.utilisation:.2%} {each.peak}",
        11,
    ),
    Column("limited by", lambda each: each.limited_by, keep=12, fold=16),
    Column("runner-up", _runner_up, keep=3, fold=18),
)


def operator_columns(plan: ProgramPlan) -> tuple[Column[OperatorPlan], ...]:
    """All columns; without phases for a program that is not a step of training, without lines if
    none is known, and without chips on a machine of one.
    """
    absent = {
        PHASE: not plan.phases,
        LINE: not any(each.line for each in plan.operators),
        CHIPS: plan.target.chips == 1,
    }
    return tuple(each for each in OPERATOR_COLUMNS if not absent.get(each.name))


@dataclass(frozen=True)
class Alternative:
    """One plan of an operator, beside the chosen one."""

    dims: tuple[Dim, ...]
    choice: Choice
    is_chosen: bool

    @property
    def combine(self) -> str:
        """The split of the compute that merges partials; "-" if there is none."""
        combine = self.choice.plan.combine
        return "-" if combine is None else str(list(combine.split))


CHOSEN = ""
"""The heading of the column that marks the chosen plan: none."""

ALTERNATIVE_COLUMNS: tuple[Column[Alternative], ...] = (
    Column("split", lambda each: split_text(each.dims, each.choice.plan), keep=8, fold=14),
    Column("combine", lambda each: each.combine, keep=2, fold=12),
    Column("method", lambda each: each.choice.plan.method or "-", keep=3, fold=6),
    Column("cycles", lambda each: each.choice.cycles, lambda each: f"{each.choice.cycles:,.0f}", 7),
    Column(
        "resident",
        lambda each: each.choice.resident_bytes,
        lambda each: f"{each.choice.resident_bytes:,}",
        5,
    ),
    Column(
        "temporary",
        lambda each: each.choice.temporary_bytes,
        lambda each: f"{each.choice.temporary_bytes:,}",
        4,
    ),
    Column("tiles", lambda each: each.choice.cells, lambda each: f"{each.choice.cells:,}", 1),
    Column(CHOSEN, lambda each: "chosen" if each.is_chosen else "", keep=6, fold=6),
)


def _priced(cycles: float) -> str:
    return f"{cycles:,.0f}" if isfinite(cycles) else "-"


SPARSE_COLUMNS: tuple[Column[SparsePrice], ...] = (
    Column("node", lambda each: each.node, keep=7, fold=24),
    Column("matrix", lambda each: each.matrix, keep=1),
    Column("block", lambda each: each.block or "-", keep=3),
    Column("not 0", lambda each: each.held, lambda each: f"{each.held:.1%}", 2),
    Column("dense", lambda each: each.dense, lambda each: _priced(each.dense), 5),
    Column("sparse", lambda each: each.sparse, lambda each: _priced(each.sparse), 6),
    Column("zeros", lambda each: each.verdict, keep=4, fold=16),
)
"""The columns of products with and without their zeros."""


def shown_operators(plan: ProgramPlan, top: int | None = None) -> tuple[OperatorPlan, ...]:
    """The operators in program order; with top, only the dearest, sorted."""
    if top is None:
        return plan.operators
    return tuple(sorted(plan.operators, key=lambda each: -each.times * each.cycles))[:top]


def plan_table(
    plan: ProgramPlan, top: int | None = None, columns: str = "", width: int | None = None
) -> tuple[Table, str]:
    """One row per operator, and a line that names the columns that do not fit, or "".

    Cycles are those of one execution; in the last row, of a run. Raises InputError for a column
    that does not exist.

    Args:
        top: as for shown_operators.
        columns: their names, separated by commas; "" for those that fit into the width in
            characters, or for all without a width.
    """
    shown = shown_operators(plan, top)
    last = [
        _totals(f"all {phase}", phase, [o for o in plan.operators if o.phase == phase])
        for phase in plan.phases
    ]
    if plan.between_cycles >= 1:
        last.append({"node": "between operators", "cycles": f"{plan.between_cycles:,.0f}"})
    last.append(
        _totals(f"all {len(plan.operators)}", "", plan.operators)
        | {"cycles": f"{plan.cycles:,.0f}", "of peak": f"{plan.utilisation:.2%} MACs"}
    )
    rows = [{each.name: each.cell(row) for each in OPERATOR_COLUMNS} for row in shown]
    every = OPERATOR_COLUMNS if columns else operator_columns(plan)
    found, line = _columns(every, [*rows, *last], columns, width)
    table = Table(title=plan.title, title_justify="left", show_footer=False)
    add_columns(table, found)
    for row in rows:
        table.add_row(*(row[each.name] for each in found))
    table.add_section()
    for row in last:
        table.add_row(*(row.get(each.name, "") for each in found))
    return table, line


def _columns(
    every: Sequence[Column[Row]],
    rows: Sequence[Mapping[str, str]],
    names: str,
    width: int | None,
) -> tuple[tuple[Column[Row], ...], str]:
    if names:
        return chosen(every, names), ""
    if width is None:
        return tuple(every), ""
    cells = {each.name: [row.get(each.name, "") for row in rows] for each in every}
    found = fitting(every, cells, width)
    return found, hidden_line(every, found)


def _totals(node: str, phase: str, operators: Sequence[OperatorPlan]) -> dict[str, str]:
    """The cells of a row with the cycles of some operators in a run."""

    def total(name: str) -> str:
        return f"{sum(each.times * getattr(each, name) for each in operators):,.0f}"

    return {
        "node": node,
        PHASE: phase,
        "cycles": total("cycles"),
        **{part: total(f"{part}_cycles") for part in PARTS},
    }


def sparse_table(plan: ProgramPlan, width: int | None = None) -> Table | None:
    """One row per product that was looked at for zeros; None if there is none.

    Its cycles are those of the product alone: the planner chose the final plans afterwards.
    """
    if not plan.sparse:
        return None
    rows = [{each.name: each.cell(row) for each in SPARSE_COLUMNS} for row in plan.sparse]
    shown, _ = _columns(SPARSE_COLUMNS, rows, "", width)
    table = Table(title="products with a known matrix, priced alone", title_justify="left")
    add_columns(table, shown)
    for row in rows:
        table.add_row(*(row[each.name] for each in shown))
    return table


def memory_lines(plan: ProgramPlan) -> Iterable[str]:
    """Lines about the contents of the fullest tile, and the memory limit for operators."""
    usable = plan.target.usable_bytes_per_tile
    yield (
        f"fullest tile: {plan.resident_bytes + plan.live_bytes:,} of {usable:,} bytes, "
        f"{plan.resident_bytes:,} of weights and constants; one operator may take "
        f"{plan.proportion:.3g} of a tile"
    )
    yield from _lines_about_chips(plan)
    if plan.fits and 0 < plan.bound_bytes < usable:
        yield (
            f"bounded to {plan.bound_bytes / usable:.2g} of a tile each, weights included, so that "
            "all fit together"
        )
    for each in plan.relaxed:
        yield f"relaxed: {each}"


def _lines_about_chips(plan: ProgramPlan) -> Iterable[str]:
    chips = plan.target.chips
    if chips == 1:
        return
    if plan.one_chip:
        yield f"on one of {chips} chips: no plans found for all of them are faster"
    elif isfinite(plan.alone_cycles):
        times = plan.alone_cycles / plan.cycles
        yield f"on {chips} chips: {times:.2f} times as fast as on one, by the planner's estimate"
    elif not isnan(plan.alone_cycles):
        yield f"on {chips} chips: no plans found for one of them fit"


def shown_alternatives(found: TradeOffs, *, every: bool = False) -> tuple[Alternative, ...]:
    """The Pareto set of an operator, fastest first.

    Args:
        every: all priced plans.
    """
    dims = found.question.problem.structure.space.dims
    front = found.pareto
    shown = (
        found.choices if every else (*front, *(() if found.chosen in front else (found.chosen,)))
    )
    return tuple(Alternative(dims, each, each is found.chosen) for each in shown)


def trade_off_table(
    found: TradeOffs, *, every: bool = False, columns: str = "", width: int | None = None
) -> tuple[Table, str]:
    """One row per alternative, and a line about columns. Parameters: as for plan_table."""
    rows = [
        {each.name: each.cell(row) for each in ALTERNATIVE_COLUMNS}
        for row in shown_alternatives(found, every=every)
    ]
    shown, line = _columns(ALTERNATIVE_COLUMNS, rows, columns, width)
    table = Table(title=f"{found.node}: cycles for bytes of a tile", title_justify="left")
    add_columns(table, shown)
    for row in rows:
        table.add_row(*(row[each.name] for each in shown))
    return table, line
