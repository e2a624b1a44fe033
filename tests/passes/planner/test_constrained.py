"""Constraints on the operators of a program: kept, or refused with what cannot be met together."""

import json
from collections.abc import Callable
from math import prod
from pathlib import Path

import pytest
from strategies import context
from xdsl.ir import Operation

from abele.backends.target import resolve_target
from abele.dialects.abele import Plan, PlanAttr
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.ir.upstream import ModuleOp
from abele.passes.plan_splits import PlanSplits
from abele.passes.planner.constrained import Planned, plan_program
from abele.passes.planner.relaxed import read_relaxed

NET = """
builtin.module {
  func.func @main(%x: tensor<16x64xf32>, %w: tensor<64x32xf32>, %v: tensor<32x32xf32>)
      -> tensor<32x16xf32> {
    %0 = "nn.matmul"(%x, %w) : (tensor<16x64xf32>, tensor<64x32xf32>) -> tensor<16x32xf32>
      loc("fc1")
    %1 = "nn.relu"(%0) : (tensor<16x32xf32>) -> tensor<16x32xf32> loc("relu1")
    %2 = "nn.matmul"(%1, %v) : (tensor<16x32xf32>, tensor<32x32xf32>) -> tensor<16x32xf32>
      loc("fc2")
    %3 = "nn.square"(%2) : (tensor<16x32xf32>) -> tensor<16x32xf32> loc("norm/square")
    %4 = "nn.transpose"(%3) <{permutation = array<i64: 1, 0>}>
      : (tensor<16x32xf32>) -> tensor<32x16xf32> loc("turn")
    %5 = "nn.reshape"(%4) <{shape = array<i64: 32, 16>}>
      : (tensor<32x16xf32>) -> tensor<32x16xf32> loc("same")
    func.return %5 : tensor<32x16xf32>
  }
}
"""
NAMES = ("fc1", "relu1", "fc2", "norm/square", "turn")
TARGET = resolve_target("tiny:16")

Asking = Callable[..., tuple[Planned, dict[str, Operation]]]


def named(module: ModuleOp) -> dict[str, Operation]:
    ops = [op for op in module.walk() if op.name.startswith("nn.") and op.name != "nn.reshape"]
    return dict(zip(NAMES, ops, strict=True))


@pytest.fixture
def asking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Asking:
    """Plans the net as is asked of its operators."""
    monkeypatch.chdir(tmp_path)

    def ask(operators: dict, proportion: float | None = None, **whole: object):
        Path("c.json").write_text(json.dumps(whole | {"operators": operators}, indent=1))
        module = parse_module(NET, context())
        return plan_program(module, TARGET, "c.json", proportion), named(module)

    return ask


def test_parts_method_and_tiles_are_kept(asking: Asking):
    planned, ops = asking(
        {
            "fc1": {"split": {"m": 2, "k": 4}},
            "fc2": {"method": "mac", "tiles": 6},
            "turn": {"split": {"d0": 8}},
        }
    )
    plans = planned.network.plans
    assert plans[ops["fc1"]].split[0::2] == (2, 4)
    assert plans[ops["fc1"]].combine is not None
    assert plans[ops["fc2"]].method == "mac"
    assert prod(plans[ops["fc2"]].split) <= 6
    assert plans[ops["turn"]].split[0] == 8


def test_steps_are_taken_along_the_dimension_that_was_asked(asking: Asking):
    ring = {"steps": {"k": 4}, "ring": {"k": "n"}}
    planned, ops = asking({"fc1": {"steps": {"k": 4}}, "fc2": ring})
    plans = planned.network.plans
    along, round_tiles = plans[ops["fc1"]], plans[ops["fc2"]]
    assert along.steps == (1, 1, 4)
    assert not along.ring
    assert round_tiles.steps == (1, 1, 4)
    assert round_tiles.ring == (-1, -1, 1)
    assert round_tiles.split[1] % 4 == 0


def test_a_whole_plan_is_kept_and_completed_as_it_is_priced(asking: Asking):
    planned, ops = asking({"fc1": {"plan": "split [2, 4, 1] order [1, 0] at 5"}})
    plan = planned.network.plans[ops["fc1"]]
    assert (plan.split, plan.order, plan.first_tile) == ((2, 4, 1), (1, 0), 5)
    assert plan.method
    assert planned.given == {ops["fc1"]}


def test_a_full_name_takes_precedence_over_a_pattern(asking: Asking):
    planned, ops = asking({"fc2": {"split": {"n": 8}}, "fc*": {"split": {"n": 2}, "method": "mac"}})
    plans = planned.network.plans
    assert plans[ops["fc1"]].split[1] == 2
    assert plans[ops["fc2"]].split[1] == 8
    assert plans[ops["fc1"]].method == plans[ops["fc2"]].method == "mac"


def test_a_plan_takes_precedence_over_the_parts_of_a_pattern(asking: Asking):
    planned, ops = asking({"fc1": {"plan": "split [4, 1, 1]"}, "fc*": {"split": {"n": 2}}})
    plans = planned.network.plans
    assert plans[ops["fc1"]].split == (4, 1, 1)
    assert plans[ops["fc2"]].split[1] == 2


def test_a_proportion_option_takes_precedence_over_that_of_the_file(asking: Asking):
    assert asking({}, memory_proportion=0.25)[0].limits.proportion == 0.25
    assert asking({}, 0.5, memory_proportion=0.25)[0].limits.proportion == 0.5
    assert asking({})[0].limits.proportion == 0.6


def test_a_proportion_is_relaxed_step_by_step_and_reported(asking: Asking):
    planned, ops = asking({"fc2": {"memory_proportion": 0.0005}}, 1.0)
    (told,) = planned.relaxed(TARGET)
    taken = planned.network.choices[ops["fc2"]].temporary_bytes / TARGET.usable_bytes_per_tile
    assert told.operator.startswith("fc2")
    assert told.taken == pytest.approx(taken, abs=1e-4)
    assert told.relaxed_to / 2 < told.taken <= told.relaxed_to + 1e-4
    assert str(told).startswith("fc2")
    assert " -> " in str(told)


def test_a_limit_that_is_just_missed_is_reported(asking: Asking):
    planned, ops = asking({"turn": {"memory_proportion": 0}})
    taken = planned.network.choices[ops["turn"]].temporary_bytes
    limit = (taken - 1) / TARGET.usable_bytes_per_tile
    (told,) = asking({"turn": {"memory_proportion": limit}})[0].relaxed(TARGET)
    assert told.operator.startswith("turn")
    kept = asking({"turn": {"memory_proportion": (taken + 1) / TARGET.usable_bytes_per_tile}})
    assert kept[0].relaxed(TARGET) == ()


def test_a_limit_that_plans_keep_is_not_reported(asking: Asking):
    assert asking({})[0].relaxed(TARGET) == ()


def test_a_proportion_of_0_means_the_fewest_bytes(asking: Asking):
    free, ops = asking({})
    least, same = asking({"fc1": {"memory_proportion": 0}})
    before = free.network.choices[ops["fc1"]].temporary_bytes
    assert least.network.choices[same["fc1"]].temporary_bytes < before
    assert least.relaxed(TARGET) == ()


@pytest.mark.parametrize(
    ("operators", "says"),
    [
        ({"fc3": {}}, "c.json:3: operators.fc3: no operator of that name; did you mean fc"),
        ({"f?3": {}}, "operators.f?3: no operator of that name"),
        ({"norm": {}}, "operators.norm: became norm/square; name one of them, or all as 'norm/*'"),
        ({"same": {}}, "operators.same: nn.reshape needs no plan"),
        ({"fc1": {"split": {"q": 1}}}, "split.q: no dimension 'q' in nn.matmul; there are k, m, n"),
        ({"fc1": {"split": {"n": 33}}}, "fc1.split: dimension n: 33 parts; need 1..32"),
        ({"fc1": {"split": {"m": 8, "n": 4}}}, "split: needs 32 tiles; target tiny:16 has 16"),
        (
            {"fc1": {"split": {"m": 8}, "tiles": 4}},
            "c.json:4: operators.fc1.split: needs 8 tiles; c.json:7: operators.fc1.tiles: 4",
        ),
        ({"fc1": {"tiles": 17}}, "fc1.tiles: 17; target tiny:16 has 16"),
        ({"relu1": {"method": "amp"}}, "relu1.method: nn.relu sums no products"),
        ({"turn": {"method": "amp"}}, "turn.method: nn.transpose sums no products"),
        (
            {"fc1": {"method": "outer", "tiles": 4}},
            "fc1.method: target tiny:16 has no outer for float32 and m = 16, n = 32, k = 64, cut",
        ),
        (
            {"fc1": {"method": "vmac"}},
            "fc1.method: target tiny:16 has no vmac for float32 and m = 16",
        ),
        ({"fc1": {"steps": {"k": 7}}}, "fc1.steps: dimension k: 7 steps of 64; need a divisor"),
        (
            {"fc1": {"steps": {"k": 4}, "ring": {"k": "n"}, "tiles": 2}},
            "fc1.ring: needs 4 tiles; c.json:10: operators.fc1.tiles: 2",
        ),
        (
            {"turn": {"steps": {"d0": 2}}},
            "turn.steps: nn.transpose moves elements, which takes one step",
        ),
        (
            {"fc1": {"split": {"k": 2}, "steps": {"m": 1}, "ring": {"k": "n"}}},
            "fc1.steps: dimension k: it goes round n in 1 step; need 2 or more",
        ),
        (
            {"fc1": {"ring": {"k": "n"}}},
            "fc1.ring: dimension k: it goes round n in 1 step; need 2 or more",
        ),
        (
            {"fc1": {"plan": "split [1, 1, 1] ring [-1, -1, 1]"}},
            "fc1.plan: dimension k: it goes round n in 1 step; need 2 or more",
        ),
        (
            {"turn": {"plan": "split [1, 1] steps [2, 1]"}},
            "turn.plan: steps [2, 1]; a movement takes one step",
        ),
        ({"fc1": {"ring": {"k": "q"}}}, "fc1.ring.k: no dimension 'q' in nn.matmul"),
        ({"fc1": {"plan": "split [1, 2]"}}, "fc1.plan: split [1, 2]; need a number for each of m"),
        ({"fc1": {"plan": "split [1, 2, 1] workers [6]"}}, "workers [6]; need a number for each"),
        ({"fc1": {"plan": "split [4, 4, 1] at 1"}}, "needs tiles 0..16; target tiny:16 has 0..15"),
        ({"fc1": {"plan": "split [1, 1, 1] order [7]"}}, "order [7]; need different ones of 0..2"),
        ({"fc1": {"plan": "split [1, 1, 1] method sum"}}, "no method 'sum'; there are amp, mac"),
        ({"fc1": {"plan": "split [2, 1, 1] combine split [1, 1]"}}, "but no partials; need a"),
        (
            {"fc1": {"plan": "split [1, 1, 4] combine split [1, 1]"}},
            "combine: split [1, 1]; need a number for each of m, n, kp",
        ),
    ],
)
def test_a_constraint_that_no_plan_can_meet_is_refused(asking: Asking, operators, says):
    with pytest.raises(InputError) as raised:
        asking(operators)
    assert says in str(raised.value)


def test_parts_that_do_not_fit_on_a_tile_are_refused_with_both_sizes(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text('{"operators": {"fc1": {"tiles": 1}}}')
    target = resolve_target("tiny:16,memory.reserved_bytes=0,memory.bytes_per_tile=1024")
    module = parse_module(NET, context())
    with pytest.raises(InputError) as raised:
        plan_program(module, target, path)
    assert "fc1.tiles: tiles 1: the leanest such plan of nn.matmul at fc1" in str(raised.value)
    assert f"bytes of a tile; target {target.called} has 1,024" in str(raised.value)


def test_an_existing_plan_and_a_constraint_contradict_each_other(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text('{"operators": {"fc1": {"tiles": 4}}}')
    module = parse_module(NET, context())
    named(module)["fc1"].attributes["plan"] = PlanAttr(Plan((2, 1, 1)))
    with pytest.raises(InputError, match="nn.matmul already has a plan; remove one of the two"):
        plan_program(module, TARGET, path)


@pytest.mark.parametrize("proportion", [-0.1, 1.1, float("nan"), float("inf")])
def test_a_proportion_outside_0_to_1_is_refused(proportion: float):
    with pytest.raises(InputError, match=r"memory proportion .*; need 0\.\.1"):
        plan_program(parse_module(NET, context()), TARGET, "", proportion)


def test_the_module_records_relaxed_limits_until_it_is_planned_again(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text('{"operators": {"fc2": {"memory_proportion": 0.0005}}}')
    made = context()
    module = parse_module(NET, made)
    PlanSplits("tiny:16", str(path)).apply(made, module)
    module.verify()
    (told,) = read_relaxed(parse_module(print_module(module), made))
    assert told.operator.startswith("fc2")
    assert told.limit == pytest.approx(0.0005)
    for op in named(module).values():
        del op.attributes["plan"]
    PlanSplits("tiny:16").apply(made, module)
    assert read_relaxed(module) == ()
