"""Cycles of dense and sparse products, as compiled, beside published speed-ups.

python -m abele.tools.workshop.sparse_products [--target bow]

A layer multiplies 16-bit floats by a square matrix, some blocks of which are not 0.
"""

from __future__ import annotations

from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import helper, numpy_helper
from rich.table import Table

from ..bench.fidelity.cases import SpeedUp
from ..bench.fidelity.rows import SPEED_UPS, read_rows
from ..driver.compile import compiled
from ..driver.request import Request
from ..views.script import run_script
from ..views.terminal import console

SIZES = (1024, 2048)
"""Rows and columns of the matrix."""

SHARES = (1 / 8, 1 / 16)
"""Shares of the blocks that are not 0."""

BLOCKS = (16, 4)
"""Sides of blocks."""


def sparse_products(
    target: Annotated[str, typer.Option(help="A preset machine.")] = "bow",
    columns: Annotated[int, typer.Option(help="Columns of the dense matrix.", min=1)] = 64,
) -> None:
    """Print the cycles of dense and sparse products with matrices in blocks."""
    published = {
        (c.product.m, c.product.density, c.product.block, c.product.n): each.cycles
        for each in read_rows(SPEED_UPS)[0]
        if isinstance(c := each.case, SpeedUp)
    }
    table = Table(title=f"{columns} columns, float16, {target}", title_justify="left")
    for name in ("matrix", "not 0", "block", "dense", "sparse", "speed-up", "published"):
        table.add_column(name, justify="right")
    for size in SIZES:
        dense = _cycles(_layer(size, columns, 1, 1), target, "")
        for share in SHARES:
            for side in BLOCKS:
                layer = _layer(size, columns, side, share)
                cycles = _cycles(layer, target, f"{side}x{side}")
                known = published.get((size, share, side, columns))
                table.add_row(
                    *(f"{size} x {size}", f"1/{round(1 / share)}", f"{side} x {side}"),
                    *(f"{dense:,}", f"{cycles:,}", f"{dense / cycles:.2f}"),
                    "" if known is None else f"{known:.2f}",
                )
    console().print(table)


def _layer(size: int, columns: int, side: int, share: float) -> onnx.ModelProto:
    """A product with a constant matrix, of which a share of the blocks is not 0."""
    rng = np.random.default_rng(0)
    grid = (size // side,) * 2
    held = np.repeat(np.repeat(rng.random(grid) < share, side, 0), side, 1)
    weight = np.where(held, rng.normal(size=(size, size)), 0).astype(np.float16)
    kind = onnx.TensorProto.FLOAT16
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["w", "x"], ["y"], name="product")],
        "layer",
        [helper.make_tensor_value_info("x", kind, [size, columns])],
        [helper.make_tensor_value_info("y", kind, [size, columns])],
        [numpy_helper.from_array(weight, "w")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)])


def _cycles(layer: onnx.ModelProto, target: str, sparsity: str) -> int:
    return compiled(Request(layer, target, sparsity=sparsity, cache=False)).profile["cycles"]


if __name__ == "__main__":
    run_script(sparse_products)
