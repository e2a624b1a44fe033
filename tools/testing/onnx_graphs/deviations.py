"""Where onnxruntime is known to compute something else: what, and why.

Some of it the standard leaves open, some is coarser than any rounding, some is wrong. A node for
which there is an entry says nothing; what comes after it is looked at with onnxruntime's results in
its place.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ...driver.arrays import Array
from ..oracle.bounds import Errors
from ..oracle.oracles import ratios


@dataclass(frozen=True)
class Case:
    """A node of which a result differs. operands: onnxruntime's; None for those left out.

    ours, theirs: what abele makes of these, and onnxruntime. error: how far ours may be from what
    is exact.
    """

    node: onnx.NodeProto
    opset: int
    operands: Sequence[Array | None]
    ours: Array
    theirs: Array
    error: Errors

    def attribute(self, name: str, default: Any) -> Any:
        """The value of an attribute."""
        found = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        value = found.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    @property
    def finite(self) -> bool:
        """Whether all operands are, as far as they are given."""
        return all(np.isfinite(a).all() for a in self.operands if a is not None)

    @property
    def same_shape(self) -> bool:
        """Whether both results can be compared at all."""
        return self.ours.shape == self.theirs.shape and self.ours.dtype == self.theirs.dtype

    @property
    def unlike(self) -> Array:
        """Where the results are further apart than two right ones can be."""
        return ratios(self.ours, self.theirs, self.error) > 1

    def within(self, absolute: float | Array) -> bool:
        """Whether the results are as near to each other as that, wherever they differ."""
        if not self.same_shape:
            return False
        ours, theirs = self.ours.astype(np.float64), self.theirs.astype(np.float64)
        with np.errstate(all="ignore"):
            near = (np.abs(ours - theirs) <= absolute) | np.isinf(absolute)
        return bool((~self.unlike | near).all())


@dataclass(frozen=True)
class Deviation:
    """One way to differ. operators: that do, any if empty. when: it does. why: in words."""

    operators: tuple[str, ...]
    when: Callable[[Case], bool]
    why: str


def _is_no_integer(case: Case) -> bool:
    """Whether all that differs is made of floats that no integer of the type is."""
    value = case.operands[0]
    if value is None or case.ours.dtype.kind not in "iu" or value.dtype.kind != "f":
        return False
    limits = np.iinfo(case.ours.dtype)
    wide = value.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fits = (np.trunc(wide) >= limits.min) & (np.trunc(wide) < float(limits.max) + 1)
    return case.same_shape and not (case.unlike & fits).any()


def _were_floats(case: Case) -> bool:
    """Whether all that differs is too large for a float to hold, or the last integer, which is what
    processors make of floats that no integer is."""
    if case.ours.dtype.kind not in "iu" or not case.same_shape:
        return False
    limits = np.iinfo(case.ours.dtype)
    last = (case.theirs == limits.min) | (case.theirs == limits.max)
    theirs = case.theirs.astype(np.float64)
    near = np.abs(theirs - case.ours.astype(np.float64)) <= 2.0**-20 * np.abs(theirs)
    elements = max((a.size for a in case.operands[:1] if a is not None), default=1)
    lost = (near & (np.abs(theirs) > 2.0**24)) | (np.abs(theirs) * elements > float(limits.max))
    return not (case.unlike & ~last & ~lost).any()


def _slides(case: Case) -> bool:
    """Whether the results are those of sums of squares that are as inexact as their largest."""
    value = case.operands[0]
    if value is None or not case.same_shape:
        return False
    squares = value.astype(np.float64) ** 2
    with np.errstate(all="ignore"):
        if not (squares.sum(1) < np.finfo(np.float32).max).all():
            return True
        alpha, size = case.attribute("alpha", 1e-4), case.attribute("size", 1)
        slack = 2.0**-22 * value.shape[1] * squares.sum(1, keepdims=True) * alpha / size
        beta, bias = case.attribute("beta", 0.75), case.attribute("bias", 1.0)
        padded = np.pad(squares, [(0, 0), (size // 2, size // 2), *[(0, 0)] * (value.ndim - 2)])
        count = value.shape[1]
        base = bias + alpha / size * sum(padded[:, i : i + count] for i in range(size))
        ends = [value * (base + sign * slack) ** -beta for sign in (-1, 1)]
        room = np.abs(ends[0] - ends[1]) + np.abs(value) * 2.0**-10 * (value.dtype == np.float16)
        return case.within(np.where(np.isnan(room), np.inf, room))


def _cancels(case: Case) -> bool:
    """Whether the result is as inexact as the largest operand, not as what is left of it."""
    value, scale = case.operands[:2]
    if value is None or scale is None or not case.same_shape:
        return False
    if case.ours.shape != value.shape:
        # The statistics themselves.
        with np.errstate(all="ignore"):
            size = np.abs(value.astype(np.float64)).max(initial=0.0) * 2.0**-19
        return case.within(size if np.isfinite(size) else np.inf)
    wide, factor = value.astype(np.float64), np.abs(scale.astype(np.float64))
    if case.node.op_type == "LayerNormalization":
        axes = tuple(range(case.attribute("axis", -1) % value.ndim, value.ndim))
    else:
        batch = (0,) if case.node.op_type == "BatchNormalization" else ()
        axes = (*batch, *range(2, value.ndim))
        factor = factor.reshape(-1, *[1] * (value.ndim - 2))
    with np.errstate(all="ignore"):
        deviation = np.sqrt(wide.var(axes, keepdims=True) + case.attribute("epsilon", 1e-5))
        factor = factor / deviation
        size = np.abs(wide).max(axes, keepdims=True, initial=0.0) * factor
        # Of its variance too, which is a difference of squares.
        squares = (wide**2).mean(axes, keepdims=True) / deviation**2
        room = size * (1 + squares) * 2.0**-19
        lost = np.isnan(room) | (factor > 1e30) | (room > 1e30)
        return case.within(np.where(lost, np.inf, room))


def _overflows_in_double(case: Case) -> bool:
    """Whether products of float64 may be too large for it: abele has nothing wider to look in."""
    if case.ours.dtype != np.float64 or len(case.operands) < 2:
        return False
    sizes = (np.abs(a).max(initial=0.0) for a in case.operands[:2] if a is not None)
    with np.errstate(all="ignore"):
        return not np.isfinite(np.prod(list(sizes)))


def _has_narrow_sixth(case: Case) -> bool:
    value = case.operands[0]
    if value is None or value.dtype != np.float64:
        return False
    with np.errstate(all="ignore"):
        return case.within(2.0**-26 * value**2)


def _is_dilated(case: Case) -> bool:
    same = case.attribute("auto_pad", "NOTSET").startswith("SAME")
    return same and any(d > 1 for d in case.attribute("dilations", ()))


def _is_empty(case: Case) -> bool:
    return any(a is not None and a.size == 0 for a in case.operands[:2])


def _overflowed(case: Case) -> bool:
    """Whether an operand of float16 is infinite."""
    return any(a is not None and a.dtype == np.float16 and np.isinf(a).any() for a in case.operands)


REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum")
) + ("ReduceSumSquare",)

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        ("Cast", "CastLike"),
        _is_no_integer,
        "the standard does not say which integer a float becomes that is none",
    ),
    Deviation(
        ("Pow", *REDUCTIONS),
        _were_floats,
        "integers are computed as floats, and what none of them is becomes the last one",
    ),
    Deviation(
        ("ReduceLogSumExp",),
        lambda case: case.ours.dtype.kind in "iu" and case.within(np.abs(case.ours) + 1),
        "some kernels for integers round every power and the logarithm, others the result alone",
    ),
    Deviation((), _overflowed, "float16 is not rounded from one node to the next, nor overflows"),
    Deviation(
        ("Sigmoid",),
        lambda case: case.within(4e-7),
        "a quotient of polynomials, right to 4e-7, whatever the size of the result",
    ),
    Deviation(
        ("Clip",),
        lambda case: any(a is not None and np.isnan(a).any() for a in case.operands[1:]),
        "a bound that is NaN is none",
    ),
    Deviation(
        ("HardSwish",),
        _has_narrow_sixth,
        "the sixth is one of float32 for float64 as well",
    ),
    Deviation(("LRN",), _slides, "one sum slides over all channels, and keeps its errors"),
    Deviation(
        ("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
        _cancels,
        "(x - mean) a + b is x a + (b - mean a), or the mean a sum of quotients: less cancels",
    ),
    Deviation(
        ("MaxPool", "AveragePool"), _is_dilated, "SAME is padded as if there were no dilation"
    ),
    Deviation(
        (
            *("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"),
            *("ReduceLogSumExp", "Softmax", "LogSoftmax"),
        ),
        lambda case: not case.finite,
        "an extreme begins with the last finite number, and NaN is none",
    ),
    Deviation(
        ("Squeeze",),
        lambda case: any(a is not None and not a.size for a in case.operands[1:]),
        "no axes, given as an operand, are all that have one element",
    ),
    Deviation(
        ("ConvTranspose",),
        lambda case: (
            case.attribute("auto_pad", "").startswith("SAME")
            and any(case.attribute("output_padding", ()))
        ),
        "SAME takes no notice of output_padding",
    ),
    Deviation(
        ("ConvTranspose",),
        lambda case: not case.finite,
        "no product of the zeros between its elements with what is not finite; abele makes one",
    ),
    Deviation(
        ("Gemm", "MatMul"),
        _overflows_in_double,
        "a product that is added at once overflows later than one that is rounded first",
    ),
    Deviation(("Gemm",), _is_empty, "a product over no columns leaves beta out"),
    Deviation(
        ("Conv", "ConvTranspose", "MatMul"), _is_empty, "a sum over nothing is not begun with 0"
    ),
    Deviation(
        ("MaxPool", "AveragePool"),
        lambda case: (
            case.attribute("auto_pad", "NOTSET").startswith("SAME")
            and any(
                k < s
                for k, s in zip(case.attribute("kernel_shape", ()), case.attribute("strides", ()))
            )
        ),
        "SAME pads by less than nothing where a window is shorter than its stride",
    ),
    Deviation(REDUCTIONS, _is_empty, "axes of no elements are not reduced to one"),
    Deviation(
        ("Dropout",),
        lambda case: case.opset < 12 and case.ours.dtype == np.bool_,
        "before opset 12 the mask of what is kept is all false",
    ),
)


def deviation(case: Case) -> str | None:
    """Why onnxruntime is known to compute something else in a node; None if it is not."""
    if case.same_shape and not case.unlike.any():
        # Nothing is wrong with this node, but with what leads there.
        return None
    for each in DEVIATIONS:
        if (not each.operators or case.node.op_type in each.operators) and each.when(case):
            return each.why
    return None
