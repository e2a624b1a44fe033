"""The host's time of an embedding, compared with onnxruntime: a lookup of rows of a table by
indices.

python -m abele.tools.workshop.lookups [--target mk2]

The table has the size of BERT's, in float16, and then four times as many rows. Each run looks up
other rows. Both run on one thread. CPU time is measured, because a run is shorter than possible
interruptions by other processes.
"""

from __future__ import annotations

import os
import tempfile
from itertools import cycle
from pathlib import Path
from time import process_time
from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper, numpy_helper

from ..bench.measure import session
from ..bench.own_process import THREAD_VARIABLES
from ..driver.arrays import Array
from ..driver.compile import compile_model
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

ROWS, WIDTH, LOOKUPS = 30_522, 768, 128
TIMES = 4
"""The rows of the second table, as a multiple of the first table's rows."""
DIFFERENT = 16
"""The number of sets of indices, which runs use in turn."""

ITERATIONS = 200
"""Runs of each table. They take less than a millisecond."""


def embedding(rows: int) -> onnx.ModelProto:
    """A Gather of LOOKUPS rows of a seeded float16 table."""
    table = np.random.default_rng(0).standard_normal((rows, WIDTH), np.float32).astype(np.float16)
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table", "indices"], ["rows"], name="embedding")],
        "embedding",
        [helper.make_tensor_value_info("indices", TensorProto.INT64, [LOOKUPS])],
        [helper.make_tensor_value_info("rows", TensorProto.FLOAT16, [LOOKUPS, WIDTH])],
        [numpy_helper.from_array(table, "table")],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def measured(rows: int, target: str) -> tuple[float, float, int]:
    """Median CPU seconds of a run by abele and by onnxruntime, and the cycles on the machine.

    Raises AssertionError if their rows differ.
    """
    model, random = embedding(rows), np.random.default_rng(1)
    exe = compile_model(model, target=target, cache=False)
    given = [random.integers(0, rows, LOOKUPS) for _ in range(DIFFERENT)]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "embedding.onnx"
        path.write_bytes(model.SerializeToString())
        peer, _ = session(path, threads=1)
    ours, theirs = cycle(given), cycle(given)

    def run() -> Array:
        return exe.run({"indices": next(ours)})["rows"]

    def run_peer() -> Array:
        return peer.run(None, {"indices": next(theirs)})[0]

    np.testing.assert_array_equal(run(), run_peer())
    # The second run packs the table.
    run()
    times: list[tuple[float, float]] = []
    for _ in range(ITERATIONS):
        begin = process_time()
        run()
        between = process_time()
        run_peer()
        times.append((between - begin, process_time() - between))
    mine, other = np.median(times, axis=0)
    return float(mine), float(other), int(exe.profile["cycles"])


def lookups(target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2") -> None:
    """Print the CPU milliseconds of an embedding, and of one with four times the rows."""
    for variable in THREAD_VARIABLES:
        os.environ.setdefault(variable, "1")
    title = f"{LOOKUPS} lookups in a float16 table of {WIDTH} columns, {target}, one thread"
    table = figure_table(title, ("rows", "abele ms", "onnxruntime ms", "cycles"))
    for rows in (ROWS, TIMES * ROWS):
        mine, other, cycles = measured(rows, target)
        table.add_row(f"{rows:,}", f"{mine * 1e3:.2f}", f"{other * 1e3:.2f}", f"{cycles:,}")
    console().print(table)


if __name__ == "__main__":
    run_script(lookups)
