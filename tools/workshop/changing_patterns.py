"""Rates of block-sparse products whose pattern changes from run to run, beside published ones.

python -m abele.tools.workshop.changing_patterns [--columns N ...]

A square matrix of floats is multiplied by as many columns as are best of those that are tried. Two
predictions stand beside each published rate: of PopSparse's own plans, by the prices of `abele
bench fidelity`, and of abele's plans for nn.block_matmul with a capacity. No number is fitted to
these rates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import numpy as np
import typer
from rich.table import Table
from xdsl.dialects.builtin import TensorType, f16, f32, i32
from xdsl.ir import Block

from ...backends.target import Target, named_target
from ...dialects import nn
from ...passes.bucket_blocks import fastest
from ..bench.fidelity import sparse
from ..bench.fidelity.cases import SparseProduct, SpeedUp
from ..views.script import run_script
from ..views.terminal import console

COLUMNS = (1024,)
"""Columns of the dense matrix that are tried."""

RATES = (
    *((4096, 4, 1, 9.7), (4096, 4, 16, 55.7), (4096, 8, 1, 7.6), (4096, 8, 16, 39.2)),
    *((4096, 16, 1, 6.0), (4096, 16, 4, 14.3), (4096, 16, 8, 21.2), (4096, 16, 16, 27.2)),
    *((4096, 32, 1, 3.8), (4096, 32, 16, 15.6)),
    *((256, 16, 16, 5.3), (512, 16, 16, 6.4), (8192, 16, 16, 21.8)),
)
"""Rows of the matrix, 1 / share of the blocks, side of blocks, and 10^12 operations a second on the
blocks. Source: the figures of sparsity-benchmarks (bab5449), Analysis.ipynb, read to 2 %."""

SPEED_UPS = (
    *(("float16", 1, 0.4), ("float32", 1, 0.9), ("float16", 16, 1.9), ("float32", 16, 3.8)),
)
"""Type, side of blocks, and how many times as fast as the dense product, for 4096 rows and 1/16 of
the blocks. Source: the table of the same notebook."""


def changing_patterns(
    columns: Annotated[list[int], typer.Option(help="Columns of the dense matrix.", min=1)] = [  # noqa: B006
        *COLUMNS
    ],
    target: Annotated[str, typer.Option(help="A preset machine.")] = "bow",
) -> None:
    """Print published and predicted rates and speed-ups."""
    machine = named_target(target)
    table = _table("10^12 operations a second on blocks that are not 0, float16", "rows")
    errors: list[list[float]] = [[], []]
    for m, inverse, side, published in RATES:
        found = _rates(m, 1 / inverse, side, "float16", columns, machine)
        _add(table, (f"{m}", f"1/{inverse}", f"{side}"), published, found, errors)
    console().print(table)
    medians = (f"{100 * np.median(np.abs(each)):.0f} %" for each in errors)
    console().print("median errors: {}; {}".format(*medians))
    table = _table("times as fast as the dense product, 4096 rows", "type")
    for kind, side, published in SPEED_UPS:
        dense = max(_dense_rate(n, kind, machine) for n in columns)
        rates = _rates(4096, 1 / 16, side, kind, columns, machine)
        _add(table, (kind, "1/16", f"{side}"), published, [each / dense for each in rates], errors)
    console().print(table)


def _table(title: str, first: str) -> Table:
    table = Table(title=title, title_justify="left")
    names = (first, "not 0", "side", "published", "its plans", "error", "abele's plans", "error")
    for name in names:
        table.add_column(name, justify="right")
    return table


def _add(
    table: Table,
    row: Sequence[str],
    published: float,
    found: Sequence[float],
    errors: Sequence[list[float]],
) -> None:
    """Add a row of predictions, and their errors to the lists of them."""
    cells: list[str] = []
    for each, known in zip(found, errors, strict=True):
        known.append(each / published - 1)
        cells += [f"{each:.1f}", f"{100 * known[-1]:+.0f} %"]
    table.add_row(*row, f"{published:.1f}", *cells)


def _rates(
    m: int, share: float, side: int, kind: str, columns: Sequence[int], target: Target
) -> list[float]:
    """The best rates of PopSparse's plans and of abele's, over numbers of columns."""
    own, known = 0.0, 0.0
    for n in columns:
        operations = 2 * m * m * share * n * target.clock_hz / 1e12
        case = SparseProduct(m, m, n, side, share, True, kind, kind)
        known = max(known, operations / sum(sparse.product(case, target).values()))
        _, cycles = fastest([_product(m, share, side, n, kind)], target)
        own = max(own, operations / cycles)
    return [known, own]


def _dense_rate(n: int, kind: str, target: Target) -> float:
    """The rate of the dense product, counted in operations of a sixteenth of its elements."""
    case = SpeedUp(SparseProduct(4096, 4096, n, 16, 1 / 16, True, kind, kind))
    cycles = sparse.speed_up(case, target)["speed-up"] * sum(
        sparse.product(case.product, target).values()
    )
    return 2 * 4096 * 4096 / 16 * n * target.clock_hz / 1e12 / cycles


def _product(m: int, share: float, side: int, n: int, kind: str) -> nn.BlockMatMulOp:
    """The product of a square matrix with a share of its blocks, and a dense one."""
    element = {"float16": f16, "float32": f32}[kind]
    blocks = round((m // side) ** 2 * share)
    index = TensorType(i32, (blocks,))
    types = [TensorType(element, (blocks, side, side)), TensorType(element, (m, n)), index, index]
    values, dense, rows, columns = Block(arg_types=types).args
    return nn.BlockMatMulOp(values, dense, rows, columns, m, capacity=blocks)


if __name__ == "__main__":
    run_script(changing_patterns)
