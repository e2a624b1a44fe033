"""Sums of products: convolution, its two gradients, and matrix multiplication."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType, UnitAttr, f16, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from ...ir.geometry.space import AccessMap, AxisMap, Dim, Kind, Space
from ...ir.support.number_formats import SCALES
from ...ir.support.number_kinds import bit_width, is_whole
from ...ir.unmet import Unmet
from ...ir.upstream import VerifyException
from ..dtypes import QUARTERS, numpy_dtype
from ..scalar_functions import SCALED
from ..structured import Body, Narrow, Structure
from .base import (
    INTEGER,
    INTEGERS,
    Shape,
    axis_map,
    broadcast,
    element_of,
    flags,
    integer,
    integers,
    need_at_least,
    need_length,
    same_element,
    shape_of,
    spatial_names,
    tensor,
    values_of,
)
from .chain import CHAIN, ChainableOp
from .windowed import positions_of, window_lists, windowed_axes

PARTIALS = " (`scale` $scale^)? (`narrow_partials` $narrow_partials^)? (`into_i32` $into_i32^)?"
"""How the scale of the operands and the type of partial sums are written."""

PRODUCT_SCALES = range(2 * SCALES.start, 2 * SCALES.stop - 1)
"""The exponents of the scale of a product: sums of two exponents of SCALES."""

WIDEST_FACTOR_BITS = 32
"""Bits of the widest integers whose products are added up as i32."""


class _Window:
    """A convolution's dimensions by name, and the maps of its three tensors."""

    def __init__(self, sizes: Sequence[tuple[str, int, Kind]]):
        self.dims = tuple(Dim(name, size, kind) for name, size, kind in sizes)
        self.index = {d.name: i for i, d in enumerate(self.dims)}

    def at(self, names: Sequence[str]) -> tuple[int, ...]:
        """The indices of dimensions."""
        return tuple(self.index[name] for name in names)

    def plain(self, *names: str) -> tuple[AxisMap, ...]:
        """Axes that are one dimension each; names without a dimension are left out."""
        at = [self.index[n] for n in names if n in self.index]
        return tuple(axis_map(self.dims[d].size, self.dims, [(d, 1)]) for d in at)


def _scaled(scale: int | None) -> dict[str, Attribute]:
    """The property of a scale; none for None."""
    return {} if scale is None else {"scale": integer(scale)}


class ContractionOp(ChainableOp, ABC):
    """A sum of products.

    Attributes:
        narrow_partials: sums of 16-bit floats are kept in 16 bits instead of 32. The multiplying
            units are then twice as fast, and partial sums half as large but less exact. It has no
            effect on wider elements.
        into_i32: the operands are integers of 8 to 32 bits, perhaps of two types, and their
            products are added up as i32, modulo 2^32.
        scale: only for operands of f8E4M3FNUZ and f8E5M2FNUZ, in any combination. An element q of
            an operand stands for q * 2^s. The scale is the sum of both exponents s: each product is
            multiplied by 2^scale before it is added up. The sums are of f16, and so is the result.
            Only targets that have units for such operands compute them.
    """

    scale = opt_prop_def(INTEGER)
    narrow_partials = opt_prop_def(UnitAttr)
    into_i32 = opt_prop_def(UnitAttr)

    def product_element(self) -> Attribute:
        """The element type of the result, from those of the operands."""
        if self.is_of_quarters:
            return f16
        if self.scale is not None:
            raise Unmet(
                f"scale {self.exponent} of elements {element_of(self.operands[0])}; need "
                f"{' or '.join(map(str, QUARTERS))}",
                "scale",
            )
        if self.into_i32 is None:
            return same_element(*self.operands)
        for i, value in enumerate(self.operands):
            element = element_of(value)
            dtype = numpy_dtype(element)
            if not is_whole(dtype) or not 8 <= bit_width(dtype) <= WIDEST_FACTOR_BITS:
                raise Unmet(
                    f"operand {i} has elements {element}; into_i32 needs integers of 8 to "
                    f"{WIDEST_FACTOR_BITS} bits",
                    f"operand {i}",
                )
        return i32

    @property
    def is_of_quarters(self) -> bool:
        """Whether the operands are 8-bit floats."""
        return any(element_of(value) in QUARTERS for value in self.operands)

    @property
    def exponent(self) -> int:
        """The exponent of the scale; 0 without a scale."""
        return 0 if self.scale is None else self.scale.value.data

    def computes_with(self, element: Attribute) -> bool:
        """Whether the operation computes with a type that is only stored for most others."""
        return element in QUARTERS

    def verify_(self) -> None:
        """Check also the operands and the scale of a product of 8-bit floats."""
        super().verify_()
        if not self.is_of_quarters:
            return
        for i, value in enumerate(self.operands):
            if element_of(value) not in QUARTERS:
                raise VerifyException(
                    f"operand {i} has elements {element_of(value)}, and another has 8-bit floats; "
                    f"need {' or '.join(map(str, QUARTERS))} in both"
                )
        if self.exponent not in PRODUCT_SCALES:
            raise VerifyException(
                f"scale {self.exponent}; need {PRODUCT_SCALES.start} to {PRODUCT_SCALES.stop - 1}, "
                f"the sum of two exponents of {SCALES.start} to {SCALES.stop - 1}"
            )
        if self.into_i32 is not None:
            raise VerifyException("into_i32 of 8-bit floats; need integers")

    @property
    def multiply_add(self) -> Body:
        """What happens at each point."""
        if self.is_of_quarters:
            return Body(SCALED, "sum", (2.0**self.exponent,))
        return Body("mul", "sum", narrow=None if self.narrow_partials is None else Narrow())


class ConvolutionOp(ContractionOp, ABC):
    """What a convolution and its gradients share: stride, dilation, padding and groups.

    Lists have one entry per spatial axis; a gradient has those of its convolution.

    Attributes:
        stride: image elements from one position of the kernel to the next, 1 or more.
        dilation: image elements from one element of the kernel to the next, 1 or more.
        pad_low: zeros to add before the image; negative numbers drop elements.
        groups: parts of the channels and of the outputs; each output reads one part of the
            channels.
    """

    stride = prop_def(INTEGERS)
    dilation = prop_def(INTEGERS)
    pad_low = prop_def(INTEGERS)
    groups = prop_def(INTEGER, default_value=integer(1))

    def check_parameters(self, rank: int) -> None:
        """Raise VerifyException unless the lists have one entry per spatial axis."""
        if rank < 1:
            raise VerifyException("a convolution needs a batch, a channel and a spatial axis")
        stride, dilation, low = self.lists
        need_length("stride", stride, rank)
        need_length("dilation", dilation, rank)
        need_length("pad_low", low, rank)
        need_at_least("stride", stride, 1)
        need_at_least("dilation", dilation, 1)
        need_at_least("groups", [self.group_count], 1)

    @property
    def lists(self) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """Stride, dilation and padding before the image, one entry per spatial axis."""
        return values_of(self.stride), values_of(self.dilation), values_of(self.pad_low)

    @property
    def group_count(self) -> int:
        """Number of groups."""
        return self.groups.value.data


def check_groups(channels: int, outputs: int, per_group: int, groups: int) -> None:
    """Raise VerifyException unless channels and outputs divide into the groups."""
    if groups < 1 or outputs % groups:
        raise VerifyException(f"{outputs} outputs in {groups} groups; need a divisor")
    if channels != per_group * groups:
        raise VerifyException(
            f"image has {channels} channels; {groups} groups of {per_group} in the weights "
            f"need {per_group * groups}"
        )


@irdl_op_definition
class ConvOp(ConvolutionOp):
    """Convolve an image [N, C, ...] with weights [O, C / groups, ...], as networks do it.

    Example: %1 = nn.conv %image, %weight stride [4, 4] dilation [1, 1] pad [2, 2] to [2, 2]
    : (tensor<1x3x224x224xf32>, tensor<96x3x11x11xf32>) -> tensor<1x96x55x55xf32>

    Attributes:
        image: [N, C, ...].
        weight: [O, C / groups, kernel...]; the kernel is not mirrored.
        pad_high: zeros to add after the image; negative numbers drop elements.
    """

    name = "nn.conv"
    image = operand_def(TensorType)
    weight = operand_def(TensorType)
    pad_high = prop_def(INTEGERS)
    assembly_format = (
        "$image `,` $weight `stride` $stride `dilation` $dilation `pad` $pad_low `to` $pad_high"
        " (`groups` $groups^)?" + PARTIALS + CHAIN
    )

    def __init__(
        self,
        image: SSAValue,
        weight: SSAValue,
        *,
        stride: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        pad_low: Sequence[int] | None = None,
        pad_high: Sequence[int] | None = None,
        groups: int = 1,
        into_i32: bool = False,
        scale: int | None = None,
    ):
        rank = len(shape_of(image)) - 2
        super().__init__(
            [image, weight],
            {
                **window_lists(rank, stride, dilation, pad_low=pad_low, pad_high=pad_high),
                "groups": integer(groups),
                **flags(into_i32=into_i32),
                **_scaled(scale),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """[N, O, positions of the window...]."""
        element = self.product_element()
        image, weight = shape_of(self.image), shape_of(self.weight)
        if len(image) != len(weight):
            raise VerifyException(
                f"image of rank {len(image)}, weights of rank {len(weight)}; need equal ranks"
            )
        self.check_parameters(len(image) - 2)
        high = values_of(self.pad_high)
        need_length("pad_high", high, len(image) - 2)
        check_groups(image[1], weight[0], weight[1], self.group_count)
        need_at_least("kernel", weight[2:], 1)
        stride, dilation, low = self.lists
        out = positions_of("kernel", image[2:], weight[2:], stride, dilation, low, high)
        return tensor((image[0], weight[0], *out), element)

    def core_structure(self) -> Structure:
        """n, (g), o, positions...; c and the kernel's axes are reduced."""
        g = self.group_count
        n, c, *image = shape_of(self.image)
        o, _, *kernel = shape_of(self.weight)
        out = shape_of(self.result)[2:]
        names = spatial_names(len(out))
        w = _Window(
            [
                ("n", n, "parallel"),
                *([("g", g, "parallel")] if g > 1 else []),
                ("o", o // g, "parallel"),
                *((name, size, "parallel") for name, size in zip(names, out, strict=True)),
                ("c", c // g, "reduction"),
                *(
                    (f"k{name}", size, "reduction")
                    for name, size in zip(names, kernel, strict=True)
                ),
            ]
        )
        kernels = tuple(f"k{name}" for name in names)
        spatial = windowed_axes(image, w.dims, w.at(names), w.at(kernels), *self.lists)
        space = Space(
            w.dims,
            (
                AccessMap((*w.plain("n", "g", "c"), *spatial)),
                AccessMap(w.plain("g", "o", "c", *kernels)),
            ),
            (AccessMap(w.plain("n", "g", "o", *names)),),
        )
        return Structure(space, self.multiply_add)


@irdl_op_definition
class ConvInputGradOp(ConvolutionOp):
    """The gradient of a convolution's image, which is also called a transposed convolution.

    An image element gathers what it contributed to.

    Example: %1 = nn.conv_input_grad %g, %weight size [4] stride [2] dilation [1] pad [1]
    : (tensor<1x2x2xf32>, tensor<2x3x3xf32>) -> tensor<1x3x4xf32>

    Attributes:
        gradient: [N, O, ...], as the convolution's result.
        weight: [O, C / groups, kernel...].
        size: the spatial shape of the image.
    """

    name = "nn.conv_input_grad"
    gradient = operand_def(TensorType)
    weight = operand_def(TensorType)
    size = prop_def(INTEGERS)
    assembly_format = (
        "$gradient `,` $weight `size` $size `stride` $stride `dilation` $dilation `pad` $pad_low"
        " (`groups` $groups^)?" + PARTIALS + CHAIN
    )

    def __init__(
        self,
        gradient: SSAValue,
        weight: SSAValue,
        size: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        pad_low: Sequence[int] | None = None,
        groups: int = 1,
    ):
        rank = len(shape_of(gradient)) - 2
        super().__init__(
            [gradient, weight],
            {
                "size": integers(size),
                **window_lists(rank, stride, dilation, pad_low=pad_low),
                "groups": integer(groups),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """[N, C, size...]."""
        element = self.product_element()
        gradient, weight = shape_of(self.gradient), shape_of(self.weight)
        if len(gradient) != len(weight):
            raise VerifyException(
                f"gradient of rank {len(gradient)}, weights of rank {len(weight)}; need equal ranks"
            )
        self.check_parameters(len(gradient) - 2)
        size = values_of(self.size)
        need_length("size", size, len(gradient) - 2)
        need_at_least("size", size, 0)
        g = self.group_count
        check_groups(weight[1] * g, weight[0], weight[1], g)
        if gradient[1] != weight[0]:
            raise VerifyException(
                f"gradient has {gradient[1]} channels; the weights have {weight[0]} outputs"
            )
        return tensor((gradient[0], weight[1] * g, *size), element)

    def core_structure(self) -> Structure:
        """n, (g), c, image positions...; o and the kernel's axes are reduced."""
        g = self.group_count
        n, o, *gradient = shape_of(self.gradient)
        _, c, *kernel = shape_of(self.weight)
        size = values_of(self.size)
        names = spatial_names(len(size))
        w = _Window(
            [
                ("n", n, "parallel"),
                *([("g", g, "parallel")] if g > 1 else []),
                ("c", c, "parallel"),
                *((name, s, "parallel") for name, s in zip(names, size, strict=True)),
                ("o", o // g, "reduction"),
                *((f"k{name}", s, "reduction") for name, s in zip(names, kernel, strict=True)),
            ]
        )
        spatial = tuple(
            axis_map(
                extent,
                w.dims,
                [(w.index[name], 1), (w.index[f"k{name}"], -d)],
                lo,
                divisor=s,
                division="exact",
                outside="fill",
            )
            for name, extent, s, d, lo in zip(names, gradient, *self.lists, strict=True)
        )
        kernels = tuple(f"k{name}" for name in names)
        space = Space(
            w.dims,
            (
                AccessMap((*w.plain("n", "g", "o"), *spatial)),
                AccessMap(w.plain("g", "o", "c", *kernels)),
            ),
            (AccessMap(w.plain("n", "g", "c", *names)),),
        )
        return Structure(space, self.multiply_add)


@irdl_op_definition
class ConvWeightGradOp(ConvolutionOp):
    """The gradient of a convolution's weights: [O, C / groups, kernel...].

    Example: %1 = nn.conv_weight_grad %image, %g kernel [3] stride [2] dilation [1] pad [1]
    : (tensor<1x3x4xf32>, tensor<1x2x2xf32>) -> tensor<2x3x3xf32>

    Attributes:
        image: [N, C, ...].
        gradient: [N, O, ...], as the convolution's result.
        kernel: the spatial shape of the weights.
    """

    name = "nn.conv_weight_grad"
    image = operand_def(TensorType)
    gradient = operand_def(TensorType)
    kernel = prop_def(INTEGERS)
    assembly_format = (
        "$image `,` $gradient `kernel` $kernel `stride` $stride `dilation` $dilation `pad` $pad_low"
        " (`groups` $groups^)?" + PARTIALS + CHAIN
    )

    def __init__(
        self,
        image: SSAValue,
        gradient: SSAValue,
        kernel: Sequence[int],
        *,
        stride: Sequence[int] | None = None,
        dilation: Sequence[int] | None = None,
        pad_low: Sequence[int] | None = None,
        groups: int = 1,
    ):
        rank = len(shape_of(image)) - 2
        super().__init__(
            [image, gradient],
            {
                "kernel": integers(kernel),
                **window_lists(rank, stride, dilation, pad_low=pad_low),
                "groups": integer(groups),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """[O, C / groups, kernel...]."""
        element = self.product_element()
        image, gradient = shape_of(self.image), shape_of(self.gradient)
        if len(image) != len(gradient) or image[:1] != gradient[:1]:
            raise VerifyException(
                f"image {list(image)}, gradient {list(gradient)}; need equal ranks and batches"
            )
        self.check_parameters(len(image) - 2)
        kernel = values_of(self.kernel)
        need_length("kernel", kernel, len(image) - 2)
        need_at_least("kernel", kernel, 1)
        g = self.group_count
        check_groups(image[1], gradient[1], image[1] // g, g)
        return tensor((gradient[1], image[1] // g, *kernel), element)

    def core_structure(self) -> Structure:
        """(g), o, c, kernel positions...; the batch and the gradient's positions are reduced."""
        g = self.group_count
        n, c, *image = shape_of(self.image)
        _, o, *gradient = shape_of(self.gradient)
        kernel = values_of(self.kernel)
        names = spatial_names(len(kernel))
        w = _Window(
            [
                *([("g", g, "parallel")] if g > 1 else []),
                ("o", o // g, "parallel"),
                ("c", c // g, "parallel"),
                *((f"k{name}", s, "parallel") for name, s in zip(names, kernel, strict=True)),
                ("n", n, "reduction"),
                *((name, s, "reduction") for name, s in zip(names, gradient, strict=True)),
            ]
        )
        kernels = tuple(f"k{name}" for name in names)
        spatial = windowed_axes(image, w.dims, w.at(names), w.at(kernels), *self.lists)
        space = Space(
            w.dims,
            (
                AccessMap((*w.plain("n", "g", "c"), *spatial)),
                AccessMap(w.plain("n", "g", "o", *names)),
            ),
            (AccessMap(w.plain("g", "o", "c", *kernels)),),
        )
        return Structure(space, self.multiply_add)


@irdl_op_definition
class MatMulOp(ContractionOp):
    """Matrix product over the last two axes; leading axes are broadcast.

    Example: %2 = nn.matmul %0, %1 transpose_rhs : (tensor<4x8xf32>, tensor<5x8xf32>)
    -> tensor<4x5xf32>

    Attributes:
        lhs: [batch..., rows, terms].
        rhs: [batch..., terms, columns], of the same element type.
        transpose_lhs: lhs is [batch..., terms, rows].
        transpose_rhs: rhs is [batch..., columns, terms].
    """

    name = "nn.matmul"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    transpose_lhs = opt_prop_def(UnitAttr)
    transpose_rhs = opt_prop_def(UnitAttr)
    assembly_format = (
        "$lhs `,` $rhs (`transpose_lhs` $transpose_lhs^)?"
        " (`transpose_rhs` $transpose_rhs^)?" + PARTIALS + CHAIN
    )

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        *,
        transpose_lhs: bool = False,
        transpose_rhs: bool = False,
        into_i32: bool = False,
        scale: int | None = None,
    ):
        given = flags(transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs, into_i32=into_i32)
        super().__init__([lhs, rhs], {**given, **_scaled(scale)})

    def sizes(self) -> tuple[int, int, int]:
        """Rows, columns and terms of the product."""
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        for side, shape in (("lhs", lhs), ("rhs", rhs)):
            if len(shape) < 2:
                raise Unmet(f"{side} of shape {list(shape)}; need two axes or more", side)
        m, k = lhs[-2:][:: -1 if self.transpose_lhs else 1]
        other, n = rhs[-2:][:: -1 if self.transpose_rhs else 1]
        if k != other:
            raise VerifyException(f"lhs has {k} columns, rhs has {other} rows; need as many")
        return m, n, k

    def infer(self) -> TensorType[Attribute]:
        """[batch..., rows, columns]."""
        m, n, _ = self.sizes()
        batch = broadcast([shape_of(self.lhs)[:-2], shape_of(self.rhs)[:-2]])
        return tensor((*batch, m, n), self.product_element())

    def core_structure(self) -> Structure:
        """Batch axes b0, b1, ..., rows m, columns n; k is reduced."""
        m, n, k = self.sizes()
        batch = shape_of(self.result)[:-2]
        rank = len(batch)
        dims = (
            *(Dim(f"b{i}", size) for i, size in enumerate(batch)),
            Dim("m", m),
            Dim("n", n),
            Dim("k", k, "reduction"),
        )

        def access(shape: Shape, row: int, column: int, transposed: bool) -> AccessMap:
            skip = rank - (len(shape) - 2)
            last = (column, row) if transposed else (row, column)
            at = (*range(skip, rank), *last)
            return AccessMap(
                tuple(
                    axis_map(size, dims, [(d, 1)] if size != 1 else [])
                    for size, d in zip(shape, at, strict=True)
                )
            )

        space = Space(
            dims,
            (
                access(shape_of(self.lhs), rank, rank + 2, self.transpose_lhs is not None),
                access(shape_of(self.rhs), rank + 2, rank + 1, self.transpose_rhs is not None),
            ),
            (access(shape_of(self.result), rank, rank + 1, False),),
        )
        return Structure(space, self.multiply_add)
