import re

import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, UnitAttr, f16, f32, i32
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser
from xdsl.utils.exceptions import VerifyException

from abele.dialects import nn
from abele.dialects.abele import ChainAttr, Plan, PlanAttr
from abele.dialects.structured import Stage, Structured
from abele.ir.geometry.space import AxisMap
from abele.ir.provenance import named
from abele.ir.text import parse_module, print_module

from ..strategies import context


def t(*shape: int, of: Attribute = f32) -> TensorType:
    return TensorType(of, shape)


def values(*types: TensorType) -> list[SSAValue]:
    return list(Block(arg_types=types).args)


def conv(groups: int = 1) -> nn.ConvOp:
    return nn.ConvOp(*values(t(2, 6, 5, 5), t(4, 6 // groups, 3, 3)), groups=groups)


ADD_RELU = (Stage("add"), Stage("relu"))


def test_a_chain_is_printed_behind_the_operation_it_follows():
    op = nn.chained(conv(), (Stage("add"), Stage("clip", (0.0, 6.0))), values(t(4, 1, 1)))
    text = str(op)
    assert re.search(r"to \[0, 0\] then \[add, clip \[0.0, 6.0\]\] \(%\d\) : \(tensor<2x6", text)
    relu = nn.chained(nn.NegOp(*values(t(3))), (Stage("relu"),), ())
    assert re.search(r"nn.neg %\d then \[relu\] : \(tensor<3xf32>\) -> tensor<3xf32>", str(relu))
    assert "then" not in str(conv())


@pytest.mark.parametrize("op", [c for c in nn.CORE if issubclass(c, nn.ChainableOp)])
def test_every_operation_that_may_have_a_chain_says_so_in_its_text(op: type[nn.ChainableOp]):
    definition = op.get_irdl_definition()
    assert definition.operands[-1][0] == "extras"
    assert "custom<Chain>($then, $extras)" in (op.assembly_format or "")


def test_text_with_a_chain_reads_back_the_same():
    block = Block(arg_types=[t(2, 3), t(3), t(2, 1), t()])
    a, b, c, d = block.args
    stages = (Stage("sub", at=1), Stage("div"), Stage("tanh"))
    op = nn.chained(nn.AddOp(a, b), stages, (c, d))
    block.add_ops([op, func.ReturnOp(op.results[0])])
    main = func.FuncOp("main", ([v.type for v in block.args], [op.results[0].type]), Region(block))
    ctx = context()
    text = print_module(ModuleOp([main]))
    read = parse_module(text, ctx)
    read.verify()
    assert print_module(read) == text
    (again,) = (each for each in read.walk() if isinstance(each, nn.AddOp))
    assert (again.stages, len(again.extras), len(again.core_operands)) == (stages, 2, 2)


def test_the_structure_has_the_extras_of_the_chain_as_operands():
    x, y, b = values(t(2, 3), t(3), t(2, 1))
    structure = nn.chained(nn.AddOp(x, y), ADD_RELU, [b]).structure()
    assert structure.body.then == ADD_RELU
    assert structure.unchained == nn.AddOp(x, y).structure()
    assert structure.space.operands[2].axes == (AxisMap(2, ((0, 1),)), AxisMap(1))


@pytest.mark.parametrize(
    ("shape", "viewed"), [((4, 1, 1), (2, 2, 1, 1)), ((2, 1, 3, 3), (2, 1, 3, 3)), ((), ())]
)
def test_an_extra_operand_of_a_chain_is_viewed_like_the_result(shape, viewed):
    op = nn.chained(conv(groups=2), (Stage("mul"),), values(t(*shape)))
    assert isinstance(op, Structured)
    space = op.structure().space
    assert space.operands[2].shape == viewed
    assert space.operands[2].dims() <= space.results[0].dims()


@pytest.mark.parametrize(
    ("stages", "extras", "message"),
    [
        (ADD_RELU, (), r"chain \[add, relu\] with 0 operands of its own; need 1"),
        (ADD_RELU, (t(3), t(3)), r"with 2 operands of its own; need 1"),
        ((), (t(3),), r"chain \[\] with 1 operands of its own; need 0"),
        (ADD_RELU, (t(3, of=f16),), "chain operand 0 has elements f16; need f32"),
        (ADD_RELU, (t(2, 3),), r"operand 0 of shape \[2, 3\] enlarges the result of \[3\]"),
        (ADD_RELU, (t(2),), r"axis -1 has sizes 2 and 3; need equal sizes, or 1"),
    ],
)
def test_a_chain_that_does_not_fit_says_why(stages, extras, message):
    with pytest.raises(VerifyException, match=message):
        nn.chained(nn.ExpOp(*values(t(3))), stages, values(*extras))


def test_only_floats_have_chains():
    whole = nn.AddOp(*values(t(3, of=i32), t(3, of=i32)))
    with pytest.raises(VerifyException, match="chain relu on elements i32; need floats"):
        nn.chained(whole, (Stage("relu"),), ())
    compare = nn.LessOp(*values(t(3), t(3)))
    with pytest.raises(VerifyException, match="chain relu on elements i1; need floats"):
        nn.chained(compare, (Stage("relu"),), ())
    with pytest.raises(VerifyException, match="nn.cast: no functions can follow"):
        nn.chained(nn.CastOp(*values(t(3)), f16), (Stage("relu"),), ())
    assert nn.can_chain(conv())
    assert not any(map(nn.can_chain, (whole, compare, nn.TransposeOp(*values(t(3)), [0]))))


def test_chaining_keeps_everything_of_an_operation_except_its_plan():
    op = conv()
    op.location = named("conv1")
    op.attributes |= {"plan": PlanAttr(Plan((1,) * 7)), "mark": UnitAttr()}
    first = nn.chained(op, ADD_RELU, values(t(4, 1, 1)))
    more = nn.chained(first, (Stage("sub", at=1),), values(t(3, 3)))
    assert isinstance(more, nn.ConvOp)
    assert more.stages == (*ADD_RELU, Stage("sub", at=1))
    assert more.location == op.location
    assert set(more.attributes) == {"mark"}
    assert more.properties.keys() == {*op.properties, "then"}
    assert more.parent is None


def test_elementwise_operations_are_stages_of_a_chain():
    x, b, row = values(t(2, 3), t(2, 3), t(3))
    assert nn.stage_of(nn.ReluOp(x), 0) == Stage("relu")
    assert nn.stage_of(nn.ClipOp(x, 0, 6), 0) == Stage("clip", (0.0, 6.0))
    assert nn.stage_of(nn.AddOp(x, b), 0) == nn.stage_of(nn.AddOp(b, x), 1) == Stage("add")
    assert nn.stage_of(nn.SubOp(b, x), 1) == Stage("sub", at=1)
    assert nn.stage_of(nn.MulOp(row, x), 1) == Stage("mul")


def test_an_operation_that_cannot_follow_in_a_chain_has_no_stage():
    x, row, n = values(t(2, 3), t(3), t(2, 3, of=i32))
    chain = nn.chained(nn.ReluOp(x), (Stage("exp"),), ())
    none = [
        (nn.AddOp(x, x), 0),
        (nn.AddOp(row, x), 0),
        (nn.DivOp(row, x), 1),
        (nn.ReciprocalOp(x), 0),
        (nn.LessOp(x, row), 0),
        (nn.NegOp(n), 0),
        (nn.CastOp(x, f16), 0),
        (chain, 0),
        (conv(), 0),
    ]
    assert [nn.stage_of(op, at) for op, at in none] == [None] * len(none)


def test_a_chain_is_an_attribute_of_its_stages():
    assert ChainAttr(ADD_RELU) == Parser(context(), "#abele.chain<add, relu>").parse_attribute()
