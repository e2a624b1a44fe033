"""What the ONNX standard leaves open: a table of nodes whose results no tool can get wrong.

Each entry has its source. Either the operator's text in onnx.defs says so, and the entry quotes it,
or the text is silent, and the entry names a pattern that does not occur in it. Tests look both up
in the installed package.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from ...driver.arrays import Array

NAN = r"(?<![a-z])NaN"


@dataclass(frozen=True)
class OpenNode:
    """A node with the values of its operands, None for absent ones, and of its results."""

    node: onnx.NodeProto
    opset: int
    operands: Sequence[Array | None]
    results: Sequence[Array | None]

    def attribute(self, name: str, default: Any) -> Any:
        """The value of an attribute."""
        found = {a.name: onnx.helper.get_attribute_value(a) for a in self.node.attribute}
        value = found.get(name, default)
        return value.decode() if isinstance(value, bytes) else value

    @property
    def given(self) -> list[Array]:
        """The operands that are there."""
        return [each for each in self.operands if each is not None]


@dataclass(frozen=True)
class Freedom:
    """Something that the standard leaves open.

    Attributes:
        operators: the operators that it is about.
        when: whether it makes the results of a node open.
        what: the same in words.
        quote: the words of the operators' texts that say so.
        silent: a pattern that no text of these operators has, where nothing is said.
        before: the opsets below this one alone, whose texts differ; 0 for all.
    """

    operators: tuple[str, ...]
    when: Callable[[OpenNode], bool]
    what: str
    quote: str = ""
    silent: str = ""
    before: int = 0


def _is_float(array: Array) -> bool:
    return array.dtype.kind == "f" or array.dtype.name.startswith(("bfloat", "float"))


def _nan(node: OpenNode) -> bool:
    return any(_is_float(a) and np.isnan(a).any() for a in node.given)


def _not_finite(node: OpenNode) -> bool:
    return any(_is_float(a) and not np.isfinite(a).all() for a in node.given)


def _cast_out_of_range(node: OpenNode) -> bool:
    value = node.operands[0]
    to = node.results[0]
    if value is None or to is None or not _is_float(value) or to.dtype.kind not in "iu":
        return False
    limits = np.iinfo(to.dtype)
    wide = np.trunc(value.astype(np.float64))
    return bool((~((wide >= limits.min) & (wide < float(limits.max) + 1))).any())


def _divides_integer_by_zero(node: OpenNode) -> bool:
    divisor = node.operands[1] if len(node.operands) > 1 else None
    return divisor is not None and divisor.dtype.kind in "iu" and not divisor.all()


def _divides_by_a_zero(node: OpenNode) -> bool:
    divisor = node.operands[-1]
    return divisor is not None and _is_float(divisor) and not divisor.all()


def _integer_overflow(node: OpenNode) -> bool:
    """Whether a bound on sums and products of the operands is out of the result's range."""
    result = node.results[0]
    if result is None or result.dtype.kind not in "iu":
        return False
    whole = [a for a in node.given if a.dtype.kind in "iub" and a.size]
    sizes = [max(abs(int(a.min())), abs(int(a.max()))) for a in whole]
    if not sizes:
        return False
    terms = max(a.size for a in node.given)
    name = node.node.op_type
    if name == "Pow":
        base, exponent = sizes[0], sizes[-1]
        most = base**exponent if exponent < 64 else 1 << 80
    elif name == "ReduceProd":
        most = sizes[0] ** terms if terms < 64 and sizes[0] > 1 else sizes[0]
        most = 1 << 80 if terms >= 64 and sizes[0] > 1 else most
    elif name in PRODUCTS:
        most = int(np.prod([float(s) for s in sizes])) * terms
    elif name in SUMS:
        most = sizes[0] * terms
    else:
        most = sum(sizes)
    limits = np.iinfo(result.dtype)
    negative = limits.min == 0 and name in ("Sub", "Neg")
    return negative or most > limits.max


PRODUCTS = ("Mul", "MatMul", "Gemm", "Einsum", "CumProd", "ReduceSumSquare", "ReduceL2")
SUMS = ("ReduceSum", "ReduceL1", "CumSum", "ReduceLogSum", "ReduceLogSumExp", "ReduceMean")


def _negative_power(node: OpenNode) -> bool:
    exponent = node.operands[1]
    integers = node.operands[0] is not None and node.operands[0].dtype.kind in "iu"
    return bool(integers and exponent is not None and (exponent < 0).any())


def _power_in_floats(node: OpenNode) -> bool:
    base, exponent = node.operands[:2]
    return base is not None and exponent is not None and base.dtype != exponent.dtype


def _shifts_out(node: OpenNode) -> bool:
    value, amount = node.operands[:2]
    if value is None or amount is None:
        return False
    return bool((amount >= 8 * value.dtype.itemsize).any() or (amount < 0).any())


def _empty_reduction(node: OpenNode) -> bool:
    return any(not a.size for a in node.given[:1])


def _duplicate_scores(node: OpenNode) -> bool:
    scores = node.operands[1] if len(node.operands) > 1 else None
    return scores is not None and len(np.unique(scores)) < scores.size


def _duplicate_updates(node: OpenNode) -> bool:
    """Whether some indices may be equal. Those of rows of ScatterND are compared as rows."""
    indices = node.operands[1]
    if indices is None or not indices.size or node.attribute("reduction", "none") != "none":
        return False
    if node.node.op_type == "ScatterND":
        rows = indices.reshape(-1, indices.shape[-1])
        return bool(len(np.unique(rows, axis=0)) < len(rows) or (rows < 0).any())
    axis = node.attribute("axis", 0)
    ordered = np.sort(indices, axis=axis)
    return bool((np.diff(ordered, axis=axis) == 0).any() or (indices < 0).any())


def _tied_windows(node: OpenNode) -> bool:
    """Whether the places of maxima are asked for, and two elements are equal."""
    value = node.operands[0]
    asked = len(node.node.output) > 1 and bool(node.node.output[1])
    return asked and value is not None and len(np.unique(value)) < value.size


def _zeros(node: OpenNode) -> bool:
    return any(not a.any() for a in node.given[:1])


def _half_infinite(node: OpenNode) -> bool:
    both = [*node.given, *(each for each in node.results if each is not None)]
    return any(a.dtype == np.float16 and not np.isfinite(a).all() for a in both)


def _always(node: OpenNode) -> bool:
    del node
    return True


ORDERED = (
    *("Max", "Min", "Clip", "Sign", "Relu", "ReduceMax", "ReduceMin", "ArgMax", "ArgMin", "TopK"),
    *("Unique", "MaxPool", "GlobalMaxPool", "Hardmax", "NonMaxSuppression", "ThresholdedRelu"),
    *("LeakyRelu", "PRelu", "Elu", "Selu", "Celu", "HardSigmoid", "HardSwish", "Shrink"),
    *("QuantizeLinear", "DynamicQuantizeLinear", "Softmax", "LogSoftmax", "ScatterElements"),
    *("MaxRoiPool", "RoiAlign", "LSTM", "GRU", "RNN", "MaxUnpool"),
)
"""Operators whose text compares numbers and says nothing about NaN."""

ADDS_ZEROS = (
    *("Conv", "ConvTranspose", "AveragePool", "LpPool", "LRN", "Resize", "Upsample", "GridSample"),
    *("RoiAlign", "DeformConv", "Col2Im", "AffineGrid", "BatchNormalization", "STFT", "DFT"),
    *("InstanceNormalization", "LayerNormalization", "GroupNormalization", "Einsum"),
    *("RMSNormalization", "MeanVarianceNormalization", "LpNormalization", "MelWeightMatrix"),
    *("MatMul", "Gemm", "ReduceMean", "ReduceSum", "ReduceL2", "ReduceLogSumExp", "CumSum"),
)
"""Operators that may add and multiply in another order, or with zeros beside the operand."""

INTEGERS = (
    *("Add", "Sub", "Mul", "Neg", "Abs", "Pow", "Sum", "MatMul", "Gemm", "Einsum", "CumSum"),
    *("CumProd", "ReduceSum", "ReduceProd", "ReduceSumSquare", "ReduceL1", "ReduceL2"),
    *("ReduceMean", "ReduceLogSum", "ReduceLogSumExp"),
)

FREEDOMS: tuple[Freedom, ...] = (
    Freedom(
        ("Cast",),
        _cast_out_of_range,
        "a float out of the range of an integer type may become any integer",
        quote="fixed point: undefined if OOR",
    ),
    Freedom(
        ("CastLike",),
        _cast_out_of_range,
        "a float out of the range of an integer type may become any integer, as for Cast",
        quote="See documentation of the Cast operator",
    ),
    Freedom(
        ("TopK",),
        lambda node: not node.attribute("sorted", 1),
        "the order of elements that are not sorted",
        quote="If \"sorted\" is 0, order of returned 'Values' and 'Indices' are undefined",
    ),
    Freedom(
        ("ScatterND", "ScatterElements"),
        _duplicate_updates,
        "which of several updates of one element stays",
        quote="indices should not have duplicate entries",
    ),
    Freedom(
        ("ReduceMean",),
        _empty_reduction,
        "the mean of nothing",
        quote="Reduction over an empty set of values yields undefined",
    ),
    Freedom(
        ("ReduceLogSum", "ReduceLogSumExp"),
        _empty_reduction,
        "the logarithm of a sum of nothing, where the type has no infinity",
        quote="(if supported by the datatype) or undefined otherwise",
    ),
    Freedom(
        ("MatMulInteger", "QLinearMatMul", "ConvInteger"),
        _integer_overflow,
        "sums beyond 32 bits",
        quote="overflow if and only if in 32 bits",
    ),
    Freedom(
        ("Slice", "Pad", "Resize", "CenterCropPad"),
        lambda node: _repeated(node),
        "an axis that is named twice",
        quote="Behavior is undefined if an axis is repeated",
    ),
    Freedom(
        ("Dropout",),
        lambda node: len(node.node.output) > 1 and bool(node.node.output[1]),
        "the mask of a dropout that drops nothing",
        silent="(?i)mask.{0,60}all (true|ones)",
        before=12,
    ),
    Freedom(
        ("Bernoulli",),
        _always,
        "random numbers",
        quote="may not produce the same values in different implementations",
    ),
    Freedom(
        ("Div", "Mod"),
        _divides_integer_by_zero,
        "an integer divided by 0",
        silent=r"(?i)integers? .{0,40}(divi|by) .{0,20}(0|zero)\b(?! \(default)",
    ),
    Freedom(
        ("Div", "Reciprocal"),
        _divides_by_a_zero,
        "the sign of a zero that is divided by",
        silent=r"(?i)signed zero|-0\b",
    ),
    Freedom(ORDERED, _nan, "the order of NaN", silent=NAN),
    Freedom(
        ADDS_ZEROS,
        _not_finite,
        "in which order terms are added, and whether infinity times 0 is among them",
        silent=r"(?i)order of (addition|summation)|infinity times|inf \* 0",
    ),
    Freedom(
        INTEGERS,
        _integer_overflow,
        "integers out of the range of their type",
        silent="(?i)overflow",
    ),
    Freedom(
        ("Pow",), _negative_power, "a negative power of an integer", silent="(?i)negative exponent"
    ),
    Freedom(
        ("Pow",),
        _power_in_floats,
        "in which type a power of two types is computed",
        silent="(?i)(?<!broad)cast|convert",
    ),
    Freedom(
        ("BitShift",),
        _shifts_out,
        "a shift by as many bits as the type has, or more",
        silent="(?i)greater than or equal|bit ?width|number of bits",
        before=28,
    ),
    Freedom(
        ("NonMaxSuppression",),
        _duplicate_scores,
        "which of two boxes of one score comes first",
        silent="(?i)same score|equal score|tie",
    ),
    Freedom(
        ("MaxPool",),
        _tied_windows,
        "which of two equal maxima has its place returned",
        silent="(?i)first occurrence|tie",
    ),
    Freedom(
        ("DynamicQuantizeLinear",),
        _zeros,
        "the scale of zeros, which would be 0",
        silent="(?i)scale is (0|zero)|all zero",
    ),
)
"""All that is known to be open."""

HALF = "whether a value between nodes is rounded to float16, so that it overflows"
"""Open for every operator: no text says in which precision an operator computes inside."""


def _repeated(node: OpenNode) -> bool:
    axes = node.operands[3] if len(node.operands) > 3 else None
    rank = node.operands[0].ndim if node.operands and node.operands[0] is not None else 1
    if axes is None or axes.dtype.kind not in "iu":
        return False
    return len(np.unique(axes % max(rank, 1))) < axes.size


def freedom(node: OpenNode) -> str:
    """What the standard leaves open about a node, in words; "" if nothing is known."""
    for each in FREEDOMS:
        named = node.node.op_type in each.operators and not node.node.domain
        if named and (not each.before or node.opset < each.before) and each.when(node):
            return each.what
    return HALF if _half_infinite(node) else ""
