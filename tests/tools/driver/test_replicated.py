"""Replicas compute what one chip computes."""

import re
from functools import lru_cache
from itertools import product

import numpy as np
import onnx
import pytest
from lengths import large
from some_models import model, node

from abele.backends.evaluate.faults import DropMessage
from abele.backends.machine import Machine
from abele.dialects import control
from abele.dialects.exchange import VariableOp
from abele.dialects.steps import Copy, Superstep
from abele.ir.errors import InputError
from abele.tools import Executable, Training, compile_model

LINKS = "links.topology=ladder"


def machine(chips: int) -> str:
    return "tiny:8" if chips == 1 else f"tiny:{8 * chips},{LINKS},links.chips={chips}"


def whole(shape: tuple[int, ...], seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)


def layers() -> onnx.ModelProto:
    """Two products with weights that are whole numbers."""
    nodes = [
        node("Gemm", "x w b", "h"),
        node("Relu", "h", "r"),
        node("MatMul", "r v", "y"),
    ]
    weights = {"w": whole((6, 10), 0), "b": whole((10,), 1), "v": whole((10, 4), 2)}
    return model(nodes, {"x": ["N", 6]}, ["y"], weights)


@lru_cache
def trained(chips: int, replicas: str, micro_batches: int, optimizer: str = "sgd") -> Executable:
    """Two steps of a batch of 16, in numbers that float32 holds exactly for sgd."""
    train = Training(
        loss="mean_square",
        reduction="sum",
        optimizer=optimizer,
        learning_rate=0.125,
        micro_batches=micro_batches,
    )
    exe = compile_model(
        layers(), machine(chips), batch=16, train=train, replicas=replicas or None, cache=False
    )
    for step in range(2):
        _ = exe.run({"x": whole((16, 6), step), "target": whole((16, 4), 10 + step)})
    return exe


@pytest.mark.parametrize(
    ("chips", "replicas", "micro_batches"),
    [
        (1, "1", 1),
        (2, "2", 2),
        (4, "2", 2),
        (4, "4:ring", 1),
        (4, "4:middle", 1),
        *(
            large(*each)
            for each in product((4,), ("4", "4:both", "4:ring", "4:middle"), (1, 2))
            if each not in ((4, "4:ring", 1), (4, "4:middle", 1))
        ),
    ],
)
def test_replicas_leave_the_weights_of_one_chip(chips: int, replicas: str, micro_batches: int):
    one = trained(1, "", micro_batches)
    several = trained(chips, replicas, micro_batches)
    assert any(array.any() for array in one.states.values())
    for name, array in one.states.items():
        np.testing.assert_array_equal(several.states[name], array)


def test_optimisers_with_moments_leave_weights_within_a_bound():
    one, four = trained(1, "", 2, "adam"), trained(4, "4", 2, "adam")
    for name, array in one.states.items():
        np.testing.assert_allclose(four.states[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(("chips", "replicas"), [(2, "2"), (4, "4"), (4, "4:both")])
def test_chips_meet_once_an_update_and_not_in_each_micro_batch(chips: int, replicas: str):
    module = trained(chips, replicas, 2).module_at("exchange")
    (loop,) = (op for op in module.walk() if isinstance(op, control.RepeatOp))
    assert str(loop).count('sync "all"') == 0
    assert str(module).count('sync "all"') > 0


@pytest.mark.parametrize(
    ("replicas", "problem"),
    [
        ("0", "--replicas 0; need a number from 1 up"),
        ("two", "--replicas two; need a number from 1 up"),
        ("2:round", "--replicas 2:round: no way 'round'"),
        ("5", "replicas 5; target .* has 4 chips"),
        ("3", "replicas 3 on 4 chips"),
        (4, "replicas 4 of 6 samples at a time"),
    ],
)
def test_replicas_that_cannot_be_are_refused_in_one_line(replicas: int | str, problem: str):
    with pytest.raises(InputError, match=problem):
        compile_model(layers(), machine(4), batch=6, replicas=replicas, cache=False)


def test_a_batch_is_shared_in_inference():
    exe = compile_model(layers(), machine(4), batch=16, replicas=4, cache=False)
    one = compile_model(layers(), machine(1), batch=16, cache=False)
    given = {"x": whole((16, 6), 0)}
    np.testing.assert_array_equal(exe.run(given)["y"], one.run(given)["y"])
    assert "across 4" in str(exe.module_at("partition"))


def test_tiles_hold_the_same_bits_of_each_weight():
    exe = trained(4, "4", 1)
    machine_ = Machine(exe.module_at("exchange"), exe.target, strict=True)
    for step in range(2):
        machine_.run({"x": whole((16, 6), step), "target": whole((16, 4), 10 + step)})
    repeated = [
        name
        for name, op in machine_.variables.items()
        if op.state is not None and op.placed.replicas > 1
    ]
    assert {"w", "v"} <= {*repeated}
    assert machine_.unequal_replicas() == []


def test_a_replica_that_keeps_a_stale_weight_is_found():
    exe = trained(4, "4", 1)
    module = exe.module_at("exchange")
    given = {"x": whole((16, 6), 0), "target": whole((16, 4), 10)}
    (far,) = (op for op in module.walk() if isinstance(op, VariableOp) and op.symbol == "w")
    last = far.placed.tiles.end - 1
    copies = [op for op in module.walk() if isinstance(op, Copy) and op.destination == "w"]
    step = copies[-1].parent_op()
    assert isinstance(step, Superstep)
    found: list[str] = []
    for source in range(exe.target.tiles):
        lost = DropMessage(step.sym_name.data, source, last)
        try:
            stale = Machine(module, exe.target, faults=[lost])
        except ValueError:
            continue
        stale.run(given)
        found += stale.unequal_replicas()
    assert "w" in found


@pytest.mark.parametrize("replicas", [None, 4])
def test_chips_share_what_an_optimiser_keeps(replicas: int | None):
    said: list[str] = []
    train = Training(
        loss="mean_square",
        reduction="sum",
        optimizer="adam",
        learning_rate=0.125,
        shard="optimizer",
    )
    exe = compile_model(
        layers(),
        machine(4),
        batch=16,
        train=train,
        replicas=replicas,
        on_note=said.append,
        cache=False,
    )
    for step in range(2):
        _ = exe.run({"x": whole((16, 6), step), "target": whole((16, 4), 10 + step)})
    one = trained(1, "", 1, "adam")
    for name, array in one.states.items():
        np.testing.assert_allclose(exe.states[name], array, rtol=1e-5, atol=1e-6)
    kept = {"w": 60, "b": 10, "v": 40}
    for op in exe.module_at("exchange").walk():
        if isinstance(op, VariableOp) and op.symbol.endswith((".mean", ".square")):
            assert op.placed.replicas == 1
            assert len(op.placed.tiles.spans) == 4
            size = kept[op.symbol.partition(".")[0]]
            own = op.placed.tiles.on_a_chip * op.placed.block_elements
            # A chip holds a quarter, but for parts that are not equal.
            assert size / 4 <= own <= size / 2
    (line,) = (each for each in said if each.startswith("chips: the optimiser keeps"))
    most, whole_, fewer = (int(w.replace(",", "")) for w in re.findall(r"\d[\d,]*", line))
    assert most + fewer == whole_
    assert most < whole_ / 2


def normalised(chips: int, groups: int) -> Executable:
    """A step of training a batch normalisation and a product, of 8 samples."""
    nodes = [
        node("BatchNormalization", "x s b m d", "n"),
        node("Conv", "n k", "y", kernel_shape=[1, 1]),
    ]
    weights = {
        **{"s": np.ones(3, np.float32), "b": np.zeros(3, np.float32)},
        **{"m": np.zeros(3, np.float32), "d": np.ones(3, np.float32)},
        "k": whole((2, 3, 1, 1), 5),
    }
    graph = model(nodes, {"x": ["N", 3, 4, 4]}, ["y"], weights)
    train = Training(loss="mean_square", batch_groups=groups)
    replicas = chips if chips > 1 else None
    exe = compile_model(graph, machine(chips), batch=8, train=train, replicas=replicas, cache=False)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(8, 3, 4, 4)).astype(np.float32)
    _ = exe.run({"x": x, "target": rng.normal(size=(8, 2, 4, 4)).astype(np.float32)})
    return exe


@pytest.mark.parametrize("groups", [large(1), 2])
def test_replicas_normalise_as_one_chip_does_by_all_samples_or_by_groups(groups: int):
    one, two = normalised(1, groups), normalised(2, groups)
    for name, array in one.states.items():
        np.testing.assert_allclose(two.states[name], array, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("groups", "meet"), [(1, True), (2, False)])
def test_groups_that_lie_on_chips_of_their_own_wait_for_no_statistics(groups: int, meet: bool):
    module = normalised(2, groups).module_at("exchange")
    normalising = [
        op
        for op in module.walk()
        if isinstance(op, Superstep) and op.sym_name.data.startswith("the_n/scale+the_n")
    ]
    assert normalising
    assert any('sync "all"' in str(op) for op in normalising) == meet
