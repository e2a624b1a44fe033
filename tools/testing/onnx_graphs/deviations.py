"""Known deviations of onnxruntime from abele, and the reasons.

In some cases the standard leaves the result open, in some onnxruntime is less exact than rounding
explains, and in some it is wrong. A node with a known deviation is not compared. The nodes after it
are compared with onnxruntime's results of the node as their operands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ....backends.reference.operand_errors import Errors
from ...driver.arrays import Array
from ..oracle.oracles import ratios


@dataclass(frozen=True)
class Case:
    """A node with a result that differs.

    Attributes:
        operands: the operands, computed by onnxruntime; None for absent ones.
        ours, theirs: the result by abele and by onnxruntime from these operands.
        error: the error bound of ours.
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
        """Whether all elements of all operands are finite."""
        return all(np.isfinite(a).all() for a in self.operands if a is not None)

    @property
    def same_shape(self) -> bool:
        """Whether both results have the same shape and dtype, so that they can be compared."""
        return self.ours.shape == self.theirs.shape and self.ours.dtype == self.theirs.dtype

    @property
    def differs(self) -> Array:
        """Whether each element differs by more than two correct results can."""
        return ratios(self.ours, self.theirs, self.error) > 1

    def within(self, absolute: float | Array) -> bool:
        """Whether the differing elements of both results are at most `absolute` apart."""
        if not self.same_shape:
            return False
        ours, theirs = self.ours.astype(np.float64), self.theirs.astype(np.float64)
        with np.errstate(all="ignore"):
            near = (np.abs(ours - theirs) <= absolute) | np.isinf(absolute)
        return bool((~self.differs | near).all())


@dataclass(frozen=True)
class Deviation:
    """One known deviation.

    Attributes:
        operators: names of the operators that have it; empty for all.
        when: whether it explains a case.
        why: the explanation in words.
    """

    operators: tuple[str, ...]
    when: Callable[[Case], bool]
    why: str


def _casts_out_of_range(case: Case) -> bool:
    """Whether all differing elements come from floats outside of the integer type's range."""
    value = case.operands[0]
    if value is None or case.ours.dtype.kind not in "iu" or value.dtype.kind != "f":
        return False
    limits = np.iinfo(case.ours.dtype)
    wide = value.astype(np.float64)
    with np.errstate(invalid="ignore"):
        fits = (np.trunc(wide) >= limits.min) & (np.trunc(wide) < float(limits.max) + 1)
    return case.same_shape and not (case.differs & fits).any()


def _computes_integers_in_floats(case: Case) -> bool:
    """Whether computation in floats explains all differences of an integer result.

    Elements that differ are too large for a float to represent exactly, or are the smallest or
    largest integer, which processors return for floats out of range.
    """
    if case.ours.dtype.kind not in "iu" or not case.same_shape:
        return False
    limits = np.iinfo(case.ours.dtype)
    last = (case.theirs == limits.min) | (case.theirs == limits.max)
    theirs = case.theirs.astype(np.float64)
    near = np.abs(theirs - case.ours.astype(np.float64)) <= 2.0**-20 * np.abs(theirs)
    elements = max((a.size for a in case.operands[:1] if a is not None), default=1)
    lost = (near & (np.abs(theirs) > 2.0**24)) | (np.abs(theirs) * elements > float(limits.max))
    return not (case.differs & ~last & ~lost).any()


def _uses_running_sum(case: Case) -> bool:
    """Whether the error of a running sum of squares over all channels explains the results."""
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


def _loses_digits(case: Case) -> bool:
    """Whether the error of a normalization is relative to its largest operand, not to its result.

    That is the error if large numbers are subtracted that nearly cancel.
    """
    value, scale = case.operands[:2]
    if value is None or scale is None or not case.same_shape:
        return False
    if case.ours.shape != value.shape:
        # The result is the mean or the variance.
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
        # The variance loses digits as well, as a difference of squares.
        squares = (wide**2).mean(axes, keepdims=True) / deviation**2
        room = size * (1 + squares) * 2.0**-19
        lost = np.isnan(room) | (factor > 1e30) | (room > 1e30)
        return case.within(np.where(lost, np.inf, room))


def _overflows_in_double(case: Case) -> bool:
    """Whether products of float64 may overflow. abele has no wider type to compute bounds in."""
    if case.ours.dtype != np.float64 or len(case.operands) < 2:
        return False
    sizes = (np.abs(a).max(initial=0.0) for a in case.operands[:2] if a is not None)
    with np.errstate(all="ignore"):
        return not np.isfinite(np.prod(list(sizes)))


def _has_narrow_sixth(case: Case) -> bool:
    """Whether the error of 1/6 in float32 explains a result in float64."""
    value = case.operands[0]
    if value is None or value.dtype != np.float64:
        return False
    with np.errstate(all="ignore"):
        return case.within(2.0**-26 * value**2)


def _has_rounded_sigmoid(case: Case) -> bool:
    """Whether the error of a sigmoid, times the operand, explains a result."""
    value = case.operands[0]
    if value is None:
        return False
    with np.errstate(all="ignore"):
        return case.within(4e-7 * np.abs(value.astype(np.float64)))


def _is_normalized_in_floats(case: Case) -> bool:
    """Whether the rounding of a normalization to float32 explains a result in float64."""
    if case.ours.dtype != np.float64:
        return False
    value = case.operands[0]
    with np.errstate(over="ignore"):
        narrow = None if value is None else value.astype(np.float32)
    if narrow is None or not np.isfinite(narrow).all():
        return True
    scale, bias = (
        1.0 if a is None else float(np.abs(a).max(initial=0.0)) for a in case.operands[1:3]
    )
    # The normalized value is at most the root of the number of elements of a group.
    largest = scale * np.sqrt(max(narrow.size, 1)) + bias
    centred = np.abs(narrow).max(initial=0.0) / np.sqrt(case.attribute("epsilon", 1e-5))
    return case.within(2.0**-20 * (largest + scale * centred))


def _is_shrunk_in_floats(case: Case) -> bool:
    """Whether rounding the operand and the difference to float32 explains a wider result."""
    value = case.operands[0]
    if value is None or value.dtype.itemsize < 4 or value.dtype == np.float32:
        return False
    with np.errstate(all="ignore"):
        size = np.abs(value.astype(np.float64)) + abs(case.attribute("bias", 0.0))
        return case.within(2.0**-22 * size)


def _is_dilated(case: Case) -> bool:
    same = case.attribute("auto_pad", "NOTSET").startswith("SAME")
    return same and any(d > 1 for d in case.attribute("dilations", ()))


def _interpolates_in_floats(case: Case) -> bool:
    """Whether weights from coordinates in float32 explain an interpolated result."""
    value = case.operands[0]
    if value is None or case.attribute("mode", "nearest") == "nearest":
        return False
    if case.ours.dtype.kind in "iu":
        return case.within(1)
    with np.errstate(all="ignore"):
        return case.within(2.0**-17 * np.abs(value.astype(np.float64)).max(initial=0.0))


def _transforms_in_another_order(case: Case) -> bool:
    """Whether the rounding of a fast transform, or an overflow in it, explains a spectrum."""
    value, window = case.operands[0], case.operands[2:3]
    if value is None:
        return False
    size = np.abs(value.astype(np.float64)).sum()
    if case.node.op_type == "STFT" and window and window[0] is not None:
        size *= np.abs(window[0].astype(np.float64)).max(initial=0.0)
    step = {np.dtype(np.float64): 2.0**-40, np.dtype(np.float16): 2.0**-8}
    room = size * step.get(case.ours.dtype, 2.0**-19)
    return case.within(room if np.isfinite(room) and size < 1e30 else np.inf)


def _is_empty(case: Case) -> bool:
    return any(a is not None and a.size == 0 for a in case.operands[:2])


def _overflowed(case: Case) -> bool:
    """Whether an operand of float16 is infinite."""
    return any(a is not None and a.dtype == np.float16 and np.isinf(a).any() for a in case.operands)


def _activates_with(case: Case, name: str) -> bool:
    """Whether a recurrent layer has an activation function.

    Args:
        name: in lower case.
    """
    return name in (each.decode().casefold() for each in case.attribute("activations", ()))


def _overflows_in_softplus(case: Case) -> bool:
    """Whether a layer may have computed log(1 + exp(x)) of a large x as infinity."""
    return _activates_with(case, "softplus") and not np.isfinite(case.theirs).all()


def _approximates_activations(case: Case) -> bool:
    """Whether small errors of activations explain the results of a recurrent layer.

    The error is 1e-6 in each step's activations, and later steps may amplify it by their weights.
    """
    x, weights = case.operands[0], case.operands[2]
    if x is None or weights is None:
        return False
    steps = x.shape[1 if case.attribute("layout", 0) else 0]
    with np.errstate(all="ignore"):
        gain = 1 + np.abs(weights.astype(np.float64)).sum(-1).max(initial=0.0)
        ours = case.ours.astype(np.float64)
        size = max(1.0, float(np.abs(ours[np.isfinite(ours)]).max(initial=0.0)))
        return case.within(1e-6 * size * gain**steps)


REDUCTIONS = tuple(
    f"Reduce{name}"
    for name in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum")
) + ("ReduceSumSquare",)

RECURRENT_LAYERS = ("LSTM", "GRU", "RNN")

DEVIATIONS: tuple[Deviation, ...] = (
    Deviation(
        ("Cast", "CastLike"),
        _casts_out_of_range,
        "the standard leaves open which integer a float that is out of range becomes",
    ),
    Deviation(
        ("Pow", *REDUCTIONS),
        _computes_integers_in_floats,
        "integers are computed in floats, and out-of-range results become an extreme integer",
    ),
    Deviation(
        ("ReduceLogSumExp",),
        lambda case: case.ours.dtype.kind in "iu" and case.within(np.abs(case.ours) + 1),
        "some integer kernels round every power and the logarithm, others only the result",
    ),
    Deviation(
        ("Unique", "TopK", "NonMaxSuppression"),
        lambda case: any(a is not None and np.isnan(a).any() for a in case.operands[:2]),
        "where NaN comes in an order is open",
    ),
    Deviation(
        ("QuantizeLinear", "DynamicQuantizeLinear"),
        lambda case: not case.finite,
        "NaN has no quantised value, and processors differ",
    ),
    Deviation(
        ("DynamicQuantizeLinear",),
        lambda case: not any(a is not None and a.any() for a in case.operands[:1]),
        "the scale of zeros is 0, and onnxruntime makes it 1",
    ),
    Deviation((), _overflowed, "float16 values are not rounded between nodes, so none overflow"),
    Deviation(
        ("Sigmoid",),
        lambda case: case.within(4e-7),
        "a quotient of polynomials with an absolute error of up to 4e-7",
    ),
    Deviation(
        ("FusedGemm",),
        lambda case: case.attribute("activation", "") != "Relu" and case.within(1e-6),
        "sigmoid and tanh are quotients of polynomials with absolute errors of up to 1e-6",
    ),
    Deviation(
        ("Swish", "QuickGelu"),
        _has_rounded_sigmoid,
        "the operand times a sigmoid with an absolute error of up to 4e-7",
    ),
    Deviation(
        ("Cos", "Sin"),
        lambda case: case.ours.dtype == np.float64 and case.within(2.0**-51),
        "the absolute error is about 2^-52, so results close to 0 lose digits",
    ),
    Deviation(
        ("Shrink",),
        _is_shrunk_in_floats,
        "the bias is subtracted in float32, for wider types too",
    ),
    Deviation(
        ("GroupNormalization",),
        _is_normalized_in_floats,
        "stash_type says that float64 is normalized in float32; abele normalizes in float64",
    ),
    Deviation(
        ("Clip",),
        lambda case: any(a is not None and np.isnan(a).any() for a in case.operands[1:]),
        "a bound that is NaN is ignored",
    ),
    Deviation(
        ("HardSwish",),
        _has_narrow_sixth,
        "the factor 1/6 is rounded to float32, for float64 too",
    ),
    Deviation(
        ("Resize", "Upsample", "GridSample", "RoiAlign", "DeformConv"),
        lambda case: case.attribute("mode", "") != "nearest" and not case.finite,
        "other elements with a weight of 0 are multiplied, or left out, if they are not finite",
    ),
    Deviation(
        ("Resize", "Upsample"),
        _interpolates_in_floats,
        "coordinates and weights are rounded to float32, and integers are truncated",
    ),
    Deviation(
        RECURRENT_LAYERS,
        _overflows_in_softplus,
        "Softplus is log(1 + exp(x)), which overflows for an x of 89 or more",
    ),
    Deviation(
        RECURRENT_LAYERS,
        lambda case: _activates_with(case, "thresholdedrelu"),
        "ThresholdedRelu drops its threshold itself, which layers keep in the standard",
    ),
    Deviation(
        RECURRENT_LAYERS,
        _approximates_activations,
        "sigmoid and tanh are quotients of polynomials with absolute errors of up to 1e-6",
    ),
    Deviation(
        RECURRENT_LAYERS,
        lambda case: not case.finite,
        "clips and approximated functions turn NaN into numbers",
    ),
    Deviation(
        ("DFT", "STFT"),
        _transforms_in_another_order,
        "a fast transform adds and rounds in another order, and overflows elsewhere",
    ),
    Deviation(
        ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix"),
        lambda case: case.within(2.0**-20 if case.ours.dtype == np.float32 else 2.0**-9),
        "cosines and edges are computed in float32",
    ),
    Deviation(
        ("LRN",), _uses_running_sum, "a running sum over all channels accumulates rounding errors"
    ),
    Deviation(
        ("BatchNormalization", "InstanceNormalization", "LayerNormalization"),
        _loses_digits,
        "(x - mean) a + b is computed as x a + (b - mean a), or the mean as a sum of quotients, "
        "which loses digits",
    ),
    Deviation(
        ("MaxPool", "AveragePool", "LpPool"),
        _is_dilated,
        "SAME padding does not take dilation into account",
    ),
    Deviation(
        (
            *("MaxPool", "GlobalMaxPool", "ReduceMax", "ReduceMin"),
            *("ReduceLogSumExp", "Softmax", "LogSoftmax"),
        ),
        lambda case: not case.finite,
        "a maximum or minimum starts from a finite number, not an infinity, and ignores NaN",
    ),
    Deviation(
        ("ArgMax", "ArgMin", "Hardmax"),
        lambda case: any(a is not None and np.isnan(a).any() for a in case.operands),
        "the standard leaves open where the extreme is if there is a NaN",
    ),
    Deviation(
        ("ScatterElements", "ScatterND"),
        lambda case: (
            case.attribute("reduction", "") in ("max", "min")
            and any(a is not None and np.isnan(a).any() for a in case.operands)
        ),
        "the larger of a number and a NaN is one or the other, depending on their order",
    ),
    Deviation(
        ("Squeeze",),
        lambda case: any(a is not None and not a.size for a in case.operands[1:]),
        "an empty operand axes means all axes of size 1",
    ),
    Deviation(
        ("ConvTranspose",),
        lambda case: (
            case.attribute("auto_pad", "").startswith("SAME")
            and any(case.attribute("output_padding", ()))
        ),
        "SAME padding ignores output_padding",
    ),
    Deviation(
        ("ConvTranspose", "Col2Im"),
        lambda case: not case.finite,
        "zeros between elements are not multiplied by non-finite numbers; in abele they are",
    ),
    Deviation(
        ("Gemm", "MatMul"),
        _overflows_in_double,
        "a fused multiply-add overflows later than a product that is rounded first",
    ),
    Deviation(("Gemm",), _is_empty, "a product over an empty axis ignores beta"),
    Deviation(
        ("Conv", "ConvTranspose", "MatMul"), _is_empty, "a sum without terms does not start at 0"
    ),
    Deviation(
        ("MaxPool", "AveragePool", "LpPool"),
        lambda case: (
            case.attribute("auto_pad", "NOTSET").startswith("SAME")
            and any(
                k < s
                for k, s in zip(case.attribute("kernel_shape", ()), case.attribute("strides", ()))
            )
        ),
        "SAME padding is negative where a window is shorter than its stride",
    ),
    Deviation(
        ("MatMulInteger", "QLinearMatMul"),
        _is_empty,
        "a sum without terms is what the memory of the result held before",
    ),
    Deviation(REDUCTIONS, _is_empty, "axes of size 0 are not reduced to size 1"),
    Deviation(
        ("Dropout",),
        lambda case: case.opset < 12 and case.ours.dtype == np.bool_,
        "before opset 12, the mask is all false",
    ),
)


def deviation(case: Case) -> str | None:
    """The explanation of the known deviation that applies to a case; None if there is none."""
    if case.same_shape and not case.differs.any():
        # From the same operands, the node computes the same. An earlier node is wrong.
        return None
    for each in DEVIATIONS:
        if (not each.operators or case.node.op_type in each.operators) and each.when(case):
            return each.why
    return None
