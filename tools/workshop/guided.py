"""Measures the benefit of keeping programs that reach new lines of a pass.

python -m abele.tools.workshop.guided [--examples 1000] [--seeds 2]

Each pass below looks for a pattern of several conditions, as users' passes do. Guided and unguided
checks of it take turns, with the same seeds. The more programs a pass changes, the sooner a check
finds a mistake in its changes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from time import process_time
from typing import Annotated

import typer
from rich.table import Table
from xdsl.ir import Operation

from ...dialects import nn
from ...dialects.nn import shape_of, values_of
from ...ir.upstream import Context, ModuleOp, ModulePass
from ..testing.search.pass_check import check_pass
from ..testing.search.report import Report
from ..views.script import run_script
from ..views.terminal import console


def _gathers_of_slices(op: Operation) -> bool:
    if not isinstance(op, nn.GatherOp):
        return False
    before = op.table.owner
    if not isinstance(before, nn.SliceOp):
        return False
    starts, steps = values_of(before.starts), values_of(before.steps)
    if steps[op.table_axis] != 1:
        return False
    return starts[op.table_axis] > 0


def _last_of_scans(op: Operation) -> bool:
    if not isinstance(op, nn.SliceOp):
        return False
    scan = op.operand.owner
    if not isinstance(scan, nn.ScanOp):
        return False
    if scan.reverse is not None:
        return False
    axis = scan.axis.value.data
    if values_of(op.sizes)[axis] != 1:
        return False
    return values_of(op.starts)[axis] == shape_of(scan.result)[axis] - 1


def _transposed_products(op: Operation) -> bool:
    if not isinstance(op, nn.AddOp):
        return False
    for value in op.operands:
        product = value.owner
        if not isinstance(product, nn.MatMulOp):
            continue
        turned = product.operands[1].owner
        if isinstance(turned, nn.TransposeOp):
            return True
    return False


Pattern = Callable[[Operation], bool]

PATTERNS: tuple[Pattern, ...] = (
    _gathers_of_slices,
    _last_of_scans,
    _transposed_products,
)


class Marks(ModulePass):
    """A pass that marks operations matched by a pattern, so that the check sees a change."""

    name = "marks"

    def __init__(self, pattern: Callable[[Operation], bool]) -> None:
        self.pattern = pattern

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Mark the operations of a module."""
        for each in op.walk():
            if self.pattern(each):
                each.attributes["marked"] = each.results[0].type


def guided(
    examples: Annotated[int, typer.Option(min=1, help="Programs of each check.")] = 1000,
    seeds: Annotated[int, typer.Option(min=1, help="Seeds of each pattern.")] = 2,
) -> None:
    """Print how many programs each pattern fits, guided and unguided."""
    table = Table(title=f"programs that a pattern fits, of {examples:,}", title_justify="left")
    for name in ("pattern", "seed", "unguided", "guided", "CPU s unguided", "guided"):
        table.add_column(name, justify="left" if name == "pattern" else "right")
    for name, seed, without, with_ in _turns(examples, seeds):
        counts = (f"{without.changed:,}", f"{with_.changed:,}")
        times = (f"{without.cpu_seconds:.1f}", f"{with_.cpu_seconds:.1f}")
        table.add_row(name, str(seed), *counts, *times)
    console().print(table)


def _turns(examples: int, seeds: int) -> Iterator[tuple[str, int, Report, Report]]:
    for pattern in PATTERNS:
        for seed in range(seeds):
            # The order changes, because the second check finds more in caches.
            first, second = (_fits(pattern, examples, seed, bool(n % 2)) for n in (seed, seed + 1))
            without, with_ = (second, first) if seed % 2 else (first, second)
            yield pattern.__name__.strip("_").replace("_", " "), seed, without, with_


def _fits(
    pattern: Callable[[Operation], bool], examples: int, seed: int, is_guided: bool
) -> Report:
    report = Report()
    begin = process_time()
    check_pass(
        Marks(pattern),
        "nn",
        examples=examples,
        seed=seed,
        guided=is_guided,
        # Marks change nothing that a program computes.
        results=False,
        expect_changes=False,
        report=report,
    )
    report.cpu_seconds = process_time() - begin
    return report


if __name__ == "__main__":
    run_script(guided)
