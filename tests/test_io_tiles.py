"""Tiles kept aside for the host: nothing else lies there, and results stay the same."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from some_models import model, node, random

from abele.backends.feeding import LINK, MACHINE, feeding
from abele.backends.machine import Machine
from abele.backends.target import resolve_target
from abele.dialects.steps import Copy, Input, Output, Sync
from abele.ir.errors import DoesNotFit, InputError
from abele.tools.driver.compile import compile_model


def compiled(target: str, io_tiles: int | None = None, rows: int = 8):
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    made = model(nodes, {"x": [rows, 16]}, ["y"], {"w": random((16, 16), 1)})
    return compile_model(made, target, io_tiles=io_tiles, cache=False)


@pytest.mark.parametrize("aside", [1, 3])
def test_programs_on_the_same_computing_tiles_give_the_same_bits(aside: int):
    x = {"x": random((8, 16), 2)}
    plain, kept = compiled("tiny:5"), compiled(f"tiny:{5 + aside}", aside)
    found = [Machine(e.module_at("exchange"), e.target, strict=True).run(x) for e in (plain, kept)]
    assert found[0]["y"].tobytes() == found[1]["y"].tobytes()


SEVERAL = [
    (2, 4, 1, {}),
    (4, 1, 3, {}),
    (2, 4, 2, {"replicas": 2}),
    (4, 2, 1, {"replicas": 2}),
    (2, 8, 1, {"pipeline": "2", "micro_batches": 2}),
    (4, 4, 1, {"pipeline": "2", "micro_batches": 2, "replicas": 2}),
    (2, 4, 1, {"remote": ["*"], "pipeline": "2", "micro_batches": 2}),
]


@pytest.mark.parametrize(("chips", "own", "aside", "options"), SEVERAL)
def test_several_chips_with_io_tiles_give_the_bits_of_those_without(
    chips: int, own: int, aside: int, options: dict[str, object]
):
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "g"), node("MatMul", "g v", "y")]
    weights = {"w": random((16, 16), 1), "v": random((16, 12), 3)}
    made = model(nodes, {"x": [8, 16]}, ["y"], weights)
    links = f"links.topology=ladder,links.chips={chips}"
    plain, kept = (
        compile_model(made, f"tiny:{(own + n) * chips},{links}", io_tiles=n, cache=False, **options)
        for n in (0, aside)
    )
    x = {"x": random(plain.signature.inputs[0].shape, 2)}
    found = [Machine(e.module_at("exchange"), e.target, strict=True).run(x) for e in (plain, kept)]
    assert found[0]["y"].tobytes() == found[1]["y"].tobytes()
    assert kept.profile["host_hidden_cycles"] > 0
    # Each variable lies on I/O tiles alone, or on none, and the host uses those on them alone.
    module, target = kept.module_at("exchange"), kept.target
    lies = {
        name: target.are_aside(v.placed.tiles.of(np.arange(v.placed.cells)))
        for name, v in Machine(module, target).variables.items()
    }
    assert all(aside.all() or not aside.any() for aside in lies.values())
    for op in module.walk():
        if isinstance(op, Input | Output):
            own = op.destination if isinstance(op, Input) else op.source
            assert lies[own].all()


def test_inputs_of_replicas_wait_on_the_chip_that_reads_them():
    target = "tiny:20,links.topology=ladder,links.chips=4"
    nodes = [node("MatMul", "x w", "h"), node("Tanh", "h", "y")]
    made = model(nodes, {"x": [8, 16]}, ["y"], {"w": random((16, 16), 1)})
    exe = compile_model(made, target, io_tiles=1, replicas=4, cache=False)
    syncs = [op for op in exe.module_at("exchange").walk() if isinstance(op, Sync)]
    # So no sync joins chips but those with the host.
    assert {op.zone.data for op in syncs} == {"internal", "external"}


def test_only_what_the_host_writes_and_reads_lies_on_the_io_tiles():
    exe = compiled("tiny:8", 2)
    machine = Machine(exe.module_at("exchange"), exe.target)
    ops = list(exe.module_at("exchange").walk())
    inputs = {op.destination for op in ops if isinstance(op, Input)}
    outputs = {op.source for op in ops if isinstance(op, Output)}
    for name, v in machine.variables.items():
        assert (v.placed.tiles.span[0] >= 6) == (name in inputs | outputs), name
    copied = {(s, op.destination) for op in ops if isinstance(op, Copy) for s in op.sources}
    assert all(any(a == name for a, _ in copied) for name in inputs)
    assert all(any(b == name for _, b in copied) for name in outputs)


def test_inputs_and_results_share_no_bytes_so_that_runs_may_overlap():
    exe = compiled("tiny:8", 1)
    machine = Machine(exe.module_at("exchange"), exe.target)
    ops = list(exe.module_at("exchange").walk())
    names = [op.destination for op in ops if isinstance(op, Input)]
    names += [op.source for op in ops if isinstance(op, Output)]
    spans = sorted((v.start, v.start + v.bytes_per_tile) for v in map(machine.variables.get, names))
    assert all(end <= start for (_, end), (start, _) in pairwise(spans))


def test_the_link_is_hidden_behind_other_runs():
    plain, kept = compiled("tiny:4"), compiled("tiny:5", 1)
    assert plain.profile["host_hidden_cycles"] == 0
    moving = kept.profile["host_cycles"]
    assert kept.profile["host_hidden_cycles"] == min(moving, kept.profile["cycles"]) > 0
    assert MACHINE in kept.profile["rates"]
    assert LINK in kept.profile["rates"]
    assert LINK not in plain.profile["rates"]


def test_the_slower_of_link_and_machine_decides():
    target = resolve_target("tiny:4,io_tiles=1,host.bytes_per_cycle=1,host.latency_ns=0")
    slow = feeding(1, 100, 500, 500, target)
    assert (slow.bound_by, slow.items_per_s) == (LINK, pytest.approx(target.clock_hz / 1000))
    fast = feeding(1, 5000, 500, 500, target)
    assert (fast.bound_by, fast.items_per_s) == (MACHINE, pytest.approx(target.clock_hz / 5000))


@pytest.mark.parametrize(
    ("target", "aside", "message"),
    [
        ("tiny:4", 4, "io_tiles: 4 of a chip of 4; need fewer"),
        (
            "tiny:8,links.topology=ladder,links.chips=2",
            4,
            "io_tiles: 4 of a chip of 4; need fewer",
        ),
    ],
)
def test_too_many_io_tiles_are_refused(target: str, aside: int, message: str):
    with pytest.raises(InputError, match=message):
        compiled(target, aside)


def test_inputs_that_the_io_tiles_do_not_hold_do_not_fit():
    with pytest.raises(
        DoesNotFit, match=r"tile 8: what the host and remote memory write.*about 3 tiles aside"
    ):
        compiled("tiny:9", 1, rows=4096)


def test_a_result_that_is_reshaped_leaves_in_its_own_shape(tmp_path: Path):
    path = tmp_path / "net.mlir"
    path.write_text("""func.func @main(%x: tensor<4x6xf32>) -> tensor<24xf32> {
      %0 = nn.tanh %x : (tensor<4x6xf32>) -> tensor<4x6xf32>
      %1 = nn.reshape %0 to [24] : (tensor<4x6xf32>) -> tensor<24xf32>
      func.return %1 : tensor<24xf32>
    }""")
    exe = compile_model(path, "tiny:5", io_tiles=1, cache=False)
    (found,) = (
        Machine(exe.module_at("exchange"), exe.target).run({"arg0": random((4, 6), 5)}).values()
    )
    np.testing.assert_allclose(found, np.tanh(random((4, 6), 5)).reshape(24), rtol=1e-5)


def test_a_random_input_arrives_whole():
    exe = compiled("tiny:8", 2)
    x = random((8, 16), 5)
    w = random((16, 16), 1)
    found = Machine(exe.module_at("exchange"), exe.target, strict=True).run({"x": x})["y"]
    np.testing.assert_allclose(found, np.tanh(x @ w), rtol=1e-5, atol=1e-5)
