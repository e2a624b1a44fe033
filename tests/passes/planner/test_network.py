from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from xdsl.builder import Builder
from xdsl.ir import Block, Region
from xdsl.rewriter import InsertPoint

from abele.backends.target import resolve_target
from abele.dialects import control, nn
from abele.dialects.abele import Plan, PlanAttr
from abele.ir.errors import InputError
from abele.ir.text import parse_module
from abele.passes.decompose import Decompose
from abele.passes.planner import network, serial
from abele.passes.planner.network import NetworkPlan, plan_network
from abele.passes.plans.derive import operand_layouts
from abele.passes.plans.fused import FusedGroups
from abele.passes.train import Train

from ...strategies import context
from .some_networks import Net, mlp, planned


def test_every_operation_gets_a_plan_that_fits_on_the_tiles():
    for tiles in (1, 4, 30):
        found = planned(mlp(48, 3), resolve_target(f"tiny:{tiles}"))
        for plan in found.plans.values():
            assert plan.first_tile + int(np.prod(plan.split)) <= tiles


def test_an_activation_stays_where_it_is_made():
    net = Net(8, 64)
    net.matmul(64)
    relu = net.relu()
    found = planned(net.module(), resolve_target("tiny:16"))
    assert found.choices[relu].exchange_cycles == 0


def test_a_program_without_operators_that_cannot_fit_has_no_plans():
    target = resolve_target("tiny:2,memory.reserved_bytes=0,memory.bytes_per_tile=2048")
    found = planned(Net(100, 100).module(), target)
    assert not found.plans
    assert found.bytes_per_tile > target.usable_bytes_per_tile


def test_equal_layers_get_equal_plans():
    found = planned(mlp(96, 5), resolve_target("tiny:32"))
    plans = [p for op, p in found.plans.items() if isinstance(op, nn.MatMulOp)]
    assert plans[2] == plans[3] == plans[4]


def test_less_memory_is_met_with_slower_plans():
    net = Net(1, 32, 16, 16)
    for _ in range(8):
        weight = net.weight(32, 32, 3, 3)
        conv = nn.ConvOp(net.value, weight, pad_low=[1, 1], pad_high=[1, 1])
        net.value = net.block_add(conv)
    module = net.module()
    ample = planned(module, resolve_target("tiny:16"))
    usable = ample.bytes_per_tile - ample.resident_bytes // 3
    scarce_target = resolve_target(
        f"tiny:16,memory.reserved_bytes=0,memory.bytes_per_tile={usable}"
    )
    scarce = planned(module, scarce_target)
    assert scarce.bytes_per_tile <= scarce_target.usable_bytes_per_tile
    assert scarce.resident_bytes < ample.resident_bytes
    assert scarce.cycles >= ample.cycles


def test_a_network_that_cannot_fit_is_still_planned():
    target = resolve_target("tiny:2,memory.reserved_bytes=0,memory.bytes_per_tile=2048")
    found = planned(mlp(64, 2), target)
    assert found.bytes_per_tile > target.usable_bytes_per_tile


def test_steps_are_not_searched_if_no_plan_can_fit(monkeypatch: pytest.MonkeyPatch):
    def searched(*_: object) -> None:
        raise AssertionError("steps were searched")

    small = replace(resolve_target("tiny:4"), tiles=2)
    target = replace(small, memory=replace(small.memory, bytes_per_tile=9_000, reserved_bytes=0))
    monkeypatch.setattr(serial, "in_steps", searched)
    monkeypatch.setattr(network, "in_steps", searched)
    found = planned(mlp(96, 2), target)
    assert found.bytes_per_tile > target.usable_bytes_per_tile
    monkeypatch.setattr(network.Network, "could_fit", True)
    with pytest.raises(AssertionError, match="steps were searched"):
        planned(mlp(96, 2), target)


def test_weights_of_small_operators_spread_over_the_tiles():
    # Operators this small are not worth an exchange, unless it starts at once.
    target = resolve_target("tiny:16,exchange.route_cycles=0")
    net = Net(1, 4)
    makers = [net.matmul(4) for _ in range(8)]
    module = net.module()
    for op in makers:
        op.attributes["plan"] = PlanAttr(Plan((1, 1, 1)))
    crowded = planned(module, target)
    for op in makers:
        del op.attributes["plan"]
    free = planned(module, target)
    assert free.resident_bytes < crowded.resident_bytes


def test_an_existing_plan_is_kept_and_its_layout_inherited():
    net = Net(8, 64)
    matmul = net.matmul(64)
    relu = net.relu()
    module = net.module()
    given = Plan((4, 2, 1), (1, 0), 3)
    matmul.attributes["plan"] = PlanAttr(given)
    found = planned(module, resolve_target("tiny:16"))
    plan = found.plans[matmul]
    assert (plan.split, plan.order, plan.first_tile) == (given.split, given.order, 3)
    assert plan.method
    assert found.plans[relu].split == (4, 2)
    assert found.plans[relu].order == (1, 0)
    assert found.plans[relu].first_tile == 3


def test_a_plan_that_leaves_partials_gets_them_combined():
    net = Net(8, 64)
    matmul = net.matmul(64)
    module = net.module()
    matmul.attributes["plan"] = PlanAttr(Plan((2, 2, 4)))
    combine = planned(module, resolve_target("tiny:16")).plans[matmul].combine
    assert combine is not None
    assert combine.split[2:] == (1,)


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        (Plan((9, 1, 1)), r"nn\.matmul at .*: plan: dimension m: 9 parts; need 1\.\.8"),
        (Plan((8, 4, 1)), r"plan: needs tiles up to 31; there are 16"),
        (Plan((2, 2)), r"plan: split \[2, 2\]; need a number for each of m, n, k"),
        (Plan((2, 1, 2), combine=Plan((2,))), r"plan: combine: split \[2\]; need a number"),
    ],
)
def test_an_illegal_plan_is_refused(plan: Plan, message: str):
    net = Net(8, 64)
    matmul = net.matmul(64)
    module = net.module()
    matmul.attributes["plan"] = PlanAttr(plan)
    with pytest.raises(InputError, match=message):
        plan_network(module, resolve_target("tiny:16"))


def test_the_body_of_a_loop_is_planned_and_counts_once_per_iteration():
    def looped(iterations: int) -> NetworkPlan:
        net = Net(8, 64)
        weight = net.weight(64, 64)
        body = Block(arg_types=[net.type])
        builder = Builder(InsertPoint.at_end(body))
        product = builder.insert(nn.MatMulOp(body.args[0], weight))
        builder.insert(control.YieldOp(product.result))
        net.value = net.block_add(control.RepeatOp(iterations, [net.value], Region(body)))
        return planned(net.module(), resolve_target("tiny:16"))

    assert looped(6).cycles == 6 * looped(1).cycles


def test_a_reshaped_weight_is_resident_in_its_users_layout():
    net = Net(8, 64)
    bias = net.weight(64)
    row = net.block_add(nn.ReshapeOp(bias, [1, 64]))
    add = nn.AddOp(net.value, row)
    net.value = net.block_add(add)
    found = planned(net.module(), resolve_target("tiny:16"))
    wanted = operand_layouts(add.structure(), found.plans[add])[1]
    assert found.choices[add].resident_bytes == wanted.block_elements * 2


def test_a_weight_is_resident_once_however_many_use_it():
    net = Net(8, 64)
    weight = net.weight(64, 64)
    for _ in range(2):
        net.value = net.block_add(nn.MatMulOp(net.value, weight))
    found = planned(net.module(), resolve_target("tiny:16"))
    first, second = found.choices.values()
    assert first.resident_bytes > 0
    assert second.resident_bytes == 0


def test_an_empty_tensor_is_left_whole():
    net = Net(0, 64)
    relu = net.relu()
    assert planned(net.module(), resolve_target("tiny:4")).plans[relu].split == (1, 1)


@pytest.mark.parametrize("reshaped", ["", "nn.reshape %x to [8] : (tensor<1x8xf16>) -> "])
def test_an_input_that_a_chain_reads_too_is_planned(reshaped: str):
    kind = "tensor<8xf16>" if reshaped else "tensor<1x8xf16>"
    read, made = ("%r", f"%r = {reshaped}{kind}") if reshaped else ("%x", "")
    text = f"""func.func @main(%x: tensor<1x8xf16>) -> tensor<1x8xf16> {{
      {made}
      %0 = nn.sqrt %x {{group = 0}} : (tensor<1x8xf16>) -> tensor<1x8xf16>
      %1 = nn.mul %0, {read} {{group = 0}} : (tensor<1x8xf16>, {kind}) -> tensor<1x8xf16>
      func.return %1 : tensor<1x8xf16>
    }}"""
    module = parse_module(text, context())
    FusedGroups(module).fuse()
    assert plan_network(module, resolve_target("tiny:4")).cycles > 0


def test_resident_bytes_include_alignment():
    net = Net(1, 1)
    net.matmul(3)
    found = planned(net.module(), resolve_target("tiny:1"))
    # Three halves, and none but they stay.
    assert found.resident_bytes == 8


def test_a_loop_of_runs_is_planned_again_if_its_batches_leave_too_little_room():
    made, type_ = context(), "tensor<16x64xf32>"
    w = made.blobs.add(np.ones((64, 64), np.float32)).digest
    text = f"""
        nn.state @w : tensor<64x64xf32> = <"{w}">
        func.func @main(%x: {type_}) -> {type_} attributes {{arg_names = ["x"]}} {{
          %w = nn.load @w : tensor<64x64xf32>
          %0 = nn.matmul %x, %w : ({type_}, tensor<64x64xf32>) -> {type_}
          func.return %0 : {type_}
        }}"""
    module = parse_module(text, made)
    Train(loss="mean_square", steps=8).apply(made, module)
    Decompose().apply(made, module)
    ample = plan_network(module, resolve_target("tiny:16"))
    usable = ample.bytes_per_tile - 64
    scarce = plan_network(
        module,
        resolve_target(f"tiny:16,memory.reserved_bytes=0,memory.bytes_per_tile={usable}"),
    )
    assert scarce.bytes_per_tile <= usable
    assert scarce.cycles > ample.cycles
