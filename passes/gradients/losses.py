"""Losses: how far a model's output is from a target, as operations of nn.

Each gives one loss per position of a sample. The loss `given` is an output that a program computes
from its own inputs; it has no target. If the output is the result of a softmax or a sigmoid,
the loss contains that function and reads its operand instead, so that no probability is rounded to
0 before its logarithm.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, OpResult, SSAValue

from ...dialects import nn
from ...ir.blob import Blob
from ...ir.support.errors import InputError
from .emit import Emitter

Tensor = TensorType[Attribute]


@dataclass(frozen=True)
class Losses:
    """One loss for each position of the samples.

    Attributes:
        values: the losses; 0 at ignored positions.
        ignored: whether each position is ignored; None if all positions count.
        parts: what each loss is divided by before a mean; None for nothing.
    """

    values: SSAValue
    ignored: SSAValue | None = None
    parts: SSAValue | None = None


@dataclass(frozen=True, kw_only=True)
class Settings:
    """The parameters of all losses. Each loss reads some of them.

    Attributes:
        ignore_index: the label of positions that do not count; none if all do.
        label_smoothing: the part of a label that is spread evenly over all classes, from 0 to less
            than 1.
        delta: the distance from which the huber loss grows linearly.
        blank: the class of the ctc loss that is no label.
        labels: the most labels of a sample of the ctc loss; 0 for as many as there are frames.
    """

    ignore_index: int | None = None
    label_smoothing: float = 0.0
    delta: float = 1.0
    blank: int = 0
    labels: int = 0


Build = Callable[[Emitter, SSAValue, SSAValue, Settings], Losses]
"""What makes a loss of a model's output and its target. The loss `given` has no target, and gets
the output in its place.
"""


@dataclass(frozen=True)
class Loss:
    """A loss.

    Attributes:
        has_classes: whether the target is the index of a class along axis 1, instead of a tensor of
            the output's type.
        within: the operation class that the loss contains, if such an operation makes the output.
        along: the axis along which it works, if it works along one.
        has_target: whether the program gets an input for a target.
        has_frames: whether the output is [samples, frames, classes], and the target has a row of
            labels for each sample.
    """

    build: Build
    has_classes: bool = False
    within: type[nn.SoftmaxOp | nn.SigmoidOp] | None = None
    along: int = 1
    has_target: bool = True
    has_frames: bool = False

    def target(self, output: SSAValue, settings: Settings) -> Tensor:
        """The type of the target for a model's output. Raises InputError if it has no classes."""
        shape = nn.shape_of(output)
        if self.has_frames:
            return _rows_of_labels(shape, settings)
        if not self.has_classes:
            return nn.tensor(shape, nn.element_of(output))
        if len(shape) < 2:
            raise InputError(
                f"the loss reads an output of shape {list(shape)}; need a batch and classes"
            )
        return nn.tensor((shape[0], *shape[2:]), i32)

    def reads(self, output: SSAValue) -> SSAValue:
        """The value that the loss reads: the output, or the operand of the softmax or sigmoid that
        makes it.
        """
        if self.within is not None and isinstance(output, OpResult):
            value: SSAValue = output
            while isinstance(value, OpResult) and isinstance(value.op, nn.ReshapeOp):
                value = value.op.operand
            if isinstance(value, OpResult) and isinstance(value.op, self.within):
                made, source = value.op, value.op.operand
                is_along = not isinstance(made, nn.SoftmaxOp) or made.along == self.along
                if is_along and nn.shape_of(source) == nn.shape_of(output):
                    return source
        return output


def _softmax_cross_entropy(
    emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings
) -> Losses:
    return _nll(emit, emit(nn.LogSoftmaxOp(output, 1)), target, settings)


def _nll(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    """The negative log likelihood. The output holds logarithms of probabilities."""
    shape, classes = nn.shape_of(output), nn.shape_of(output)[1]
    label, ignored = target, None
    if settings.ignore_index is not None:
        ignored = is_ignored(emit, target, settings.ignore_index)
        none = emit(nn.ConstantOp(Blob(np.array(0, np.int32))))
        label = emit(nn.SelectOp(ignored, none, target))
    seen = emit.reshaped(label, (shape[0], 1, *shape[2:]))
    picked = emit.reshaped(emit(nn.GatherAlongOp(output, seen, 1)), nn.shape_of(target))
    smoothing = settings.label_smoothing
    values = emit(nn.ScaleOp(picked, -(1.0 - smoothing)))
    if smoothing:
        every = emit(nn.ReduceOp(output, "sum", [1]))
        values = emit(nn.AddOp(values, emit(nn.ScaleOp(every, -smoothing / classes))))
    if ignored is None:
        return Losses(values)
    return Losses(emit(nn.SelectOp(ignored, emit.constant(0.0, values), values)), ignored)


def is_ignored(emit: Emitter, target: SSAValue, index: int) -> SSAValue:
    """Whether each label of a target has the index of ignored positions."""
    return emit(nn.EqualOp(target, emit(nn.ConstantOp(Blob(np.array(index, np.int32))))))


def _binary_cross_entropy(
    emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings
) -> Losses:
    """The formula log(1 + exp(x)) - x * t, where x is the logarithm of the odds."""
    return Losses(emit(nn.SubOp(emit(nn.SoftplusOp(output)), emit(nn.MulOp(output, target)))))


def _mean_square(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    return Losses(emit(nn.SquareOp(emit(nn.SubOp(output, target)))))


def _mean_absolute(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    return Losses(emit(nn.AbsOp(emit(nn.SubOp(output, target)))))


def _huber(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    """The formula m * (|d| - m / 2), where m = min(|d|, delta)."""
    distance = emit(nn.AbsOp(emit(nn.SubOp(output, target))))
    limited = emit(nn.ClipOp(distance, float("-inf"), settings.delta))
    rest = emit(nn.SubOp(distance, emit(nn.ScaleOp(limited, 0.5))))
    return Losses(emit(nn.MulOp(limited, rest)))


def _rows_of_labels(shape: Sequence[int], settings: Settings) -> Tensor:
    """The type of the labels for an output of this shape."""
    if len(shape) != 3 or 0 in shape:
        raise InputError(
            f"the loss reads an output of shape {list(shape)}; need samples, frames and classes"
        )
    if not 0 <= settings.blank < shape[2]:
        raise InputError(f"blank {settings.blank} of {shape[2]} classes; need 0..{shape[2] - 1}")
    return nn.tensor((shape[0], settings.labels or shape[1]), i32)


def _ctc(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    """The loss of all alignments of a sample's frames with its labels; -1 fills up a row of these.

    A mean divides the loss of each sample by the number of its labels first, as PyTorch does.
    """
    logs = emit(nn.TransposeOp(emit(nn.LogSoftmaxOp(output, 2)), [1, 0, 2]))
    one, minus = (emit(nn.ConstantOp(Blob(np.array(n, np.int32)))) for n in (1, -1))
    said = emit(nn.LogicalNotOp(emit(nn.EqualOp(target, minus))))
    known = emit(nn.CastOp(said, i32))
    counts = emit(nn.ReduceOp(known, "sum", [1]))
    frames = emit.expanded(minus, nn.shape_of(counts))
    values = emit(nn.CtcLossOp(logs, target, frames, counts, blank=settings.blank))
    parts = emit(nn.CastOp(emit(nn.MaxOp(counts, one)), nn.element_of(values)))
    return Losses(values, parts=parts)


def _given(emit: Emitter, output: SSAValue, target: SSAValue, settings: Settings) -> Losses:
    """The output itself."""
    return Losses(output)


LOSSES: dict[str, Loss] = {
    "softmax_cross_entropy": Loss(_softmax_cross_entropy, has_classes=True, within=nn.SoftmaxOp),
    "nll": Loss(_nll, has_classes=True),
    "binary_cross_entropy": Loss(_binary_cross_entropy, within=nn.SigmoidOp),
    "mean_square": Loss(_mean_square),
    "mean_absolute": Loss(_mean_absolute),
    "huber": Loss(_huber),
    "ctc": Loss(_ctc, within=nn.SoftmaxOp, along=2, has_frames=True),
    "given": Loss(_given, has_target=False),
}
"""Losses by name."""

REDUCTIONS = ("mean", "sum", "none")
"""Reductions of the losses of all positions: their mean, their sum, or one result per position."""


def counted(emit: Emitter, ignored: SSAValue, like: SSAValue) -> SSAValue:
    """The number of positions that are not ignored, at least 1, in the type of a value."""
    zero, one = emit.constant(0.0, like), emit.constant(1.0, like)
    return emit(nn.MaxOp(_total(emit, emit(nn.SelectOp(ignored, zero, one))), one))


def reduced(
    emit: Emitter, losses: Losses, reduction: str, parts: int = 1, count: SSAValue | None = None
) -> SSAValue:
    """The losses of all positions, reduced. Ignored positions do not count in a mean.

    Args:
        parts: the number of equal parts of a batch, if these are the losses of one part. The mean
            of a part is divided by it, so that the parts add up to the mean of the batch.
        count: the number of positions of all parts that are not ignored, if some are.
    """
    values = losses.values
    if reduction == "mean" and losses.parts is not None:
        values = emit(nn.DivOp(values, losses.parts))
    if reduction == "none":
        return values
    total = _total(emit, values)
    if reduction == "sum":
        return total
    if losses.ignored is None:
        return emit(nn.ScaleOp(total, 1.0 / max(prod(nn.shape_of(values)) * parts, 1)))
    if count is None:
        count = counted(emit, losses.ignored, values)
    return emit(nn.DivOp(total, count))


def _total(emit: Emitter, values: SSAValue) -> SSAValue:
    axes = range(len(nn.shape_of(values)))
    return emit(nn.ReduceOp(values, "sum", axes)) if axes else values
