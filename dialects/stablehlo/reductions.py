"""Operations that merge elements by a region: reductions, windows, maps and sorts."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IntegerAttr, TensorType, i1
from xdsl.ir import Attribute, Block, Region, SSAValue
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
    INTEGER,
    INTEGERS,
    PureOp,
    ReturnOp,
    integers_of,
    need_axes,
    need_length,
    need_same_element,
    need_shape,
    pairs_of,
    window_places,
)


def check_scalars(
    what: str, region: Region, arguments: Sequence[SSAValue], results: Sequence[Attribute]
) -> None:
    """Raise VerifyException unless a region is one block on tensors without axes.

    Args:
        what: the region in messages.
        arguments: values whose elements it takes.
        results: the types of the elements that it returns.
    """
    block = _only_block(what, region)
    need_length(f"the arguments of {what}", block.args, len(arguments))
    for i, (argument, given) in enumerate(zip(block.args, arguments, strict=True)):
        need_shape(f"argument {i} of {what}", argument, ())
        need_same_element(f"argument {i} of {what}", argument, given)
    end = block.last_op
    if not isinstance(end, ReturnOp):
        raise VerifyException(f"{what} ends without stablehlo.return")
    need_length(f"the results of {what}", end.values, len(results))
    for made, element in zip(end.values, results, strict=True):
        need_shape(f"a result of {what}", made, ())
        if element_of(made) != element:
            raise VerifyException(f"{what} returns {element_of(made)}; need {element}")


def _only_block(what: str, region: Region) -> Block:
    blocks = tuple(region.blocks)
    if len(blocks) != 1:
        raise VerifyException(f"{what} has {len(blocks)} blocks; need one")
    return blocks[0]


class MergingOp(PureOp, ABC):
    """An operation that merges elements of tensors, from first values on, in any order.

    Attributes:
        inputs: tensors of one shape.
        init_values: what merging begins with, one tensor without axes for each input.
        made: one tensor for each input.
        body: merges two values of each input.
    """

    inputs = var_operand_def(TensorType)
    init_values = var_operand_def(TensorType)
    made = var_result_def(TensorType)
    body = region_def()

    def verify_(self) -> None:
        """Check also the region, and that all inputs have one shape."""
        super().verify_()
        if not self.inputs:
            raise VerifyException("no tensors; need one or more")
        need_length("init_values", self.init_values, len(self.inputs))
        need_length("the results", self.made, len(self.inputs))
        for i, value in enumerate(self.inputs):
            need_shape(f"tensor {i}", value, shape_of(self.inputs[0]))
        for i, value in enumerate(self.init_values):
            need_shape(f"first value {i}", value, ())
            need_same_element(f"first value {i}", value, self.inputs[i])
        elements = [element_of(each) for each in self.made]
        check_scalars("body", self.body, [*self.inputs, *self.inputs], elements)


@irdl_op_definition
class ReduceOp(MergingOp):
    """Merge all elements along some axes.

    Example: %2 = "stablehlo.reduce"(%0, %1) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.add"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () }) :
    (tensor<2x3xf32>, tensor<f32>) -> tensor<2xf32>

    Attributes:
        dimensions: the axes, which the results do not have.
    """

    name = "stablehlo.reduce"
    dimensions = prop_def(INTEGERS)

    irdl_options = (SameVariadicOperandSize(),)

    @property
    def axes(self) -> tuple[int, ...]:
        """The axes."""
        return integers_of(self.dimensions, ())

    def verify_(self) -> None:
        """Check also the shape of the results."""
        super().verify_()
        shape = shape_of(self.inputs[0])
        need_axes("dimensions", self.axes, len(shape))
        for i, value in enumerate(self.made):
            kept = [n for a, n in enumerate(shape) if a not in self.axes]
            need_shape(f"result {i}", value, kept)


@irdl_op_definition
class ReduceWindowOp(MergingOp):
    """Merge the elements under a window, as it moves over all axes.

    Example: %2 = "stablehlo.reduce_window"(%0, %1) <{window_dimensions = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.maximum"(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%c) : (tensor<f32>) -> () }) : (tensor<8xf32>, tensor<f32>) -> tensor<7xf32>

    Attributes:
        window_dimensions: the size of the window along each axis.
        window_strides: from one place of the window to the next; 1 if absent.
        base_dilations: from one element to the next, with first values between; 1 if absent.
        window_dilations: from one element under the window to the next; 1 if absent.
        padding: the first values before and after the tensor along each axis; none if absent.
    """

    name = "stablehlo.reduce_window"
    window_dimensions = prop_def(INTEGERS)
    window_strides = opt_prop_def(INTEGERS)
    base_dilations = opt_prop_def(INTEGERS)
    window_dilations = opt_prop_def(INTEGERS)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)

    irdl_options = (SameVariadicOperandSize(),)

    @property
    def window(self) -> tuple[int, ...]:
        """The size of the window."""
        return integers_of(self.window_dimensions, ())

    @property
    def strides(self) -> tuple[int, ...]:
        """From one place of the window to the next."""
        return integers_of(self.window_strides, (1,) * len(self.window))

    @property
    def dilations(self) -> tuple[int, ...]:
        """From one element to the next."""
        return integers_of(self.base_dilations, (1,) * len(self.window))

    @property
    def reaches(self) -> tuple[int, ...]:
        """From one element under the window to the next."""
        return integers_of(self.window_dilations, (1,) * len(self.window))

    @property
    def pads(self) -> tuple[tuple[int, int], ...]:
        """The first values before and after the tensor."""
        return pairs_of(self.padding, len(self.window))

    def verify_(self) -> None:
        """Check also the sizes."""
        super().verify_()
        shape = shape_of(self.inputs[0])
        lists = (self.window, self.strides, self.dilations, self.reaches)
        for what, values in zip(("window", "strides", "dilations", "reach"), lists, strict=True):
            need_length(what, values, len(shape))
            if min(values, default=1) < 1:
                raise VerifyException(f"{what} {list(values)}; need 1 or more")
        sizes = [
            window_places(n, window, stride, pads, dilation=wide, reach=reach)
            for n, pads, window, stride, wide, reach in zip(
                shape,
                self.pads,
                self.window,
                self.strides,
                self.dilations,
                self.reaches,
                strict=True,
            )
        ]
        for i, value in enumerate(self.made):
            need_shape(f"result {i}", value, sizes)


@irdl_op_definition
class SelectAndScatterOp(PureOp):
    """Merge each element of a tensor into the place that a window selects in another tensor.

    Example: %3 = "stablehlo.select_and_scatter"(%0, %1, %2) <{window_dimensions = array<i64: 2>,
    window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction GE>}>
    : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> () }, {
    ^bb1(%d: tensor<f32>, %e: tensor<f32>):
    %f = "stablehlo.add"(%d, %e) : (tensor<f32>, tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%f) : (tensor<f32>) -> () }) :
    (tensor<8xf32>, tensor<4xf32>, tensor<f32>) -> tensor<8xf32>

    Attributes:
        operand: the tensor that windows select in.
        source: one element for each place of the window.
        init_value: what merging begins with.
        window_dimensions: the size of the window along each axis; 1 if absent.
        window_strides: from one place of the window to the next; 1 if absent.
        padding: the places before and after the operand along each axis; none if absent.
        result: of the operand's type.
        select: whether the first of two elements is selected.
        scatter: merges two elements.
    """

    name = "stablehlo.select_and_scatter"
    operand = operand_def(TensorType)
    source = operand_def(TensorType)
    init_value = operand_def(TensorType)
    window_dimensions = opt_prop_def(INTEGERS)
    window_strides = opt_prop_def(INTEGERS)
    padding = opt_prop_def(DenseIntOrFPElementsAttr)
    result = result_def(TensorType)
    select = region_def()
    scatter = region_def()

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(shape_of(self.operand))

    @property
    def window(self) -> tuple[int, ...]:
        """The size of the window."""
        return integers_of(self.window_dimensions, (1,) * self.rank)

    @property
    def strides(self) -> tuple[int, ...]:
        """From one place of the window to the next."""
        return integers_of(self.window_strides, (1,) * self.rank)

    @property
    def pads(self) -> tuple[tuple[int, int], ...]:
        """The places before and after the operand."""
        return pairs_of(self.padding, self.rank)

    def verify_(self) -> None:
        """Check also the sizes and the regions."""
        super().verify_()
        shape = shape_of(self.operand)
        for what, values in (("window", self.window), ("strides", self.strides)):
            need_length(what, values, len(shape))
            if min(values, default=1) < 1:
                raise VerifyException(f"{what} {list(values)}; need 1 or more")
        lists = (shape, self.window, self.strides, self.pads)
        sizes = [window_places(*each) for each in zip(*lists, strict=True)]
        need_shape("source", self.source, sizes)
        need_shape("init_value", self.init_value, ())
        need_shape("the result", self.result, shape)
        for what, value in (("init_value", self.init_value), ("the result", self.result)):
            need_same_element(what, value, self.source)
        check_scalars("select", self.select, [self.operand] * 2, [i1])
        check_scalars("scatter", self.scatter, [self.source] * 2, [element_of(self.result)])


@irdl_op_definition
class MapOp(PureOp):
    """Compute a region on the elements of tensors of one shape.

    Example: %1 = "stablehlo.map"(%0) <{dimensions = array<i64: 0>}> ({
    ^bb0(%a: tensor<f32>):
    %b = "stablehlo.negate"(%a) : (tensor<f32>) -> tensor<f32>
    "stablehlo.return"(%b) : (tensor<f32>) -> () }) : (tensor<4xf32>) -> tensor<4xf32>

    Attributes:
        inputs: tensors of one shape.
        dimensions: all axes, in order.
        result: of the shape.
        computation: computes an element of the result from one of each tensor.
    """

    name = "stablehlo.map"
    inputs = var_operand_def(TensorType)
    dimensions = prop_def(INTEGERS)
    result = result_def(TensorType)
    computation = region_def()

    def verify_(self) -> None:
        """Check also the shapes and the region."""
        super().verify_()
        for i, value in enumerate(self.inputs):
            need_shape(f"tensor {i}", value, shape_of(self.result))
        check_scalars("computation", self.computation, self.inputs, [element_of(self.result)])


@irdl_op_definition
class SortOp(PureOp):
    """Sort tensors along an axis by what a region compares.

    Example: %1 = "stablehlo.sort"(%0) <{dimension = 0 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = "stablehlo.compare"(%a, %b) <{comparison_direction = #stablehlo<comparison_direction LT>}>
    : (tensor<f32>, tensor<f32>) -> tensor<i1>
    "stablehlo.return"(%c) : (tensor<i1>) -> () }) : (tensor<8xf32>) -> tensor<8xf32>

    Attributes:
        inputs: tensors of one shape, which are reordered together.
        dimension: the axis; the last one if it is absent or -1.
        is_stable: whether equal elements keep their order.
        made: one tensor for each input.
        comparator: whether the first of two elements of each tensor comes before the second.
    """

    name = "stablehlo.sort"
    inputs = var_operand_def(TensorType)
    dimension = opt_prop_def(INTEGER)
    is_stable = opt_prop_def(IntegerAttr.constr(i1))
    made = var_result_def(TensorType)
    comparator = region_def()

    @property
    def axis(self) -> int:
        """The axis."""
        axis = -1 if self.dimension is None else self.dimension.value.data
        return axis + len(shape_of(self.inputs[0])) if axis < 0 else axis

    @property
    def stable(self) -> bool:
        """Whether equal elements keep their order."""
        return self.is_stable is not None and bool(self.is_stable.value.data)

    def verify_(self) -> None:
        """Check also the axis and the shapes."""
        super().verify_()
        if not self.inputs:
            raise VerifyException("no tensors; need one or more")
        shape = shape_of(self.inputs[0])
        need_axes("dimension", [self.axis], len(shape))
        need_length("the results", self.made, len(self.inputs))
        for i, (value, made) in enumerate(zip(self.inputs, self.made, strict=True)):
            need_shape(f"tensor {i}", value, shape)
            if value.type != made.type:
                raise VerifyException(f"result {i} is {made.type}; need {value.type}")
        pairs = [each for value in self.inputs for each in (value, value)]
        check_scalars("comparator", self.comparator, pairs, [i1])


REDUCTIONS = (ReduceOp, ReduceWindowOp, SelectAndScatterOp, MapOp, SortOp)
"""All of them."""
