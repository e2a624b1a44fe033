"""Evaluates one operation of nn on arrays, by its structure, its moves or its parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects.control import YieldOp
from ...dialects.dtypes import numpy_dtype
from ...dialects.nn import CastOp, ConstantOp
from ...dialects.structured import Composite, Movement, Reinterpretation, Structured
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import Builder, InsertPoint
from ..codelets.conversion import Doubles, converted
from ..evaluate.users_levels import EVALUATORS, computed
from .gather import Array
from .moves import evaluate_moves
from .structure import evaluate_structure, structure_value

MEANINGLESS = (
    "cannot be lowered: define core_structure, moves or parts, or add a rule that replaces it "
    "before nn ends"
)
"""The problem with an operation of nn that can neither be run nor be lowered."""


class Meaningless(InputError):
    """An operation of nn can neither be run nor be lowered.

    Attributes:
        op: the operation.
    """

    def __init__(self, op: Operation) -> None:
        super().__init__(f"{op.name} at {place(op)}: {MEANINGLESS}")
        self.op = op


def tensor_kind(type_: Attribute) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """The shape and dtype of a type, which may be a scalar type."""
    if isinstance(type_, TensorType):
        tensor = cast("TensorType[Attribute]", type_)
        return tuple(tensor.get_shape()), numpy_dtype(tensor.element_type)
    return (), numpy_dtype(type_)


def evaluate_operation(
    op: Operation,
    operands: Sequence[Array],
    accumulator: np.dtype[Any] | None = None,
    result: int = 0,
) -> tuple[Array, Doubles]:
    """One result of an operation on some operands, not rounded, and its error bound.

    Moves and reshapes are exact. Raises ValueError for a composite, whose parts have bounds of
    their own, and for any other operation without a structure.

    Args:
        accumulator: the dtype of sums.
        result: the index of the result.
    """
    given = op.results[result].type if op.results else None
    shape, dtype = ((), np.dtype(np.float32)) if given is None else tensor_kind(given)
    if isinstance(op, Structured):
        return evaluate_structure(op.structure(), operands, dtype, shape, accumulator, result)
    if isinstance(op, Movement | Reinterpretation):
        value = operation_value(op, operands)
        return value, np.zeros(value.shape)
    hint = "decompose it first" if isinstance(op, Composite) else "it has no structure"
    raise ValueError(f"{op.name}: no bound; {hint}")


def operation_value(op: Operation, operands: Sequence[Array], result: int = 0) -> Array:
    """One result of a constant, a structured operation, a movement or a reshape, rounded once.

    Raises Meaningless for any other operation.

    Args:
        result: the index of the result.
    """
    if isinstance(op, ConstantOp):
        return op.value.array
    shape, dtype = tensor_kind(op.results[result].type)
    if isinstance(op, CastOp):
        # float64 would give the same bits, but it takes three times the memory.
        return converted(operands[0], dtype)
    if isinstance(op, Structured):
        return converted(structure_value(op.structure(), operands, dtype, shape, result), dtype)
    if isinstance(op, Movement):
        return evaluate_moves(op.moves(), operands, shape, dtype)
    if isinstance(op, Reinterpretation):
        return operands[0].reshape(shape)
    if op.name in EVALUATORS:
        return computed(op, operands, [tensor_kind(each.type) for each in op.results])[result]
    raise Meaningless(op)


def parts_of(op: Operation) -> tuple[Block, tuple[int, ...]]:
    """The parts of a composite, in a block of their own that yields the results.

    Returns the block, which has one argument per distinct operand, and for each argument the index
    of its operand. The module of the composite does not change.
    """
    assert isinstance(op, Composite)
    first = {operand: i for i, operand in reversed(tuple(enumerate(op.operands)))}
    distinct = sorted(first, key=lambda operand: first[operand])
    block = Block(arg_types=[operand.type for operand in distinct])
    mapper: dict[SSAValue, SSAValue] = dict(zip(distinct, block.args, strict=True))
    copy = op.clone(mapper)
    assert isinstance(copy, Composite)
    block.add_op(copy)
    values = copy.decompose(Builder(InsertPoint.at_end(block)))
    block.add_op(YieldOp(*values))
    copy.detach()
    copy.erase()
    return block, tuple(first[operand] for operand in distinct)
