"""What a program leaves to be decided, read from its text."""

from __future__ import annotations

from hypothesis import given, settings
from xdsl.dialects.builtin import ModuleOp

from abele.backends.memory import memory_report
from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.text import parse_module
from abele.passes.planner.graph import PlanningGraph, Relayout, read_graph
from abele.passes.planner.limits import Limits

from ...backends.exchange_text import lowered
from ...strategies import Program, context, planned_programs
from .test_network import Net

TARGET = resolve_target("tiny:4")


def graph(text: str) -> PlanningGraph:
    return read_graph(parse_module(text, context()), TARGET, Limits())


LOOP = """
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = control.repeat 5 (%0) : (tensor<8x16xf32>) -> tensor<8x16xf32> {
  ^bb0(%a: tensor<8x16xf32>):
    %2 = nn.square %a : (tensor<8x16xf32>) -> tensor<8x16xf32>
    control.yield %2 : tensor<8x16xf32>
  }
  func.return %1 : tensor<8x16xf32>
}
"""


def test_a_carried_value_returns_to_its_first_layout():
    relu, square, back = graph(LOOP).nodes
    assert isinstance(back, Relayout)
    assert (back.source, back.destination, back.times) == (square.result, relu.result, 5)
    assert square.operands == (relu.result,)
    assert square.times == 5


CALLS = """
func.func @twice(%a: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.square %a : (tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %0 : tensor<8x16xf32>
}
func.func @main(%x: tensor<8x16xf32>) -> tensor<8x16xf32> {
  %0 = nn.relu %x : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %1 = func.call @twice(%0) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  %2 = func.call @twice(%1) : (tensor<8x16xf32>) -> tensor<8x16xf32>
  func.return %2 : tensor<8x16xf32>
}
"""


def test_a_function_counts_as_often_as_it_is_called():
    found = graph(CALLS)
    square, relu = found.operators
    assert (square.times, relu.times) == (2, 1)
    given = [node for node in found.nodes if isinstance(node, Relayout)]
    assert [(node.source, node.times) for node in given] == [(relu.result, 1), (square.result, 1)]
    assert {node.destination for node in given} == set(square.inputs.values())


def test_a_value_lives_from_its_operation_to_its_last_use():
    found = graph("""func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32>
      %1 = nn.square %0 : (tensor<8xf32>) -> tensor<8xf32>
      %2 = nn.add %1, %0 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
      func.return %2 : tensor<8xf32>
    }""")
    relu, square, add = found.operators
    lives = {each.slot: each for each in found.functions["main"].lifetimes}
    assert relu.moment < lives[relu.result].start < square.moment
    assert lives[relu.result].end == lives[add.result].start == add.moment + 1
    assert lives[relu.inputs[0]].start < relu.moment < lives[relu.inputs[0]].end
    assert lives[relu.inputs[0]].end < square.moment


def shared() -> ModuleOp:
    net = Net(8, 16)
    weight = net.weight(16, 16)
    for _ in range(2):
        net.value = net.block_add(nn.MatMulOp(net.value, weight))
    return net.module()


def test_the_first_operator_places_a_weight_for_all_operators():
    first, second = read_graph(shared(), TARGET, Limits()).operators
    assert first.operands == (None, None)
    assert first.shared == {1}
    assert second.operands == (first.result, first.homes[1])
    assert not second.homes


def test_branches_leave_their_results_in_one_layout():
    found = graph("""func.func @main(%p: tensor<i1>, %x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = control.if %p : tensor<i1> -> (tensor<8xf32>) {
        %1 = nn.relu %x : (tensor<8xf32>) -> tensor<8xf32>
        control.yield %1 : tensor<8xf32>
      } else {
        %2 = nn.square %x : (tensor<8xf32>) -> tensor<8xf32>
        control.yield %2 : tensor<8xf32>
      }
      %3 = nn.neg %0 : (tensor<8xf32>) -> tensor<8xf32>
      func.return %3 : tensor<8xf32>
    }""")
    relu, square, moved, neg = found.nodes
    assert isinstance(moved, Relayout)
    assert (moved.source, moved.destination) == (square.result, relu.result)
    assert neg.operands == (relu.result,)


@settings(max_examples=40)
@given(planned_programs(max_ops=4))
def test_no_program_needs_fewer_bytes_than_the_lower_bound(program: Program):
    target = resolve_target(program.target)
    least = read_graph(program.module, target, Limits()).least_bytes
    found = memory_report(lowered(program), target)
    assert least <= (found.always_live_bytes + found.transient_bytes).sum()


def test_the_lower_bound_of_bytes_is_all_weights_and_the_tensors_of_one_operator():
    net = Net(8, 16)
    net.matmul(32)
    net.matmul(64)
    found = read_graph(net.module(), TARGET, Limits())
    assert found.least_bytes == 2 * (16 * 32 + 32 * 64 + 8 * 32 + 8 * 64 // 2)
