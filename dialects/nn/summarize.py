"""Reductions with several results: their combiner merges several values at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from typing import Unpack

from xdsl.dialects.builtin import AnyFloat, StringAttr, TensorType, UnitAttr, i1, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
)

from ...ir.geometry.space import AccessMap, Dim, Position, Space
from ...ir.unmet import need_one_of
from ...ir.upstream import VerifyException
from ...ir.xdsl.cached_by_form import cached_by_form
from ..combiners import TUPLE_COMBINERS, Combiner
from ..dtypes import STORED
from ..structured import Body, Structure, Structured
from .base import (
    INTEGERS,
    MOST_POSITIONS,
    Shape,
    TensorsOp,
    element_of,
    flags,
    integers,
    normal_axis,
    shape_of,
    tensor,
    values_of,
)
from .whole_axes import shape_without, whole_axes_maps
from .windowed import Windowed, WindowLists, window_properties

Types = tuple[TensorType[Attribute], ...]


class CombiningOp(TensorsOp, Structured, ABC):
    """A reduction by a combiner that merges several values at once.

    Attributes:
        combiner: one of TUPLE_COMBINERS.
        made: one per result of the combiner. Indices are i32; other results have the element type
            of the operand.
    """

    combiner = prop_def(StringAttr)

    def __init__(self, operand: SSAValue, combiner: str, properties: Mapping[str, Attribute]):
        need_one_of("combiner", combiner, tuple(TUPLE_COMBINERS))
        count = len(TUPLE_COMBINERS[combiner].results)
        super().__init__([operand], {"combiner": StringAttr(combiner), **properties}, count)

    @property
    def kind(self) -> Combiner:
        """The combiner. Raises VerifyException if there is none of that name."""
        need_one_of("combiner", self.combiner.data, tuple(TUPLE_COMBINERS))
        return TUPLE_COMBINERS[self.combiner.data]

    @abstractmethod
    def result_shape(self) -> Shape:
        """The shape of every result. Raises VerifyException if properties do not fit."""

    def infer_all(self) -> Types:
        """The types of the results, from types, properties and attributes alone.

        Raises VerifyException if they disagree.
        """
        kind, element = self.kind, element_of(self.operands[0])
        if element == i1:
            raise VerifyException(f"{kind.name} of i1; need numbers")
        if element in STORED:
            raise VerifyException(f"{kind.name} of {element}, which is only stored; need a cast")
        if kind.floats and not isinstance(element, AnyFloat):
            raise VerifyException(f"{kind.name} of {element}; need floats")
        shape = self.result_shape()
        return tuple(tensor(shape, i32 if k == "index" else element) for k in kind.results)

    def _structure(
        self,
        dims: tuple[Dim, ...],
        operand: AccessMap,
        result: AccessMap,
        position: AccessMap,
    ) -> Structure:
        """The structure over these dimensions.

        Args:
            position: the map of each element's position, if it is read.
        """
        body = Body("identity", self.combiner.data)
        positions = (Position(position),) * body.position_count
        return Structure(
            Space(dims, (operand,), (result,) * body.result_count, (), positions), body
        )


def _need_positions(size: int) -> None:
    """Raise VerifyException if positions in a tensor of this size do not fit into i32."""
    if size > MOST_POSITIONS:
        raise VerifyException(f"positions in {size:,} elements; need at most 2^31 - 1")


@irdl_op_definition
class SummarizeOp(CombiningOp):
    """Merge all elements along some axes into several results: a value and its index, or moments.

    Example: %1, %2 = nn.summarize "argmax" %0 axes [1] : (tensor<8x1000xf32>)
    -> (tensor<8xf32>, tensor<8xi32>)

    Attributes:
        operand: of any shape; the axes have at least one element.
        axes: counted from 0, increasing. An index counts row-major over these axes.
        keep_dims: the axes stay in the results, with size 1.
    """

    name = "nn.summarize"
    operand = operand_def(TensorType)
    axes = prop_def(INTEGERS)
    keep_dims = opt_prop_def(UnitAttr)
    assembly_format = (
        "$combiner $operand `axes` $axes (`keep_dims` $keep_dims^)?"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self, operand: SSAValue, combiner: str, axes: Sequence[int], *, keep_dims: bool = False
    ):
        rank = len(shape_of(operand))
        listed = integers(sorted(normal_axis(a, rank) for a in axes))
        super().__init__(operand, combiner, {"axes": listed, **flags(keep_dims=keep_dims)})

    def result_shape(self) -> Shape:
        """The operand's shape without the axes, or with size 1 for them."""
        shape, axes = shape_of(self.operand), values_of(self.axes)
        kept = shape_without(shape, axes, keep=self.keep_dims is not None)
        empty = [a for a in axes if shape[a] == 0]
        if empty:
            raise VerifyException(f"axis {empty[0]} has no elements; need one or more")
        _need_positions(prod(shape[a] for a in axes))
        return kept

    @cached_by_form
    def structure(self) -> Structure:
        """One dimension per axis of the operand; the given axes are reduced."""
        axes, keep = values_of(self.axes), self.keep_dims is not None
        dims, read, written = whole_axes_maps(shape_of(self.operand), axes, keep=keep)
        position = AccessMap(tuple(read.axes[a] for a in axes))
        return self._structure(dims, read, written, position)


@irdl_op_definition
class SummarizeWindowsOp(CombiningOp, Windowed):
    """Merge the elements under a moving window into several results: maxima and where they are.

    Padding contributes nothing. An index counts row-major in the whole image.

    Example: %1, %2 = nn.summarize_windows "argmax" %0 window [2, 2] stride [2, 2] dilation [1, 1]
    pad [0, 0] to [0, 0] : (tensor<1x8x6x6xf32>) -> (tensor<1x8x3x3xf32>, tensor<1x8x3x3xi32>)

    Attributes:
        image: [N, C, ...].
        combiner: one that ignores padding, if there is padding: with a position, or with an element
            that it ignores.
    """

    name = "nn.summarize_windows"
    image = operand_def(TensorType)
    assembly_format = (
        "$combiner $image `window` $window `stride` $stride `dilation` $dilation"
        " `pad` $pad_low `to` $pad_high attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        image: SSAValue,
        combiner: str,
        window: Sequence[int],
        **lists: Unpack[WindowLists],
    ):
        super().__init__(image, combiner, window_properties(window, **lists))

    def result_shape(self) -> Shape:
        """[N, C, positions of the window...]."""
        shape = self.shape_over(shape_of(self.image))
        _need_positions(prod(shape_of(self.image)))
        kind = self.kind
        pads = any(values_of(self.pad_low)) or any(values_of(self.pad_high))
        if pads and not kind.reads_position and kind.fill is None:
            raise VerifyException(f"{kind.name} of padding; need windows without padding")
        return shape

    @cached_by_form
    def structure(self) -> Structure:
        """n, c, positions...; the window's axes are reduced."""
        body = Body("identity", self.combiner.data)
        dims, read, written = self.window_maps(shape_of(self.image), self.result_shape(), body)
        return self._structure(dims, read, written, AccessMap(read.axes))
