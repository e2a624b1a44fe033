from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from xdsl.dialects.builtin import IntegerAttr, StringAttr, f32, i32, i64
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_attr_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import HasParent

from abele.dialects import nn, tile
from abele.ir.tensor_type import tensor_type
from abele.ir.upstream import ModuleOp, VerifyException
from abele.ir.verify import IllFormed, verify
from abele.ir.xdsl.verified_by_form import verified_by_form, verify_if_changed
from abele.tools.testing.generators.build import build, default_operators
from abele.tools.testing.generators.sketch import random_sketch

CHECKED: list[Operation] = []


class Counted(IRDLOperation):
    def verify_(self) -> None:
        CHECKED.append(self)
        if self.properties["size"] == IntegerAttr(0, i64):
            raise VerifyException("size 0")


@irdl_op_definition
class Local(Counted):
    name = "test.local"
    inputs = var_operand_def()
    size = prop_def(IntegerAttr)
    note = opt_attr_def(StringAttr)


@irdl_op_definition
class Undeclared(Counted):
    name = "test.undeclared"
    size = prop_def(IntegerAttr)


@irdl_op_definition
class Nesting(Counted):
    name = "test.nesting"
    size = prop_def(IntegerAttr)
    body = region_def()


@irdl_op_definition
class Nested(Counted):
    name = "test.nested"
    size = prop_def(IntegerAttr)
    traits = traits_def(HasParent(ModuleOp))


@irdl_op_definition
class InModule(Counted):
    name = "test.in_module"
    size = prop_def(IntegerAttr)
    traits = traits_def(HasParent(ModuleOp))


verified_by_form(Local, Nesting, InModule)


def size(n: int) -> dict[str, Attribute]:
    return {"size": IntegerAttr(n, i64)}


def local(kind: Attribute = f32) -> Local:
    return Local(operands=[TestOp(result_types=[kind]).results], properties=size(1))


def checks(op: Operation, times: int = 2) -> int:
    CHECKED.clear()
    for _ in range(times):
        verify_if_changed(op)
    return len(CHECKED)


def test_an_unchanged_operation_is_checked_once():
    assert checks(local()) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda op: op.properties.update(size(2)),
        lambda op: op.attributes.update(note=StringAttr("a")),
        lambda op: setattr(op, "operands", TestOp(result_types=[i32]).results),
        lambda op: setattr(op, "operands", ()),
    ],
)
def test_a_changed_operation_is_checked_again(change: Callable[[Any], None]):
    op = local()
    assert checks(op) == 1
    change(op)
    assert checks(op) == 1


def test_a_trait_that_looks_at_other_operations_checks_an_unchanged_operation_again():
    op = InModule(properties=size(1))
    ModuleOp([op])
    assert checks(op) == 1
    op.detach()
    TestOp(regions=[Region(Block([op]))])
    with pytest.raises(VerifyException, match="expects parent op"):
        verify_if_changed(op)


def test_a_copy_is_checked_by_itself():
    op = local()
    assert checks(op) == 1
    assert checks(op.clone()) == 1


def test_an_operation_that_became_wrong_is_refused_each_time():
    op = local()
    verify_if_changed(op)
    op.properties.update(size(0))
    for _ in range(2):
        with pytest.raises(VerifyException, match="size 0"):
            verify_if_changed(op)


def test_undeclared_classes_regions_and_traits_are_checked_each_time():
    assert checks(Undeclared(properties=size(1))) == 2
    assert checks(Nesting(properties=size(1), regions=[Region(Block())])) == 2
    nested = Nested(properties=size(1))
    assert ModuleOp([nested]).ops.first is nested
    assert checks(nested) == 2


def test_a_wrong_type_that_appears_after_a_pass_is_found():
    for seed in range(20):
        module = build(random_sketch(Random(seed)), default_operators()).module
        verify(module)
        op = next((op for op in module.walk() if isinstance(op, nn.ElementwiseOp)), None)
        if op is None:
            continue
        op.result._type = tensor_type(i64, (3, 1, 4, 1, 5))
        with pytest.raises(IllFormed):
            verify(module)


def test_a_superstep_is_checked_when_its_body_changes():
    step = tile.SuperstepOp("s", [tile.SyncOp("internal")])
    module = ModuleOp([step])
    verify(module)
    step.body.block.erase_op(step.body.block.ops.first)
    with pytest.raises(IllFormed):
        verify(module)
