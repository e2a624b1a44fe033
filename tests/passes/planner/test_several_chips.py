"""Plans of whole programs for several chips."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

import numpy as np
import pytest
from some_tensors import module_of
from xdsl.dialects.builtin import ModuleOp

from abele.backends.prices.price import price
from abele.backends.target import Target, resolve_target
from abele.dialects import nn
from abele.dialects.abele import Plan, PlanAttr
from abele.dialects.levels import EXCHANGE, NN
from abele.ir.errors import InputError
from abele.ir.pass_manager import parse_pipeline
from abele.passes.pipelines import PASSES, pipeline
from abele.passes.plan_splits import PlanSplits
from abele.passes.planner.constrained import plan_program
from abele.passes.planner.crossing import on_chips
from abele.passes.planner.network import NetworkPlan
from abele.passes.plans.derive import result_layout
from abele.passes.plans.planned import ONE_CHIP

from ...strategies import context
from .some_networks import Net, mlp, planned

FOUR = resolve_target("tiny:16,links.topology=ladder,links.chips=4")
ONE = FOUR.one_chip


def wide_batch(batch: int = 256, width: int = 96, layers: int = 2) -> ModuleOp:
    net = Net(batch, width)
    for _ in range(layers):
        net.matmul(width)
        net.relu()
    return net.module()


def test_the_batch_is_cut_across_chips():
    found = planned(wide_batch(), FOUR)
    assert not found.one_chip
    for op, plan in found.plans.items():
        if isinstance(op, nn.MatMulOp):
            made = result_layout(op.structure(), plan)
            assert on_chips(made, FOUR).parts == (4, 1)
    assert found.cycles < planned(wide_batch(), ONE).cycles / 2


def test_a_small_program_stays_on_one_chip():
    found = planned(mlp(8, 2), FOUR)
    assert found.one_chip
    assert found.plans.keys()
    assert all(plan.tiles.end <= FOUR.tiles_per_chip for plan in found.plans.values())
    assert found.cycles == planned(mlp(8, 2), ONE).cycles


@pytest.mark.parametrize("module", [mlp(8, 2), mlp(300, 3), wide_batch(32), wide_batch(64, 200)])
def test_four_chips_are_never_slower_than_one(module: ModuleOp):
    one, four = planned(module, ONE), planned(module, FOUR)
    if one.bytes_per_tile <= ONE.usable_bytes_per_tile:
        assert four.cycles <= one.cycles


def test_weights_that_fit_on_no_chip_are_cut_across_all():
    module = mlp(900, 1)
    assert planned(module, ONE).bytes_per_tile > ONE.usable_bytes_per_tile
    found = planned(module, FOUR)
    assert found.bytes_per_tile <= FOUR.usable_bytes_per_tile
    (product,) = [p for op, p in found.plans.items() if isinstance(op, nn.MatMulOp)]
    assert prod(product.across) == 4


def lowered(module: ModuleOp, target: Target) -> ModuleOp:
    found = module.clone()
    for each in parse_pipeline(pipeline(NN, EXCHANGE, target.spelling()), PASSES):
        each.apply(context(), found)
    return found


@pytest.mark.parametrize("module", [mlp(8, 2), wide_batch(64, 32)])
def test_what_no_plan_places_lies_on_the_chips_that_plans_use(module: ModuleOp):
    for target in (ONE, FOUR):
        found = lowered(module, target)
        alone = "abele.one_chip" in str(found)
        last = FOUR.tiles_per_chip if alone else target.tiles
        names = [op for op in found.walk() if op.name == "exchange.variable"]
        assert names
        assert all(op.placed.tiles.end <= last for op in names)  # type: ignore[attr-defined]
    assert price(found, FOUR)


def test_a_plan_on_a_second_chip_is_kept():
    module = mlp(8, 1)
    product = next(op for op in module.walk() if isinstance(op, nn.MatMulOp))
    product.attributes["plan"] = PlanAttr(Plan((4, 1, 1), first_tile=4))
    found = planned(module, FOUR)
    assert not found.one_chip
    assert found.plans[product].first_tile == 4
    assert np.all(np.array([p.tiles.end for p in found.plans.values()]) <= FOUR.tiles)


PRODUCT = """
builtin.module {
  func.func @main(%x: tensor<64x32xf32>, %w: tensor<32x32xf32>) -> tensor<64x32xf32> {
    %0 = nn.matmul %x, %w
      : (tensor<64x32xf32>, tensor<32x32xf32>) -> tensor<64x32xf32> loc("fc")
    func.return %0 : tensor<64x32xf32>
  }
}"""


def constrained(tmp_path: Path, **keys: object) -> NetworkPlan:
    path = tmp_path / "constraints.json"
    path.write_text(json.dumps({"operators": {"fc": keys}}))
    return plan_program(module_of(PRODUCT, context()), FOUR, path).network


@pytest.mark.parametrize("split", [{"m": 16}, {"m": 2, "n": 8}])
def test_a_split_of_the_user_that_needs_all_chips_is_kept(tmp_path: Path, split: dict):
    found = constrained(tmp_path, split=split)
    (plan,) = found.plans.values()
    assert [plan.split["mnk".index(name)] for name in split] == list(split.values())
    assert not found.one_chip


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"split": {"m": 15}}, "needs 15 tiles; a chip has 4, and no dimension can be cut"),
        ({"split": {"m": 17}}, r"needs 17 tiles; target tiny\S* has 16"),
        ({"split": {"m": 16}, "steps": {"n": 2}}, "needs 16 tiles; in steps it takes one chip"),
    ],
)
def test_a_split_that_no_chips_can_have_is_refused(tmp_path: Path, keys: dict, message: str):
    with pytest.raises(InputError, match=message):
        constrained(tmp_path, **keys)


def test_plans_made_anew_for_all_chips_lift_the_limit_to_one():
    module = mlp(8, 2)
    PlanSplits(target=FOUR.spelling()).apply(context(), module)
    assert ONE_CHIP in module.attributes
    first = next(op for op in module.walk() if "plan" in op.attributes)
    first.attributes["plan"] = PlanAttr(Plan((4, 1, 1), first_tile=4))
    PlanSplits(target=FOUR.spelling()).apply(context(), module)
    assert ONE_CHIP not in module.attributes


def test_memory_is_counted_for_each_chip():
    """Functions on different chips do not share memory; those on one chip do."""
    tensor = "tensor<64x64xf32>"

    def bytes_of(*chips: int) -> tuple[int, ...]:
        layers = "".join(
            f"func.func @f{i}(%x: {tensor}, %w: {tensor}) -> {tensor} "
            f"attributes {{abele.chips = [{chip}, 1, 1]}} {{ %0 = nn.matmul %x, %w : "
            f"({tensor}, {tensor}) -> {tensor} func.return %0 : {tensor} }}"
            for i, chip in enumerate(chips)
        )
        calls = "".join(
            f"%{i} = func.call @f{i}({f'%{i - 1}' if i else '%x'}, %x) "
            f": ({tensor}, {tensor}) -> {tensor} "
            for i in range(len(chips))
        )
        end = f"func.return %{len(chips) - 1} : {tensor}"
        main = f"func.func @main(%x: {tensor}) -> {tensor} {{ {calls} {end} }}"
        return planned(module_of(main + layers, context()), FOUR).chip_bytes

    near, far = bytes_of(2), bytes_of(2, 3)
    assert near[1] == near[3] == 0
    assert near[2] > 4 * 64 * 64 / FOUR.tiles_per_chip
    assert far[2] <= near[2] + 4 * 64 * 64 / FOUR.tiles_per_chip
    assert far[3] > far[1] == 0
