"""Sorts, and the largest elements of rows.

nn sorts by one key, and keeps the order of equal elements. A sort by several keys sorts by the last
key first. A comparison that is no order by keys is made of all pairs of elements.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isnan, prod

import numpy as np
from xdsl.dialects.builtin import i1, i8, i32
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ...dialects import chlo, nn, stablehlo
from ...ir.support.number_kinds import is_floating
from .conversion import Lower, ToNn
from .elementwise import in_total_order
from .integers import dtype_of
from .stored_types import computed_wide

MOST_PAIRS = 1 << 22
"""The most pairs of elements that a sort by any comparison compares. Assumed: more take too much
memory."""


@dataclass(frozen=True)
class _Key:
    """A key of an order.

    Attributes:
        operand: which operand of the sort it is.
        descending: whether the largest comes first.
        total: whether the two zeros, and NaNs of different signs, have places of their own.
    """

    operand: int
    descending: bool
    total: bool


def _sort(op: stablehlo.SortOp, new: ToNn) -> Sequence[SSAValue]:
    places = [i for i, each in enumerate(op.inputs) if _counts(each, op.axis)]
    return sorted_by(new, new.operands(op), op.axis, op.comparator, places)


def _counts(value: SSAValue, axis: int) -> bool:
    """Whether the elements of a tensor are their places along an axis."""
    made = value.owner
    return isinstance(made, stablehlo.IotaOp) and made.axis == axis


def sorted_by(
    new: ToNn,
    operands: Sequence[SSAValue],
    axis: int,
    comparison: Region,
    places: Sequence[int] = (),
) -> list[SSAValue]:
    """Values of nn in the order of a comparison along an axis. Equal elements keep their order.

    Args:
        operands: of one shape.
        comparison: takes two elements of each.
        places: the operands whose elements are their places along the axis.
    """
    keys = _keys(comparison.block)
    if keys is None:
        return _by_counting(new, operands, axis, comparison)
    (first, *others) = keys
    plain = not first.total and first.operand == 0
    if len(operands) == 1 and not others and plain:
        return [new.add(nn.SortOp(operands[0], axis, descending=first.descending))]
    order: SSAValue | None = None
    for key in reversed(keys):
        value = _comparable(new, operands[key.operand], total=key.total)
        if order is not None:
            value = new.add(nn.GatherAlongOp(value, order, axis))
        found = new.add(nn.SortIndicesOp(value, axis, descending=key.descending))
        order = found if order is None else new.add(nn.GatherAlongOp(order, found, axis))
    assert order is not None
    return [
        new.cast(order, nn.element_of(each))
        if i in places
        else new.add(nn.GatherAlongOp(each, order, axis))
        for i, each in enumerate(operands)
    ]


def _comparable(new: ToNn, value: SSAValue, *, total: bool) -> SSAValue:
    """A value that nn.sort_indices orders as a key."""
    if nn.element_of(value) == i1:
        return new.cast(value, i8)
    return in_total_order(new, value) if total and is_floating(dtype_of(value)) else value


def _by_counting(
    new: ToNn, operands: Sequence[SSAValue], axis: int, comparison: Region
) -> list[SSAValue]:
    """A sort by any comparison: each element goes to the number of those that come before it.

    Neither of two elements comes before the other, by the comparison, if both or none do; then the
    first one comes first.
    """
    shape = nn.shape_of(operands[0])
    size, rank = shape[axis], len(shape)
    if prod(shape) * size > MOST_PAIRS:
        raise new.unsupported(
            f"an order by this comparison of {size} elements",
            f"need comparisons of operands, one after another, or at most {MOST_PAIRS} pairs",
        )
    around = [n for a, n in enumerate(shape) if a != axis]
    last = [a for a in range(rank) if a != axis] + [axis]
    moved = [new.transpose(each, last) for each in operands]
    here = [new.reshape(each, (*around, size, 1)) for each in moved]
    there = [new.reshape(each, (*around, 1, size)) for each in moved]
    # Whether the element along the last axis comes before the one along the axis before, and back.
    (before,) = new.applied(comparison, _paired(there, here))
    (after,) = new.applied(comparison, _paired(here, there))
    pairs = (*around, size, size)
    before, after = new.expand(before, pairs), new.expand(after, pairs)
    first = new.constant(np.tri(size, k=-1, dtype=np.bool_))
    comes = new.select(new.add(nn.EqualOp(before, after)), new.expand(first, pairs), before)
    place = new.add(nn.ReduceOp(new.cast(comes, i32), "sum", [rank]))
    made = [new.add(nn.UpdateOp(each, place, each, "last", rank - 1)) for each in moved]
    return [new.transpose(each, [last.index(a) for a in range(rank)]) for each in made]


def _paired(first: Sequence[SSAValue], second: Sequence[SSAValue]) -> list[SSAValue]:
    """The arguments of a comparison: both elements of each operand, one operand after the other."""
    return [each for pair in zip(first, second, strict=True) for each in pair]


# What a comparison says


def _keys(block: Block) -> list[_Key] | None:
    """The keys of a lexicographic order, the most important one first; None for any other
    function.
    """
    end = block.last_op
    assert end is not None
    return _keys_of(end.operands[0], block, len(block.args) // 2)


def _keys_of(value: SSAValue, block: Block, most: int) -> list[_Key] | None:
    """The keys of a truth value in the block.

    Args:
        most: the largest number of keys. More than operands decide nothing.
    """
    made = value.owner
    if not most:
        return None
    if isinstance(made, stablehlo.CompareOp):
        found = _compared(made, ("LT", "GT"), block)
        return None if found is None else [found]
    if not isinstance(made, Operation):
        return None
    if made.name == "stablehlo.or":
        # a < b, or a == b and the rest.
        for first, second in (tuple(made.operands), tuple(made.operands)[::-1]):
            both = second.owner
            if isinstance(both, Operation) and both.name == "stablehlo.and":
                for same, rest in (tuple(both.operands), tuple(both.operands)[::-1]):
                    found = _first_then(first, same, rest, block, most)
                    if found is not None:
                        return found
    if isinstance(made, stablehlo.SelectOp):
        # The rest where a == b, else a < b.
        return _first_then(made.on_false, made.pred, made.on_true, block, most)
    return None


def _first_then(
    less: SSAValue, same: SSAValue, rest: SSAValue, block: Block, most: int
) -> list[_Key] | None:
    """The keys of an order that asks the rest only where two elements are the same."""
    first, equal = less.owner, same.owner
    if not isinstance(first, stablehlo.CompareOp) or not isinstance(equal, stablehlo.CompareOp):
        return None
    key, alike = _compared(first, ("LT", "GT"), block), _compared(equal, ("EQ",), block)
    if key is None or alike is None:
        return None
    if (key.operand, key.total) != (alike.operand, alike.total):
        return None
    others = _keys_of(rest, block, most - 1)
    return None if others is None else [key, *others]


def _compared(op: stablehlo.CompareOp, directions: Sequence[str], block: Block) -> _Key | None:
    """The operand of the sort of which a comparison compares two elements."""
    sides = [_argument(each, block) for each in (op.lhs, op.rhs)]
    direction = op.comparison_direction.data
    if None in sides or direction not in directions:
        return None
    (a, plain_a), (b, plain_b) = (each for each in sides if each is not None)
    if a // 2 != b // 2 or a == b or plain_a != plain_b:
        return None
    turned = a > b
    descending = (direction == "GT") != turned
    return _Key(a // 2, descending, op.is_total and plain_a)


def _argument(value: SSAValue, block: Block) -> tuple[int, bool] | None:
    """The number of the argument that a value is, and whether it is the argument itself.

    Otherwise it is the argument with one zero in place of both, and one NaN in place of all, which
    is how JAX compares floats. None for another value.
    """
    if isinstance(value, BlockArgument) and value.owner is block:
        return value.index, True
    unknown = value.owner
    if not isinstance(unknown, stablehlo.SelectOp) or not _is_constant(unknown.on_true, isnan):
        return None
    zero = unknown.on_false.owner
    if not isinstance(zero, stablehlo.SelectOp) or not _is_constant(zero.on_true, _is_zero):
        return None
    argument = zero.on_false
    if not isinstance(argument, BlockArgument) or argument.owner is not block:
        return None
    tests = unknown.pred.owner, zero.pred.owner
    if not all(isinstance(each, stablehlo.CompareOp) for each in tests):
        return None
    is_nan, is_zero = tests
    assert isinstance(is_nan, stablehlo.CompareOp)
    assert isinstance(is_zero, stablehlo.CompareOp)
    if is_nan.comparison_direction.data != "NE" or tuple(is_nan.operands) != (argument, argument):
        return None
    if is_zero.comparison_direction.data != "EQ" or is_zero.lhs is not argument:
        return None
    if not _is_constant(is_zero.rhs, _is_zero):
        return None
    return argument.index, False


def _is_zero(number: float) -> bool:
    return number == 0


def _is_constant(value: SSAValue, holds: Callable[[float], bool]) -> bool:
    """Whether a value is a constant without axes for which a test holds."""
    made = value.owner
    if not isinstance(made, stablehlo.ConstantOp) or made.array.ndim:
        return False
    return holds(float(made.array))


# The largest elements


def _top_k(op: chlo.TopKOp, new: ToNn) -> Sequence[SSAValue]:
    value, count = new.value(op.operand), op.k.value.data
    shape = nn.shape_of(value)
    axis = len(shape) - 1
    order = new.add(nn.SortIndicesOp(_comparable(new, value, total=True), axis, descending=True))
    indices = new.box(order, [0] * len(shape), (*shape[:-1], count))
    return [new.add(nn.GatherAlongOp(value, indices, axis)), indices]


TABLE: Mapping[str, Lower] = {
    "stablehlo.sort": computed_wide(_sort),
    "chlo.top_k": computed_wide(_top_k),
}
"""What lowers each operation, by name."""
