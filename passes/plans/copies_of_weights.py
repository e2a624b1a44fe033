"""Constants whose elements a weight of the program holds too, and programs without such constants.

fold-constants makes them: a table of embeddings is read by a lookup and, transposed, by the product
that makes logits. The transposed table is folded into a constant of its own, which the tiles keep
as well. A product can read the table itself instead, in its own order: it has a flag for that. The
readers of a reshaped weight can read a reshape, which moves nothing.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from ...backends.codelets.conversion import Array
from ...dialects import nn
from ...dialects.dtypes import element_type
from ...dialects.home import home_of
from ...dialects.nn.group import GROUP
from ...dialects.settable import changing_states
from ...ir.provenance import locate
from ...ir.upstream import InsertPoint, ModuleOp, Rewriter

SMALLEST = 1 << 16
"""Bytes of the smallest constant that is compared with weights.

Chosen by judgement, not measured: spread over the tiles, 64 KiB are a few bytes of each.
"""

FLAGS: Mapping[int, str] = {0: "transpose_lhs", 1: "transpose_rhs"}
"""For each operand of a product, the property that says that it is transposed."""


@dataclass(frozen=True, eq=False)
class CopyOfWeight:
    """A constant and the weight that holds its elements.

    Attributes:
        weight: a state that no run changes, or another constant of the same block, before this one.
        turned: whether the last two axes of the one are those of the other, swapped. Otherwise both
            have the same elements in row-major order.
    """

    constant: nn.ConstantOp
    weight: nn.StateOp | nn.ConstantOp
    turned: bool


def copies_of_weights(module: ModuleOp) -> tuple[CopyOfWeight, ...]:
    """The constants whose readers could all read a weight of the program instead.

    Somebody else reads that weight, so that it stays. Neither has a home that is decided already,
    and no reader has a plan.
    """
    every = list(module.walk())
    planned = [op for op in every if "plan" in op.attributes]
    groups = {op.attributes[GROUP] for op in planned if GROUP in op.attributes}
    loaded = {op.state.string_value() for op in every if isinstance(op, nn.LoadOp)}
    loaded -= changing_states(module)
    weights: defaultdict[_Key, list[nn.StateOp | nn.ConstantOp]] = defaultdict(list)
    for op in every:
        if isinstance(op, nn.StateOp) and op.sym_name.data in loaded and _is_free(op):
            weights[_key(op)].append(op)
    found: list[CopyOfWeight] = []
    for op in every:
        if not isinstance(op, nn.ConstantOp) or not _is_free(op) or op.result.first_use is None:
            continue
        readers = [use.operation.attributes for use in op.result.uses]
        if any("plan" in each or each.get(GROUP) in groups for each in readers):
            continue
        alike = weights[_key(op)]
        copy = next((c for w in alike if (c := _copy(op, w)) is not None), None)
        if copy is None:
            alike.append(op)
        else:
            found.append(copy)
    return tuple(found)


def in_clone(
    copies: Iterable[CopyOfWeight], module: ModuleOp, clone: ModuleOp
) -> tuple[CopyOfWeight, ...]:
    """The same copies in a clone of their module."""
    other = dict(zip(module.walk(), clone.walk(), strict=True))
    found: list[CopyOfWeight] = []
    for each in copies:
        constant, weight = other[each.constant], other[each.weight]
        assert isinstance(constant, nn.ConstantOp)
        assert isinstance(weight, nn.StateOp | nn.ConstantOp)
        found.append(CopyOfWeight(constant, weight, each.turned))
    return tuple(found)


def read_weights(copies: Iterable[CopyOfWeight]) -> None:
    """Let the readers of each copy read the weight, and remove the copy. Values stay the same."""
    for copy in copies:
        op = copy.constant
        value = _value(copy)
        if copy.turned:
            for use in tuple(op.result.uses):
                _turn(use.operation, use.index)
        elif value.type != op.result.type:
            reshape = nn.ReshapeOp(value, nn.shape_of(op.result))
            value = _before(op, reshape, op).results[0]
        op.result.replace_all_uses_with(value)
        Rewriter.erase_op(op)


def _value(copy: CopyOfWeight) -> SSAValue:
    """The value of the weight, where the copy was."""
    weight = copy.weight
    if isinstance(weight, nn.ConstantOp):
        return weight.result
    array = weight.value.array
    load = nn.LoadOp(weight.sym_name.data, nn.tensor(array.shape, element_type(array.dtype)))
    return _before(copy.constant, load, weight).results[0]


def _before(op: Operation, new: Operation, source: Operation) -> Operation:
    """Put a new operation before another one.

    Args:
        source: what it is located at.
    """
    locate(new, source)
    Rewriter.insert_op(new, InsertPoint.before(op))
    return new


def _turn(product: Operation, operand: int) -> None:
    """Let a product read an operand transposed, or no longer transposed."""
    flag = FLAGS[operand]
    if product.properties.pop(flag, None) is None:
        product.properties[flag] = UnitAttr()


def _is_free(op: nn.StateOp | nn.ConstantOp) -> bool:
    """Whether a weight is worth the search, and may lie anywhere."""
    return op.value.array.nbytes >= SMALLEST and home_of(op) is None


_Key = tuple[np.dtype[Any], int, bytes, bytes]
"""What two arrays with the same elements, in the same order or turned, have in common."""


def _key(op: nn.StateOp | nn.ConstantOp) -> _Key:
    """The key of an array that is not empty: its dtype, its size, and its first and last element.

    Turning an array leaves these two where they are, so only few arrays have to be compared.
    """
    array = op.value.array
    return array.dtype, array.size, *(array[(i,) * array.ndim].tobytes() for i in (0, -1))


def _copy(op: nn.ConstantOp, weight: nn.StateOp | nn.ConstantOp) -> CopyOfWeight | None:
    """The copy of a weight of the same key that a constant is; None if it is none."""
    mine, its = op.value.array, weight.value.array
    if isinstance(weight, nn.ConstantOp) and weight.parent is not op.parent:
        return None
    if _is_turned(mine.shape, its.shape) and all(
        isinstance(use.operation, nn.MatMulOp) and use.index in FLAGS for use in op.result.uses
    ):
        if _have_same_bits(mine, its.swapaxes(-1, -2)):
            return CopyOfWeight(op, weight, turned=True)
    return CopyOfWeight(op, weight, turned=False) if _have_same_bits(mine, its) else None


def _is_turned(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    """Whether a shape is another one whose last two axes are swapped."""
    return len(one) >= 2 and one == (*other[:-2], *other[-2:][::-1])


def _have_same_bits(one: Array, other: Array) -> bool:
    """Whether two arrays of one dtype have the same elements in row-major order, to the bit."""
    bits = np.dtype(f"u{one.dtype.itemsize}")
    one, other = np.atleast_1d(one).view(bits), np.atleast_1d(other).view(bits)
    if one.shape != other.shape:
        one, other = one.reshape(-1), other.reshape(-1)
    # Most arrays differ at once.
    return bool((one[..., :1] == other[..., :1]).all()) and bool((one == other).all())
