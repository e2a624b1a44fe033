from some_tensors import context, counting, module_of

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.ir.geometry.layout import placement
from abele.passes.planner.graph import read_graph
from abele.passes.planner.limits import Limits
from abele.passes.planner.network import plan_network
from abele.passes.plans.derive import operand_layouts, result_layout

W, X, Y = "tensor<512x768xf32>", "tensor<16x512xf32>", "tensor<16x768xf32>"
TARGET = resolve_target("tiny:32")


def step() -> str:
    """A product with a weight, its gradient passed back, and the update of the weight."""
    return f"""
    nn.state @w : {W} = {{w}}
    func.func @main(%x: {X}, %dy: {Y}) -> {X} {{
      %w = nn.load @w : {W}
      %0 = nn.matmul %x, %w : ({X}, {W}) -> {Y}
      %1 = nn.mul %0, %dy : ({Y}, {Y}) -> {Y}
      %2 = nn.matmul %1, %w transpose_rhs : ({Y}, {W}) -> {X}
      %3 = nn.matmul %x, %1 transpose_lhs : ({X}, {Y}) -> {W}
      %4 = nn.sub %w, %3 : ({W}, {W}) -> {W}
      nn.store %4, @w : {W}
      func.return %2 : {X}
    }}"""


def test_operators_that_share_a_changing_weight_leave_it_where_it_lies():
    module = module_of(step(), context(), w=counting((512, 768)))
    alone = plan_network(module, TARGET, joint=False)
    found = plan_network(module, TARGET)
    assert found.cycles < alone.cycles
    plans = {op.name: (op, plan) for op, plan in found.plans.items()}
    forward = next(op for op in found.plans if op.name == "nn.matmul")
    home = operand_layouts(forward.structure(), found.plans[forward])[1]  # type: ignore[attr-defined]
    update, plan = plans["nn.sub"]
    assert operand_layouts(update.structure(), plan)[0] == home  # type: ignore[attr-defined]
    assert result_layout(update.structure(), plan) == home  # type: ignore[attr-defined]


TABLE, ROWS, LOGITS = "tensor<512x64xf32>", "tensor<8x64xf32>", "tensor<8x512xf32>"

TIED = f"""
    nn.state @w : {TABLE} = {{w}}
    func.func @main(%ids: tensor<8xi64>) -> {LOGITS} {{
      %w = nn.load @w : {TABLE}
      %0 = nn.gather %w, %ids axis 0 : ({TABLE}, tensor<8xi64>) -> {ROWS}
      %1 = nn.matmul %0, %w transpose_rhs : ({ROWS}, {TABLE}) -> {LOGITS}
      func.return %1 : {LOGITS}
    }}"""


def test_a_lookup_leaves_the_table_where_a_later_product_wants_it():
    module = module_of(TIED, context(), w=counting((512, 64)))
    target = resolve_target("tiny:16")
    alone = plan_network(module, target, joint=False)
    found = plan_network(module, target)
    assert found.cycles < alone.cycles
    homes = {
        placement(operand_layouts(op.structure(), plan)[i])  # type: ignore[attr-defined]
        for op, plan in found.plans.items()
        for i, each in enumerate(op.operands)
        if nn.shape_of(each) == (512, 64)
    }
    assert len(homes) == 1
    # Every tile holds its share of the table, and nothing else of it.
    assert found.resident_bytes == 512 * 64 * 4 // 16
    assert found.live_bytes < found.resident_bytes


def test_joint_plans_of_a_weight_that_stays_the_same_are_never_slower():
    text = step().replace("nn.store %4, @w : " + W, "")
    module = module_of(text, context(), w=counting((512, 768)))
    joint, alone = (plan_network(module, TARGET, joint=each) for each in (True, False))
    assert joint.cycles <= alone.cycles


def test_a_value_that_is_written_over_a_state_takes_no_bytes():
    module = module_of(step(), context(), w=counting((512, 768)))
    graph = read_graph(module, TARGET, Limits())
    update = next(node for node in graph.operators if node.op.name == "nn.sub")
    assert update.problem.replaced == (0,)
    (life,) = [each for each in graph.functions["main"].lifetimes if each.slot == update.result]
    assert life.into == graph.nodes[0].homes[1]  # type: ignore[union-attr]


def test_an_operand_that_comes_again_is_placed_once():
    text = f"""
    nn.state @w : {W} = {{w}}
    func.func @main(%x: {W}) {{
      %w = nn.load @w : {W}
      %0 = nn.mul %w, %w : ({W}, {W}) -> {W}
      %1 = nn.add %0, %x : ({W}, {W}) -> {W}
      nn.store %1, @w : {W}
      func.return
    }}"""
    module = module_of(text, context(), w=counting((512, 768)))
    found = plan_network(module, TARGET)
    square = next(op for op in found.plans if op.name == "nn.mul")
    assert found.choices[square].resident_bytes <= 512 * 768 * 4 // 32
