"""Networks in stages on several chips compute what one chip does, on the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lengths import large
from some_tensors import context, module_of, small_integers

from abele.dialects.variable import Variable
from abele.ir.errors import InputError
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
    """Four layers and a head that has the weight of the first layer, and reads its result.

    All numbers are small integers.
    """
    kind, weight = f"tensor<{ROWS}x{WIDTH}xf32>", f"tensor<{WIDTH}x{WIDTH}xf32>"
    states, body, last = "", "", "%x"
    for i in range(4):
        states += f"nn.state @w{i} : {weight} = {{w{i}}}\n"
        body += f"""
          %w{i} = nn.load @w{i} : {weight} loc("w{i}")
          %m{i} = nn.matmul {last}, %w{i} : ({kind}, {weight}) -> {kind} loc("fc{i}")
          %t{i} = nn.clip %m{i} to -2.0, 2.0 : ({kind}) -> {kind} loc("clip{i}")"""
        last = f"%t{i}"
    body += f"""
      %h = nn.matmul %t3, %w0 transpose_rhs : ({kind}, {weight}) -> {kind} loc("head")
      %y = nn.add %h, %t0 : ({kind}, {kind}) -> {kind} loc("skip")"""
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
    ("chips", "options"),
    [
        large(2, {"pipeline": "2"}, id="grouped"),
        (2, {"pipeline": "2", "schedule": "interleaved", "recompute": "stages"}),
        # The head shares the chip of the first layer, whose weight it has.
        (2, {"pipeline": "fc2,head", "stage_chips": "0,1,0", "schedule": "sequential"}),
        large(4, {"pipeline": "4", "recompute": "stages"}, id="recomputed"),
        (4, {"pipeline": "2", "replicas": 2}),
    ],
)
def test_training_in_a_pipeline_is_that_of_one_chip(
    network: Path, chips: int, options: dict[str, Any]
):
    train = Training("mean_square", reduction="sum", learning_rate=2.0**-6, micro_batches=PARTS)
    single = compile_model(network, TARGETS[1], train=train, cache=False)
    several = compile_model(network, TARGETS[chips], train=train, **options, cache=False)
    names = ("arg0", "target")
    for one, other in zip(results(single, *names), results(several, *names), strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pipeline": "3", "micro_batches": 2}, "2 micro-batches; a grouped schedule of 3 stages"),
        ({"pipeline": "2", "train": Training(micro_batches=6)}, "trains with a multiple of 4"),
        ({"pipeline": "2", "train": Training(micro_batches=4, steps=2)}, "need steps=1"),
        ({"pipeline": "a,,b"}, "need a number of stages, or names joined by commas"),
        ({"pipeline": "0"}, "0 stages; need 1 or more"),
        ({"pipeline": "-1"}, "--pipeline -1: need 1 or more stages"),
        ({"pipeline": "2", "micro_batches": 0}, "--micro-batches 0: need 1 or more"),
        ({"pipeline": "2"}, "1 micro-batch; a grouped schedule of 2 stages needs at least 2"),
        ({"pipeline": "9" * 10}, "99999...: need at most 6 digits"),
        ({"pipeline": "2", "stage_chips": "0,x"}, "need numbers of at most 6 digits"),
        ({"pipeline": "2", "stage_chips": "0"}, "1 chips for 2 stages"),
        ({"pipeline": "2", "schedule": "group"}, "--schedule group; did you mean grouped"),
        ({"schedule": "grouped"}, "--schedule without --pipeline"),
        ({"recompute": "stages"}, "--recompute stages without --pipeline"),
        ({"pipeline": "2", "replicas": 3, "micro_batches": 4}, r"6 chips; target tiny\S* has 4"),
        ({"micro_batches": 3, "batch": 4}, "need a number that divides the batch"),
        ({"micro_batches": 2, "train": Training()}, "need --training micro-batches=N"),
    ],
)
def test_what_no_pipeline_can_do_is_refused(network: Path, options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        compile_model(network, TARGETS[4], **options, cache=False)


def test_weights_are_updated_in_place_by_functions_of_their_chips(network: Path):
    train = Training("mean_square", micro_batches=PARTS)
    exe = compile_model(network, TARGETS[2], train=train, pipeline="2", cache=False)
    names = {op.symbol for op in exe.module_at("tile").walk() if isinstance(op, Variable)}
    assert {f"w{i}" for i in range(4)} <= names
    assert not any(name.endswith(".before") for name in names)
