"""What operations do with padding.

The shapes of nn are static. A tensor whose size depends on values, or on the length of an input,
has the largest shape that it may have: along an axis, the elements that exist come first, and
padding follows. The padding may hold anything, NaN included, and no operation lets it change a
result:

    parallel dimension        the padding of the operand is padding of the result
    merged dimension          the padding reads the element that the combiner ignores
    index                     the padding reads 0, a legal index; what it finds is padding
    index of an update        the padding names a row behind the table, which is cut off
    scan from the end, sort   the padding reads what changes nothing, or comes last
    softmax along the axis    the padding reads -inf

This follows from the iteration space of an operation, so that it holds for all operations that have
one. `NodeBuilder.add` applies it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf, nan, prod
from typing import Any

import numpy as np
from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import Block, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Composite, Movement, Reinterpretation, Structure, Structured
from ...ir.geometry.blocks import fill_of
from ...ir.geometry.space import AxisMap
from ...ir.upstream import Builder, InsertPoint
from .length_values import emitted_length
from .lengths import Length, as_length, is_equal, is_less, product, row_strides, simplest, smaller
from .program_parts import Node, Sizes

Appended = nn.PureTensorOp | nn.CombiningOp

LEAST_CAPACITY = 2
"""The smallest capacity of an axis with padding: an axis of one element would be repeated."""


def sizes_of(node: Node, value: SSAValue) -> Sizes:
    """The sizes of the axes of a value that have padding, by axis."""
    return node.program.sizes.get(value, {})


def mark(node: Node, value: SSAValue, sizes: Sizes) -> SSAValue:
    """The value, of which only as many elements exist along axes, as it is."""
    if sizes:
        node.program.sizes[value] = sizes
    else:
        node.program.sizes.pop(value, None)
    return value


def length_along(node: Node, value: SSAValue, axis: int) -> int | Length:
    """The number of elements that exist along an axis of a value."""
    return sizes_of(node, value).get(axis, nn.shape_of(value)[axis])


def lengths_along(node: Node, value: SSAValue) -> list[int | Length]:
    """The number of elements that exist along each axis of a value."""
    return [length_along(node, value, axis) for axis in range(len(nn.shape_of(value)))]


def sized(node: Node, value: SSAValue, sizes: Mapping[int, int | Length]) -> SSAValue:
    """A value of which only the first elements along some axes exist.

    Axes with as many elements in every run are cut to this number.

    Args:
        sizes: by axis; the other axes have no padding.
    """
    kept: dict[int, Length] = {}
    for axis, given in sizes.items():
        length = simplest(given)
        if isinstance(length, int):
            value = fitted(node, value, axis, length)
        else:
            value = fitted(node, value, axis, max(nn.shape_of(value)[axis], LEAST_CAPACITY))
            kept[axis] = length
    return mark(node, value, kept) if kept else value


def fitted(node: Node, value: SSAValue, axis: int, capacity: int) -> SSAValue:
    """A value with another number of elements along an axis; those at its end are cut or added.

    The result is not marked as padded.
    """
    shape = nn.shape_of(value)
    rank, size = len(shape), shape[axis]
    if size > capacity:
        extent = [capacity if i == axis else n for i, n in enumerate(shape)]
        return node.append(nn.SliceOp(value, [0] * rank, [1] * rank, extent)).results[0]
    if size < capacity:
        more = [capacity - size if i == axis else 0 for i in range(rank)]
        return node.append(nn.PadOp(value, [0] * rank, more)).results[0]
    return value


def positions(node: Node, value: SSAValue, axis: int) -> SSAValue:
    """The index of each element along an axis of a value, as i32, with size 1 on other axes."""
    shape = nn.shape_of(value)
    along = [n if i == axis else 1 for i, n in enumerate(shape)]
    steps = [int(i == axis) for i in range(len(shape))]
    return node.append(nn.IotaOp(nn.tensor(along, i32), steps)).results[0]


def existing(node: Node, value: SSAValue, sizes: Sizes) -> SSAValue:
    """Whether elements of a value exist, as i1 that broadcasts to it."""
    found = [
        node.append(nn.LessOp(positions(node, value, axis), emitted_length(node, length))).results[
            0
        ]
        for axis, length in sizes.items()
    ]
    return reduce(lambda a, b: node.append(nn.LogicalAndOp(a, b)).results[0], found)


def without_padding(
    node: Node, value: SSAValue, fill: float, axes: Sequence[int] | None = None
) -> SSAValue:
    """A value whose padding is set to a number. It keeps its sizes.

    Args:
        axes: those whose padding is set; None for all.
    """
    every = sizes_of(node, value)
    sizes = {a: length for a, length in every.items() if axes is None or a in axes}
    if not sizes:
        return value
    number = node.constant(float(fill_of(fill, numpy_dtype(nn.element_of(value)))), value)
    found = node.append(nn.SelectOp(existing(node, value, sizes), value, number)).results[0]
    mark(node, found, every)
    return found


def solid(node: Node, value: SSAValue, fill: float) -> SSAValue:
    """A value whose padding is set to a number, and is no padding any more."""
    sizes = sizes_of(node, value)
    if not sizes:
        return value
    number = node.constant(float(fill_of(fill, numpy_dtype(nn.element_of(value)))), value)
    return node.append(nn.SelectOp(existing(node, value, sizes), value, number)).results[0]


# Rules


def add_padded(node: Node, op: Appended) -> Sequence[SSAValue]:
    """Append an operation of which an operand has padding; return its results.

    Raises NotConstantError if the padding would change a result.
    """
    own = RULES.get(type(op))
    if own is not None:
        return own(node, op)
    if isinstance(op, Structured):
        return _structured(node, op)
    if isinstance(op, Movement):
        return _moved(node, op)
    if isinstance(op, Composite) and not isinstance(op, Reinterpretation):
        return _decomposed(node, op)
    raise refused(node, op, 0)


def refused(node: Node, op: Any, operand: int) -> Exception:
    """The error for an operation that cannot read the padding of an operand, or of another one."""
    values = [v for v in (op.operands[operand], *op.operands) if sizes_of(node, v)]
    axis, length = next(iter(sizes_of(node, values[0]).items()))
    return node.size_refused(f"the size of axis {axis} of what {op.name} reads", length)


def _plain_dim(axis: AxisMap) -> int | None:
    """The dimension that an axis is, element for element; None if it is another function."""
    plain = len(axis.terms) == 1 and not axis.offset and axis.divisor == 1
    return axis.terms[0][0] if plain and axis.terms[0][1] == 1 else None


def _padded_dims(node: Node, op: Any, structure: Structure) -> dict[int, Length]:
    """The number of points that exist along dimensions with padding, by dimension."""
    space = structure.space
    found: dict[int, Length] = {}
    for i, value in enumerate(op.operands):
        sizes, access = sizes_of(node, value), space.operands[i]
        if sizes and access.shape != nn.shape_of(value):
            raise refused(node, op, i)
        for axis, length in sizes.items():
            dim = _plain_dim(access.axes[axis])
            if dim is None or not is_equal(found.setdefault(dim, length), length):
                raise refused(node, op, i)
    for axis in (*space.axes, *(a for result in space.results for a in result.axes)):
        if _plain_dim(axis) is None and any(dim in found for dim, _ in axis.terms):
            raise refused(node, op, 0)
    return found


IGNORED: Mapping[str, float] = {
    "sum": 0.0,
    "prod": 1.0,
    "max": -inf,
    "min": inf,
    "argmax": -inf,
    "argmin": inf,
    "argmax_number": -inf,
    "exp_sum": -inf,
}
"""The element that a combiner ignores, if it comes after others."""

PASSED = ("identity", "mul")
"""The functions of two kinds of sums: of elements, and of products, of which one factor is 0."""


def _structured(node: Node, op: Any) -> Sequence[SSAValue]:
    """An operation with an iteration space."""
    structure = op.structure()
    space, body = structure.space, structure.body
    padded = _padded_dims(node, op, structure)
    indices = {relation.operand: relation for relation in space.relations}
    rows = {dim for relation in space.relations for dim, _ in relation.axis.terms}
    merged = {d for d in padded if space.dims[d].kind == "reduction" and d not in rows}
    if any(space.dims[d].kind == "whole" for d in padded):
        raise refused(node, op, 0)
    if merged and (body.function not in PASSED or body.combiner not in IGNORED):
        raise refused(node, op, 0)
    for i, access in enumerate(space.operands):
        value = op.operands[i]
        if i in indices:
            relation = indices[i]
            if padded.keys() & rows and relation.axis.terms:
                value = from_front(node, value, padded[relation.axis.terms[0][0]])
            op.operands[i] = without_padding(node, value, 0.0)
        elif merged and i < body.function_arity:
            axes = [a for a, axis in enumerate(access.axes) if _plain_dim(axis) in merged]
            op.operands[i] = without_padding(node, value, IGNORED[body.combiner or ""], axes)
    results = node.append(op).results
    for value, access in zip(results, space.results, strict=True):
        own = {
            a: padded[dim]
            for a, axis in enumerate(access.axes)
            if (dim := _plain_dim(axis)) is not None and dim in padded
        }
        mark(node, value, own)
    return results


def from_front(node: Node, indices: SSAValue, length: Length) -> SSAValue:
    """Indices that may be negative, counted from the front of an axis with padding."""
    count = node.cast(emitted_length(node, length), nn.element_of(indices))
    zero = node.constant(0, indices)
    turned = node.append(nn.AddOp(indices, count)).results[0]
    below = node.append(nn.LessOp(indices, zero)).results[0]
    found = node.append(nn.SelectOp(below, turned, indices)).results[0]
    return _like(node, found, indices)


def _like(node: Node, value: SSAValue, other: SSAValue) -> SSAValue:
    """A value marked as another one of its shape is."""
    return mark(node, value, sizes_of(node, other))


def _moved(node: Node, op: Any) -> Sequence[SSAValue]:
    """An operation that moves elements, but not along an axis with padding."""
    lengths: dict[int, Length] = {}
    for i, space in enumerate(op.moves()):
        (source,), (target,) = space.operands, space.results
        if not sizes_of(node, op.operands[i]) and lengths:
            raise refused(node, op, i)
        own: dict[int, Length] = {}
        for axis, length in sizes_of(node, op.operands[i]).items():
            dim = _plain_dim(source.axes[axis])
            whole = dim is not None and space.dims[dim].size == source.axes[axis].size
            places = [a for a, each in enumerate(target.axes) if _plain_dim(each) == dim]
            if not whole or len(places) != 1 or target.axes[places[0]].size != source.shape[axis]:
                raise refused(node, op, i)
            own[places[0]] = length
        if i and own != lengths:
            raise refused(node, op, i)
        lengths = own
    results = node.append(op).results
    mark(node, results[0], lengths)
    return results


def _decomposed(node: Node, op: Any) -> Sequence[SSAValue]:
    """An operation that is defined by simpler ones: these, one after another."""
    block = Block()
    results = op.decompose(Builder(InsertPoint.at_end(block)))
    if any(each.regions for each in block.ops):
        raise refused(node, op, 0)
    made: dict[SSAValue, SSAValue] = {}
    for each in tuple(block.ops):
        assert isinstance(each, nn.PureTensorOp | nn.ConstantOp)
        each.detach()
        made[each.result] = found = node.add(each)
        if found is not each.result:
            each.result.replace_all_uses_with(found)
    op.drop_all_references()
    return [made[value] if value in made else value for value in results]


def _softmax(node: Node, op: Any) -> Sequence[SSAValue]:
    """A softmax, in which padding adds nothing to the total."""
    sizes = sizes_of(node, op.operand)
    op.operands[0] = without_padding(node, op.operand, -inf, [op.along])
    results = node.append(op).results
    mark(node, results[0], sizes)
    return results


def _scan(node: Node, op: nn.ScanOp) -> Sequence[SSAValue]:
    """A scan. If it runs backwards, it begins with the padding."""
    sizes = sizes_of(node, op.operand)
    if op.reverse is not None:
        axis = op.axis.value.data
        op.operands[0] = without_padding(node, op.operand, IGNORED[op.combiner.data], [axis])
    results = node.append(op).results
    mark(node, results[0], sizes)
    return results


def _sort(node: Node, op: Any) -> Sequence[SSAValue]:
    """A sort, after which the padding is last. Equal elements keep their order."""
    sizes, is_float = sizes_of(node, op.operand), isinstance(nn.element_of(op.operand), AnyFloat)
    last = -inf if op.descending is not None else nan if is_float else inf
    op.operands[0] = without_padding(node, op.operand, last, [op.axis.value.data])
    results = node.append(op).results
    mark(node, results[0], sizes)
    return results


def _slice(node: Node, op: nn.SliceOp) -> Sequence[SSAValue]:
    """A slice. A single element of an axis with padding is taken to exist."""
    starts, strides, sizes = (nn.values_of(each) for each in (op.starts, op.steps, op.sizes))
    kept: dict[int, int | Length] = {}
    for axis, length in sizes_of(node, op.operand).items():
        start, stride, size = starts[axis], strides[axis], sizes[axis]
        if stride < 1:
            raise refused(node, op, 0)
        if size > 1:
            left = (length - start + (stride - 1)) // stride
            kept[axis] = smaller(max_of_zero(left), size)
    (result,) = node.append(op).results
    return [sized(node, result, kept)]


def max_of_zero(length: Length) -> int | Length:
    """A length, or 0 if it is negative."""
    return as_length(-as_length(smaller(-length, 0)))


def _pad(node: Node, op: nn.PadOp) -> Sequence[SSAValue]:
    """Padding of the model's own, along axes without padding."""
    sizes = sizes_of(node, op.operand)
    low, high = nn.values_of(op.low), nn.values_of(op.high)
    if any(low[axis] or high[axis] for axis in sizes):
        raise refused(node, op, 0)
    results = node.append(op).results
    mark(node, results[0], sizes)
    return results


def _reshape(node: Node, op: nn.ReshapeOp) -> Sequence[SSAValue]:
    """A reshape to a shape of largest sizes. The sizes follow, if one axis can have them."""
    shape, value = nn.values_of(op.shape), op.operand
    sizes = _sizes_in(list(zip(nn.shape_of(value), lengths_along(node, value), strict=True)), shape)
    if sizes is None:
        raise refused(node, op, 0)
    op.drop_all_references()
    return [reshaped(node, value, sizes, shape)]


def _update(node: Node, op: nn.UpdateOp) -> Sequence[SSAValue]:
    """An update. What replaces elements goes to a row behind the table, if it is padding."""
    axis, table = op.axis.value.data, op.table
    own, length = sizes_of(node, table), sizes_of(node, table).get(axis)
    if length is not None:
        op.operands[1] = from_front(node, op.indices, length)
    updates = sizes_of(node, op.updates)
    written = {a: n for a, n in updates.items() if a == axis or not is_equal(own.get(a, -1), n)} | {
        a: n for a, n in sizes_of(node, op.indices).items() if a == axis or a not in own
    }
    if op.combiner.data != "last":
        fill = IGNORED[op.combiner.data]
        op.operands[0] = without_padding(node, op.updates, fill, list(written))
        op.operands[1] = without_padding(node, op.indices, 0.0)
    else:
        op.operands[1] = without_padding(node, op.indices, 0.0, [a for a in own if a != axis])
    if op.combiner.data != "last" or not written:
        results = node.append(op).results
        mark(node, results[0], own)
        return results
    size, given = nn.shape_of(table)[axis], nn.shape_of(op.indices)
    indices, shape = op.indices, nn.shape_of(op.updates)
    wide = [shape[a] if a in written else n for a, n in enumerate(given)]
    if tuple(wide) != given:
        indices = node.append(nn.ExpandOp(indices, wide)).results[0]
    behind = node.constant(size, indices)
    exists = existing(node, op.updates, written)
    indices = node.append(nn.SelectOp(exists, indices, behind)).results[0]
    wider = fitted(node, table, axis, size + 1)
    found = nn.UpdateOp(op.updates, indices, wider, "last", axis)
    op.drop_all_references()
    result = fitted(node, node.append(found).results[0], axis, size)
    mark(node, result, own)
    return [result]


RULES: Mapping[type[Any], Callable[[Node, Any], Sequence[SSAValue]]] = {
    nn.SoftmaxOp: _softmax,
    nn.LogSoftmaxOp: _softmax,
    nn.ScanOp: _scan,
    nn.SortOp: _sort,
    nn.SortIndicesOp: _sort,
    nn.SliceOp: _slice,
    nn.PadOp: _pad,
    nn.ReshapeOp: _reshape,
    nn.UpdateOp: _update,
}
"""The operations that do more with padding than their iteration spaces say."""


# Reshapes

Axis = tuple[int, "int | Length"]
"""An axis: its size in the type, and the number of elements that exist."""


def _groups(
    source: Sequence[Axis], target: Sequence[Axis], of: Callable[[Axis], Length]
) -> list[tuple[list[int], list[int]]] | None:
    """Groups of neighbouring axes with equal products; None if an axis is left over.

    Args:
        of: returns the size of an axis.
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(source) or j < len(target):
        left, right = ([i], []) if i < len(source) else ([], [j])
        i, j = (i + 1, j) if left else (i, j + 1)
        a = product(of(source[k]) for k in left)
        b = product(of(target[k]) for k in right)
        while a != b:
            # The smaller product grows; lengths that are not compared by their bounds grow in turn.
            grow_left = is_less(a, b)
            if grow_left is None:
                grow_left = b.divided(a) is not None and a.divided(b) is None
            if (grow_left and i < len(source)) or (j == len(target) and i < len(source)):
                left.append(i)
                a, i = a * of(source[i]), i + 1
            elif j < len(target):
                right.append(j)
                b, j = b * of(target[j]), j + 1
            else:
                return None
        groups.append((left, right))
    return groups


def _sizes_in(source: Sequence[Axis], shape: Sequence[int]) -> list[int | Length] | None:
    """The lengths of the axes of a reshaped tensor, from its largest shape; None if unknown."""
    groups = _groups(source, [(n, n) for n in shape], lambda axis: Length.of(axis[0]))
    if groups is None:
        return None
    found: list[int | Length] = list(shape)
    for left, right in groups:
        lengths = [source[i][1] for i in left]
        if all(isinstance(each, int) for each in lengths):
            continue
        places = [j for j in right if shape[j] != 1]
        whole = product(shape[j] for j in places)
        # The axis whose size follows as a polynomial. Of two such axes, no one knows which it is.
        each = {j: _shares(product(lengths), whole, shape[j]) for j in places}
        open_ = {j: length for j, length in each.items() if length is not None}
        if len(open_) != 1:
            return None
        ((place, length),) = open_.items()
        found[place] = simplest(length)
    return found


def _shares(total: Length, whole: Length, size: int) -> Length | None:
    """The length of an axis, of all elements; None if the other axes do not divide them.

    Args:
        whole: all elements of the largest shape.
        size: the largest length.
    """
    return total.divided(Length.of((whole.fixed or 0) // size)) if size else None


def reshaped(
    node: Node,
    value: SSAValue,
    lengths: Sequence[int | Length],
    shape: Sequence[int] | None = None,
) -> SSAValue:
    """The elements of a value that exist, in row-major order, as another shape.

    Raises NotConstantError if the numbers of elements are not known to be equal.

    Args:
        lengths: of the result.
        shape: the largest sizes; None for those that follow from the lengths.
    """
    lengths = [simplest(each) for each in lengths]
    source = list(zip(nn.shape_of(value), lengths_along(node, value), strict=True))
    if shape is None:
        known = {length: n for n, length in source if isinstance(length, Length)}
        shape = [
            n if isinstance(n, int) else known.get(n, max(n.most, LEAST_CAPACITY)) for n in lengths
        ]
    target = list(zip(shape, lengths, strict=True))
    groups = _groups(source, target, lambda axis: as_length(axis[1]))
    if groups is None:
        open_ = [length for _, length in (*source, *target) if isinstance(length, Length)]
        what = f"the shape {[_text(n) for n in lengths]} of {[_text(n) for _, n in source]}"
        raise node.size_refused(what, *open_)
    done: list[int] = []
    rest = list(nn.shape_of(value))
    for left, right in groups:
        rest = rest[len(left) :]
        value = node.bare_reshape(value, (prod(done), prod(source[i][0] for i in left), prod(rest)))
        value = _regrouped(node, value, [source[i] for i in left], [target[j] for j in right])
        done += [target[j][0] for j in right]
    value = node.bare_reshape(value, shape)
    sizes = {i: n for i, n in enumerate(lengths) if isinstance(n, Length)}
    return sized(node, value, sizes) if sizes else value


def _text(length: int | Length) -> str:
    return str(length) if isinstance(length, int) else f"0..{length.most}"


def _regrouped(
    node: Node, value: SSAValue, source: Sequence[Axis], target: Sequence[Axis]
) -> SSAValue:
    """The middle axis of a value, which joins axes with padding, as it joins other axes.

    Elements that exist keep their order, but the padding between them lies elsewhere.
    """
    source, target = ([axis for axis in axes if axis[1] != 1] for axes in (source, target))
    if source == target:
        return value
    size = prod(n for n, _ in target)
    if all(isinstance(n, int) for axes in (source, target) for _, n in axes[1:]):
        return fitted(node, value, 1, size)
    # The number of an element in the result, without padding, is its number in the operand.
    number = _numbers(node, target)
    index = _constant(node, 0)
    capacities, left = row_strides(n for n, _ in source), number
    for (_, _), stride, capacity in zip(
        source, row_strides(n for _, n in source), capacities, strict=True
    ):
        along = emitted_length(node, _positive(stride))
        place = _append(node, nn.DivOp(left, along))
        left = _append(node, nn.SubOp(left, _append(node, nn.MulOp(place, along))))
        step = emitted_length(node, capacity)
        index = _append(node, nn.AddOp(index, _append(node, nn.MulOp(place, step))))
    last = _constant(node, nn.shape_of(value)[1] - 1)
    index = _append(node, nn.MinOp(index, last))
    return _append(node, nn.GatherOp(value, node.bare_reshape(index, (size,)), 1))


def _positive(length: Length) -> int | Length:
    """A length, or 1 if it is 0: then no element exists, and none is looked for."""
    return -as_length(smaller(-length, -1))


def _numbers(node: Node, axes: Sequence[Axis]) -> SSAValue:
    """The row-major number of each place in a shape, counted without padding."""
    shape = [n for n, _ in axes]
    total: SSAValue | None = None
    for i, stride in enumerate(row_strides(length for _, length in axes)):
        steps = [int(i == j) for j in range(len(shape))]
        along = [n if i == j else 1 for j, n in enumerate(shape)]
        place = _append(node, nn.IotaOp(nn.tensor(along, i32), steps))
        each = _append(node, nn.MulOp(place, emitted_length(node, stride)))
        total = each if total is None else _append(node, nn.AddOp(total, each))
    assert total is not None, "an axis has padding"
    return total


def _append(node: Node, op: Any) -> SSAValue:
    return node.append(op).results[0]


def _constant(node: Node, value: int) -> SSAValue:
    return node.emitted(np.array(value, np.int32))
