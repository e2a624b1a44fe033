from collections.abc import Callable

import pytest
from xdsl.dialects.builtin import FloatAttr, TensorType, f32, f64, i32
from xdsl.dialects.test import TestOp
from xdsl.ir import Attribute, Block, Operation, Region

from abele.ir.tensor_type import tensor_type
from abele.ir.xdsl.cached_by_form import cached_by_form


def counting() -> tuple[Callable[[Operation], int], list[Operation]]:
    asked: list[Operation] = []

    @cached_by_form
    def answer(op: Operation) -> int:
        asked.append(op)
        return len(asked)

    return answer, asked


def op_on(*kinds: Attribute, **attributes: Attribute) -> TestOp:
    operands = TestOp(result_types=kinds).results
    return TestOp(operands, result_types=[f32], attributes=attributes)


def test_operations_of_equal_form_share_one_computed_answer():
    answer, asked = counting()
    scale = FloatAttr(2.0, f64)
    first = op_on(f32, i32, scale=scale)
    assert [answer(first), answer(op_on(f32, i32, scale=scale)), answer(first.clone())] == [1] * 3
    assert asked == [first]


@pytest.mark.parametrize(
    "other",
    [
        op_on(i32, f32, scale=FloatAttr(0.0, f64)),
        op_on(f32, scale=FloatAttr(0.0, f64)),
        op_on(f32, i32, bias=FloatAttr(0.0, f64)),
        op_on(f32, i32),
    ],
)
def test_other_types_and_attributes_have_their_own_results(other: Operation):
    answer, _ = counting()
    assert answer(op_on(f32, i32, scale=FloatAttr(0.0, f64))) == 1
    assert answer(other) == 2


def test_a_reused_address_of_a_dead_type_gives_no_stale_answer():
    answer, _ = counting()
    answers = [answer(op_on(TensorType(f32, [n]))) for n in range(200)]
    assert answers == list(range(1, 201))


def test_answers_are_not_cached_without_operands_or_with_regions():
    answer, asked = counting()
    for op in (TestOp(result_types=[f32]), TestOp(op_on(f32).results, regions=[Region(Block())])):
        answer(op)
        answer(op)
    assert len(asked) == 4


def test_an_error_is_not_cached():
    asked: list[Operation] = []

    @cached_by_form
    def refuse(op: Operation) -> int:
        asked.append(op)
        raise ValueError("no")

    op = op_on(tensor_type(f32, (2,)))
    for _ in range(2):
        with pytest.raises(ValueError, match="no"):
            refuse(op)
    assert len(asked) == 2
