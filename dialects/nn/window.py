"""Reductions of a tensor by a combiner: over windows, and over whole axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

from xdsl.dialects.builtin import StringAttr, TensorType, UnitAttr
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from ...ir.geometry.space import AccessMap, Dim, Space
from ...ir.unmet import need_one_of
from ...ir.upstream import VerifyException
from ..scalar_functions import ARITHMETIC
from ..structured import Body, Structure
from .base import (
    INTEGERS,
    axis_map,
    element_of,
    flags,
    integers,
    normal_axis,
    shape_of,
    spatial_names,
    tensor,
    values_of,
)
from .chain import CHAIN, ChainableOp
from .windowed import Windowed, WindowLists, window_properties, windowed_axes


@irdl_op_definition
class PoolOp(ChainableOp, Windowed):
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
    combiner = prop_def(StringAttr)
    assembly_format = (
        "$combiner $image `window` $window `stride` $stride `dilation` $dilation"
        " `pad` $pad_low `to` $pad_high" + CHAIN
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
        n, c, *image = shape_of(self.image)
        out = shape_of(self.result)[2:]
        names = spatial_names(len(out))
        rank = len(out)
        dims = (
            Dim("n", n),
            Dim("c", c),
            *(Dim(name, size) for name, size in zip(names, out, strict=True)),
            *(
                Dim(f"k{name}", size, "reduction")
                for name, size in zip(names, values_of(self.window), strict=True)
            ),
        )
        body = Body("identity", self.combiner.data)
        _, stride, dilation, low, _ = self.parameters()
        spatial = windowed_axes(
            image, dims, range(2, 2 + rank), range(2 + rank, 2 + 2 * rank), stride, dilation, low
        )
        first = (axis_map(n, dims, [(0, 1)]), axis_map(c, dims, [(1, 1)]))
        fills = any(axis.outside == "fill" for axis in spatial)
        result = (axis_map(size, dims, [(2 + i, 1)]) for i, size in enumerate(out))
        space = Space(
            dims,
            (AccessMap((*first, *spatial), body.identity if fills else 0.0),),
            (AccessMap((*first, *result)),),
        )
        return Structure(space, body)


@irdl_op_definition
class ReduceOp(ChainableOp):
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
    combiner = prop_def(StringAttr)
    axes = prop_def(INTEGERS)
    keep_dims = opt_prop_def(UnitAttr)
    assembly_format = "$combiner $operand `axes` $axes (`keep_dims` $keep_dims^)?" + CHAIN

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
        shape, axes = shape_of(self.operand), values_of(self.axes)
        if list(axes) != sorted(set(axes)) or any(not 0 <= a < len(shape) for a in axes):
            raise VerifyException(
                f"axes {list(axes)} of rank {len(shape)}; need increasing axes from 0 to "
                f"{len(shape) - 1}"
            )
        keep = self.keep_dims is not None
        kept = [1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes]
        return tensor(kept, element_of(self.operand))

    def core_structure(self) -> Structure:
        """One dimension per axis of the operand; the given axes are reduced."""
        shape, axes = shape_of(self.operand), values_of(self.axes)
        dims = tuple(
            Dim(f"d{i}", n, "reduction" if i in axes else "parallel") for i, n in enumerate(shape)
        )
        source = tuple(axis_map(n, dims, [(i, 1)]) for i, n in enumerate(shape))
        target = tuple(
            axis_map(1 if i in axes else n, dims, [] if i in axes else [(i, 1)])
            for i, n in enumerate(shape)
            if self.keep_dims is not None or i not in axes
        )
        body = Body("identity", self.combiner.data)
        return Structure(Space(dims, (AccessMap(source),), (AccessMap(target),)), body)
