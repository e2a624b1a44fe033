"""Products of tensors, and convolutions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from xdsl.dialects.builtin import f32, i1, i32
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.dtypes import numpy_dtype
from ...ir.support.number_kinds import is_whole
from .conversion import Lower, ToNn
from .elementwise import is_float


def _in_one_type(
    new: ToNn, values: Sequence[SSAValue], result: Attribute
) -> tuple[list[SSAValue], Attribute]:
    """The factors of products, and the type in which nn adds the products up.

    A product whose result is wider than its factors is exact, so the factors are widened.
    """
    kinds: list[Attribute] = [nn.element_of(each) for each in values]
    if result == i1 or (i1 in kinds and is_whole(numpy_dtype(result))):
        return [new.cast(each, i32) for each in values], i32
    if all(kind == result for kind in kinds):
        return list(values), result
    wide = _widest([*kinds, result])
    return [new.cast(each, wide) for each in values], wide


def _widest(kinds: Sequence[Attribute]) -> Attribute:
    """The type that holds the numbers of all types, as far as one does."""
    sizes = {kind: numpy_dtype(kind).itemsize for kind in kinds}
    found = max(kinds, key=sizes.__getitem__)
    return f32 if len(set(kinds)) > 1 and sizes[found] < 4 else found


def _finished(new: ToNn, value: SSAValue, result: Attribute) -> SSAValue:
    """A sum of products in the type of the result."""
    if result == i1:
        return new.add(nn.GreaterOp(value, new.number(0, value)))
    return new.cast(value, result)


def _dot_general(op: stablehlo.DotGeneralOp, new: ToNn) -> Sequence[SSAValue]:
    axes = op.dot_dimension_numbers.data
    lhs, rhs = new.operands(op)
    result = nn.tensor_of(op.result)
    batch = axes.lhs_batching_dimensions, axes.rhs_batching_dimensions
    terms = axes.lhs_contracting_dimensions, axes.rhs_contracting_dimensions
    shape, common = nn.shape_of(result), len(batch[0])
    rows = len(nn.shape_of(lhs)) - common - len(terms[0])
    if not _is_read_turned(op, common, rows):
        made = product(new, lhs, rhs, batch, terms, result.element_type)
        return [new.reshape(made, shape)]
    # The transposes of this one and of the one that reads it become one, or none.
    made = product(new, rhs, lhs, (batch[1], batch[0]), (terms[1], terms[0]), result.element_type)
    turned = [*range(common), *range(common + rows, len(shape)), *range(common, common + rows)]
    made = new.reshape(made, [shape[a] for a in turned])
    return [new.transpose(made, [turned.index(a) for a in range(len(shape))])]


def _is_read_turned(op: stablehlo.DotGeneralOp, common: int, rows: int) -> bool:
    """Whether the only reader of a product wants the axes of the second tensor before those of the
    first.

    Args:
        common: the number of axes that both tensors have.
        rows: the number of axes that only the first one has.
    """
    readers = [use.operation for use in op.result.uses]
    if len(readers) != 1 or not isinstance(readers[0], stablehlo.TransposeOp):
        return False
    free = [a - common for a in readers[0].axes if a >= common]
    return free == [*range(rows, len(free)), *range(rows)] and 0 < rows < len(free)


def _dot(op: stablehlo.DotOp, new: ToNn) -> Sequence[SSAValue]:
    lhs, rhs = new.operands(op)
    result, last = nn.tensor_of(op.result), len(nn.shape_of(lhs)) - 1
    made = product(new, lhs, rhs, ((), ()), ((last,), (0,)), result.element_type)
    return [new.reshape(made, nn.shape_of(result))]


Pair = tuple[Sequence[int], Sequence[int]]
"""Axes of the first tensor, and of the second."""


def product(
    new: ToNn, lhs: SSAValue, rhs: SSAValue, batch: Pair, terms: Pair, result: Attribute
) -> SSAValue:
    """Products of two tensors, summed along some axes, in the order of a matrix product.

    Args:
        batch: the axes that both have.
        terms: the axes that are summed along.
        result: the element type.
    """
    (lhs, rhs), kind = _in_one_type(new, [lhs, rhs], result)
    left, rows, swap_left = _ordered(new, lhs, batch[0], terms[0], last=True)
    right, columns, swap_right = _ordered(new, rhs, batch[1], terms[1], last=False)
    common = [nn.shape_of(lhs)[a] for a in batch[0]]
    count = prod(nn.shape_of(lhs)[a] for a in terms[0])
    # Without common axes, all rows of the first tensor may stay as they are.
    if common or swap_left or not rows:
        shape = (count, prod(rows)) if swap_left else (prod(rows), count)
        left = new.reshape(left, (*common, *shape))
    else:
        left = new.reshape(left, (*rows, count))
    shape = (prod(columns), count) if swap_right else (count, prod(columns))
    right = new.reshape(right, (*common, *shape))
    made = nn.MatMulOp(left, right, transpose_lhs=swap_left, transpose_rhs=swap_right)
    return _finished(new, new.add(made), result) if kind != result else new.add(made)


def _ordered(
    new: ToNn, value: SSAValue, batch: Sequence[int], terms: Sequence[int], *, last: bool
) -> tuple[SSAValue, list[int], bool]:
    """A factor with its common axes first, the sizes of its free axes, and whether its free axes
    and its terms are in the other order than a matrix product has them.

    Args:
        last: whether a matrix product has the terms last.
    """
    shape = nn.shape_of(value)
    free = [a for a in range(len(shape)) if a not in batch and a not in terms]
    sizes = [shape[a] for a in free]
    usual = [*batch, *free, *terms] if last else [*batch, *terms, *free]
    other = [*batch, *terms, *free] if last else [*batch, *free, *terms]
    if usual != sorted(usual) and other == sorted(other):
        return value, sizes, True
    return new.transpose(value, usual), sizes, False


# Convolutions


def _convolution(op: stablehlo.ConvolutionOp, new: ToNn) -> Sequence[SSAValue]:
    image, kernel = new.operands(op)
    result = nn.tensor_of(op.result)
    (image, kernel), _ = _in_one_type(new, [image, kernel], result.element_type)
    if 0 in (*nn.shape_of(image), *nn.shape_of(kernel), *nn.shape_of(result)):
        zero = new.constant(0, numpy_dtype(result.element_type))
        return [new.expand(zero, nn.shape_of(result))]
    made = _as_conv(op, image, kernel) or _as_compute(op, image, kernel)
    return [_finished(new, new.add(made), result.element_type)]


def _as_conv(op: stablehlo.ConvolutionOp, image: SSAValue, kernel: SSAValue) -> Any:
    """A convolution of nn, which has its axes in one order; None if it is none."""
    axes, spatial = op.dimension_numbers.data, tuple(range(2, op.spatial + 2))
    groups, batches = op.groups
    usual = (
        axes.image == axes.result == (0, 1, spatial)
        and axes.kernel == (1, 0, spatial)
        and not any(op.reversals)
        and set(op.dilations) <= {1}
        and batches == 1
        and op.spatial > 0
        and is_float(image)
    )
    if not usual:
        return None
    pads = stablehlo.pairs_of(op.padding, op.spatial)
    return nn.ConvOp(
        image,
        kernel,
        stride=op.strides,
        dilation=op.kernel_dilations,
        pad_low=[low for low, _ in pads],
        pad_high=[high for _, high in pads],
        groups=groups,
    )


def _as_compute(op: stablehlo.ConvolutionOp, image: SSAValue, kernel: SSAValue) -> Any:
    """A convolution with its axes in any order, dilated, reversed, and in groups of any kind."""
    axes, (groups, batches) = op.dimension_numbers.data, op.groups
    shape, sizes, made = nn.shape_of(image), nn.shape_of(kernel), nn.shape_of(op.result)
    n = nn.dim("n", made[axes.result[0]])
    g = nn.dim("g", groups * batches)
    o = nn.dim("o", made[axes.result[1]] // (groups * batches))
    c = nn.dim("c", sizes[axes.kernel[0]], "reduction")
    places = [nn.dim(f"y{i}", made[a]) for i, a in enumerate(axes.result[2])]
    under = [nn.dim(f"k{i}", sizes[a], "reduction") for i, a in enumerate(axes.kernel[2])]
    reads: dict[int, Any] = {}
    weights: dict[int, Any] = {axes.kernel[0]: c}
    for i, (low, _) in enumerate(stablehlo.pairs_of(op.padding, op.spatial)):
        at = places[i] * op.strides[i] + under[i] * op.kernel_dilations[i] - low
        wide = op.dilations[i]
        at = at.exactly(wide) if wide > 1 else at
        reads[axes.image[2][i]] = at.outside("fill")
        last = sizes[axes.kernel[2][i]] - 1
        weights[axes.kernel[2][i]] = last - under[i] if op.reversals[i] else under[i]
    # An axis in groups is viewed as two.
    views: list[list[tuple[Any, int]]] = []
    features, batch = axes.image[1], axes.image[0]
    for a, size in enumerate(shape):
        if a == features:
            own = [(g, groups)] if groups > 1 else []
            views.append([*own, (c, size // groups)])
        elif a == batch:
            own = [(g, batches)] if batches > 1 else []
            views.append([*own, (n, size // batches)])
        else:
            views.append([(reads[a], size)])
    read = _viewed(image, views)
    outputs = [(g, groups * batches)] if groups * batches > 1 else []
    by_axis = [
        [*outputs, (o, sizes[a] // (groups * batches))]
        if a == axes.kernel[1]
        else [(weights[a], sizes[a])]
        for a in range(len(sizes))
    ]
    taken = _viewed(kernel, by_axis)
    written: list[Any] = []
    for a in range(len(made)):
        if a == axes.result[0]:
            written.append(n)
        elif a == axes.result[1]:
            written += [*([g] if groups * batches > 1 else []), o]
        else:
            written.append(places[axes.result[2].index(a)])
    found = nn.compute("mul", [read, taken], written, combiner="sum")
    return _shaped(found, op)


def _viewed(value: SSAValue, axes: Sequence[Sequence[tuple[Any, int]]]) -> Any:
    """A tensor, some axes of which are viewed as two."""
    flat = [each for parts in axes for each in parts]
    return nn.at(value, *(index for index, _ in flat), view=[size for _, size in flat])


def _shaped(found: nn.ComputeOp, op: stablehlo.ConvolutionOp) -> nn.ComputeOp:
    """The same operation with a result in which groups and their outputs are one axis."""
    type_ = nn.tensor(nn.shape_of(op.result), nn.element_of(found.result))
    if found.result.type == type_:
        return found
    inputs, structure = list(found.inputs), found.structure()
    found.drop_all_references()
    return nn.ComputeOp(inputs, structure, type_)


TABLE: Mapping[str, Lower] = {
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dot": _dot,
    "stablehlo.convolution": _convolution,
}
"""What lowers each product, by name."""
