"""Equality of programs, including types."""

from xdsl.dialects.builtin import TensorType, f16, f32
from xdsl.dialects.test import TestOp

from abele.ir.equal import same_program
from abele.ir.upstream import ModuleOp


def module(element: object) -> ModuleOp:
    return ModuleOp([TestOp(result_types=[TensorType(element, [2])])])


def test_a_clone_is_the_same_program():
    one = module(f32)
    assert same_program(one, one.clone())


def test_another_type_of_a_result_is_another_program():
    assert module(f32).is_structurally_equivalent(module(f16))
    assert not same_program(module(f32), module(f16))
