import pytest
from xdsl.dialects.builtin import IntegerAttr, TensorType, f32, i64
from xdsl.ir import Dialect
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def
from xdsl.utils.exceptions import VerifyException

from abele.dialects import exchange, nn, tile
from abele.ir.errors import InputError
from abele.ir.rules import Vocabulary, parse_rule_set
from abele.ir.rules.build import builds, create, verifies_alike
from abele.ir.rules.parse import parse_rules
from abele.ir.upstream import ModuleOp

from ...strategies import context
from .some_rules import LoopOp, OtherOp, SplitOp, module_of, rewritten, rules_of

T = TensorType(f32, [4, 8])
BODY = '%0 = nn.neg %a : T1 loc("neg1")  "try.keep"(%0) : (T) -> ()'


def values():
    (main,) = module_of("").body.block.ops
    return main.body.block.args


def test_type_inference_goes_before_the_default():
    a, _, c = values()
    op = create(nn.MatMulOp, [a, c], {}, {}, [], None, [T])
    assert op.results[0].type == TensorType(f32, [4, 6])
    assert create(nn.NegOp, [a], {}, {}, [], None, None).results[0].type == T


def test_a_type_that_cannot_be_inferred_is_the_default():
    a, *_ = values()
    assert create(OtherOp, [a], {}, {}, [], None, [T]).results[0].type == T
    with pytest.raises(ValueError, match="cannot be inferred; write it after a colon"):
        create(OtherOp, [a], {}, {}, [], None, None)


def test_types_that_a_rule_gives_go_before_inference():
    a, *_ = values()
    other = TensorType(f32, [1])
    assert create(SplitOp, [a], {}, {}, [], [other, T], [T, T]).result_types == (other, T)


def test_properties_and_attributes_are_as_given():
    a, *_ = values()
    count = IntegerAttr(3, i64)
    op = create(OtherOp, [a], {"count": count}, {"note": count}, [], [T], None)
    assert (op.properties, op.attributes) == ({"count": count}, {"note": count})


def test_operations_of_a_right_side_are_found_outermost_first():
    (rule,) = parse_rules("rule r: nn.neg(x) => let a = nn.abs(nn.relu(x)); nn.add(a, x)").rules
    assert [each.head for each in builds(rule)] == ["nn.abs", "nn.relu", "nn.add"]


def test_regions_move_once_and_are_copied_after():
    module = module_of(
        '%0 = "try.loop"(%a) ({ "try.keep"(%b) : (T) -> () }) : T1  "try.keep"(%0) : (T) -> ()'
    )
    inner = next(op for op in module.walk() if op.name == "try.keep")
    rules_of(
        "rule r: try.loop(x) as l => let b = try.block(x) like l : type(x); "
        "try.block(b) like l : type(x)"
    ).apply(module)
    blocks = [op for op in module.walk() if op.name == "try.block"]
    assert len(blocks) == 2
    assert inner.parent_op() is blocks[0]
    assert [op.name for op in blocks[1].regions[0].block.ops] == ["try.keep"]
    assert not any(isinstance(op, LoopOp) for op in module.walk())


def test_the_default_of_an_attribute_is_written():
    assert "rate = 5.000000e-01" in rewritten("rule r: nn.neg(x) => try.tuned(x)", BODY)


def test_an_operand_needs_one_result():
    with pytest.raises(InputError, match="try.split has 2 results, not one"):
        rewritten("rule r: nn.neg(x) => nn.abs(try.split(x) : (type(x), type(x)))", BODY)


def test_a_result_that_an_operation_does_not_have_is_refused():
    with pytest.raises(InputError, match=r"my.rw:1:\d+: rule r: q#1: nn.neg has 1 result; it was"):
        rewritten("rule r: nn.neg(x) => let q = nn.neg(x); q#1", BODY)


def test_a_value_that_its_attribute_cannot_hold_is_refused():
    with pytest.raises(InputError, match=r"my.rw:1:\d+: rule r: count of try.other cannot be 0.5"):
        rewritten(
            'rule r: nn.neg(x) {"hint" = h} => try.other(x) {count = h}',
            BODY.replace(": T1", "{hint = 0.5 : f64} : T1"),
        )


@irdl_op_definition
class CountOp(IRDLOperation):
    name = "try.count"
    of = prop_def(IntegerAttr)


@irdl_op_definition
class EvenOp(IRDLOperation):
    name = "try.even"
    of = prop_def(IntegerAttr)

    def verify_(self) -> None:
        if self.of.value.data % 2:
            raise VerifyException("odd")


@irdl_op_definition
class SameOp(IRDLOperation):
    name = "try.same"
    of = prop_def(IntegerAttr)


def test_operations_verify_alike_if_their_definitions_and_further_checks_do():
    assert verifies_alike(exchange.MoveOp, tile.CopyOp)
    assert verifies_alike(exchange.SuperstepOp, tile.SuperstepOp)
    assert not verifies_alike(exchange.VariableOp, tile.VariableOp)
    assert verifies_alike(CountOp, SameOp)
    assert not verifies_alike(EvenOp, CountOp)


def test_a_renamed_operation_is_checked_where_its_new_name_asks_for_more():
    made = context()
    made.load_dialect(Dialect("try", [CountOp, EvenOp]))
    text = "rule even: try.count() as op => try.even() like op"
    rules = parse_rule_set(text, Vocabulary(made))
    op = CountOp(properties={"of": IntegerAttr(3, i64)})
    with pytest.raises(InputError, match="cannot build try.even: .*odd"):
        rules.apply(ModuleOp([op]))
