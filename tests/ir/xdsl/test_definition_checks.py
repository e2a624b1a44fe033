from collections.abc import Callable, Iterator
from random import Random
from typing import Any, ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from xdsl.dialects.builtin import (
    DenseArrayBase,
    FunctionType,
    IntegerAttr,
    IntegerType,
    StringAttr,
    TensorType,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    AtLeast,
    AttrSizedOperandSegments,
    IRDLOperation,
    OpDef,
    RangeOf,
    VarConstraint,
    attr_def,
    base,
    eq,
    irdl_op_definition,
    operand_def,
    opt_attr_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import HasParent

from abele.ir.upstream import ModuleOp, VerifyException
from abele.ir.xdsl.definition_checks import speed_up_check
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import random_sketch


@irdl_op_definition
class Fixed(IRDLOperation):
    name = "test.fixed"
    first = operand_def(TensorType)
    second = operand_def(i32)
    result = result_def(eq(i1) | eq(i32))


@irdl_op_definition
class Between(IRDLOperation):
    name = "test.between"
    before = operand_def(i32)
    some = var_operand_def(TensorType)
    after = operand_def()
    results_ = var_result_def(base(IntegerType))


@irdl_op_definition
class Perhaps(IRDLOperation):
    name = "test.perhaps"
    one = opt_operand_def(i32)
    width = prop_def(IntegerAttr[IntegerType])
    sizes = opt_prop_def(DenseArrayBase.constr(i64))
    flag = opt_attr_def(UnitAttr)
    label = attr_def(StringAttr)


@irdl_op_definition
class Around(IRDLOperation):
    name = "test.around"
    body = region_def("single_block")
    traits = traits_def(HasParent(TestOp))


@irdl_op_definition
class Alike(IRDLOperation):
    name = "test.alike"
    T: ClassVar = VarConstraint("T", base(IntegerType))
    first = operand_def(T)
    result = result_def(T)


@irdl_op_definition
class Segmented(IRDLOperation):
    name = "test.segmented"
    first = var_operand_def(i32)
    second = var_operand_def(i32)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)


@irdl_op_definition
class Long(IRDLOperation):
    name = "test.long"
    some = var_operand_def(RangeOf(eq(i32)).of_length(AtLeast(2)))


CLASSES = (Fixed, Between, Perhaps, Around, Alike, Segmented, Long)

_types = st.sampled_from([i1, i32, i64, f32, TensorType(f32, [2])])
_attributes = st.sampled_from(
    [
        UnitAttr(),
        StringAttr("a"),
        IntegerAttr(1, i64),
        DenseArrayBase.from_list(i64, [1]),
        DenseArrayBase.from_list(i32, [1, 1]),
    ]
)
_names = st.sampled_from(["width", "sizes", "flag", "label", "operandSegmentSizes", "other"])


def error_of(check: Callable[[], object]) -> str | None:
    try:
        check()
    except (VerifyException, ValueError) as error:
        return str(error)
    return None


@pytest.mark.parametrize("cls", CLASSES)
@given(data=st.data())
def test_random_operations_get_the_same_verdict_and_message_as_from_xdsl(
    cls: Any, data: st.DataObject
):
    operands = TestOp(result_types=[data.draw(st.lists(_types, max_size=4))]).results
    blocks = [Block() for _ in range(data.draw(st.integers(0, 2)))]
    op = cls.create(
        operands=operands,
        result_types=data.draw(st.lists(_types, max_size=2)),
        properties=data.draw(st.dictionaries(_names, _attributes, max_size=3)),
        attributes=data.draw(st.dictionaries(_names, _attributes, max_size=2)),
        regions=[Region(blocks)] * data.draw(st.integers(0, 1)),
    )
    if data.draw(st.booleans()):
        TestOp(regions=[Region(Block([op]))])
    definition = cls.get_irdl_definition()
    vars(definition).pop("verify", None)
    before = error_of(lambda: definition.verify(op))
    speed_up_check(cls)
    assert error_of(lambda: definition.verify(op)) == before


@pytest.mark.parametrize(("cls", "quick"), [(Fixed, True), (Alike, False), (Long, False)])
def test_definitions_that_constrain_more_than_numbers_and_kinds_are_left_to_xdsl(
    cls: Any, quick: bool
):
    speed_up_check(cls)
    assert ("verify" in vars(cls.get_irdl_definition())) == quick


def _spoilt(op: Operation) -> Iterator[Operation]:
    """An operation's copies with something wrong, perhaps."""
    odd: Attribute = StringAttr("odd")
    for name in op.properties:
        for properties in (
            {k: v for k, v in op.properties.items() if k != name},
            {**op.properties, name: odd},
        ):
            yield _like(op, properties=properties)
    yield _like(op, properties={**op.properties, "none_of_its": odd})
    yield _like(op, operands=op.operands[1:])
    yield _like(op, operands=[*op.operands, *TestOp(result_types=[i64]).results])
    yield _like(op, regions=[Region()])
    yield _like(op, result_types=[*op.result_types, i64])
    yield _like(op, result_types=[f32 for _ in op.result_types])


def _like(op: Operation, **other: Any) -> Operation:
    same = {"operands": op.operands, "result_types": op.result_types, "properties": op.properties}
    return type(op).create(**(same | other))


def test_damaged_programs_get_the_same_message_as_from_xdsl():
    operators = default_operators()
    found = 0
    for seed in range(12):
        for op in build(random_sketch(Random(seed)), operators).module.walk():
            definition = op.get_irdl_definition() if isinstance(op, IRDLOperation) else None
            if definition is None or op.regions:
                continue
            speed_up_check(type(op))
            for each in (op, *_spoilt(op)):
                expected = error_of(lambda each=each, d=definition: OpDef.verify(d, each))
                assert error_of(lambda each=each, d=definition: d.verify(each)) == expected
                found += expected is not None
    assert found > 150


def test_calls_get_the_same_message_as_from_xdsl_while_functions_change():
    number = TestOp(result_types=[i32])
    callee = FuncOp.external("callee", [i32], [i32])
    calls = [
        CallOp("callee", number.results, [i32]),
        CallOp("callee", [], [i32]),
        CallOp("callee", number.results, [i64]),
        CallOp("other", number.results, [i32]),
    ]
    module = ModuleOp([callee, FuncOp("main", ([], []), Region(Block([number, *calls])))])
    definition = CallOp.get_irdl_definition()
    speed_up_check(CallOp)

    def wrong() -> list[bool]:
        found = [error_of(lambda op=op: definition.verify(op)) for op in calls]
        slowly = [error_of(lambda op=op: OpDef.verify(definition, op)) for op in calls]
        assert found == slowly
        return [each is not None for each in found]

    assert wrong() == [False, True, True, True]
    callee.properties["sym_name"] = StringAttr("other")
    assert wrong() == [True, True, True, False]
    callee.properties["function_type"] = FunctionType.from_lists([i32], [i64])
    assert wrong() == [True, True, True, True]
    callee.detach()
    module.body.block.add_op(FuncOp.external("callee", [i32], [i64]))
    assert wrong() == [True, True, False, True]
