"""Operations whose places come from numbers that only a run knows."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import IntegerAttr, TensorType, i1
from xdsl.irdl import (
    SameVariadicOperandSize,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from ...ir.upstream import VerifyException
from ..source_types import element_of, shape_of
from .base import (
    INTEGERS,
    PureOp,
    integers_of,
    need_axes,
    need_integers,
    need_length,
    need_same_element,
    need_shape,
)
from .numberings import GatherAttr, ScatterAttr
from .reductions import check_scalars

FLAG = IntegerAttr.constr(i1)
"""A property that is a truth value."""


def _check_batching(
    axes: Sequence[int],
    places_axes: Sequence[int],
    numbers: Sequence[int],
    at: int,
    shape: Sequence[int],
    places: Sequence[int],
) -> None:
    """Raise VerifyException unless axes of a tensor are one with axes of the places.

    Args:
        axes, places_axes: of the tensor and of the places, in pairs.
        numbers: the axis of the tensor that each number of a place is for.
        at: the axis of the places along which the numbers lie.
        shape, places: the shapes of both.
    """
    need_axes("axes of the operand", (*axes, *numbers), len(shape))
    need_length("batching axes of the indices", places_axes, len(axes))
    need_axes("batching axes of the indices", places_axes, len(places))
    if at in places_axes:
        raise VerifyException(f"index_vector_dim {at} is a batching axis of the indices too")
    for axis, other in zip(axes, places_axes, strict=True):
        if shape[axis] != places[other]:
            raise VerifyException(
                f"axis {axis} of the operand has {shape[axis]} elements, axis {other} of the "
                f"indices {places[other]}; need as many"
            )


@irdl_op_definition
class GatherOp(PureOp):
    """Slices of a tensor, from places that another tensor holds.

    A place from which a slice would reach out of the tensor is moved inside.

    Example: %2 = "stablehlo.gather"(%0, %1) <{dimension_numbers = #stablehlo.gather<
    offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>,
    slice_sizes = array<i64: 1, 4>, indices_are_sorted = false}> :
    (tensor<8x4xf32>, tensor<3x1xi32>) -> tensor<3x4xf32>

    Attributes:
        operand: the tensor.
        start_indices: the places.
        dimension_numbers: what the axes are for.
        slice_sizes: the size of a slice along each axis of the operand.
        indices_are_sorted: whether the places increase.
        result: the slices.
    """

    name = "stablehlo.gather"
    operand = operand_def(TensorType)
    start_indices = operand_def(TensorType)
    dimension_numbers = prop_def(GatherAttr)
    slice_sizes = prop_def(INTEGERS)
    indices_are_sorted = opt_prop_def(FLAG)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        axes, shape, places = (
            self.dimension_numbers.data,
            shape_of(self.operand),
            shape_of(self.start_indices),
        )
        need_integers("start_indices", self.start_indices)
        sizes = integers_of(self.slice_sizes, ())
        need_length("slice_sizes", sizes, len(shape))
        for i, (size, n) in enumerate(zip(sizes, shape, strict=True)):
            if not 0 <= size <= n:
                raise VerifyException(f"axis {i}: a slice of {size} of {n}")
        gone = (*axes.collapsed_slice_dims, *axes.operand_batching_dims)
        need_axes("axes of the operand", gone, len(shape))
        need_axes("start_index_map", axes.start_index_map, len(shape))
        for axis in gone:
            if sizes[axis] > 1:
                raise VerifyException(f"axis {axis}: a slice of {sizes[axis]}; need 1")
        kept = [size for i, size in enumerate(sizes) if i not in gone]
        at = axes.index_vector_dim
        if not 0 <= at <= len(places):
            raise VerifyException(f"index_vector_dim {at} of rank {len(places)}")
        need_length("start_index_map", axes.start_index_map, (*places, 1)[at])
        _check_batching(
            axes.operand_batching_dims,
            axes.start_indices_batching_dims,
            axes.start_index_map,
            at,
            shape,
            places,
        )
        batch = [n for i, n in enumerate(places) if i != at]
        rank = len(batch) + len(kept)
        need_axes("offset_dims", axes.offset_dims, rank)
        need_length("offset_dims", axes.offset_dims, len(kept))
        inner, outer = iter(kept), iter(batch)
        wanted = [next(inner) if i in axes.offset_dims else next(outer) for i in range(rank)]
        need_shape("the result", self.result, wanted)
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class ScatterOp(PureOp):
    """Merge slices into tensors, at places that another tensor holds.

    A slice that would reach out of the tensor is left out.

    Example: %3 = "stablehlo.scatter"(%0, %1, %2) <{scatter_dimension_numbers =
    #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0],
    scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () }) :
    (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>

    Attributes:
        inputs: tensors of one shape.
        scatter_indices: the places.
        updates: the slices, one tensor for each input.
        scatter_dimension_numbers: what the axes are for.
        indices_are_sorted: whether the places increase.
        unique_indices: whether no two slices meet.
        made: one tensor for each input.
        update_computation: merges an element of each input with one of its updates.
    """

    name = "stablehlo.scatter"
    inputs = var_operand_def(TensorType)
    scatter_indices = operand_def(TensorType)
    updates = var_operand_def(TensorType)
    scatter_dimension_numbers = prop_def(ScatterAttr)
    indices_are_sorted = opt_prop_def(FLAG)
    unique_indices = opt_prop_def(FLAG)
    made = var_result_def(TensorType)
    update_computation = region_def()

    irdl_options = (SameVariadicOperandSize(),)

    def verify_(self) -> None:
        """Check also the sizes and the region."""
        super().verify_()
        if not self.inputs:
            raise VerifyException("no tensors; need one or more")
        need_length("the updates", self.updates, len(self.inputs))
        need_length("the results", self.made, len(self.inputs))
        axes, shape = self.scatter_dimension_numbers.data, shape_of(self.inputs[0])
        places = shape_of(self.scatter_indices)
        need_integers("scatter_indices", self.scatter_indices)
        gone = (*axes.inserted_window_dims, *axes.input_batching_dims)
        need_axes("axes of the operand", gone, len(shape))
        need_axes("scatter_dims_to_operand_dims", axes.scatter_dims_to_operand_dims, len(shape))
        at = axes.index_vector_dim
        if not 0 <= at <= len(places):
            raise VerifyException(f"index_vector_dim {at} of rank {len(places)}")
        numbers = axes.scatter_dims_to_operand_dims
        need_length("scatter_dims_to_operand_dims", numbers, (*places, 1)[at])
        _check_batching(
            axes.input_batching_dims,
            axes.scatter_indices_batching_dims,
            numbers,
            at,
            shape,
            places,
        )
        batch = [n for i, n in enumerate(places) if i != at]
        kept = [n for i, n in enumerate(shape) if i not in gone]
        for i, (value, update, made) in enumerate(
            zip(self.inputs, self.updates, self.made, strict=True)
        ):
            need_shape(f"tensor {i}", value, shape)
            if made.type != value.type:
                raise VerifyException(f"result {i} is {made.type}; need {value.type}")
            own = shape_of(update)
            need_length(f"the shape of update {i}", own, len(batch) + len(kept))
            need_axes("update_window_dims", axes.update_window_dims, len(own))
            need_length("update_window_dims", axes.update_window_dims, len(kept))
            window = [own[a] for a in axes.update_window_dims]
            if [n for a, n in enumerate(own) if a not in axes.update_window_dims] != batch or any(
                a > b for a, b in zip(window, kept, strict=True)
            ):
                raise VerifyException(f"update {i} has shape {list(own)}, which does not fit")
        elements = [element_of(each) for each in self.made]
        pairs = [*self.inputs, *self.updates]
        check_scalars("update_computation", self.update_computation, pairs, elements)


@irdl_op_definition
class DynamicSliceOp(PureOp):
    """A slice of a tensor from a place that only a run knows, moved inside if it reaches out.

    Example: %2 = "stablehlo.dynamic_slice"(%0, %1) <{slice_sizes = array<i64: 2>}> :
    (tensor<8xf32>, tensor<i32>) -> tensor<2xf32>

    Attributes:
        operand: the tensor.
        start_indices: the place along each axis, tensors without axes.
        slice_sizes: the size along each axis.
        result: the slice.
    """

    name = "stablehlo.dynamic_slice"
    operand = operand_def(TensorType)
    start_indices = var_operand_def(TensorType)
    slice_sizes = prop_def(INTEGERS)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape, sizes = shape_of(self.operand), integers_of(self.slice_sizes, ())
        need_length("slice_sizes", sizes, len(shape))
        need_length("start_indices", self.start_indices, len(shape))
        for i, (size, n) in enumerate(zip(sizes, shape, strict=True)):
            if not 0 <= size <= n:
                raise VerifyException(f"axis {i}: a slice of {size} of {n}")
        for i, value in enumerate(self.start_indices):
            need_shape(f"start index {i}", value, ())
            need_integers(f"start index {i}", value)
        need_shape("the result", self.result, sizes)
        need_same_element("the result", self.result, self.operand)


@irdl_op_definition
class DynamicUpdateSliceOp(PureOp):
    """A tensor with a slice replaced, at a place that only a run knows, moved inside if needed.

    Example: %3 = "stablehlo.dynamic_update_slice"(%0, %1, %2) :
    (tensor<8xf32>, tensor<2xf32>, tensor<i32>) -> tensor<8xf32>

    Attributes:
        operand: the tensor.
        update: the slice.
        start_indices: the place along each axis, tensors without axes.
        result: of the operand's type.
    """

    name = "stablehlo.dynamic_update_slice"
    operand = operand_def(TensorType)
    update = operand_def(TensorType)
    start_indices = var_operand_def(TensorType)
    result = result_def(TensorType)

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape, own = shape_of(self.operand), shape_of(self.update)
        need_length("the shape of update", own, len(shape))
        need_length("start_indices", self.start_indices, len(shape))
        if any(a > b for a, b in zip(own, shape, strict=True)):
            raise VerifyException(f"update of {list(own)} into {list(shape)}")
        for i, value in enumerate(self.start_indices):
            need_shape(f"start index {i}", value, ())
            need_integers(f"start index {i}", value)
        need_same_element("update", self.update, self.operand)
        need_shape("the result", self.result, shape)
        need_same_element("the result", self.result, self.operand)


INDEXED = (GatherOp, ScatterOp, DynamicSliceOp, DynamicUpdateSliceOp)
"""All of them."""
