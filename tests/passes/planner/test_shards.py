"""A shard says which dimensions of an operator are cut across chips, and plans keep to it."""

from __future__ import annotations

import json
from functools import lru_cache
from math import isnan, prod
from pathlib import Path

import numpy as np
import onnx
import pytest
from lengths import large
from some_models import model, node

from abele.backends.target import resolve_target
from abele.dialects.exchange import VariableOp
from abele.dialects.structured import Structured
from abele.ir.errors import InputError
from abele.ir.provenance import origin
from abele.ir.text import parse_module
from abele.passes.planner.constrained import Planned, plan_program
from abele.passes.planner.crossing import on_chips
from abele.passes.planner.shards import Shard, read_shards
from abele.passes.planner.shards_of_training import shards_of_training
from abele.passes.plans.fused import FusedGroups
from abele.tools import Executable, Training, compile_model

from ...strategies import context

NET = """
builtin.module {
  func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x48xf32>, %v: tensor<48x16xf32>)
      -> tensor<64x16xf32> {
    %0 = nn.matmul %x, %w
      : (tensor<64x32xf32>, tensor<32x48xf32>) -> tensor<64x48xf32> loc("fc1")
    %1 = nn.matmul %0, %v
      : (tensor<64x48xf32>, tensor<48x16xf32>) -> tensor<64x16xf32> loc("fc2")
    func.return %1 : tensor<64x16xf32>
  }
}"""

FOUR = resolve_target("tiny:4").with_chips(4)


def planned(*shards: str, constraints: str | Path = "") -> Planned:
    return plan_program(parse_module(NET, context()), FOUR, constraints, shards=shards)


def across(found: Planned) -> list[tuple[int, ...]]:
    """The chips for m, n and k of each product."""
    return [plan.across or (1, 1, 1) for plan in found.network.plans.values()]


@pytest.mark.parametrize(
    ("shards", "expected"),
    [
        (["fc1:m=4", "fc2:k=4"], [(4, 1, 1), (1, 1, 4)]),
        (["fc1:m=2,n=2", "fc2:m=1"], [(2, 2, 1), (1, 1, 1)]),
        (["fc*:n=2"], [(1, 2, 1), (1, 2, 1)]),
        (["fc*:n=2", "fc1:m=3"], [(3, 1, 1), (1, 2, 1)]),
    ],
)
def test_plans_cut_what_a_shard_names_across_so_many_chips(shards: list[str], expected: list):
    found = planned(*shards)
    assert across(found) == expected
    assert not found.network.one_chip
    assert isnan(found.network.alone_cycles)


def test_a_shard_joins_the_constraints_of_a_file_and_overrides_its_chips(tmp_path: Path):
    path = tmp_path / "c.json"
    fc1 = {"method": "mac", "across": {"n": 2}}
    path.write_text(json.dumps({"operators": {"fc1": fc1, "fc2": {"across": {"m": 2}}}}))
    assert across(planned(constraints=path)) == [(1, 2, 1), (2, 1, 1)]
    found = planned("fc1:m=4", constraints=path)
    assert across(found) == [(4, 1, 1), (2, 1, 1)]
    assert next(plan.method for plan in found.network.plans.values()) == "mac"


@pytest.mark.parametrize(
    "shards",
    [("fc1:m=4", "fc2:k=4"), ("fc1:n=2,k=2", "fc2:n=4"), ("fc1:k=4", "fc2:m=2,n=2")],
)
def test_a_sharded_program_gives_the_results_of_one_chip(tmp_path: Path, shards: tuple[str, ...]):
    path = tmp_path / "net.mlir"
    path.write_text(NET)
    rng = np.random.default_rng(0)
    # Sums of small integers are exact in any order.
    inputs = {
        name: rng.integers(-4, 5, shape).astype(np.float32)
        for name, shape in (("arg0", (64, 32)), ("arg1", (32, 48)), ("arg2", (48, 16)))
    }
    one = compile_model(path, "tiny:16", cache=False)
    several = compile_model(path, "tiny:4", chips=4, shard=shards, cache=False)
    assert 'sync "all"' in str(several.module_at("exchange"))
    for a, b in zip(one.run(inputs).values(), several.run(inputs).values(), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("shards", "says"),
    [
        (["fc1"], "--shard fc1: need NAME:DIM=N"),
        ([":m=2"], "--shard :m=2: need NAME:DIM=N"),
        (["fc1:m"], "--shard fc1:m: 'm'; need NAME:DIM=N"),
        (["fc1:m=two"], "--shard fc1:m=two: m: 'two'; need a number of chips"),
        (["fc1:m=0"], "--shard fc1:m=0: m: '0'; need a number of chips"),
        (["fc1:m=9999999"], "m: '9999999'; need a number of chips"),
        (["fc1:m=2,m=2"], "--shard fc1:m=2,m=2: m is given twice"),
        (["fc1:m=2", "fc1:n=2"], "--shard fc1: given twice"),
        (["fc3:m=2"], "--shard fc3:m=2: no operator of that name; did you mean"),
        (["fc1:z=2"], "--shard fc1:z=2: no dimension 'z' in nn.matmul"),
        (["fc1:m=8"], f"--shard fc1:m=8: 8 chips; target {FOUR.called} has 4"),
        (["fc1:m=2,n=2,k=2"], f"8 chips; target {FOUR.called} has 4"),
    ],
)
def test_a_shard_that_no_plan_can_have_is_refused(shards: list[str], says: str):
    with pytest.raises(InputError) as error:
        planned(*shards)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        ({"across": {"m": 4}, "split": {"m": 6}}, "m = 64 across 4, in equally many parts"),
        ({"across": {"m": 4}, "tiles": 3}, "nn.matmul cannot be cut so: m = 64 across 4"),
        ({"across": {"m": 4}, "steps": {"k": 2}}, "an operator in steps takes one chip"),
        ({"across": {"m": 4}, "plan": "split [4, 1, 1]"}, "a whole plan leaves nothing"),
        ({"across": {"m": "4"}}, "operators.fc1.across.m: '4'; need an integer"),
        (
            {"across": {"k": 1}, "split": {"m": 8}},
            f"target {FOUR.called} has 4 on 1 of its chips",
        ),
    ],
)
def test_chips_that_contradict_other_constraints_are_refused(tmp_path: Path, keys: dict, says: str):
    path = tmp_path / "c.json"
    path.write_text(json.dumps({"operators": {"fc1": keys}}))
    with pytest.raises(InputError) as error:
        planned(constraints=path)
    assert says in str(error.value)


def test_a_name_may_have_colons():
    assert Shard.read("block:0/fc:n=2").name == "block:0/fc"
    assert str(Shard.read("fc1: n = 2 , m=4")) == "fc1:n=2,m=4"
    assert len(read_shards(["fc1:n=2", "fc*:n=2"])) == 2


# Steps of training


def whole(shape: tuple[int, ...], seed: int) -> np.ndarray:
    """Small integers, whose sums are exact in any order."""
    return np.random.default_rng(seed).integers(-1, 2, shape).astype(np.float32)


def network() -> onnx.ModelProto:
    nodes = [node("Gemm", "x w b", "h"), node("Relu", "h", "r"), node("MatMul", "r v", "y")]
    nodes[0].name, nodes[2].name = "fc1", "fc2"
    weights = {"w": whole((6, 16), 0), "b": whole((16,), 1), "v": whole((16, 4), 2)}
    return model(nodes, {"x": ["N", 6]}, ["y"], weights)


@lru_cache
def step(shard: tuple[str, ...] = (), replicas: str = "", micro_batches: int = 1) -> Executable:
    """A program after two steps of training."""
    train = Training(
        loss="mean_square",
        reduction="sum",
        learning_rate=0.125,
        momentum=0.5,
        micro_batches=micro_batches,
    )
    exe = compile_model(
        network(),
        "tiny:32,links.topology=ladder,links.chips=4" if shard else "tiny:8",
        batch=16,
        train=train,
        shard=shard,
        replicas=replicas or None,
        cache=False,
    )
    for i in range(2):
        _ = exe.run({"x": whole((16, 6), i), "target": whole((16, 4), 10 + i)})
    return exe


def chips_with_all_of(exe: Executable) -> int:
    """The most chips that hold all of a variable like the weight of fc1, or a part of it."""
    found = [
        on_chips(each.placed, exe.target).replicas * prod(each.placed.shape) // (6 * 16)
        for each in exe.module_at("exchange").body.block.ops
        if isinstance(each, VariableOp) and each.placed.shape[-2:] == (6, 16)
    ]
    return max(found)


@pytest.mark.parametrize(
    ("shard", "replicas", "micro_batches"),
    [
        large(("fc1:n=4",), "", 1),
        (("fc1:n=4",), "4:ring", 1),
        (("fc1:n=2", "fc2:k=4"), "2", 2),
    ],
)
def test_a_step_of_a_sharded_layer_gives_the_states_of_one_chip(
    shard: tuple[str, ...], replicas: str, micro_batches: int
):
    one, several = step(), step(shard, replicas, micro_batches)
    assert one.states.keys() == several.states.keys()
    for name, value in one.states.items():
        np.testing.assert_array_equal(several.states[name], value, err_msg=name)


def test_no_chip_holds_all_of_a_sharded_weight_or_of_its_gradient():
    assert chips_with_all_of(step(("fc2:k=4",), "4:ring")) == 4
    assert chips_with_all_of(step(("fc1:n=4",), "4:ring")) == 1
    # The name that abele plan shows.
    assert chips_with_all_of(step(("fc1/product+fc1+the_r:n=4",), "4:ring")) == 1


def test_operators_of_another_layer_are_not_cut():
    module = step(("fc1:n=4",)).stages.plans.module.clone()
    with FusedGroups(module):
        ops = [op for op in module.walk() if isinstance(op, Structured)]
        (fc1,) = (op for op in ops if (origin(op) or "").startswith("fc1/product+fc1"))
        found = shards_of_training(module, {fc1: (1, 4, 1)})
        names = {origin(op) or "" for op in found}
    assert len(names) > 1
    assert all("fc1/" in name for name in names)
    assert all(prod(across) == 4 for across in found.values())


def test_a_name_stands_for_the_one_operator_below_it_that_has_the_dimension():
    text = NET.replace('loc("fc1")', 'loc("dense/product")').replace(
        'loc("fc2")', 'loc("other/product")'
    )
    found = plan_program(parse_module(text, context()), FOUR, shards=["dense:n=4"])
    assert across(found)[0] == (1, 4, 1)
    with pytest.raises(InputError, match="^--shard dense:q=4: became dense/product; name one"):
        plan_program(parse_module(text, context()), FOUR, shards=["dense:q=4"])
    both = text.replace("other/product", "dense/second")
    with pytest.raises(
        InputError,
        match="^--shard dense:n=4: 2 operators below dense have the dimension n: dense/product, "
        "dense/second; name one of them, or all as 'dense/[*]'",
    ):
        plan_program(parse_module(both, context()), FOUR, shards=["dense:n=4"])
