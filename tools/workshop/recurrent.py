"""The cost of a step of a recurrent layer, by the length of its sequence, compared with
onnxruntime.

python -m abele.tools.workshop.recurrent [--target tiny:16]

A step should cost the same in a short sequence and in a long one. Both run in one thread and in
two. In one, CPU time is measured: a run of a short sequence is shorter than the time that other
processes may interrupt it for. In two, wall-clock time is measured.
"""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from typing import Annotated

import numpy as np
import onnx
import typer
from onnx import TensorProto, helper, numpy_helper

from ...backends.host.threads import using
from ..bench.measure import THREADS, session
from ..debug.run_check import relative_error
from ..driver.compile import compile_model
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

UNITS = 64
"""Units of the state, and features of each input."""

LENGTHS = (10, 100, 1000)
"""Steps of the sequences."""

STEPS_RUN = 3000
"""The approximate number of steps of all timed runs of one sequence together."""


@dataclass(frozen=True)
class Result:
    """Figures per step.

    Attributes:
        seconds, peer_seconds: by number of threads, of abele and of onnxruntime.
        error: the largest difference between their results, relative to the largest result.
    """

    steps: int
    cycles: float
    exchange_bytes: float
    seconds: tuple[float, ...]
    peer_seconds: tuple[float, ...]
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
        peers = [session(path, threads=n)[0] for n in THREADS]
    (expected,) = peers[0].run(None, given)
    error = relative_error(exe.run(given)["y"], expected)
    times: list[tuple[float, ...]] = []
    for threads, peer in zip(THREADS, peers, strict=True):
        clock = process_time if threads == 1 else perf_counter
        found: list[tuple[float, float]] = []
        with using(threads):
            for _ in range(max(STEPS_RUN // steps, 3)):
                begin = clock()
                exe.run(given)
                between = clock()
                peer.run(None, given)
                found.append((between - begin, clock() - between))
        times.append(tuple(np.min(found, axis=0).tolist()))
    own, other = zip(*times, strict=True)
    profile = exe.profile
    return Result(
        steps,
        profile["cycles"] / steps,
        profile["exchange_bytes"] / steps,
        tuple(each / steps for each in own),
        tuple(each / steps for each in other),
        error,
    )


def recurrent(target: Annotated[str, typer.Option(help="A preset machine.")] = "tiny:16") -> None:
    """Print what a step of an LSTM costs in sequences of several lengths."""
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    table = figure_table(
        f"a step of an LSTM of {UNITS} units, {target}",
        (
            *("steps", "cycles", "exchanged bytes"),
            *(f"{who} us, {n}" for n in THREADS for who in ("abele", "onnxruntime")),
            "error",
        ),
    )
    for steps in LENGTHS:
        each = measured(steps, target)
        table.add_row(
            f"{each.steps:,}",
            f"{each.cycles:,.0f}",
            f"{each.exchange_bytes:,.0f}",
            *(
                figure
                for own, other in zip(each.seconds, each.peer_seconds, strict=True)
                for figure in (f"{own * 1e6:.0f}", f"{other * 1e6:.1f}")
            ),
            f"{each.error:.1e}",
        )
    console().print(table)


if __name__ == "__main__":
    run_script(recurrent)
