"""Properties of operations that are generated from their definitions alone."""

from random import Random

import pytest
from xdsl.dialects.builtin import StringAttr, TensorType, f16, f32, i1
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def

from abele.dialects import nn
from abele.dialects.nn.base import INTEGER
from abele.ir.rules.vocabulary import Vocabulary
from abele.ir.unmet import Unmet
from abele.ir.upstream import VerifyException
from abele.tools.driver.context import new_context
from abele.tools.testing.generators.instances import Instances

SIZES = (1, 2, 3, 5)
INSTANCES = Instances(Vocabulary(new_context()))
MADE = [cls for cls in nn.NN.operations if cls not in nn.STATE]


@pytest.mark.parametrize("cls", MADE, ids=lambda cls: cls.name)
def test_operations_of_every_class_are_made(cls: type[Operation]):
    random = Random(0)
    made = [INSTANCES.make(cls, random, SIZES) for _ in range(20)]
    found = [op for op in made if op is not None]
    assert len(found) >= 15
    assert len({str([v.type for v in (*op.operands, *op.results)]) for op in found}) > 5
    for op in found:
        op.verify()


def test_an_operation_does_not_depend_on_earlier_ones():
    fresh = Instances(Vocabulary(new_context()))
    for cls in (nn.ConvOp, nn.SliceOp, nn.AddOp):
        first = fresh.make(cls, Random(7), SIZES)
        INSTANCES.make(nn.PadOp, Random(1), SIZES)
        second = INSTANCES.make(cls, Random(7), SIZES)
        assert first is not None
        assert second is not None
        assert str([v.type for v in first.operands]) == str([v.type for v in second.operands])
        assert first.properties == second.properties


def test_a_given_operand_is_one_of_the_operands():
    given = TensorType(f16, [3, 5])
    for cls in (nn.MatMulOp, nn.SubOp, nn.TransposeOp):
        assert INSTANCES.takes(cls, given)
        op = INSTANCES.make(cls, Random(3), SIZES, given)
        assert op is not None
        assert given in [v.type for v in op.operands]


def test_takes_is_false_for_operands_that_a_class_refuses():
    assert not INSTANCES.takes(nn.ConvOp, TensorType(f32, [3, 5]))
    assert not INSTANCES.takes(nn.LogicalNotOp, TensorType(f32, [3, 5]))
    assert INSTANCES.takes(nn.LogicalNotOp, TensorType(i1, [3, 5]))


def test_slices_may_run_backwards_and_padding_may_be_negative():
    random = Random(0)
    slices = [INSTANCES.make(nn.SliceOp, random, SIZES) for _ in range(200)]
    pads = [INSTANCES.make(nn.PadOp, random, SIZES) for _ in range(200)]
    assert any(min(nn.values_of(op.steps), default=1) < 0 for op in slices if op)
    assert any(min(nn.values_of(op.low), default=0) < 0 for op in pads if op)


@irdl_op_definition
class TopOp(IRDLOperation):
    """The largest elements of the last axis."""

    name = "mine.top"
    operand = operand_def(TensorType)
    count = prop_def(INTEGER)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """As many as asked for, of those there are."""
        shape = nn.shape_of(self.operand)
        if not shape or not 1 <= self.count.value.data <= shape[-1]:
            raise VerifyException("count; need one of those there are")
        if nn.tensor((*shape[:-1], self.count.value.data), f32) != self.result.type:
            raise VerifyException("result; need as many")


def test_an_operation_without_type_inference_is_made():
    op = INSTANCES.make(TopOp, Random(0), SIZES)
    assert op is not None
    op.verify()


def test_operations_without_operands_are_not_made():
    assert INSTANCES.make(nn.ConstantOp, Random(0), SIZES) is None


def worded(words: str) -> type[Operation]:
    """A class of operations with two conditions, whose messages are words."""

    @irdl_op_definition
    class WordedOp(IRDLOperation):
        """One of two modes, on equal types."""

        name = "mine.worded"
        operand = operand_def(TensorType)
        mode = prop_def(StringAttr)
        result = result_def(TensorType)

        def verify_(self) -> None:
            """Check the mode, then the type."""
            if self.mode.data not in ("up", "down"):
                raise Unmet(f"{words} {self.mode.data}", "mode", ("up", "down"))
            for what, size in (("rank", 2), ("width", 3)):
                if what == "rank" and len(nn.shape_of(self.operand)) < size:
                    raise Unmet(f"{words} {what}", what)
            if self.operand.type != self.result.type:
                raise VerifyException(f"{words}; need another type")

    return WordedOp


def test_the_wording_of_errors_does_not_change_the_operations_made():
    made = [
        [
            str(op and (op.operands[0].type, op.properties))
            for op in (Instances(Vocabulary(new_context())).make(cls, Random(n), SIZES)
                       for n in range(8))
        ]
        for cls in (worded("wrong"), worded("need any other words, one of these"))
    ]  # fmt: skip
    assert made[0] == made[1]
    assert "None" not in made[0]
    assert len(set(made[0])) > 3
