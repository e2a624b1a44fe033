import pytest
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f16, f32, i32
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from abele.dialects import nn
from abele.dialects.nn.chain import composed
from abele.dialects.nn.elementwise import broadcast_space
from abele.dialects.structured import Stage
from abele.ir.geometry.space import AxisMap
from abele.ir.text import parse_module, print_module

from ...strategies import context


def t(*shape: int, of: Attribute = f32) -> TensorType:
    return TensorType(of, shape)


def values(*types: TensorType) -> list[SSAValue]:
    return list(Block(arg_types=types).args)


def conv(groups: int = 1) -> nn.ConvOp:
    return nn.ConvOp(*values(t(2, 6, 5, 5), t(4, 6 // groups, 3, 3)), groups=groups)


def block_of(*ops: Operation) -> Block:
    block = Block()
    block.add_ops(ops)
    return block


def members(block: Block) -> list[list[str]]:
    return [[op.name for op in group.members] for group in nn.groups_of(block)]


def test_a_group_is_a_root_and_what_follows_it():
    x, y, b = values(t(2, 3), t(3), t(2, 1))
    add = nn.AddOp(x, y)
    mul = nn.MulOp(add.result, b)
    relu = nn.ReluOp(mul.result)
    nn.join(0, (add, mul, relu))
    (group,) = nn.groups_of(block_of(add, mul, relu))
    assert (group.root, group.result, group.operands) == (add, relu.result, (x, y, b))
    assert group.stages == group.structure.body.then == (Stage("mul"), Stage("relu"))
    assert group.structure.unchained == add.structure()
    assert group.structure.space.operands[2].axes == (AxisMap(2, ((0, 1),)), AxisMap(1))


def test_a_member_may_read_any_member_before_it_and_one_of_them_twice():
    x, y = values(t(2, 3), t(3))
    neg = nn.NegOp(x)
    gate = nn.SigmoidOp(neg.result)
    swish = nn.MulOp(neg.result, gate.result)
    twice = nn.AddOp(swish.result, swish.result)
    last = nn.DivOp(y, twice.result)
    ops = (neg, gate, swish, twice, last)
    nn.join(0, ops)
    (group,) = nn.groups_of(block_of(*ops))
    assert group.stages == (
        Stage("sigmoid"),
        Stage("mul", reads=(0, 1)),
        Stage("add", reads=(2, 2)),
        Stage("div", at=1),
    )
    assert group.operands == (x, y)


def test_a_group_changes_no_text_but_its_attributes_and_reads_back():
    block = Block(arg_types=[t(2, 3), t(3)])
    add = nn.AddOp(*block.args)
    relu = nn.ReluOp(add.result)
    nn.join(3, (add, relu))
    block.add_ops([add, relu, func.ReturnOp(relu.result)])
    main = func.FuncOp("main", ([v.type for v in block.args], [relu.result.type]), Region(block))
    text = print_module(ModuleOp([main]))
    assert "nn.relu %2 {group = 3 : i64} : (tensor<2x3xf32>)" in text
    read = parse_module(text, context())
    assert print_module(read) == text
    assert members(next(op for op in read.walk() if isinstance(op, func.FuncOp)).body.block) == [
        ["nn.add", "nn.relu"]
    ]


def test_a_group_that_lost_a_member_or_gained_a_reader_is_none():
    (x,) = values(t(2, 3))
    neg = nn.NegOp(x)
    between = nn.AbsOp(neg.result)
    relu = nn.ReluOp(between.result)
    nn.join(0, (neg, relu))
    assert members(block_of(neg, between, relu)) == []
    nn.join(0, (neg, between, relu))
    block = relu.parent
    assert block is not None
    assert members(block) == [["nn.neg", "nn.abs", "nn.relu"]]
    block.add_op(nn.ExpOp(neg.result))
    assert members(block) == []


def test_copies_of_a_group_are_groups_of_their_own():
    (x,) = values(t(2, 3))
    ops: list[Operation] = []
    for _ in range(2):
        neg = nn.NegOp(x)
        ops += [neg, nn.ReluOp(neg.result)]
    nn.join(0, ops)
    assert members(block_of(*ops)) == [["nn.neg", "nn.relu"]] * 2


@pytest.mark.parametrize(
    ("shape", "viewed"), [((4, 1, 1), (2, 2, 1, 1)), ((2, 1, 3, 3), (2, 1, 3, 3)), ((), ())]
)
def test_a_further_operand_is_viewed_like_the_result(shape, viewed):
    space = conv(groups=2).structure().space
    result = (2, 4, 3, 3)
    own = broadcast_space((shape,), result)
    access = composed(own.operands[0], own.results[0], result, space.results[0])
    assert access.shape == viewed
    assert access.dims() <= space.results[0].dims()


def test_functions_follow_floats_of_structured_operations_only():
    whole = nn.AddOp(*values(t(3, of=i32), t(3, of=i32)))
    compare = nn.LessOp(*values(t(3), t(3)))
    cast, moved = nn.CastOp(*values(t(3)), f16), nn.TransposeOp(*values(t(3)), [0])
    assert nn.can_chain(conv())
    assert not any(map(nn.can_chain, (whole, compare, cast, moved)))


def test_elementwise_operations_can_follow():
    x, b, row = values(t(2, 3), t(2, 3), t(3))
    assert nn.stage_of(nn.ReluOp(x), 0) == Stage("relu")
    assert nn.stage_of(nn.ClipOp(x, 0, 6), 0) == Stage("clip", (0.0, 6.0))
    assert nn.stage_of(nn.AddOp(x, b), 0) == nn.stage_of(nn.AddOp(b, x), 1) == Stage("add")
    assert nn.stage_of(nn.SubOp(b, x), 1) == Stage("sub", at=1)
    assert nn.stage_of(nn.MulOp(row, x), 1) == Stage("mul")


def test_what_enlarges_a_value_or_has_other_elements_cannot_follow():
    x, row, n = values(t(2, 3), t(3), t(2, 3, of=i32))
    none = [
        (nn.AddOp(row, x), 0),
        (nn.ModOp(x, row), 0),
        (nn.TanOp(x), 0),
        (nn.LessOp(x, row), 0),
        (nn.NegOp(n), 0),
        (nn.CastOp(x, f16), 0),
        (conv(), 0),
    ]
    assert [nn.stage_of(op, at) for op, at in none] == [None] * len(none)
