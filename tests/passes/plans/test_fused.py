import pytest

from abele.dialects import nn
from abele.dialects.abele import Plan, PlanAttr
from abele.ir.errors import InputError
from abele.ir.text import parse_module, print_module
from abele.passes.plans.fused import FusedGroups, FusedOp

from ...strategies import context

T = "tensor<4x6xf32>"
ONE, TWO = f"({T}) -> {T}", f"({T}, {T}) -> {T}"
TEXT = f"""
func.func @main(%x: {T}, %y: {T}) -> {T} {{
  %0 = nn.square %x {{group = 0, plan = #abele.plan<split [4, 1]>}} : {ONE} loc("square")
  %1 = nn.tanh %y : {ONE} loc("tanh")
  %2 = nn.sub %1, %0 {{group = 0}} : {TWO} loc("sub")
  %3 = nn.relu %2 {{group = 0}} : {ONE} loc("relu")
  func.return %3 : {T}
}}"""


def test_within_the_block_a_group_is_one_operation_with_the_plan_of_its_root():
    module = parse_module(TEXT, context())
    before = print_module(module)
    with FusedGroups(module):
        (op,) = (each for each in module.walk() if isinstance(each, FusedOp))
        assert not any(isinstance(each, nn.SquareOp | nn.SubOp) for each in module.walk())
        tanh = next(each for each in module.walk() if isinstance(each, nn.TanhOp))
        assert op.inputs[1] == tanh.result
        assert op.prev_op is tanh
        assert op.attributes["plan"] == PlanAttr(Plan((4, 1)))
        assert 'fused["square", "sub", "relu"]' in str(op.location)
    after = print_module(module)
    assert after.count("group = 0") == before.count("group = 0") == 3
    assert after.index("nn.tanh") < after.index("nn.square")


def test_a_new_plan_belongs_to_the_root():
    module = parse_module(TEXT, context())
    with FusedGroups(module):
        for op in module.walk():
            if isinstance(op, FusedOp):
                op.attributes["plan"] = PlanAttr(Plan((1, 6)))
    plans = {op.name: op.attributes["plan"] for op in module.walk() if "plan" in op.attributes}
    assert plans == {"nn.square": PlanAttr(Plan((1, 6)))}


def test_a_copy_becomes_a_group_of_its_own():
    module = parse_module(TEXT, context())
    with FusedGroups(module):
        (op,) = (each for each in module.walk() if isinstance(each, FusedOp))
        copy = op.clone()
        assert op.parent is not None
        op.parent.insert_op_after(copy, op)
        op.parent.last_op.operands = [copy.result]
    module.verify()
    block = next(op for op in module.walk() if isinstance(op, nn.SquareOp)).parent
    assert block is not None
    groups = nn.groups_of(block)
    assert [[op.name for op in g.members] for g in groups] == [
        ["nn.square", "nn.sub", "nn.relu"]
    ] * 2
    assert len({op.attributes["group"] for g in groups for op in g.members}) == 2


def test_a_plan_that_is_not_on_the_root_is_an_error():
    planned = "{group = 0, plan = #abele.plan<split [1, 1]>}"
    text = TEXT.replace("nn.relu %2 {group = 0}", f"nn.relu %2 {planned}")
    module = parse_module(text, context())
    with pytest.raises(
        InputError, match="nn.relu at relu: a plan, but nn.square at square is the root"
    ):
        FusedGroups(module).fuse()
