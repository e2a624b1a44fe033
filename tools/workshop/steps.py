"""Measures steps of training, and torch's step of the same network on the same data.

python -m abele.tools.workshop.steps [--networks alexnet:1,alexnet:16,...] [--target mk2]

A network is written NAME:BATCH. Both sides run in one process, in turns, in one thread and in two,
with the same weights, samples, labels and learning rate, and without dropout, whose masks would
differ. Their first losses have to agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from statistics import median
from time import perf_counter, process_time
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from onnx import numpy_helper
from threadpoolctl import threadpool_limits

from ...backends.host.threads import using
from ...ir.support.errors import InputError
from ..bench.measure import THREADS, host
from ..bench.named import name_and_numbers
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.training import Training
from ..importers.light_networks import light_names, seeded
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

NETWORKS = ("alexnet:1", "alexnet:2", "alexnet:4", "alexnet:8", "alexnet:16", "squeezenet:4")

MOST_THREADS = THREADS[-1]

WALL = tuple(f"{what}, {MOST_THREADS} threads" for what in ("step s", "torch s", "ratio"))
"""The columns of wall-clock time."""

STEPS = 5
"""Timed steps of each side, after one to warm up. The median counts."""

RATE = 1e-4
"""The learning rate. At 1e-2, AlexNet diverges on random labels."""

AGREES = 1e-3
"""The largest relative difference of the first losses."""

Values = dict[str, Any]


@cache
def torch() -> Any:
    """The module torch, which few installs have. Raises InputError if there is none."""
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        raise InputError("needs torch, which is not installed: pip install torch") from None


def measure_steps(name: str, batch: int, target: str) -> dict[str, Any]:
    """Figures of a step of one network. Call it in a process of its own.

    Seconds are CPU time in one thread, and wall-clock time in two.

    Raises InputError if the two sides compute different losses.
    """
    with threadpool_limits(1), using(1):
        torch().set_num_threads(1)
        model = without_dropout(seeded(name))
        start = process_time()
        training = Training(learning_rate=RATE)
        exe = compile_model(model, target, batch=batch, train=training, cache=False)
        compiled = process_time() - start
        random = np.random.default_rng(0)
        image, label = exe.inputs
        samples = random.normal(size=image.shape).astype(np.float32)
        labels = random.integers(0, 1000, label.shape).astype(np.int32)
        theirs = torch_step(model, samples, labels)

        def own() -> float:
            return float(exe.step({image.name: samples, label.name: labels})["loss"])

        losses = own(), theirs()
        if abs(losses[0] - losses[1]) > AGREES * abs(losses[1]):
            raise InputError(f"{name}: the losses of the first step differ: {losses}")
        seconds, torch_seconds = _times(own, theirs, process_time)
    torch().set_num_threads(MOST_THREADS)
    with threadpool_limits(1), using(MOST_THREADS):
        two = _times(own, theirs, perf_counter)
    return {
        "network": name,
        "batch": batch,
        "loss": losses[0],
        "compile_seconds": compiled,
        "step_seconds": seconds,
        "torch_seconds": torch_seconds,
        "ratio": seconds / torch_seconds,
        "threads": MOST_THREADS,
        "threads_step_seconds": two[0],
        "threads_torch_seconds": two[1],
        "threads_ratio": two[0] / two[1],
        **{key: exe.profile[key] for key in ("cycles", "host_cycles", "max_tile_bytes")},
    }


def _times(
    own: Callable[[], float], theirs: Callable[[], float], clock: Callable[[], float]
) -> tuple[float, float]:
    """The median seconds of a step of both sides."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(STEPS):
        for run, found in zip((own, theirs), times, strict=True):
            start = clock()
            run()
            found.append(clock() - start)
    return median(times[0]), median(times[1])


def without_dropout(model: onnx.ModelProto) -> onnx.ModelProto:
    """A model whose dropouts pass everything on. The model itself is changed."""
    for node in model.graph.node:
        if node.op_type == "Dropout":
            node.op_type = "Identity"
            del node.attribute[:], node.output[1:], node.input[1:]
    return model


def torch_step(
    model: onnx.ModelProto, samples: np.ndarray, labels: np.ndarray
) -> Callable[[], float]:
    """A function that does a step of plain gradient descent in torch, and returns the loss before
    it. The softmax at the end of a model is part of the loss."""
    weights = {
        each.name: torch().tensor(numpy_helper.to_array(each)) for each in model.graph.initializer
    }
    trained = [each.requires_grad_() for each in weights.values() if each.is_floating_point()]
    (given,) = (i.name for i in model.graph.input if i.name not in weights)
    last = model.graph.node[-1]
    nodes = model.graph.node[:-1] if last.op_type == "Softmax" else model.graph.node
    image, target = torch().tensor(samples), torch().tensor(labels.astype(np.int64))

    def step() -> float:
        values: Values = {**weights, given: image}
        for node in nodes:
            values[node.output[0]] = _result(node, [values[name] for name in node.input])
        loss = torch().nn.functional.cross_entropy(values[nodes[-1].output[0]], target)
        loss.backward()
        with torch().no_grad():
            for weight in trained:
                if weight.grad is not None:
                    weight -= RATE * weight.grad
                    weight.grad = None
        return float(loss.detach())

    return step


def _result(node: onnx.NodeProto, operands: Sequence[Any]) -> Any:
    """The first result of a node. Raises InputError for an operator that is not listed."""
    given = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    make = OPERATORS.get(node.op_type)
    if make is None:
        raise InputError(f"{node.op_type}: not an operator of this benchmark")
    return make(operands, given)


def _padded(value: Any, given: Mapping[str, Any], fill: float) -> Any:
    pads = list(given.get("pads", (0, 0, 0, 0)))
    return torch().nn.functional.pad(value, (pads[1], pads[3], pads[0], pads[2]), value=fill)


def _conv(v: Sequence[Any], given: Mapping[str, Any]) -> Any:
    return torch().nn.functional.conv2d(
        _padded(v[0], given, 0.0),
        v[1],
        v[2] if len(v) > 2 else None,
        given.get("strides", (1, 1)),
        0,
        given.get("dilations", (1, 1)),
        given.get("group", 1),
    )


def _max_pool(v: Sequence[Any], given: Mapping[str, Any]) -> Any:
    padded = _padded(v[0], given, -np.inf)
    return torch().nn.functional.max_pool2d(
        padded, given["kernel_shape"], given.get("strides", (1, 1))
    )


def _lrn(v: Sequence[Any], given: Mapping[str, Any]) -> Any:
    return torch().nn.functional.local_response_norm(
        v[0], given["size"], given["alpha"], given["beta"], given.get("bias", 1.0)
    )


def _gemm(v: Sequence[Any], given: Mapping[str, Any]) -> Any:
    right = v[1].T if given.get("transB", 0) else v[1]
    return torch().addmm(v[2], v[0], right)


def _reshape(v: Sequence[Any], given: Mapping[str, Any]) -> Any:
    # The first axis is the batch, whatever size the model was written for.
    return v[0].reshape(v[0].shape[0], *(int(n) for n in v[1].tolist()[1:]))


OPERATORS: dict[str, Callable[[Sequence[Any], Mapping[str, Any]], Any]] = {
    "Conv": _conv,
    "Gemm": _gemm,
    "LRN": _lrn,
    "MaxPool": _max_pool,
    "Relu": lambda v, given: torch().relu(v[0]),
    "Reshape": _reshape,
    "Identity": lambda v, given: v[0],
    "Concat": lambda v, given: torch().cat(list(v), given["axis"]),
    "GlobalAveragePool": lambda v, given: v[0].mean((2, 3), keepdim=True),
}
"""The operators of ONNX that the networks have, as functions of torch."""


def chosen_steps(networks: str) -> list[tuple[str, int]]:
    """The networks and batches of a list. Raises InputError for a malformed list."""
    form = "NAME:BATCH, such as alexnet:16"
    found: list[tuple[str, int]] = []
    for each in networks.split(","):
        name, (batch,) = name_and_numbers(each, light_names(), (1,), form)
        found.append((name, batch))
    return found


def steps(
    networks: Annotated[str, typer.Option(help="NAME:BATCH, separated by commas.")] = ",".join(
        NETWORKS
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Time a step of training of each network on abele's machine, and in torch."""
    chosen = chosen_steps(networks)
    version = torch().__version__
    columns = ("batch", "loss", "cycles", "host cycles", "fullest tile", "compile s", "step s")
    table = figure_table(
        f"a step of training, {target}, sgd",
        ("network", *columns, "torch s", "ratio", *WALL),
        ("network",),
    )
    for name, batch in chosen:
        found = in_own_process(measure_steps, name, batch, target)
        table.add_row(
            name,
            str(batch),
            f"{found['loss']:.4f}",
            *(f"{found[key]:,}" for key in ("cycles", "host_cycles", "max_tile_bytes")),
            *(f"{found[f'{key}_seconds']:.2f}" for key in ("compile", "step", "torch")),
            f"{found['ratio']:.2f}",
            *(
                f"{found[f'threads_{key}']:.2f}"
                for key in ("step_seconds", "torch_seconds", "ratio")
            ),
        )
    here = in_own_process(host)
    out = console()
    out.print(
        f"CPU seconds in one thread, wall-clock seconds in more; {here['processor']}; "
        f"torch {version}"
    )
    out.print(table)


if __name__ == "__main__":
    run_script(steps)
