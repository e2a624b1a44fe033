"""The lengths in integers that a program computes, such as the parts of a shape.

A model computes shapes with the same operators as anything else. What these operators do with
lengths is known at import, although the numbers are not: the sum of the elements of a shape is the
sum of its lengths.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import prod
from typing import Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import i1, i32
from xdsl.ir import OpResult, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_whole
from .lengths import (
    Atom,
    Length,
    Number,
    Quotient,
    as_length,
    is_equal,
    is_less,
    larger,
    simplest,
    smaller,
)
from .program_parts import Node, Program

MOST_ELEMENTS = 256
"""The most elements of a tensor whose elements are followed as lengths."""

Lengths: TypeAlias = NDArray[np.object_]
"""An array of integers and lengths; of truths, for a comparison."""


class Undecided(Exception):
    """An element depends on more than sums, products and quotients of lengths."""


def lengths_of(program: Program, value: SSAValue) -> Lengths | None:
    """The elements of a tensor of integers, as lengths; None if one of them is not known."""
    if value not in program.lengths:
        program.lengths[value] = _followed(program, value)
    return program.lengths[value]


def length_of(program: Program, value: SSAValue) -> int | Length | None:
    """The only element of a tensor, as a length; None if it is not known."""
    found = lengths_of(program, value)
    return None if found is None or found.size != 1 else found.reshape(-1)[0]


def number_in(program: Program, value: SSAValue, least: int, most: int) -> int | Length:
    """The length that a value holds: an i32 without axes, of which only bounds are known."""
    known = length_of(program, value)
    if known is not None:
        return known
    length = Length.of(Number[object](value, least, most))
    program.lengths[value] = _array(length, ())
    return length


def _array(element: object, shape: Sequence[int]) -> Lengths:
    found = np.empty(tuple(shape), np.object_)
    found[...] = element
    return found


def _followed(program: Program, value: SSAValue) -> Lengths | None:
    shape, dtype = nn.shape_of(value), numpy_dtype(nn.element_of(value))
    if value in program.sizes or prod(shape) > MOST_ELEMENTS:
        return None
    if not (is_whole(dtype) or dtype.kind == "b"):
        return None
    known = program.known(value)
    if known is not None:
        return known.astype(np.object_)
    if not isinstance(value, OpResult):
        return None
    counted = _count_of_true(program, value.op)
    if counted is not None:
        return _array(counted, shape)
    rule = RULES.get(type(value.op))
    if rule is None:
        return None
    operands = [lengths_of(program, each) for each in value.op.operands]
    given = [each for each in operands if each is not None]
    if len(given) < len(operands):
        return None
    try:
        return rule(value.op, given).reshape(shape)
    except Undecided:
        return None


# The number of true elements


def _count_of_true(program: Program, op: Any) -> Length | None:
    """The number of true elements of a tensor, if an operation counts them; None otherwise.

    Models count the elements of one mask several times, and use one number for another.
    """
    if not isinstance(op, nn.ReduceOp) or op.combiner.data != "sum":
        return None
    if len(nn.values_of(op.axes)) != len(nn.shape_of(op.operand)):
        return None
    mask = op.operand
    while isinstance(mask, OpResult) and isinstance(mask.op, nn.ReshapeOp | nn.CastOp):
        if nn.element_of(mask) == i1 and isinstance(mask.op, nn.CastOp):
            break
        mask = mask.op.operands[0]
    if nn.element_of(mask) != i1 or not is_whole(numpy_dtype(nn.element_of(op.operand))):
        return None
    # A number that a region of control flow computes is not to be had outside of it.
    for block in (program.main, program.body):
        if (block, mask) in program.counts:
            return program.counts[block, mask]
    found = Length.of(Number[object](op.result, 0, prod(nn.shape_of(mask))))
    program.counts[program.body, mask] = found
    return found


# Operations on lengths


Rule: TypeAlias = Callable[[Any, "list[Lengths]"], Lengths]
"""What an operation does with lengths: from the operation, and an array for each operand."""


def _each(function: Callable[..., object]) -> Rule:
    """An operation on the elements of arrays that broadcast."""

    def rule(op: Any, given: list[Lengths]) -> Lengths:
        del op
        spread = np.broadcast_arrays(*given)
        found = [function(*each) for each in zip(*(a.flat for a in spread), strict=True)]
        return _listed(found, spread[0].shape)

    return rule


def _listed(elements: Sequence[object], shape: Sequence[int]) -> Lengths:
    found = np.empty(len(elements), np.object_)
    found[:] = elements
    return found.reshape(tuple(shape))


def _sum(a: Any, b: Any) -> int | Length:
    return simplest(a + b)


def _difference(a: Any, b: Any) -> int | Length:
    return simplest(a - b)


def _product(a: Any, b: Any) -> int | Length:
    return simplest(a * b)


def _quotient(a: Any, b: Any) -> int | Length:
    """A quotient, rounded towards 0, which is down if the dividend is not negative."""
    if as_length(a).least < 0:
        raise Undecided
    if isinstance(b, Length):
        exact = as_length(a).divided(b) if b.least > 0 else None
        if exact is None:
            raise Undecided
        return simplest(exact)
    if b <= 0:
        raise Undecided
    return simplest(as_length(a) // b)


def _remainder(a: Any, b: Any) -> int | Length:
    return simplest(as_length(a) - as_length(_quotient(a, b)) * b)


def _negative(a: Any) -> int | Length:
    return simplest(-a)


def _decided(truth: bool | None) -> bool:
    if truth is None:
        raise Undecided
    return truth


def _less(a: Any, b: Any) -> bool:
    return _decided(is_less(a, b))


def _less_equal(a: Any, b: Any) -> bool:
    return not _decided(is_less(b, a))


def _greater(a: Any, b: Any) -> bool:
    return _decided(is_less(b, a))


def _greater_equal(a: Any, b: Any) -> bool:
    return not _decided(is_less(a, b))


def _equal(a: Any, b: Any) -> bool:
    return _decided(is_equal(a, b))


def _and(a: Any, b: Any) -> bool:
    return bool(a and b)


def _or(a: Any, b: Any) -> bool:
    return bool(a or b)


def _not(a: Any) -> bool:
    return not a


def _chosen(condition: Any, a: Any, b: Any) -> object:
    return a if condition else b


def _truth(a: Any) -> bool:
    return not _equal(a, 0)


def _whole(a: Any) -> object:
    return int(a) if isinstance(a, bool) else a


def _cast(op: Any, given: list[Lengths]) -> Lengths:
    return _each(_truth if nn.element_of(op.result) == i1 else _whole)(op, given)


def _gathered(op: Any, given: list[Lengths]) -> Lengths:
    table, indices = given
    numbers: list[Any] = list(indices.flat)
    size = table.shape[op.axis.value.data]
    if not all(isinstance(n, int) and -size <= n < size for n in numbers):
        raise Undecided
    at = np.array(numbers, np.int64).reshape(indices.shape)
    return np.take(table, at, op.axis.value.data)


def _slice(op: Any, given: list[Lengths]) -> Lengths:
    lists = (nn.values_of(each) for each in (op.starts, op.steps, op.sizes))
    places: list[NDArray[np.int64]] = [
        start + step * np.arange(size) for start, step, size in zip(*lists, strict=True)
    ]
    return given[0][np.ix_(*places)] if places else given[0]


def _reshaped(op: Any, given: list[Lengths]) -> Lengths:
    return given[0].reshape(nn.shape_of(op.result))


def _expanded(op: Any, given: list[Lengths]) -> Lengths:
    return np.broadcast_to(given[0], nn.shape_of(op.result))


def _transposed(op: Any, given: list[Lengths]) -> Lengths:
    return given[0].transpose(nn.values_of(op.permutation))


def _joined(op: Any, given: list[Lengths]) -> Lengths:
    return np.concatenate(given, op.axis.value.data)


MERGED: Mapping[str, Callable[[Any, Any], object]] = {
    "sum": _sum,
    "prod": _product,
    "max": larger,
    "min": smaller,
}
"""The operations that merge lengths, by combiner."""


def _reduced(op: Any, given: list[Lengths]) -> Lengths:
    (array,), axes = given, nn.values_of(op.axes)
    kept = [i for i in range(array.ndim) if i not in axes]
    count = prod(array.shape[i] for i in axes)
    if not count:
        raise Undecided
    rows: list[list[Any]] = array.transpose(*kept, *axes).reshape(-1, count).tolist()
    merge = MERGED[op.combiner.data]
    return _listed([reduce(merge, row) for row in rows], nn.shape_of(op.result))


RULES: Mapping[type[Any], Rule] = {
    nn.AddOp: _each(_sum),
    nn.SubOp: _each(_difference),
    nn.MulOp: _each(_product),
    nn.DivOp: _each(_quotient),
    nn.ModOp: _each(_remainder),
    nn.FmodOp: _each(_remainder),
    nn.NegOp: _each(_negative),
    nn.MaxOp: _each(larger),
    nn.MinOp: _each(smaller),
    nn.LessOp: _each(_less),
    nn.LessEqualOp: _each(_less_equal),
    nn.GreaterOp: _each(_greater),
    nn.GreaterEqualOp: _each(_greater_equal),
    nn.EqualOp: _each(_equal),
    nn.LogicalAndOp: _each(_and),
    nn.LogicalOrOp: _each(_or),
    nn.LogicalNotOp: _each(_not),
    nn.SelectOp: _each(_chosen),
    nn.CastOp: _cast,
    nn.ReshapeOp: _reshaped,
    nn.ExpandOp: _expanded,
    nn.TransposeOp: _transposed,
    nn.ConcatOp: _joined,
    nn.SliceOp: _slice,
    nn.GatherOp: _gathered,
    nn.ReduceOp: _reduced,
}
"""What operations do with lengths."""


# Lengths as values of the program


def emitted_length(node: Node, length: int | Length) -> SSAValue:
    """The value that holds a length in the run: an i32 without axes."""
    program, simple = node.program, simplest(length)
    if isinstance(simple, int):
        return node.emitted(np.array(simple, np.int32))
    key = program.body, simple
    if key not in program.held_lengths:
        value = node.reshape(node.cast(_computed(node, simple), i32), ())
        program.lengths[value] = _array(simple, ())
        program.held_lengths[key] = value
    return program.held_lengths[key]


def _computed(node: Node, length: Length) -> SSAValue:
    """The sum of the products of a length."""
    total: SSAValue | None = None
    ordered = sorted(length.terms, key=lambda term: (-len(term[0]), -term[1]))
    for factors, factor in ordered:
        if not factors:
            each = node.emitted(np.array(factor, np.int32))
        else:
            powers = [atom for atom, power in factors for _ in range(power)]
            values = [_held(node, atom) for atom in powers]
            each = reduce(lambda a, b: node.add(nn.MulOp(a, b)), values)
            if factor != 1:
                each = node.add(nn.MulOp(each, node.emitted(np.array(factor, np.int32))))
        total = each if total is None else node.add(nn.AddOp(total, each))
    assert total is not None, "0 is an integer"
    return total


def _held(node: Node, atom: Atom) -> SSAValue:
    """The value of a number."""
    if isinstance(atom, Number):
        return node.reshape(node.cast(cast("SSAValue", atom.value), i32), ())
    if isinstance(atom, Quotient):
        dividend, divisor = atom.dividend, atom.divisor
        # A quotient of the machine is rounded towards 0. This makes the dividend positive.
        more = max(-(dividend.least // divisor), 0)
        shifted = emitted_length(node, dividend + more * divisor)
        found = node.add(nn.DivOp(shifted, node.emitted(np.array(divisor, np.int32))))
        return node.add(nn.SubOp(found, node.emitted(np.array(more, np.int32)))) if more else found
    parts = sorted(atom.lengths, key=lambda each: each.bounds)
    return reduce(
        lambda a, b: node.add(nn.MaxOp(a, b)), [emitted_length(node, each) for each in parts]
    )
