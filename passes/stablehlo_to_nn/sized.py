"""Operations whose sizes are operands. Each becomes the static operation with these sizes.

The sizes of a result are those of its type. Other sizes must be known when the program is
converted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.dense import dense_of_array
from ...dialects.stablehlo import sized
from .conversion import Lower, ToNn
from .windows_at_indices import sliced_at


def _static(
    new: ToNn,
    op: Operation,
    cls: type[Operation],
    operands: Sequence[SSAValue],
    properties: Mapping[str, Attribute | None],
) -> Sequence[SSAValue]:
    """The results of a static operation with the results of another one."""
    made = cls.create(
        operands=operands,
        result_types=[each.type for each in op.results],
        properties={name: value for name, value in properties.items() if value is not None},
    )
    try:
        made.verify()
        return new.table[made.name](made, new)
    finally:
        made.drop_all_references()


def _known(new: ToNn, what: str, value: SSAValue) -> list[int]:
    """Numbers that must be known now."""
    array = new.known(new.value(value))
    if array is None:
        raise new.unsupported(f"{what} that only a run knows", "need constants")
    return [int(each) for each in array.reshape(-1)]


def _check_shape(new: ToNn, what: str, value: SSAValue, result: SSAValue) -> None:
    """Raise InputError if a shape is known to be another one than that of the result."""
    array = new.known(new.value(value))
    shape = list(nn.shape_of(result))
    if array is not None and [int(each) for each in array] != shape:
        raise new.bad(f"{what} is {[int(each) for each in array]}, the result has shape {shape}")


def _broadcast(op: sized.DynamicBroadcastInDimOp, new: ToNn) -> Sequence[SSAValue]:
    _check_shape(new, "output_dimensions", op.output_dimensions, op.result)
    axes = {"broadcast_dimensions": op.broadcast_dimensions}
    return _static(new, op, stablehlo.BroadcastInDimOp, [op.operand], axes)


def _reshape(op: sized.DynamicReshapeOp, new: ToNn) -> Sequence[SSAValue]:
    _check_shape(new, "output_shape", op.output_shape, op.result)
    return _static(new, op, stablehlo.ReshapeOp, [op.operand], {})


def _iota(op: sized.DynamicIotaOp, new: ToNn) -> Sequence[SSAValue]:
    _check_shape(new, "output_shape", op.output_shape, op.result)
    axis = {"iota_dimension": op.iota_dimension}
    return _static(new, op, stablehlo.IotaOp, [], axis)


def _pad(op: sized.DynamicPadOp, new: ToNn) -> Sequence[SSAValue]:
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    lists = {
        name: DenseArrayBase.from_list(i64, _known(new, name, value))
        for name, value in zip(names, list(op.operands)[2:], strict=True)
    }
    return _static(new, op, stablehlo.PadOp, [op.operand, op.padding_value], lists)


def _gather(op: sized.DynamicGatherOp, new: ToNn) -> Sequence[SSAValue]:
    sizes = DenseArrayBase.from_list(i64, _known(new, "slice_sizes", op.slice_sizes))
    properties = {**op.properties, "slice_sizes": sizes}
    return _static(new, op, stablehlo.GatherOp, [op.operand, op.start_indices], properties)


def _conv(op: sized.DynamicConvOp, new: ToNn) -> Sequence[SSAValue]:
    pairs = np.array(_known(new, "padding", op.padding), np.int64).reshape(-1, 2)
    properties = {**op.properties, "padding": dense_of_array(pairs)}
    return _static(new, op, stablehlo.ConvolutionOp, [op.lhs, op.rhs], properties)


def _slice(op: sized.RealDynamicSliceOp, new: ToNn) -> Sequence[SSAValue]:
    """A slice with known strides. Where a start is not known, all strides are 1."""
    operand, sizes = new.value(op.operand), nn.shape_of(op.result)
    strides, start = _known(new, "strides", op.strides), new.value(op.start_indices)
    known = new.known(start)
    if known is not None:
        starts = [int(each) for each in known]
        ends = [a + max(n - 1, 0) * s for a, n, s in zip(starts, sizes, strides, strict=True)]
        lists = {
            "start_indices": starts,
            "limit_indices": [end + (n > 0) for end, n in zip(ends, sizes, strict=True)],
            "strides": strides,
        }
        properties = {name: DenseArrayBase.from_list(i64, each) for name, each in lists.items()}
        return _static(new, op, stablehlo.SliceOp, [op.operand], properties)
    if set(strides) - {1}:
        raise new.unsupported("strides from a start that only a run knows", "need strides of 1")
    starts_of_axes = [new.reshape(new.box(start, [a], [1]), ()) for a in range(len(sizes))]
    return [sliced_at(new, operand, starts_of_axes, sizes)]


def _size(op: sized.GetDimensionSizeOp, new: ToNn) -> Sequence[SSAValue]:
    size = nn.shape_of(op.operand)[op.dimension.value.data]
    return [new.constant(np.array(size, np.int32))]


TABLE: Mapping[str, Lower] = {
    "stablehlo.dynamic_broadcast_in_dim": _broadcast,
    "stablehlo.dynamic_reshape": _reshape,
    "stablehlo.dynamic_iota": _iota,
    "stablehlo.dynamic_pad": _pad,
    "stablehlo.dynamic_gather": _gather,
    "stablehlo.dynamic_conv": _conv,
    "stablehlo.real_dynamic_slice": _slice,
    "stablehlo.get_dimension_size": _size,
}
"""What lowers each operation, by name."""
