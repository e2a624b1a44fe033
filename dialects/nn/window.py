"""Reductions of a tensor by a combiner: over windows, and over whole axes."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import Unpack

from xdsl.dialects.builtin import StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from ...ir.geometry.space import Space
from ...ir.unmet import need_one_of
from ...ir.upstream import VerifyException
from ..scalar_functions import ARITHMETIC
from ..structured import Body, Narrow, Structure
from .base import (
    INTEGERS,
    element_of,
    flags,
    integers,
    normal_axis,
    shape_of,
    tensor,
    values_of,
)
from .chain import CHAIN, ChainableOp
from .whole_axes import shape_without, whole_axes_maps
from .windowed import Windowed, WindowLists, window_properties

NARROW = " (`narrow_partials` $narrow_partials^)?"
"""How it is written that the parts of a sum are kept in 16 bits."""


class MergingOp(ChainableOp, ABC):
    """A reduction of one tensor.

    Attributes:
        combiner: sum, max, min or prod.
        narrow_partials: only for sums: parts of a sum of 16-bit floats are stored in 16 bits
            instead of 32. It has no effect on wider elements.
    """

    combiner = prop_def(StringAttr)
    narrow_partials = opt_prop_def(UnitAttr)

    def verify_(self) -> None:
        """Check also that narrow partials are those of a sum."""
        super().verify_()
        if self.narrow_partials is not None and self.combiner.data != "sum":
            raise VerifyException(f"narrow_partials of {self.combiner.data}; need sum")

    @property
    def merging(self) -> Body:
        """What happens at each point."""
        narrow = None if self.narrow_partials is None else Narrow()
        return Body("identity", self.combiner.data, narrow=narrow)


@irdl_op_definition
class PoolOp(MergingOp, Windowed):
    """Merge the elements under a window that moves over the spatial axes of [N, C, ...].

    Padding is the combiner's identity.

    Example: %1 = nn.pool "max" %0 window [3, 3] stride [2, 2] dilation [1, 1] pad [0, 0] to [0, 0]
    : (tensor<1x96x55x55xf32>) -> tensor<1x96x27x27xf32>

    Attributes:
        combiner: sum, max, min or prod.
        image: [N, C, ...].
    """

    name = "nn.pool"
    image = operand_def(TensorType)
    assembly_format = (
        "$combiner $image `window` $window `stride` $stride `dilation` $dilation"
        " `pad` $pad_low `to` $pad_high" + NARROW + CHAIN
    )

    def __init__(
        self,
        image: SSAValue,
        combiner: str,
        window: Sequence[int],
        **lists: Unpack[WindowLists],
    ):
        super().__init__(
            [image], {"combiner": StringAttr(combiner), **window_properties(window, **lists)}
        )

    def infer(self) -> TensorType[Attribute]:
        """[N, C, positions of the window...]."""
        need_one_of("combiner", self.combiner.data, ARITHMETIC)
        return tensor(self.shape_over(shape_of(self.image)), element_of(self.image))

    def core_structure(self) -> Structure:
        """n, c, positions...; the window's axes are reduced."""
        body = self.merging
        dims, read, written = self.window_maps(shape_of(self.image), shape_of(self.result), body)
        return Structure(Space(dims, (read,), (written,)), body)


@irdl_op_definition
class ReduceOp(MergingOp):
    """Merge all elements along some axes.

    Example: %1 = nn.reduce "sum" %0 axes [2, 3] keep_dims : (tensor<1x8x7x7xf32>)
    -> tensor<1x8x1x1xf32>

    Attributes:
        combiner: sum, max, min or prod.
        operand: of any shape.
        axes: counted from 0, increasing.
        keep_dims: the axes stay in the result, with size 1.
    """

    name = "nn.reduce"
    operand = operand_def(TensorType)
    axes = prop_def(INTEGERS)
    keep_dims = opt_prop_def(UnitAttr)
    assembly_format = "$combiner $operand `axes` $axes (`keep_dims` $keep_dims^)?" + NARROW + CHAIN

    def __init__(
        self, operand: SSAValue, combiner: str, axes: Sequence[int], *, keep_dims: bool = False
    ):
        rank = len(shape_of(operand))
        super().__init__(
            [operand],
            {
                "combiner": StringAttr(combiner),
                "axes": integers(sorted(normal_axis(a, rank) for a in axes)),
                **flags(keep_dims=keep_dims),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """The operand's shape without the axes, or with size 1 for them."""
        need_one_of("combiner", self.combiner.data, ARITHMETIC)
        keep = self.keep_dims is not None
        shape = shape_without(shape_of(self.operand), values_of(self.axes), keep=keep)
        return tensor(shape, element_of(self.operand))

    def core_structure(self) -> Structure:
        """One dimension per axis of the operand; the given axes are reduced."""
        body = self.merging
        keep = self.keep_dims is not None
        dims, read, written = whole_axes_maps(
            shape_of(self.operand), values_of(self.axes), keep=keep
        )
        return Structure(Space(dims, (read,), (written,)), body)
