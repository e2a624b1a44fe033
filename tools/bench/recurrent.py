"""What a step of a recurrent layer costs, by the length of its sequence, compared with onnxruntime.

python -m abele.tools.bench.recurrent [--target tiny:16]

A step should cost the same in a short sequence and in a long one. Both run on one thread, and CPU
time is measured: a run of a short sequence is shorter than the time that other processes may
interrupt it for.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper, numpy_helper

from ..debug.check import relative_error
from ..driver.compile import compile_model
from ..views.table import figure_table
from ..views.terminal import wide_enough
from .measure import session

UNITS = 64
"""Units of the state, and features of each input."""

LENGTHS = (10, 100, 1000)
"""Steps of the sequences."""

STEPS_RUN = 3000
"""Steps of all timed runs of one sequence together, about."""

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@dataclass(frozen=True)
class Result:
    """Figures per step. seconds, peer_seconds: of CPU time, by abele and by onnxruntime. error: the
    largest difference between their results, relative to the largest result."""

    steps: int
    cycles: float
    exchange_bytes: float
    seconds: float
    peer_seconds: float
    error: float


def layer(steps: int) -> onnx.ModelProto:
    """An LSTM with seeded weights, whose results of all steps are an output."""
    random = np.random.default_rng(0)
    shapes = {"w": (1, 4 * UNITS, UNITS), "r": (1, 4 * UNITS, UNITS), "b": (1, 8 * UNITS)}
    weights = {
        name: 0.1 * random.standard_normal(shape, np.float32) for name, shape in shapes.items()
    }
    node = helper.make_node("LSTM", ["x", *weights], ["y"], name="lstm", hidden_size=UNITS)
    graph = helper.make_graph(
        [node],
        "recurrent",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [steps, 1, UNITS])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [steps, 1, 1, UNITS])],
        [numpy_helper.from_array(values, name) for name, values in weights.items()],
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def measured(steps: int, target: str) -> Result:
    """The figures of a sequence of some steps. Times are the least of several runs."""
    model = layer(steps)
    exe = compile_model(model, target=target, cache=False)
    given = {"x": np.random.default_rng(1).standard_normal((steps, 1, UNITS), np.float32)}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recurrent.onnx"
        path.write_bytes(model.SerializeToString())
        peer, _ = session(path, threads=1)
    (expected,) = peer.run(None, given)
    error = relative_error(exe.run(given)["y"], expected)
    times: list[tuple[float, float]] = []
    for _ in range(max(STEPS_RUN // steps, 3)):
        begin = process_time()
        exe.run(given)
        between = process_time()
        peer.run(None, given)
        times.append((between - begin, process_time() - between))
    mine, other = np.min(times, axis=0)
    profile = exe.profile
    return Result(
        steps,
        profile["cycles"] / steps,
        profile["exchange_bytes"] / steps,
        float(mine) / steps,
        float(other) / steps,
        error,
    )


@app.command()
def recurrent(target: Annotated[str, typer.Option(help="A preset machine.")] = "tiny:16") -> None:
    """Print what a step of an LSTM costs in sequences of several lengths."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    table = figure_table(
        f"a step of an LSTM of {UNITS} units, {target}",
        ("steps", "cycles", "exchanged bytes", "abele us", "onnxruntime us", "error"),
    )
    for steps in LENGTHS:
        each = measured(steps, target)
        table.add_row(
            f"{each.steps:,}",
            f"{each.cycles:,.0f}",
            f"{each.exchange_bytes:,.0f}",
            f"{each.seconds * 1e6:.0f}",
            f"{each.peer_seconds * 1e6:.1f}",
            f"{each.error:.1e}",
        )
    wide_enough(table).print(table)


if __name__ == "__main__":
    app()
