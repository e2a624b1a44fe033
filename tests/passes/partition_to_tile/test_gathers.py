"""All-gathers in rounds: the same bits as in one exchange, between neighbours only."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from some_models import model, node

from abele.backends.meetings import joined_by
from abele.backends.prices.price import variables_of
from abele.backends.target import resolve_target
from abele.dialects.steps import Copy
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout, canonical
from abele.ir.geometry.space import identity_map
from abele.ir.upstream import VerifyException
from abele.passes.convert_partition_to_tile import ConvertPartitionToTile
from abele.passes.nn_to_partition import conversion
from abele.passes.partition_to_tile import gathers as made
from abele.passes.replicas.gathers import Gather, gather_of, pays
from abele.tools import compile_model
from abele.tools.driver.training import Training
from abele.tools.testing import Miscompiled, check_pass

PROGRAM = """
builtin.module {{
  func.func @main(%x: tensor<{n}x{m}xf32>, %y: tensor<{k}x{n}xf32>) -> tensor<{k}x{m}xf32> {{
    %0 = nn.relu %x : (tensor<{n}x{m}xf32>) -> tensor<{n}x{m}xf32> loc("w")
    %1 = nn.matmul %y, %0 : (tensor<{k}x{n}xf32>, tensor<{n}x{m}xf32>) -> tensor<{k}x{m}xf32>
      loc("mm")
    func.return %1 : tensor<{k}x{m}xf32>
  }}
}}
"""
"""Each chip computes a part of the weights, and reads all of them for its own samples."""


@pytest.fixture
def in_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """All-gathers go in rounds, whatever they cost."""
    monkeypatch.setattr(conversion, "pays", lambda *_: True)


def compiled(
    path: Path, chips: int, axis: str = "d0", n: int = 24, m: int = 48, io_tiles: int = 0
) -> Any:
    path.write_text(PROGRAM.format(n=n, m=m, k=8 * chips))
    tiles = (4 + io_tiles) * chips
    target = f"tiny:{tiles},links.chips={chips},links.topology=torus,io_tiles={io_tiles}"
    shards = [f"w:{axis}={chips}", f"mm:m={chips}"]
    return compile_model(path, target, shard=shards, cache=False)


def inputs_of(exe: Any) -> dict[str, Any]:
    draw = np.random.default_rng(5)
    return {i.name: draw.integers(-4, 5, i.shape).astype(i.dtype) for i in exe.inputs}


def result(exe: Any, given: dict[str, Any], **options: Any) -> np.ndarray:
    (found,) = exe.run(given, **options).values()
    return found


def copies(exe: Any) -> Iterator[Copy]:
    return (op for op in exe.module_at("exchange").walk() if isinstance(op, Copy))


@pytest.mark.parametrize(("chips", "axis"), [(4, "d0"), (6, "d0"), (8, "d0"), (4, "d1")])
def test_rounds_give_the_bits_of_one_exchange_at_every_level(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chips: int, axis: str
):
    at_once = compiled(tmp_path / "p.mlir", chips, axis)
    monkeypatch.setattr(conversion, "pays", lambda *_: True)
    rounds = compiled(tmp_path / "p.mlir", chips, axis)
    assert sum(op.own is not None for op in copies(rounds)) == 1
    given = inputs_of(rounds)
    wanted = result(at_once, given)
    for at in ("partition", "tile", "exchange"):
        assert result(rounds, given, at=at).tobytes() == wanted.tobytes()
    assert result(rounds, given, strict=True).tobytes() == wanted.tobytes()
    for name in ("edges", "vertices", "source_edges"):
        assert rounds.profile[name] == at_once.profile[name]


@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("chips", [4, 6, 8])
def test_chips_send_to_their_neighbours_only(tmp_path: Path, chips: int):
    exe = compiled(tmp_path / "p.mlir", chips)
    module = exe.module_at("exchange")
    variables = variables_of(module)
    gathered = [op for op in copies(exe) if op.destination.startswith("mm/in1")]
    joined = [joined_by(op, variables, 4) for op in gathered]
    assert gathered[-1].own is not None
    # The first copy cuts parts from what lies there; the last three stay within each chip.
    assert [len(pairs) for pairs in joined] == [0, *[chips] * (chips - 1), 0, 0, 0]
    steps = [np.unique((pairs[:, 1] - pairs[:, 0]) % chips) for pairs in joined if len(pairs)]
    # Parts that go up and down take turns; the one of the chip opposite comes from one side.
    assert [each.tolist() for each in steps] == [[1], [chips - 1]] * (chips // 2 - 1) + [[1]]


@pytest.mark.usefixtures("in_rounds")
def test_rounds_leave_io_tiles_out(tmp_path: Path):
    exe = compiled(tmp_path / "p.mlir", 4, io_tiles=1)
    variables = variables_of(exe.module_at("exchange"))
    assert sum(op.own is not None for op in copies(exe)) == 1
    used = {
        name: np.unique(v.placed.tiles.of(np.arange(v.placed.cells)) % 5)
        for name, v in variables.items()
    }
    assert {name for name, tiles in used.items() if 4 in tiles} == {"arg0.io", "arg1.io", "out0.io"}
    given = inputs_of(exe)
    assert result(exe, given).tobytes() == result(exe, given, at="nn").tobytes()


@pytest.mark.usefixtures("in_rounds")
def test_a_round_in_the_wrong_direction_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    right = made._Rounds.moved_on
    monkeypatch.setattr(made._Rounds, "moved_on", lambda self, step: right(self, -step))
    exe = compiled(tmp_path / "p.mlir", 4)
    given = inputs_of(exe)
    assert (result(exe, given, at="tile") != result(exe, given, at="nn")).any()


@pytest.mark.usefixtures("in_rounds")
@pytest.mark.parametrize("wrong", ["at", "in_order"])
def test_a_part_that_is_put_in_a_wrong_place_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, wrong: str
):
    right = getattr(made._Rounds, wrong)
    monkeypatch.setattr(made._Rounds, wrong, lambda self, n: right(self, max(n - 1, 0)))
    with pytest.raises(VerifyException, match="write the same elements"):
        compiled(tmp_path / "p.mlir", 4)


def test_new_weights_of_replicas_are_the_same_in_rounds(monkeypatch: pytest.MonkeyPatch):
    draw = np.random.default_rng(0)
    weights = {"w": draw.integers(-1, 2, (16, 16)).astype(np.float32)}
    layer = model([node("MatMul", "x w", "y")], {"x": [4, 16]}, ["y"], weights)
    given = {n: draw.integers(-1, 2, (4, 16)).astype(np.float32) for n in ("x", "target")}
    train = Training(loss="mean_square", reduction="sum", learning_rate=0.125)
    target = "tiny:32,links.topology=ladder,links.chips=4"
    found: list[tuple[int, np.ndarray]] = []
    for rounds in (False, True):
        monkeypatch.setattr(conversion, "pays", lambda *_, rounds=rounds: rounds)
        exe = compile_model(layer, target, train=train, replicas="4:ring", cache=False)
        exe.run(given)
        found.append((sum(op.own is not None for op in copies(exe)), exe.states["w"].copy()))
    assert [count for count, _ in found] == [0, 1]
    assert found[0][1].tobytes() == found[1][1].tobytes() != weights["w"].tobytes()


def whole(target: str, size: int, chips: int) -> tuple[Layout, Layout]:
    """A weight of size x size whose rows chips share, and the same weight on every chip."""
    tiles = resolve_target(target).tiles_per_chip
    access = identity_map((1, 2), (size, size))
    parts = Cut(1), Cut(size, chips, 1, chips), Cut(size, 64)
    every = Cut(chips, chips, 1, chips), Cut(size), Cut(size, 64)
    found = [canonical(Layout(grid, access, apart=tiles)) for grid in (parts, every)]
    return found[0], found[1]


@pytest.mark.parametrize(
    ("target", "size", "better"),
    [
        ("mk1x16", 1024, True),
        ("mk1x16", 64, False),
        ("mk1x16", 4096, False),  # A tile would hold 12 rows of 4,096 twice.
        ("mk1x4", 64, False),
        ("bow-pod16", 1024, True),
    ],
)
def test_rounds_are_taken_where_they_take_fewer_cycles(target: str, size: int, better: bool):
    machine = resolve_target(target)
    gather = gather_of(*whole(target, size, machine.chips), machine)
    tiles = machine.tiles_per_chip
    assert gather == Gather((size, size), 0, machine.chips, tiles, tiles)
    assert pays(gather, 4, machine) == better


def test_what_is_no_gather_of_equal_parts_goes_at_once():
    machine = resolve_target("mk1x4")
    parts, every = whole("mk1x4", 64, 4)
    assert gather_of(parts, every, machine) is not None
    assert gather_of(every, every, machine) is None
    assert gather_of(parts, parts, machine) is None
    assert gather_of(*whole("mk1x4", 66, 4), machine) is None
    assert gather_of(*whole("mk1x2", 64, 2), resolve_target("mk2x4")) is None


def test_the_kit_draws_gathers_and_finds_a_wrong_round(monkeypatch: pytest.MonkeyPatch):
    right = made._Rounds.moved_on
    monkeypatch.setattr(made._Rounds, "moved_on", lambda self, step: right(self, 2 * step))
    with pytest.raises(Miscompiled):
        check_pass(ConvertPartitionToTile(), examples=200, seed=4, reduce_seconds=0)
