"""The values that stay float32 in a program whose other floats are narrowed."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import TensorType, f32
from xdsl.ir import Operation, OpResult, SSAValue

from ...backends.codelets.conversion import float_limits
from ...backends.reference import is_evaluable
from ...dialects import nn
from ...dialects.coordinates import holds_exactly
from ...dialects.dtypes import numpy_dtype
from ...dialects.scalar_functions import FUNCTIONS, TO_CODE
from ...dialects.structured import Movement, Reinterpretation, Structured
from ...ir.support.number_kinds import is_floating, is_whole, whole_limits
from ...ir.upstream import ModuleOp, isa


def fixed_values(module: ModuleOp, stored: Collection[SSAValue]) -> set[SSAValue]:
    """The values that are the same in every run, except those that are larger than their operands.

    Args:
        stored: constants, and loads of states that no operation stores to.
    """
    fixed = set(stored)
    for op in module.walk():
        if op.operands and is_evaluable(op) and fixed.issuperset(op.operands):
            if _elements(op.results) <= _elements(op.operands):
                fixed.update(op.results)
    return fixed


def wide_operations(
    module: ModuleOp, fixed: Collection[SSAValue], narrow: np.dtype[Any]
) -> set[Operation]:
    """The operations of a module that compute in float32.

    These are:

    - sums;
    - casts of numbers that the narrow dtype cannot hold, and codes of a format;
    - operations that read only results of such sums and casts;
    - operations whose results may be far from their operands and are read by sums only;
    - elementwise operations that read a wide value;
    - the operations that compute fixed values.

    Some of them pass their wide result on to their users. The results of the others are rounded, so
    that one sum does not widen everything after it.

    Args:
        narrow: the dtype of the other floats.
    """
    ops = [op for op in module.walk() if _gives_wide(op)]
    computed = {op for op in ops if _is_sum(op) or _gives_numbers(op, narrow)}
    handing = set(computed)
    before = -1
    while len(handing) + len(computed) > before:
        before = len(handing) + len(computed)
        for op in ops:
            if op in computed and op in handing:
                continue
            sources = [v for v in op.operands if is_float32(v) and v not in fixed]
            wide = [isinstance(v, OpResult) and v.op in handing for v in sources] or [False]
            if all(wide) if _is_no_larger(op) else _is_pointwise(op) and any(wide):
                computed.add(op)
                if all(wide):
                    handing.add(op)
        for op in reversed(ops):
            uses = list(op.results[0].uses)
            if uses and (op in computed or _may_be_far(op)) and op not in handing:
                if all(use.operation in computed for use in uses):
                    computed.add(op)
                    handing.add(op)
    return computed | {v.op for v in fixed if isinstance(v, OpResult)}


def is_float32(value: SSAValue) -> bool:
    """Whether a value is a tensor of float32."""
    return isa(value.type, TensorType) and value.type.element_type == f32


def _gives_wide(op: Operation) -> bool:
    return len(op.results) == 1 and is_float32(op.results[0])


def _is_sum(op: Operation) -> bool:
    """Whether an operation sums its operand. Sums of products have an accumulator of their own."""
    if not isinstance(op, Structured):
        return False
    structure = op.structure()
    along = structure.body.along
    if along is not None:
        return along.name == "sum"
    return structure.body.combiner == "sum" and structure.own_operands == 1


def _gives_numbers(op: Operation, narrow: np.dtype[Any]) -> bool:
    """Whether an operation turns numbers into float32 that the narrow dtype may not hold.

    These are integers, coordinates and elements that are only stored. The bits of a random number,
    positions and codes are such integers.
    """
    if not isinstance(op, Structured):
        return False
    structure = op.structure()
    body = structure.body
    last = body.then[-1].function if body.then else body.function
    if last == TO_CODE:
        return True
    if body.function != "identity" or body.combiner is not None or body.along is not None:
        return False
    numbers = [each.limits for each in structure.space.coordinates if each.operand == 0]
    if any(not holds_exactly(narrow, *limits) for limits in numbers):
        return True
    operands = op.operands[: structure.own_operands]
    return any(not _holds_all(narrow, numpy_dtype(nn.element_of(value))) for value in operands)


def _holds_all(narrow: np.dtype[Any], other: np.dtype[Any]) -> bool:
    """Whether a dtype of floats holds all numbers of another dtype.

    Wider floats count as held, because narrowing is meant to round them.
    """
    if other.kind == "b" or (is_floating(other) and other.itemsize > 1):
        return True
    if is_whole(other):
        limits = whole_limits(other)
        return holds_exactly(narrow, limits.min, limits.max)
    own, its = float_limits(narrow), float_limits(other)
    return its.largest <= own.largest and its.smallest_subnormal >= own.smallest_subnormal


def _is_pointwise(op: Operation) -> bool:
    """Whether an operation computes each element of its result from one element per operand.

    An expand does not count: a wide number would widen a tensor of any size.
    """
    if not isinstance(op, Structured) or isinstance(op, nn.ExpandOp):
        return False
    body = op.structure().body
    return body.combiner is None and body.along is None


def _is_no_larger(op: Operation) -> bool:
    """Whether an operation moves elements without repeating them."""
    if not isinstance(op, Movement | Reinterpretation):
        return False
    return _elements(op.results) <= _elements(op.operands)


def _may_be_far(op: Operation) -> bool:
    """Whether an operation that only sums read should give them its result in float32.

    This holds for operations whose results may be far from their operands. Importers and composites
    assume the same.
    """
    if isinstance(op, nn.CastOp) or _is_no_larger(op):
        return True
    if not _is_pointwise(op):
        return False
    assert isinstance(op, Structured)
    body = op.structure().body
    return any(FUNCTIONS[name].far for name in (body.function, *(s.function for s in body.then)))


def _elements(values: Iterable[SSAValue]) -> int:
    return sum(prod(nn.shape_of(value)) for value in values)
