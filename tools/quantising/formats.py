"""The 8-bit formats that tensors are quantised to, and how they hold numbers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import ml_dtypes
import numpy as np
import onnx

from ...ir.support.arrays import Array
from ...ir.support.errors import InputError

To = Literal["int8", "fp8"]
Activations = Literal["uint8", "int8"]

LEAST_EXPONENT, MOST_EXPONENT = -32, 31
"""The exponents of the scales that may lie beside a tensor of 8-bit floats.

Source: the metadata of a tensor of 8-bit floats on IPU21, six bits with a sign.
"""

LEAST_SCALE = float(np.finfo(np.float32).tiny)
MOST_SCALE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Scaling:
    """How a tensor is held: an element q stands for (q - zero) * scale.

    Attributes:
        scale: () for a whole tensor, or one per index along an axis.
    """

    scale: Array
    zero: int = 0

    @staticmethod
    def of(scale: float, zero: int = 0) -> Scaling:
        """The scaling of a whole tensor."""
        return Scaling(np.asarray(scale, np.float32), zero)


@dataclass(frozen=True)
class Format:
    """A format of 8 bits.

    Attributes:
        dtype: as NumPy or ml_dtypes names it.
        code: ONNX's element type.
        low, high: the least and the largest number at a scale of 1.
        scaling: the scaling that holds a range of numbers; it raises InputError for a range that no
            scale reaches.
    """

    name: str
    dtype: np.dtype[Any]
    code: int
    low: float
    high: float
    scaling: Callable[[Format, float, float, str], Scaling]

    def for_range(self, low: float, high: float, what: str) -> Scaling:
        """The finest scaling that holds 0 and the numbers from low to high. Raises InputError.

        Args:
            what: the tensor, for the message.
        """
        return self.scaling(self, min(low, 0.0), max(high, 0.0), what)

    def stored(self, values: Array, scaling: Scaling, axis: int | None = None) -> Array:
        """Values as elements of the format, rounded half to even; too large ones saturate.

        Args:
            axis: along which scales are given, if there are several.
        """
        scale = _along(scaling.scale, values.ndim, axis)
        units = values.astype(np.float32) / scale
        if self.dtype.kind in "iu":
            units = np.rint(units) + np.float32(scaling.zero)
        return np.clip(units, self.low, self.high).astype(self.dtype)

    def rounded(self, values: Array, scaling: Scaling, axis: int | None = None) -> Array:
        """The numbers that the elements of values stand for, float32."""
        held = self.stored(values, scaling, axis).astype(np.float32) - np.float32(scaling.zero)
        return held * _along(scaling.scale, values.ndim, axis)


def _along(scale: Array, rank: int, axis: int | None) -> Array:
    if axis is None or not scale.ndim:
        return scale
    return scale.reshape([-1 if i == axis else 1 for i in range(rank)])


def _asymmetric(form: Format, low: float, high: float, what: str) -> Scaling:
    scale = _checked((high - low) / (form.high - form.low), what)
    zero = round(min(max(form.low - low / scale, form.low), form.high))
    return Scaling.of(scale, zero)


def _symmetric(form: Format, low: float, high: float, what: str) -> Scaling:
    return Scaling.of(_checked(max(high, -low) / form.high, what))


def _power_of_two(form: Format, low: float, high: float, what: str) -> Scaling:
    most = max(high, -low)
    if not most:
        return Scaling.of(1.0)
    exponent = int(np.ceil(np.log2(most / form.high)))
    if exponent > MOST_EXPONENT:
        raise InputError(
            f"{what}: numbers up to {most:.3g}; scales of {form.name} go to 2^{MOST_EXPONENT}, "
            f"which holds {form.high * 2.0**MOST_EXPONENT:.3g}; leave its node in float, by keep"
        )
    return Scaling.of(2.0 ** max(exponent, LEAST_EXPONENT))


def _checked(scale: float, what: str) -> float:
    """A scale that float32 holds as a normal number; 1 for a tensor of zeros."""
    if not scale:
        return 1.0
    if scale > MOST_SCALE:
        raise InputError(
            f"{what}: a scale of {scale:.3g}; need one that float32 holds; --keep leaves its node "
            "in float"
        )
    return float(np.float32(max(scale, LEAST_SCALE)))


UINT8 = Format("uint8", np.dtype(np.uint8), onnx.TensorProto.UINT8, 0, 255, _asymmetric)
INT8 = Format("int8", np.dtype(np.int8), onnx.TensorProto.INT8, -128, 127, _asymmetric)
SYMMETRIC = Format("int8", np.dtype(np.int8), onnx.TensorProto.INT8, -127, 127, _symmetric)
FP8 = Format(
    "fp8",
    np.dtype(ml_dtypes.float8_e4m3fnuz),
    onnx.TensorProto.FLOAT8E4M3FNUZ,
    -240,
    240,
    _power_of_two,
)
