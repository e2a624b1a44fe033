import pytest
from xdsl.dialects.builtin import ModuleOp, i32
from xdsl.dialects.test import TestOp, TestPureOp
from xdsl.ir import Block, Operation

from abele.ir.conversion import Conversion, Patterns, replace_body
from abele.ir.errors import InputError
from abele.ir.provenance import named, origin


class Noted(Conversion):
    """A conversion that notes what it converts to nothing."""

    def __init__(self, patterns: Patterns["Noted"]) -> None:
        super().__init__(patterns, "wave")
        self.dropped: list[Operation] = []


def twice(op: Operation, new: Noted) -> None:
    new.add(TestOp(), "first")
    new.add(TestOp(), "second")


def nothing(op: Operation, new: Noted) -> None:
    new.dropped.append(op)


def test_the_first_row_that_an_operation_belongs_to_decides():
    patterns = Patterns[Noted]((TestPureOp, nothing), (Operation, twice), (TestOp, nothing))
    assert patterns.of(TestPureOp) is nothing
    assert patterns.of(TestOp) is twice
    assert Patterns[Noted]((TestPureOp, nothing)).of(TestOp) is None


def test_new_operations_have_the_location_of_the_one_that_they_come_from():
    new = Noted(Patterns((TestOp, twice)))
    op = TestOp()
    op.location = named("conv1")
    new.convert(op)
    assert [origin(each) for each in new.block.ops] == ["conv1/first", "conv1/second"]


def test_an_operation_without_a_pattern_is_refused():
    new, op = Noted(Patterns((TestPureOp, nothing))), TestOp()
    op.location = named("conv1")
    with pytest.raises(
        InputError,
        match=r"^test\.op at conv1: no conversion to wave; need a pass that replaces it first$",
    ):
        new.convert(op)


def test_a_body_is_converted_up_to_its_terminator():
    new = Noted(Patterns((TestOp, twice), (TestPureOp, nothing)))
    block = Block([TestOp(), TestPureOp(), TestOp()])
    assert new.convert_body(block) is block.last_op
    assert new.source is block.last_op
    assert len(new.block.ops) == 2
    assert new.dropped == [block.first_op.next_op]


def test_operations_go_into_another_block_meanwhile():
    new = Noted(Patterns((TestOp, twice)))
    op, inner = TestOp(), TestOp()
    new.source = op
    with new.into(Block()) as block:
        new.convert(inner)
    assert (len(block.ops), len(new.block.ops), new.source) == (2, 0, op)


def test_a_module_gets_another_body():
    module = ModuleOp([TestOp(result_types=[i32])])
    other = TestPureOp()
    replace_body(module, Block([other]))
    assert list(module.body.block.ops) == [other]
