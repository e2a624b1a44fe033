"""Loss scaling: gradients are computed times a power of two, so that small ones are not lost.

A static scale is a number. An automatic one is a state that doubles after each step, unless some
gradient was close to the largest number of float16; then it is halved. It never rests. With unit
scaling, each gradient has a power of two of its own (see unit_scaling.py).
Source: PopART, autolossscaleproxy and the histogram of gradients, with their numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import frexp, isfinite
from typing import Literal, get_args

import numpy as np
from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from ...dialects import nn
from ...ir.support.errors import InputError
from ...ir.support.number_formats import FORMATS
from .emit import Emitter

STATE = "train.loss_scale"
"""The name of the state that is the automatic scale of the next step."""

LARGE = "train.large_gradients"
"""The name of the state that is how many elements of the last step's gradients were large."""

LIMITS = (1.0, 32768.0)
"""The range of an automatic scale. The largest value of any scale is the largest power of two of
float16, in which the gradient of the loss itself is held; PopART has no limits."""

EDGE = 0.125 * FORMATS["f16"].largest
"""Gradients of this magnitude or more count as large. Twice the scale leaves them in range."""

SHARE = 1e-7
"""The largest share of large gradients with which the scale grows."""

Scaling = Literal["static", "automatic", "unit"]


@dataclass(frozen=True)
class LossScale:
    """The scale of a loss.

    Raises InputError for a scale that is no power of two, or that float16 does not hold.

    Attributes:
        number: the scale, or that of the first step.
    """

    number: float
    scaling: Scaling

    def __post_init__(self) -> None:
        if self.scaling not in get_args(Scaling):
            raise InputError(f"scaling {self.scaling!r}; need static, automatic or unit")
        number = self.number
        if self.is_unit and number != 1.0:
            raise InputError(
                f"loss_scale {number:g}, unit; need none: unit scaling chooses the power of two of "
                "each gradient"
            )
        if not (isfinite(number) and number > 0 and frexp(number)[0] == 0.5):
            raise InputError(f"loss_scale {number:g}; need a power of two, such as 128")
        low, high = LIMITS
        if number > high or (self.scaling == "automatic" and number < low):
            least = f"{low:g} to " if self.scaling == "automatic" else "at most "
            raise InputError(
                f"loss_scale {number:g}, {self.scaling}; need {least}{high:g}, the largest power "
                "of two of float16"
            )

    @property
    def is_none(self) -> bool:
        """Whether nothing is scaled."""
        return self.scaling == "static" and self.number == 1.0

    @property
    def is_unit(self) -> bool:
        """Whether each gradient has a power of two of its own, and the loss has none."""
        return self.scaling == "unit"

    @property
    def states(self) -> dict[str, np.ndarray]:
        """The name and first value of each state that the scaling needs."""
        if self.scaling != "automatic":
            return {}
        return {STATE: np.array(self.number, np.float32), LARGE: np.zeros((), np.float32)}

    def load(self, emit: Emitter) -> SSAValue | None:
        """The automatic scale of this step; None if the scale is no automatic one."""
        if self.scaling != "automatic":
            return None
        made = nn.LoadOp(STATE, nn.tensor((), f32))
        emit.insert(made)
        return made.result

    def given(self, emit: Emitter, loss: SSAValue, scale: SSAValue | None) -> SSAValue:
        """The gradient of a loss times the scale: the scale itself, in the shape of the loss."""
        shape, element = nn.shape_of(loss), nn.element_of(loss)
        if scale is None:
            return emit.constant(self.number, loss, shape)
        own = scale if element == f32 else emit(nn.CastOp(scale, element))
        return emit.expanded(own, shape)

    def divided(
        self, emit: Emitter, gradient: SSAValue, scale: SSAValue | None, exponent: int
    ) -> SSAValue:
        """A gradient without the scale, to the bit unless it leaves the range of its type.

        Args:
            exponent: of the power of two of this gradient, with unit scaling.
        """
        if self.is_unit:
            return emit(nn.ScaleOp(gradient, 2.0**-exponent)) if exponent else gradient
        if scale is None:
            return emit(nn.ScaleOp(gradient, 1.0 / self.number))
        inverse, element = emit(nn.ReciprocalOp(scale)), nn.element_of(gradient)
        own = inverse if element == f32 else emit(nn.CastOp(inverse, element))
        return emit(nn.MulOp(gradient, own))

    def next(self, emit: Emitter, gradients: Sequence[SSAValue], scale: SSAValue) -> SSAValue:
        """The automatic scale of the next step. How many gradients were large becomes a state.

        Args:
            gradients: of this step, times the scale.
        """
        large = emit.add([_count_large(emit, each) for each in gradients])
        emit.insert(nn.StoreOp(large, LARGE))
        total = float(sum(np.prod(nn.shape_of(each), dtype=np.int64) for each in gradients))
        small = emit(nn.SubOp(emit.constant(total, large), large))
        limit = emit(nn.ScaleOp(small, SHARE / (1 - SHARE)))
        half, double = (emit(nn.ScaleOp(scale, factor)) for factor in (0.5, 2.0))
        made = emit(nn.SelectOp(emit(nn.GreaterOp(large, limit)), half, double))
        return emit(nn.ClipOp(made, *LIMITS))


def _count_large(emit: Emitter, gradient: SSAValue) -> SSAValue:
    """How many elements of a gradient are large or NaN, as f32."""
    edge = emit.constant(EDGE, gradient)
    is_small = emit(nn.LessOp(emit(nn.AbsOp(gradient)), edge))
    marks = emit(nn.CastOp(emit(nn.LogicalNotOp(is_small)), f32))
    return emit(nn.ReduceOp(marks, "sum", range(len(nn.shape_of(gradient)))))
