"""How each operator is split over tiles, and where every block lives: pure SSA on tensors with a
layout."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Attribute, Dialect, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import (
    IRDLOperation,
    irdl_attr_definition,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    param_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import Pure, SymbolOpInterface

from ..ir.aliases import parse_alias
from ..ir.geometry.layout import Layout, canonical
from ..ir.geometry.space import AccessMap, Space
from ..ir.printer import TextPrinter
from ..ir.tensor_type import tensor_type
from ..ir.upstream import AttrParser, Printer, VerifyException
from ..ir.xdsl.verified_by_form import verified_by_form
from .abele import BodyAttr, LayoutAttr, Plan, PlanAttr, SpaceAttr
from .blob_attr import BlobAttr
from .coordinates import verify_coordinate_dtypes
from .dtypes import numpy_dtype
from .structured import Structure
from .verify_structure import verify_result_types, verify_results_cover, verify_structure


@irdl_attr_definition
class PartitionTensor(ParametrizedAttribute, TypeAttribute):
    """A tensor with a layout, which says where its elements live on tiles.

    The layout views the tensor's elements row-major, possibly in another shape.
    Example: !partition.tensor<4x6xf32, [24 by 4] (d0) of [24]>
    """

    name = "partition.tensor"
    tensor: TensorType = param_def()
    layout: LayoutAttr = param_def()

    @classmethod
    def parse_parameters(cls, parser: AttrParser) -> Sequence[Attribute]:
        """Parse the text in angle brackets."""
        with parser.in_angle_brackets():
            shape, element = parser.parse_ranked_shape()
            parser.parse_punctuation(",")
            layout = parse_alias(parser, LayoutAttr) or LayoutAttr(LayoutAttr.parse_value(parser))
        return [tensor_type(element, shape), layout]

    def print_parameters(self, printer: Printer) -> None:
        """Print the type in angle brackets."""
        with printer.in_angle_brackets():
            for n in self.tensor.get_shape():
                printer.print_string(f"{n}x")
            printer.print_attribute(self.tensor.element_type)
            alias = printer.alias(self.layout) if isinstance(printer, TextPrinter) else ""
            printer.print_string(f", {alias or self.layout.text()}")

    def verify(self) -> None:
        """Check that the layout has as many elements as the tensor."""
        elements = 1
        for n in self.tensor.get_shape():
            elements *= n
        viewed = 1
        for n in self.layout.data.shape:
            viewed *= n
        if elements != viewed:
            raise VerifyException(
                f"layout of {viewed} elements ({list(self.layout.data.shape)}) for a tensor of "
                f"{elements} ({list(self.tensor.get_shape())})"
            )
        try:
            numpy_dtype(self.tensor.element_type)
        except ValueError as error:
            raise VerifyException(str(error)) from None


def laid_out(tensor: TensorType, layout: Layout) -> PartitionTensor:
    """The tensor type with this layout."""
    return PartitionTensor(tensor, LayoutAttr(layout))


def partition_type(value: SSAValue) -> PartitionTensor:
    """The value's type. Raises VerifyException if it is not a partition.tensor."""
    if not isinstance(value.type, PartitionTensor):
        raise VerifyException(f"value of type {value.type}; need a !partition.tensor")
    return value.type


def access_layout(space: Space, access: AccessMap, plan: Plan) -> Layout:
    """The layout that a plan gives an operand or result of a space."""
    return canonical(plan.layout(space.dims, access))


def verify_cut(structure: Structure, plan: Plan) -> None:
    """Check that a plan cuts a structure legally: parallel dimensions only, all parts non-empty."""
    dims = structure.space.dims
    verify_structure(structure)
    if len(plan.split) != len(dims):
        raise VerifyException(f"split of {len(plan.split)} dimensions; the space has {len(dims)}")
    if plan.workers and len(plan.workers) != len(dims):
        raise VerifyException(
            f"workers of {len(plan.workers)} dimensions; the space has {len(dims)}"
        )
    if sorted(set(plan.order)) != sorted(plan.order) or any(
        not 0 <= d < len(dims) for d in plan.order
    ):
        raise VerifyException(f"order {list(plan.order)} does not name dimensions once each")
    for dim, parts in zip(dims, plan.split, strict=True):
        allowed = max(1, dim.size) if dim.kind == "parallel" else 1
        if not 1 <= parts <= allowed:
            raise VerifyException(
                f"{dim.kind} dimension {dim.name}: {parts} parts of {dim.size} elements; "
                f"need 1..{allowed}"
            )
    for d in structure.space.of_kind("whole"):
        if plan.workers and plan.workers[d] > 1:
            raise VerifyException(
                f"whole dimension {dims[d].name}: {plan.workers[d]} workers; need 1"
            )
    if plan.combine is not None:
        raise VerifyException("a combine plan belongs to nn, before partials are an operation")
    verify_results_cover(structure)


@irdl_op_definition
class StateOp(IRDLOperation):
    """A tensor that keeps its value between runs, and its first value.

    Example: partition.state @w : tensor <24xf32, [24 by 4] (d0) of [24]> = blob <"39296d74...">

    Attributes:
        sym_name: its name in loads and stores.
        type: its tensor and its layout.
        initial: its value before the first run.
    """

    name = "partition.state"
    sym_name = prop_def(SymbolNameConstraint())
    type = prop_def(PartitionTensor)
    initial = prop_def(BlobAttr)
    assembly_format = "$sym_name `:` `tensor` $type `=` `blob` $initial attr-dict"
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, type: PartitionTensor, initial: BlobAttr):
        super().__init__(
            properties={"sym_name": StringAttr(name), "type": type, "initial": initial}
        )


@irdl_op_definition
class LoadOp(IRDLOperation):
    """The value of a state.

    Example: %0 = partition.load @w : !partition.tensor<24xf32, [24 by 4] (d0) of [24]>

    Attributes:
        state: a partition.state of the result's type.
    """

    name = "partition.load"
    state = prop_def(SymbolRefAttr)
    result = result_def(PartitionTensor)
    assembly_format = "$state `:` type($result) attr-dict"

    def __init__(self, state: str, type: PartitionTensor):
        super().__init__(properties={"state": SymbolRefAttr(state)}, result_types=[type])


@irdl_op_definition
class StoreOp(IRDLOperation):
    """Store a new value in a state, in the state's layout.

    Example: partition.store %0 -> @w : !partition.tensor<24xf32, [24 by 4] (d0) of [24]>

    Attributes:
        value: the state's value at the start of the next run.
        state: a partition.state of its type.
    """

    name = "partition.store"
    value = operand_def(PartitionTensor)
    state = prop_def(SymbolRefAttr)
    assembly_format = "$value `->` $state `:` type($value) attr-dict"

    def __init__(self, value: SSAValue, state: str):
        super().__init__(operands=[value], properties={"state": SymbolRefAttr(state)})


@irdl_op_definition
class ConstantOp(IRDLOperation):
    """A tensor known at compile time.

    Example: %0 = partition.constant blob <"8f14e45f...">
    : !partition.tensor<24xf32, [24 by 4] (d0) of [24]>

    Attributes:
        value: its elements.
    """

    name = "partition.constant"
    value = prop_def(BlobAttr)
    result = result_def(PartitionTensor)
    assembly_format = "`blob` $value `:` type($result) attr-dict"
    traits = traits_def(Pure())

    def __init__(self, value: BlobAttr, type: PartitionTensor):
        super().__init__(properties={"value": value}, result_types=[type])


@irdl_op_definition
class ComputeOp(IRDLOperation):
    """A structured operator, split over tiles: each cell works on its own blocks.

    The layouts of the operands and of the results follow from the space and the plan.

    Example: %1 = partition.compute(%w, %x)
    space <[m = 8, k = 4 reduction] (m, k) of [8, 4], (k) of [4] -> (m) of [8]>
    body <mul sum> plan <split [2, 1] method mac>
    : (!partition.tensor<8x4xf32, [8 by 2, 4] (d0, d1) of [8, 4]>,
    !partition.tensor<4xf32, [8 by 2, 4] (d1) of [4]>)
    -> !partition.tensor<8xf32, [8 by 2] (d0) of [8]>

    Attributes:
        inputs: one per operand of the space.
        space: where each point reads and writes.
        body: what happens at each point.
        plan: how the space is split over tiles, in parallel dimensions only, and over workers;
            combine is not set.
        made: one per result of the space.
    """

    name = "partition.compute"
    inputs = var_operand_def(PartitionTensor)
    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    plan = prop_def(PlanAttr)
    made = var_result_def(PartitionTensor)
    assembly_format = (
        "`(` $inputs `)` `space` $space `body` $body `plan` $plan attr-dict `:`"
        " functional-type($inputs, $made)"
    )
    traits = traits_def(Pure())

    def __init__(
        self, inputs: Sequence[SSAValue], structure: Structure, plan: Plan, *tensors: TensorType
    ):
        space = structure.space
        super().__init__(
            operands=[inputs],
            properties={
                "space": SpaceAttr(structure.space),
                "body": BodyAttr(structure.body),
                "plan": PlanAttr(plan),
            },
            result_types=[
                [
                    laid_out(tensor, access_layout(space, access, plan))
                    for tensor, access in zip(tensors, space.results, strict=True)
                ]
            ],
        )

    @property
    def result(self) -> SSAValue:
        """The only result, or the first of several."""
        return self.results[0]

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        space, plan = self.space.data, self.plan.data
        verify_cut(self.structure(), plan)
        if len(space.operands) != len(self.inputs) or len(space.results) != len(self.made):
            raise VerifyException(
                f"{len(self.inputs)} operands and {len(self.made)} results for a space of "
                f"{len(space.operands)} and {len(space.results)}"
            )
        made = [partition_type(value).tensor.element_type for value in self.made]
        verify_result_types(self.body.data, made)
        given = [partition_type(value).tensor.element_type for value in self.inputs]
        verify_coordinate_dtypes(self.structure(), [*given, made[0]])
        for i, (value, access) in enumerate(zip(self.inputs, space.operands, strict=True)):
            _verify_layout(
                f"operand {i}", partition_type(value), access_layout(space, access, plan)
            )
        several = len(self.made) > 1
        for i, (value, access) in enumerate(zip(self.made, space.results, strict=True)):
            role = f"result {i}" if several else "result"
            _verify_layout(role, partition_type(value), access_layout(space, access, plan))


def _verify_layout(role: str, given: PartitionTensor, need: Layout) -> None:
    if given.layout.data != need:
        raise VerifyException(
            f"{role}: layout {given.layout.text()}; the split needs {LayoutAttr(need).text()}"
        )


@irdl_op_definition
class RelayoutOp(IRDLOperation):
    """The same elements, or elements moved between tensors, in another layout.

    Example: %1 = partition.relayout(%0)
    : (!partition.tensor<24xf32, [24 by 4] (d0) of [24]>)
    -> !partition.tensor<24xf32, [24 by 6] (d0) of [24]>

    Attributes:
        inputs: tensors in layouts that give each element one owner.
        moves: one space per operand, from the operand's tensor to the result's (transpose, concat,
            slice, pad, ...); without it, the only operand is copied as it is, row-major.
        rounds: an all-gather, in rounds: each chip sends its part to its neighbours, and then what
            it has received from them.
    """

    name = "partition.relayout"
    inputs = var_operand_def(PartitionTensor)
    moves = opt_prop_def(ArrayAttr[SpaceAttr])
    rounds = opt_prop_def(UnitAttr)
    result = result_def(PartitionTensor)
    assembly_format = (
        "`(` $inputs `)` (`moves` $moves^)? (`rounds` $rounds^)? attr-dict "
        "`:` functional-type($inputs, $result)"
    )
    traits = traits_def(Pure())

    def __init__(
        self,
        inputs: Sequence[SSAValue],
        moves: Sequence[Space] | None,
        type: PartitionTensor,
        *,
        rounds: bool = False,
    ):
        super().__init__(
            operands=[inputs],
            properties={
                "moves": None if moves is None else ArrayAttr(map(SpaceAttr, moves)),
                "rounds": UnitAttr() if rounds else None,
            },
            result_types=[type],
        )

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        shapes = [partition_type(v).tensor.get_shape() for v in self.inputs]
        verify_moves(self.moves, shapes, partition_type(self.result).tensor.get_shape())
        for i, value in enumerate(self.inputs):
            if not partition_type(value).layout.data.is_partition:
                raise VerifyException(f"operand {i}: blocks overlap; need one owner per element")


def verify_moves(
    moves: ArrayAttr[SpaceAttr] | None,
    sources: Sequence[Sequence[int]],
    destination: Sequence[int],
) -> None:
    """Check that moves lead from the sources' shapes to the destination's."""

    def size(shape: Sequence[int]) -> int:
        n = 1
        for extent in shape:
            n *= extent
        return n

    if moves is None:
        if len(sources) != 1 or size(sources[0]) != size(destination):
            raise VerifyException(
                f"{[list(s) for s in sources]} to {list(destination)} without moves; need one "
                "source with as many elements"
            )
        return
    if len(moves) != len(sources) or not sources:
        raise VerifyException(f"{len(moves)} moves for {len(sources)} sources")
    written = 0
    for i, (move, shape) in enumerate(zip(moves, sources, strict=True)):
        space = move.data
        if len(space.operands) != 1 or len(space.results) != 1:
            raise VerifyException(f"move {i}: need one operand and one result")
        read, result = space.operands[0], space.results[0]
        if size(read.shape) != size(shape):
            raise VerifyException(
                f"move {i}: reads {list(read.shape)}; the source is {list(shape)}"
            )
        if result.shape != moves.data[0].data.results[0].shape:
            raise VerifyException(
                f"move {i}: writes {list(result.shape)}; move 0 writes "
                f"{list(moves.data[0].data.results[0].shape)}"
            )
        if size(result.shape) != size(destination):
            raise VerifyException(
                f"move {i}: writes {list(result.shape)}; the result is {list(destination)}"
            )
        names = [d for axis in result.axes for d, _ in axis.terms]
        if len(set(names)) != len(names) or any(
            len(axis.terms) > 1 or axis.divisor != 1 or [a for _, a in axis.terms] not in ([], [1])
            for axis in result.axes
        ):
            raise VerifyException(f"move {i}: result axes must be one dimension each")
        if {d for d, n in enumerate(space.sizes) if n != 1} - set(names):
            raise VerifyException(f"move {i}: a dimension is missing from the result")
        written += space.points
    if written != size(destination):
        raise VerifyException(f"moves write {written} of {size(destination)} elements")
    _verify_apart([move.data for move in moves])


def _verify_apart(moves: Sequence[Space]) -> None:
    """Check that no two moves write the same element of the result. Each move writes a box."""
    first = np.array([[axis.offset for axis in m.results[0].axes] for m in moves], np.int64)
    count = np.array(
        [[m.sizes[a.terms[0][0]] if a.terms else 1 for a in m.results[0].axes] for m in moves],
        np.int64,
    )
    last = first + count
    meet = ((first[:, None] < last) & (first < last[:, None])).all(2) & (count > 0).all(1)
    pairs = np.argwhere(np.triu(meet & meet.T, 1))
    if len(pairs):
        raise VerifyException(f"moves {pairs[0][0]} and {pairs[0][1]} write the same elements")


@irdl_op_definition
class ReshapeOp(IRDLOperation):
    """The same elements in another shape, without moving anything.

    Example: %1 = partition.reshape %0 : !partition.tensor<24xf32, [24 by 4] (d0) of [24]>
    -> !partition.tensor<4x6xf32, [24 by 4] (d0) of [24]>

    Attributes:
        value: a tensor with as many elements as the result, in the result's layout.
    """

    name = "partition.reshape"
    value = operand_def(PartitionTensor)
    result = result_def(PartitionTensor)
    assembly_format = "$value attr-dict `:` type($value) `->` type($result)"
    traits = traits_def(Pure())

    def __init__(self, value: SSAValue, tensor: TensorType):
        type = laid_out(tensor, partition_type(value).layout.data)
        super().__init__(operands=[value], result_types=[type])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if partition_type(self.value).layout != partition_type(self.result).layout:
            raise VerifyException("a reshape keeps the layout; use partition.relayout")


Partition = Dialect(
    "partition",
    [StateOp, LoadOp, StoreOp, ConstantOp, ComputeOp, RelayoutOp, ReshapeOp],
    [PartitionTensor],
)
verified_by_form(*Partition.operations)
