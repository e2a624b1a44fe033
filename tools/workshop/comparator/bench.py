"""Compares abele's plans of matrix products with those of T10, under T10's charges.

python -m abele.tools.workshop.comparator.bench [--shapes 512x1024x1024,...] [--json FILE]

The comparator is T10 (SOSP 2024) on Mk2. For six of the shapes, figures of its own search are
published. That search is not run here: for each shape, this program searches all plans that T10's
rules allow and takes the best one. On the six shapes, it checks that this equals the published
figure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from time import process_time
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from ....ir.support.errors import InputError
from ....ir.support.whole_file import whole_file
from ....passes.planner.charges import Charges
from ...driver.files import check_files
from ...views.script import run_script
from ...views.terminal import console
from .account import COMPARED, WIDER, Sizes
from .matmul import Front, best, best_without_turns, comparators_rule
from .t10 import T10

PUBLISHED: dict[Sizes, int] = {
    (512, 1024, 1024): 16_892,
    (1024, 1024, 1024): 27_118,
    (128, 768, 3072): 11_486,
    (128, 1024, 1024): 8_471,
    (2048, 2048, 2048): 147_246,
    (4096, 4096, 4096): 1_092_344,
}
"""Cycles of the comparator's best plan, by rows, depth and columns, as its own search printed them.
Each search took 35 to 194 seconds of one thread."""

SMALL: tuple[Sizes, ...] = tuple(PUBLISHED)[:4]
"""The published shapes whose best plan rotates nothing."""

OTHERS: tuple[Sizes, ...] = (
    # Projections and feed-forward layers of transformers, for many tokens, a few or one.
    (128, 768, 768),
    (128, 3072, 768),
    (384, 1024, 4096),
    (512, 4096, 1024),
    (512, 768, 2304),
    (2048, 1024, 4096),
    (1, 4096, 4096),
    (16, 4096, 11008),
    (256, 4096, 4096),
    (197, 768, 3072),
    # 1x1 convolutions as products, a stem and a classifier.
    (12544, 64, 256),
    (3136, 256, 64),
    (784, 512, 128),
    (49, 2048, 512),
    (12544, 147, 64),
    (1, 2048, 1000),
    # Primes, thin shapes and deep shapes.
    (1009, 1013, 1019),
    (31, 257, 509),
    (50000, 32, 16),
    (64, 20000, 64),
)


LARGEST = 1 << 20
"""The largest size of a shape."""


@dataclass(frozen=True)
class Row:
    """The best plans of one product, in cycles, and the CPU time of the searches, in milliseconds.

    Attributes:
        comparator: the best plan that the comparator's rules allow.
        same: the best plan of its space, without the rules.
        wider: the best plan if partials may be added up in other ways and operands may be in either
            order.
        split_ms, splits: time and number of priced plans of the wider search without rotation.
        priced, pareto: numbers of plans in the wider search.
        rotates: whether its best plan rotates operands.
    """

    sizes: Sizes
    published: int | None
    comparator: float
    same: float
    same_ms: float
    wider: float
    wider_ms: float
    split_ms: float
    splits: int
    priced: int
    pareto: int
    rotates: bool


def compared(sizes: Sizes, charges: Charges = T10) -> Row:
    """Search for the plans of one product. Cycles are infinite if no plan fits."""
    comparator = best(sizes, charges, COMPARED, comparators_rule)
    same, same_ms = _timed(lambda: best(sizes, charges, COMPARED))
    wider, wider_ms = _timed(lambda: best(sizes, charges, WIDER))
    plain, split_ms = _timed(lambda: best_without_turns(sizes, charges, WIDER))
    return Row(
        sizes,
        PUBLISHED.get(sizes) if charges == T10 else None,
        comparator.fastest,
        same.fastest,
        same_ms,
        wider.fastest,
        wider_ms,
        split_ms,
        plain.priced,
        wider.priced,
        len(wider),
        plain.fastest > wider.fastest,
    )


def _timed(search: Callable[[], Front]) -> tuple[Front, float]:
    """What a search finds, and its CPU time in milliseconds.

    An untimed search before it fills the tables that searches share.
    """
    search()
    begin = process_time()
    found = search()
    return found, 1e3 * (process_time() - begin)


FIGURES: dict[str, Callable[[Row], float]] = {
    "same space": lambda row: row.same,
    "wider": lambda row: row.wider,
}


def ratios(rows: Sequence[Row], name: str) -> list[float]:
    """One of the FIGURES over the comparator's, for each product for which that has a plan."""
    return [FIGURES[name](row) / row.comparator for row in rows if np.isfinite(row.comparator)]


def mean(values: Sequence[float]) -> float:
    """The geometric mean of values."""
    return float(np.exp(np.mean(np.log(values))))


def comparator(
    shapes: Annotated[
        str, typer.Option(help="ROWSxDEPTHxCOLUMNS, separated by commas; 26 shapes by default.")
    ] = "",
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures to this file.")
    ] = None,
) -> None:
    """Print the best plans under the comparator's charges: its own, and abele's in two spaces."""
    check_files({}, {"--json": report})
    wanted = [_sizes(text) for text in shapes.split(",") if text] or [*PUBLISHED, *OTHERS]
    rows = [compared(sizes) for sizes in wanted]
    out = console()
    out.print(
        f"{T10.tiles} tiles, 16-bit floats, the charges of T10. comparator: the best plan that its "
        "rules allow (most tiles in use, little padding); published: the figure of its own "
        "search. Means are geometric."
    )
    out.print(table(rows))
    unlike = [r for r in rows if r.published is not None and round(r.comparator) != r.published]
    known = sum(row.published is not None for row in rows)
    out.print(f"published figures matched: {known - len(unlike)} of {known}")
    for name in FIGURES:
        found = ratios(rows, name)
        if found:
            worst = max(found)
            out.print(f"{name} over comparator: mean {mean(found):.3f}, at most {worst:.3f}")
    small = ratios([row for row in rows if row.sizes in SMALL], "wider")
    if small:
        out.print(f"wider over comparator, the small published shapes: mean {mean(small):.3f}")
    if report is not None:
        with whole_file(report) as stream:
            stream.write(json.dumps([asdict(row) for row in rows], indent=2).encode())
    if unlike or any(row.same > row.comparator for row in rows):
        raise typer.Exit(1)


def _sizes(text: str) -> Sizes:
    try:
        rows, depth, columns = (int(part) for part in text.split("x"))
    except ValueError:
        raise InputError(f"--shapes {text}: need ROWSxDEPTHxCOLUMNS, as 128x768x3072") from None
    if not 1 <= min(rows, depth, columns) <= max(rows, depth, columns) <= LARGEST:
        raise InputError(f"--shapes {text}: need sizes from 1 to {LARGEST:,}")
    return rows, depth, columns


def table(rows: Sequence[Row]) -> Table:
    """A table of all figures, with a row per product."""
    made = Table(title="cycles under the comparator's charges", title_justify="left")
    made.add_column("rows, depth, columns", no_wrap=True)
    columns = ("published", "comparator", "same space", "ratio", "wider", "ratio")
    for name in (*columns, "rotates", "splits", "ms", "rotations priced", "Pareto", "ms"):
        made.add_column(name, justify="right", overflow="fold")
    for row in rows:
        made.add_row(
            ", ".join(map(str, row.sizes)),
            "" if row.published is None else f"{row.published:,}",
            f"{row.comparator:,.0f}" if np.isfinite(row.comparator) else "no plan",
            *_beside(row.same, row.comparator),
            *_beside(row.wider, row.comparator),
            "yes" if row.rotates else "",
            f"{row.splits:,}",
            f"{row.split_ms:.0f}",
            f"{row.priced:,}",
            str(row.pareto),
            f"{row.wider_ms:.0f}",
        )
    return made


def _beside(cycles: float, comparator: float) -> tuple[str, str]:
    if not np.isfinite(cycles):
        return "no plan", ""
    return f"{cycles:,.0f}", f"{cycles / comparator:.3f}"


if __name__ == "__main__":
    run_script(comparator)
