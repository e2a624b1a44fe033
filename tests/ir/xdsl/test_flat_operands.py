"""Plain operands become one list; all others are left to xDSL."""

import pytest
from xdsl.dialects.builtin import f32
from xdsl.ir import Block

from abele.dialects import nn
from abele.ir.tensor_type import tensor_type
from abele.ir.xdsl.flat_operands import flat_operands

from ..rules.some_rules import FollowedOp

BLOCK = Block(arg_types=[tensor_type(f32, (3, 3))] * 3)
X, Y, Z = BLOCK.args
RELU = nn.ReluOp(X)


def test_values_and_lists_of_values_become_one_list():
    assert flat_operands(nn.AddOp, [X, RELU.result]) == [X, RELU.result]
    assert flat_operands(FollowedOp, [X, []]) == [X]
    assert flat_operands(FollowedOp, [X, [Z, X]]) == [X, Z, X]
    assert flat_operands(nn.GemmOp, [X, Y, (Z,)]) == [X, Y, Z]


@pytest.mark.parametrize(
    ("op_class", "given"),
    [
        (nn.AddOp, [X]),
        (nn.AddOp, [X, Y, []]),
        (nn.AddOp, [X, [Y]]),
        (nn.AddOp, [X, RELU]),
        (nn.AddOp, [X, None]),
        (FollowedOp, [X]),
        (FollowedOp, [X, [], []]),
        (FollowedOp, [[X], []]),
        (FollowedOp, [X, [RELU]]),
        (nn.GemmOp, [X, Y, [Z, Z]]),
        (nn.GemmOp, [X, Y, None]),
    ],
)
def test_other_kinds_of_operands_are_left_to_xdsl(op_class, given):
    assert flat_operands(op_class, given) is None


def test_xdsl_accepts_operations_as_values_and_reports_errors():
    assert list(nn.ReluOp(RELU).operands) == [RELU.result]
    with pytest.raises(ValueError, match="non-variadic .* 0 'lhs'"):
        nn.MatMulOp([X, Y], Z)
