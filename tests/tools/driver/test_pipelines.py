"""Networks in stages on several chips compute what one chip does, on the machine."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from some_tensors import context, module_of, small_integers

from abele.dialects.variable import Variable
from abele.ir.text import write_module
from abele.tools import Executable, compile_model
from abele.tools.driver.training import Training

TARGETS = {
    1: "tiny:4",
    2: "tiny:8,links.topology=ladder,links.chips=2",
    4: "tiny:16,links.topology=ladder,links.chips=4",
}

PARTS, ROWS, WIDTH = 8, 2, 8


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four layers; the last one reads the first one too. All numbers are small integers."""
    kind, weight = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>"
    states, body, last = "", "", "%x"
    for i in range(4):
        states += f"nn.state @w{i} : {weight} = {{w{i}}}\n"
        body += f"""
          %w{i} = nn.load @w{i} : {weight} loc("w{i}")
          %m{i} = nn.matmul {last}, %w{i} : ({kind}, {weight}) -> {kind} loc("fc{i}")
          %t{i} = nn.clip %m{i} to -2.0, 2.0 : ({kind}) -> {kind} loc("clip{i}")"""
        last = f"%t{i}"
    body += f'%y = nn.add %t3, %t0 : ({kind}, {kind}) -> {kind} loc("skip")'
    module = module_of(
        f"{states} func.func @main(%x: {kind}) -> {kind} {{ {body}\n func.return %y : {kind} }}",
        context(),
        **{f"w{i}": small_integers(i, (WIDTH, WIDTH)) for i in range(4)},
    )
    path = tmp_path_factory.mktemp("network") / "net.mlir"
    write_module(module, path)
    return path


def results(exe: Executable, *names: str) -> list[np.ndarray]:
    """The outputs of two runs, of which the second one has the states of the first one."""
    inputs = {name: small_integers(9, (PARTS * ROWS, WIDTH)) for name in names}
    runs = [exe.run(inputs) for _ in range(2)]
    return [array for run in runs for array in run.values()]


@pytest.mark.parametrize("chips", [2, 4])
@pytest.mark.parametrize("schedule", ["grouped", "interleaved", "sequential"])
def test_inference_in_a_pipeline_is_that_of_one_chip(network: Path, chips: int, schedule: str):
    single = compile_model(network, TARGETS[1], micro_batches=PARTS, cache=False)
    several = compile_model(
        network,
        TARGETS[chips],
        micro_batches=PARTS,
        pipeline=str(chips),
        schedule=schedule,
        cache=False,
    )
    for one, other in zip(results(single, "arg0"), results(several, "arg0"), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("chips", "schedule", "recompute"),
    [(2, "grouped", ""), (2, "interleaved", "stages"), (4, "grouped", "stages")],
)
def test_training_in_a_pipeline_is_that_of_one_chip(
    network: Path, chips: int, schedule: str, recompute: str
):
    train = Training("mean_square", reduction="sum", learning_rate=2.0**-6, micro_batches=PARTS)
    single = compile_model(network, TARGETS[1], train=train, cache=False)
    several = compile_model(
        network,
        TARGETS[chips],
        train=train,
        pipeline=str(chips),
        schedule=schedule,
        recompute=recompute,
        cache=False,
    )
    names = ("arg0", "target")
    for one, other in zip(results(single, *names), results(several, *names), strict=True):
        assert one.tobytes() == other.tobytes()


def test_weights_are_updated_in_place_by_functions_of_their_chips(network: Path):
    train = Training("mean_square", micro_batches=PARTS)
    exe = compile_model(network, TARGETS[2], train=train, pipeline="2", cache=False)
    names = {op.symbol for op in exe.module_at("tile").walk() if isinstance(op, Variable)}
    assert {f"w{i}" for i in range(4)} <= names
    assert not any(name.endswith(".before") for name in names)
