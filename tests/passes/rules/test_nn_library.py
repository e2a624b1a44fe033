"""What guards on the operations of nn promise."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import TensorType, f16, f32, i8, i32
from xdsl.ir import Attribute, Block

from abele.dialects import nn
from abele.passes.rules.nn_library import unsigned


@pytest.mark.parametrize("element", [f16, f32, i8, i32])
def test_only_floats_are_known_to_be_unsigned_since_integers_wrap_around(element: Attribute):
    block = Block(arg_types=[TensorType(element, [4])])
    block.add_op(magnitude := nn.AbsOp(block.args[0]))
    block.add_op(square := nn.SquareOp(block.args[0]))
    block.add_op(total := nn.AddOp(magnitude.result, square.result))
    for op in (magnitude, square, total):
        assert unsigned(op.result) == (element in (f16, f32))
    assert not unsigned(block.args[0])
