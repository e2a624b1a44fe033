"""Operations made of simpler ones: normalisations, softmax, average pooling, general products."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Unpack

import numpy as np
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, prop_def

from ...ir.provenance import at
from ...ir.support.number_kinds import is_floating
from ...ir.unmet import Unmet
from ...ir.upstream import Builder, InsertPoint, VerifyException
from .. import control
from ..dtypes import numpy_dtype
from ..structured import Composite
from .base import (
    INTEGER,
    NUMBER,
    PureTensorOp,
    TensorsOp,
    broadcast,
    element_of,
    flags,
    integer,
    need_at_least,
    normal_axis,
    number,
    same_element,
    shape_of,
    tensor,
    wide_element,
)
from .contraction import MatMulOp
from .elementwise import (
    AddOp,
    CastOp,
    DivOp,
    ExpOp,
    LogOp,
    MulOp,
    PowerOp,
    ScaleOp,
    ShiftOp,
    SqrtOp,
    SquareOp,
    SubOp,
)
from .generic import ComputeOp
from .movement import ReshapeOp
from .state import ConstantOp
from .window import PoolOp, ReduceOp
from .windowed import Windowed, WindowLists, window_properties


class CompositeOp(PureTensorOp, Composite, ABC):
    """An operation with one result that is defined by simpler operations."""

    @abstractmethod
    def parts(self, made: Parts) -> SSAValue:
        """Build the simpler operations, and return the value that replaces the result."""

    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Build the simpler operations, each located below this one: "bn1/scale"."""
        made = Parts(self, builder)
        value = self.parts(made)
        # The step that makes the result has the origin of the operation itself.
        made.ops[-1].location = self.location
        return [value]


class Parts:
    """The operations that a decomposition has built so far.

    Attributes:
        path: the steps that contain all others, from the outermost loop to the innermost.
        ops: the operations.
        times: how often each name of a step has been used. The second one is called "index2".
    """

    def __init__(self, whole: Operation, builder: Builder, path: tuple[str, ...] = ()):
        self.whole = whole
        self.builder = builder
        self.path = path
        self.ops: list[Operation] = []
        self.times: dict[str, int] = {}

    def __call__(self, step: str, op: PureTensorOp | ConstantOp | ComputeOp) -> SSAValue:
        """Insert an operation as a named step, and return its result."""
        self._insert(step, op)
        return op.result

    def several(self, step: str, op: TensorsOp) -> Sequence[SSAValue]:
        """Insert an operation with several results as a named step, and return them."""
        self._insert(step, op)
        return op.results

    def repeat(
        self, step: str, count: int, initial: Sequence[SSAValue], body: Iteration
    ) -> list[SSAValue]:
        """Insert a loop as a named step, and return the values of its last iteration."""
        block = Block(arg_types=[*(value.type for value in initial), control.ITERATION_NUMBER])
        inner = Parts(self.whole, Builder(InsertPoint.at_end(block)), (*self.path, step))
        *carried, number = block.args
        block.add_op(control.YieldOp(*body(inner, carried, number)))
        loop = control.RepeatOp(count, initial, Region(block))
        self._insert(step, loop)
        return list(loop.outputs)

    def _insert(self, step: str, op: Operation) -> None:
        count = self.times[step] = self.times.get(step, 0) + 1
        op.location = at(self.whole, *self.path, step if count == 1 else f"{step}{count}")
        self.ops.append(op)
        self.builder.insert(op)

    def cast(self, step: str, value: SSAValue, element: Attribute) -> SSAValue:
        """A value with elements of a type; the same value if it has them already."""
        return value if element_of(value) == element else self(step, CastOp(value, element))

    def wide(self, value: SSAValue) -> SSAValue:
        """A value for sums and squares: in f32 if its elements are narrower floats."""
        return self.cast("widen", value, wide_element(element_of(value)))

    def narrow(self, value: SSAValue) -> SSAValue:
        """A value with the elements of the whole's first result."""
        return self.cast("narrow", value, element_of(self.whole.results[0]))


Iteration = Callable[[Parts, Sequence[SSAValue], SSAValue], Sequence[SSAValue]]
"""Builds an iteration, from its parts so far, the values that it takes, and its number, an i32.
Returns the values that the next iteration takes."""


def _need_float(value: SSAValue, what: str) -> None:
    if not is_floating(numpy_dtype(element_of(value))):
        raise VerifyException(f"{what} of {element_of(value)}; need a floating-point type")


@irdl_op_definition
class BatchNormOp(CompositeOp):
    """(x - mean) / sqrt(variance + epsilon) * scale + bias, for each channel of [N, C, ...].

    Example: %1 = nn.batch_norm %0, %scale, %bias, %mean, %variance epsilon 1.0e-05
    : (tensor<1x8x7x7xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
    -> tensor<1x8x7x7xf32>

    Attributes:
        image: x, [N, C, ...] of floats.
        scale: [C].
        bias: [C].
        mean: [C].
        variance: [C].
        epsilon: keeps the root away from 0.
    """

    name = "nn.batch_norm"
    image = operand_def(TensorType)
    scale = operand_def(TensorType)
    bias = operand_def(TensorType)
    mean = operand_def(TensorType)
    variance = operand_def(TensorType)
    epsilon = prop_def(NUMBER)
    assembly_format = (
        "$image `,` $scale `,` $bias `,` $mean `,` $variance `epsilon` custom<Number>($epsilon)"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        image: SSAValue,
        scale: SSAValue,
        bias: SSAValue,
        mean: SSAValue,
        variance: SSAValue,
        *,
        epsilon: float = 1e-5,
    ):
        super().__init__([image, scale, bias, mean, variance], {"epsilon": number(epsilon)})

    def infer(self) -> TensorType[Attribute]:
        """The image's type."""
        _need_float(self.image, "batch normalisation")
        image = shape_of(self.image)
        if len(image) < 2:
            raise VerifyException(f"image of shape {list(image)}; need batch and channels")
        for what in ("scale", "bias", "mean", "variance"):
            value = self.operands[1 + ("scale", "bias", "mean", "variance").index(what)]
            _need_float(value, what)
            if shape_of(value) != image[1:2]:
                raise Unmet(
                    f"{what} of shape {list(shape_of(value))}; need [{image[1]}], one per channel",
                    what,
                )
        return tensor(image, element_of(self.image))

    @property
    def wide_operands(self) -> tuple[int, ...]:
        """All but the image: one number per channel, which is folded in float32.

        A variance may be beyond the range of float16 although its square root is not.
        """
        return (1, 2, 3, 4)

    def parts(self, made: Parts) -> SSAValue:
        """One product and one sum; the other steps work on one element per channel."""
        element = element_of(self.image)
        wide = wide_element(element)
        scale, bias, mean, variance = (
            made.cast(f"{name}_wide", value, wide)
            for name, value in (
                ("scale", self.scale),
                ("bias", self.bias),
                ("mean", self.mean),
                ("variance", self.variance),
            )
        )
        deviation = made(
            "deviation", SqrtOp(made("epsilon", ShiftOp(variance, self.epsilon.value.data)))
        )
        factor = made("factor", DivOp(scale, deviation))
        offset = made("offset", SubOp(bias, made("mean", MulOp(mean, factor))))
        image = shape_of(self.image)
        shape = (image[1], *([1] * (len(image) - 2)))
        factor, offset = (
            made(f"{name}_shape", ReshapeOp(made.cast(f"{name}_narrow", value, element), shape))
            for name, value in (("factor", factor), ("offset", offset))
        )
        return made("shift", AddOp(made("scale", MulOp(self.image, factor)), offset))


class SoftmaxLikeOp(CompositeOp, ABC):
    """An operation that normalises along an axis.

    Attributes:
        operand: of floats.
        axis: counted from 0.
    """

    operand = operand_def(TensorType)
    axis = prop_def(INTEGER)
    assembly_format = "$operand `axis` $axis attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, axis: int):
        super().__init__([operand], {"axis": integer(normal_axis(axis, len(shape_of(operand))))})

    @property
    def along(self) -> int:
        """The axis."""
        return self.axis.value.data

    def infer(self) -> TensorType[Attribute]:
        """The operand's type."""
        _need_float(self.operand, "softmax")
        shape = shape_of(self.operand)
        if not 0 <= self.along < len(shape):
            raise VerifyException(f"axis {self.along} of rank {len(shape)}")
        return tensor(shape, element_of(self.operand))

    def centred(self, made: Parts) -> SSAValue:
        """The operand minus its largest element along the axis, in at least f32."""
        operand = made.wide(self.operand)
        largest = made("largest", ReduceOp(operand, "max", [self.along], keep_dims=True))
        return made("centre", SubOp(operand, largest))


@irdl_op_definition
class SoftmaxOp(SoftmaxLikeOp):
    """exp(x) / sum of exp(x) along an axis.

    Example: %1 = nn.softmax %0 axis 1 : (tensor<1x1000xf32>) -> tensor<1x1000xf32>
    """

    name = "nn.softmax"

    def parts(self, made: Parts) -> SSAValue:
        """Centred by the maximum, so that exp cannot overflow."""
        power = made("exp", ExpOp(self.centred(made)))
        total = made("total", ReduceOp(power, "sum", [self.along], keep_dims=True))
        return made.narrow(made("divide", DivOp(power, total)))


@irdl_op_definition
class LogSoftmaxOp(SoftmaxLikeOp):
    """The logarithm of softmax, computed without the exponentials' quotient.

    Example: %1 = nn.log_softmax %0 axis 1 : (tensor<1x10xf32>) -> tensor<1x10xf32>
    """

    name = "nn.log_softmax"

    def parts(self, made: Parts) -> SSAValue:
        """Centred by the maximum, minus the logarithm of the sum."""
        centred = self.centred(made)
        power = made("exp", ExpOp(centred))
        total = made("total", ReduceOp(power, "sum", [self.along], keep_dims=True))
        return made.narrow(made("subtract", SubOp(centred, made("log", LogOp(total)))))


@irdl_op_definition
class LrnOp(CompositeOp):
    """x / (bias + alpha / size * sum of squares over size neighbouring channels) ** beta.

    Example: %1 = nn.lrn %0 size 5 alpha 0.0001 beta 0.75 bias 1.0 : (tensor<1x96x27x27xf32>)
    -> tensor<1x96x27x27xf32>

    Attributes:
        image: x, [N, C, ...] of floats.
        size: channels in the sum, 1 or more: (size - 1) // 2 before the channel, size // 2 after
            it; missing ones are 0.
        alpha: the weight of the sum.
        beta: the power.
        bias: the term that is added to the sum.
    """

    name = "nn.lrn"
    image = operand_def(TensorType)
    size = prop_def(INTEGER)
    alpha = prop_def(NUMBER)
    beta = prop_def(NUMBER)
    bias = prop_def(NUMBER)
    assembly_format = (
        "$image `size` $size `alpha` custom<Number>($alpha) `beta` custom<Number>($beta)"
        " `bias` custom<Number>($bias)"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        image: SSAValue,
        size: int,
        *,
        alpha: float = 1e-4,
        beta: float = 0.75,
        bias: float = 1.0,
    ):
        super().__init__(
            [image],
            {
                "size": integer(size),
                "alpha": number(alpha),
                "beta": number(beta),
                "bias": number(bias),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """The image's type."""
        _need_float(self.image, "local response normalisation")
        need_at_least("size", [self.size.value.data], 1)
        if len(shape_of(self.image)) < 2:
            raise VerifyException(
                f"image of shape {list(shape_of(self.image))}; need batch and channels"
            )
        return tensor(shape_of(self.image), element_of(self.image))

    def parts(self, made: Parts) -> SSAValue:
        """Channels become a spatial axis, over which a window of squares is summed."""
        shape, size = shape_of(self.image), self.size.value.data
        image = made.wide(self.image)
        square = made("square", SquareOp(image))
        if 0 in shape:
            # No window fits on an axis without elements, and there is nothing to compute.
            return made.narrow(square)
        seen = made("channels", ReshapeOp(square, (shape[0], 1, *shape[1:])))
        rest = [0] * (len(shape) - 2)
        # No window reaches further than there are channels, however large its size is.
        before, after = (min(n, shape[1] - 1) for n in ((size - 1) // 2, size // 2))
        total = made(
            "sum",
            PoolOp(
                seen,
                "sum",
                [before + 1 + after, *(1 for _ in rest)],
                pad_low=[before, *rest],
                pad_high=[after, *rest],
            ),
        )
        scaled = made("scale", ScaleOp(total, self.alpha.value.data / size))
        base = made("bias", ShiftOp(scaled, self.bias.value.data))
        factor = made("power", PowerOp(base, -self.beta.value.data))
        back = made("back", ReshapeOp(factor, shape))
        return made.narrow(made("multiply", MulOp(image, back)))


@irdl_op_definition
class AveragePoolOp(CompositeOp, Windowed):
    """The mean of the elements under a window that moves over the spatial axes of [N, C, ...].

    Example: %1 = nn.average_pool %0 window [3, 3] stride [2, 2] dilation [1, 1] pad [1, 1] to
    [1, 1] count_include_pad : (tensor<1x8x9x9xf32>) -> tensor<1x8x5x5xf32>

    Attributes:
        image: [N, C, ...].
        count_include_pad: padding counts as zeros.
        ceil_mode: a last window may overhang the padded image; elements past its end never count.
    """

    name = "nn.average_pool"
    image = operand_def(TensorType)
    count_include_pad = opt_prop_def(UnitAttr)
    ceil_mode = opt_prop_def(UnitAttr)
    assembly_format = (
        "$image `window` $window `stride` $stride `dilation` $dilation"
        " `pad` $pad_low `to` $pad_high (`count_include_pad` $count_include_pad^)?"
        " (`ceil_mode` $ceil_mode^)?"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        image: SSAValue,
        window: Sequence[int],
        *,
        count_include_pad: bool = False,
        ceil_mode: bool = False,
        **lists: Unpack[WindowLists],
    ):
        given = flags(count_include_pad=count_include_pad, ceil_mode=ceil_mode)
        super().__init__([image], {**window_properties(window, **lists), **given})

    @property
    def overhangs(self) -> bool:
        """In ceil mode."""
        return self.ceil_mode is not None

    def infer(self) -> TensorType[Attribute]:
        """[N, C, positions of the window...]."""
        _need_float(self.image, "average pooling")
        return tensor(self.shape_over(shape_of(self.image)), element_of(self.image))

    def counts(self) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
        """How many elements each position averages: (positions...)."""
        image, out = shape_of(self.image)[2:], shape_of(self.result)[2:]
        padding = self.count_include_pad is not None
        total = np.ones(out, np.int64)
        lists = zip(image, *self.parameters(), strict=True)
        for i, (n, window, stride, dilation, low, high) in enumerate(lists):
            first, last = (-low, n + high) if padding else (0, n)
            begins = np.arange(out[i], dtype=np.int64)[:, None] * stride - low
            reached = begins + np.arange(window, dtype=np.int64) * dilation
            count = ((reached >= first) & (reached < last)).sum(1, dtype=np.int64)
            total *= count.reshape([-1 if j == i else 1 for j in range(len(out))])
        return total

    def parts(self, made: Parts) -> SSAValue:
        """A sum over the window, divided by the count; the padding grows over the overhang."""
        window, stride, dilation, low, high = self.parameters()
        image, out = shape_of(self.image)[2:], shape_of(self.result)[2:]
        if 0 in out:
            # The window may be too large for an axis on which it has no position.
            dtype = numpy_dtype(element_of(self.result))
            return made("empty", ConstantOp(np.zeros(shape_of(self.result), dtype)))
        needed = [
            (m - 1) * s + d * (k - 1) + 1 - n - lo
            for m, s, d, k, n, lo in zip(out, stride, dilation, window, image, low, strict=True)
        ]
        total = made(
            "sum",
            PoolOp(
                made.wide(self.image),
                "sum",
                window,
                stride=stride,
                dilation=dilation,
                pad_low=low,
                pad_high=[max(0, n) for n in needed] if self.overhangs else high,
            ),
        )
        counts = self.counts()
        if counts.size and (counts == counts.flat[0]).all():
            average = made("scale", ScaleOp(total, 1.0 / max(int(counts.flat[0]), 1)))
            return made.narrow(average)
        dtype = numpy_dtype(element_of(total))
        divisor = made("counts", ConstantOp(np.maximum(counts, 1).astype(dtype)))
        return made.narrow(made("divide", DivOp(total, divisor)))


@irdl_op_definition
class GemmOp(CompositeOp):
    """alpha * lhs @ rhs + beta * bias, with either factor transposed first.

    Example: %1 = nn.gemm %0, %w, %b transpose_rhs alpha 1.0 beta 1.0 : (tensor<1x4096xf32>,
    tensor<1000x4096xf32>, tensor<1000xf32>) -> tensor<1x1000xf32>

    Attributes:
        lhs: [rows, terms].
        rhs: [terms, columns].
        bias: broadcasts to [rows, columns].
        transpose_lhs: lhs is [terms, rows].
        transpose_rhs: rhs is [columns, terms].
        alpha: the factor of the product.
        beta: the factor of the bias.
    """

    name = "nn.gemm"
    lhs = operand_def(TensorType)
    rhs = operand_def(TensorType)
    bias = opt_operand_def(TensorType)
    alpha = prop_def(NUMBER)
    beta = prop_def(NUMBER)
    transpose_lhs = opt_prop_def(UnitAttr)
    transpose_rhs = opt_prop_def(UnitAttr)
    assembly_format = (
        "$lhs `,` $rhs (`,` $bias^)? (`transpose_lhs` $transpose_lhs^)?"
        " (`transpose_rhs` $transpose_rhs^)? `alpha` custom<Number>($alpha)"
        " `beta` custom<Number>($beta)"
        " attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        lhs: SSAValue,
        rhs: SSAValue,
        bias: SSAValue | None = None,
        *,
        alpha: float = 1.0,
        beta: float = 1.0,
        transpose_lhs: bool = False,
        transpose_rhs: bool = False,
    ):
        super().__init__(
            [lhs, rhs, [] if bias is None else [bias]],
            {
                "alpha": number(alpha),
                "beta": number(beta),
                **flags(transpose_lhs=transpose_lhs, transpose_rhs=transpose_rhs),
            },
        )

    def infer(self) -> TensorType[Attribute]:
        """[rows, columns]."""
        element = same_element(*self.operands)
        lhs, rhs = shape_of(self.lhs), shape_of(self.rhs)
        for side, shape in (("lhs", lhs), ("rhs", rhs)):
            if len(shape) != 2:
                raise Unmet(f"{side} of shape {list(shape)}; need two axes", side)
        m, k = lhs[::-1] if self.transpose_lhs else lhs
        other, n = rhs[::-1] if self.transpose_rhs else rhs
        if k != other:
            raise VerifyException(f"lhs has {k} columns, rhs has {other} rows; need as many")
        if self.bias is not None and broadcast([shape_of(self.bias), (m, n)]) != (m, n):
            raise VerifyException(
                f"bias of shape {list(shape_of(self.bias))} does not broadcast to [{m}, {n}]"
            )
        return tensor((m, n), element)

    def parts(self, made: Parts) -> SSAValue:
        """A product and a bias; factors of 1 are left out."""
        alpha, beta = self.alpha.value.data, self.beta.value.data
        value = made(
            "product",
            MatMulOp(
                self.lhs,
                self.rhs,
                transpose_lhs=self.transpose_lhs is not None,
                transpose_rhs=self.transpose_rhs is not None,
            ),
        )
        if alpha != 1.0:
            value = made("alpha", ScaleOp(value, alpha))
        if self.bias is None:
            return value
        bias = self.bias if beta == 1.0 else made("beta", ScaleOp(self.bias, beta))
        return made("bias", AddOp(value, bias))
