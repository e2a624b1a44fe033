"""The published grid of sparse products beside abele's own plans of the same products.

abele bench sparse [--target bow] [--folder DIR] [--json OUT]

A square matrix of 16-bit floats in blocks multiplies a dense one. A speed-up is the cycles of the
fastest dense plan over those of the fastest buckets. Dense products of 16-bit floats add up in 16
bits, as on the chip. The published ones are those of PopSparse (arXiv 2303.16999), whose rows stay
on the tiles that computed them, and so do those of the column "abele". The next column has the
speed-ups with the movement that puts the rows in their order, as the pass multiply-sparse prices
them. The last one has the cycles of abele's sparse product, without that movement, as a share of
those that PopSparse's own plan is predicted to take.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from rich.table import Table
from xdsl.dialects.builtin import UnitAttr

from ...backends.target import Target, resolve_target
from ...dialects import nn
from ...dialects.dtypes import element_type
from ...passes.planner.alone import cycles_alone
from ...passes.planner.sparse_products import SparseProduct, in_buckets
from ...passes.plans.bands import BlockPattern
from ..bench.fidelity.cases import SparseProduct as Case
from ..bench.fidelity.cases import SpeedUp
from ..bench.fidelity.rows import SPEED_UPS, read_rows
from ..bench.fidelity.sparse import product, speed_up
from ..driver.files import write_text
from ..views.figure import new_figure, write_figure
from ..views.terminal import console

TICKS = (1 / 8, 1 / 4, 1 / 2, 1, 2, 4, 8)
"""The speed-ups that the scale of the picture names, from its first colour to its last."""

NEAR = (0.9, 1.1)
"""Between these speed-ups, it does not matter which product is chosen."""

TABLE = {(1, "float16"): 0.7, (16, "float16"): 4.9, (1, "float32"): 1.4, (16, "float32"): 5.6}
"""The published speed-ups of static products of 4096 x 4096 with 1/16 of the blocks, by side and
type. Each product has the number of columns that suits it best."""

COLUMNS = (4, 16, 64, 256, 1024, 4096)
"""The numbers of columns of which the best is taken there."""


@dataclass(frozen=True)
class Point:
    """A product of the grid.

    Attributes:
        published: the speed-up on the chip.
        predicted: that of PopSparse's own plan, as the family spmm of the fidelity bench says.
        own: that of abele's plans, which leave rows where they are computed.
        in_order: that of abele's plans, with the movement that puts rows in their order.
        cycles: of abele's plan of the sparse product, as a share of those of PopSparse's own plan.
    """

    case: Case
    published: float
    predicted: float
    own: float
    in_order: float
    cycles: float


def sparse_grid(
    target: str = "bow", folder: Path | None = None, report: Path | None = None
) -> None:
    """Print speed-ups by block and density, and draw the grid into a folder."""
    machine = resolve_target(target)
    points = [
        point(case, each.cycles, machine)
        for each in read_rows(SPEED_UPS)[0]
        if isinstance(case := each.case, SpeedUp)
    ]
    console().print(grid_table(points, target))
    count = [each for each in points if not NEAR[0] <= each.published <= NEAR[1]]
    console().print(
        f"abele's plans are on the chip's side of 1 in {right_sides(count, 'own')} of {len(count)} "
        f"rows whose published speed-up is outside {NEAR[0]} to {NEAR[1]}, and in "
        f"{right_sides(count, 'in_order')} with rows in their order",
        highlight=False,
        soft_wrap=True,
    )
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        draw(points, folder / "grid.png")
    if report is not None:
        write_text(report, json.dumps([_record(each) for each in points], indent=1) + "\n")
    console().print(best_table(machine))


def point(case: SpeedUp, published: float, target: Target) -> Point:
    """A row of the grid, with the prices of both plans."""
    each = case.product
    dense = dense_cycles(each.m, each.n, each.operand, target)
    alone, in_order = sparse_cycles(each, target)
    return Point(
        each,
        published,
        sum(speed_up(case, target).values()),
        dense / alone,
        dense / in_order,
        alone / sum(product(each, target).values()),
    )


def sparse_cycles(case: Case, target: Target) -> tuple[float, float]:
    """The cycles of abele's fastest buckets, for a pattern that lies at random.

    Those of the product alone, and those with the movement that puts its rows in their order.
    """
    rng, side = np.random.default_rng(0), case.block
    high, wide = case.m // side, case.k // side
    held = np.sort(rng.choice(high * wide, round(case.density * high * wide), replace=False))
    rows, columns = np.divmod(held, wide)
    dtype = np.dtype(case.operand)
    pattern = BlockPattern(rows, columns, (high, wide), (side, side))
    values = np.broadcast_to(dtype.type(1), (len(held), side, side))
    each = SparseProduct(pattern, (case.n,), before=0, values=values)
    found = in_buckets(each, dtype, dtype, target)
    return min(each.alone for each in found), min(each.cycles for each in found)


@lru_cache(maxsize=64)
def dense_cycles(m: int, n: int, dtype: str, target: Target) -> float:
    """The cycles of abele's fastest plan of a dense product [m, m] by [m, n]."""
    element = element_type(np.dtype(dtype))
    weight, dense = (nn.LoadOp("w", nn.tensor(shape, element)) for shape in ((m, m), (m, n)))
    op = nn.MatMulOp(weight.result, dense.result)
    if dtype == "float16":
        op.properties["narrow_partials"] = UnitAttr()
    return cycles_alone(op.structure(), [np.dtype(dtype)] * 3, [False, True], target)


def right_sides(points: Sequence[Point], name: str) -> int:
    """The rows in which a speed-up is on the chip's side of 1.

    Args:
        name: of the field that has the speed-up.
    """
    return sum((getattr(each, name) > 1) == (each.published > 1) for each in points)


def grid_table(points: Sequence[Point], target: str) -> Table:
    """Median speed-ups by block and density."""
    table = Table(title=f"median speed-up over dense, float16, {target}", title_justify="left")
    for name in (
        "block",
        "not 0",
        "products",
        "published",
        "PopSparse, predicted",
        "abele",
        "in order",
        "cycles",
    ):
        table.add_column(name, justify="right")
    for block in sorted({each.case.block for each in points}):
        for density in sorted({each.case.density for each in points}, reverse=True):
            own = [p for p in points if (p.case.block, p.case.density) == (block, density)]
            if own:
                medians = (
                    median(p.published for p in own),
                    median(p.predicted for p in own),
                    median(p.own for p in own),
                    median(p.in_order for p in own),
                    median(p.cycles for p in own),
                )
                table.add_row(
                    *(f"{block} x {block}", f"1/{round(1 / density)}", str(len(own))),
                    *(f"{each:.2f}" for each in medians),
                )
        table.add_section()
    return table


def best_table(target: Target) -> Table:
    """Speed-ups of both types, each product at its best number of columns."""
    table = Table(
        title="4096 x 4096, 1/16 not 0, each product at its best number of columns",
        title_justify="left",
    )
    for name in ("block", "type", "published", "abele"):
        table.add_column(name, justify="right")
    for (block, dtype), published in TABLE.items():
        cases = [Case(4096, 4096, n, block, 1 / 16, False, dtype, dtype) for n in COLUMNS]
        sparse = min(sparse_cycles(each, target)[0] / each.n for each in cases)
        dense = min(dense_cycles(each.m, each.n, dtype, target) / each.n for each in cases)
        table.add_row(f"{block} x {block}", dtype, f"{published:.1f}", f"{dense / sparse:.1f}")
    return table


def draw(points: Sequence[Point], file: Path) -> None:
    """Draw the published grid and abele's: a row of squares for each block and density."""
    rows = sorted({(p.case.block, -p.case.density) for p in points})
    columns = sorted({(p.case.m, p.case.n) for p in points})
    figure = new_figure(figsize=(13, 9), layout="constrained")
    axes: Any = figure.subplots(2, 1, sharex=True)
    drawn: Any = None
    for axis, (title, name) in zip(
        axes, (("published", "published"), ("abele's plans", "own")), strict=True
    ):
        grid = np.full((len(rows), len(columns)), np.nan)
        for p in points:
            at = rows.index((p.case.block, -p.case.density)), columns.index((p.case.m, p.case.n))
            grid[at] = getattr(p, name)
        drawn = axis.imshow(grid, "RdBu", norm="log", vmin=TICKS[0], vmax=TICKS[-1], aspect="auto")
        for (y, x), value in np.ndenumerate(grid):
            if not np.isnan(value):
                # The colours of both ends of the scale are too dark for black.
                ink = "black" if 1 / 4 < value < 4 else "white"
                axis.text(x, y, f"{value:.2g}", color=ink, ha="center", va="center", fontsize=7)
        axis.set_title(f"speed-up over dense, {title}", loc="left")
        axis.set_yticks(range(len(rows)), [f"{b} x {b}, 1/{round(-1 / d)}" for b, d in rows])
    axes[-1].set_xticks(range(len(columns)), [f"{m}, {n}" for m, n in columns], rotation=90)
    axes[-1].set_xlabel("rows of the matrix, columns of the dense one")
    scale: Any = figure.colorbar(drawn, ax=list(axes), label="speed-up")
    scale.set_ticks(TICKS, labels=[f"{each:g}" for each in TICKS])
    scale.minorticks_off()
    write_figure(file, figure)


def _record(each: Point) -> dict[str, Any]:
    case = each.case
    return {
        **{"block": case.block, "density": case.density, "m": case.m, "n": case.n},
        **{"published": each.published, "predicted": each.predicted, "own": each.own},
        **{"in_order": each.in_order, "cycles": each.cycles},
    }
