"""Facts about operators on signals that ONNX's schemas do not contain: lengths and windows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Parameter, Shape


def _no_narrow_floats(draw: Draw) -> None:
    """Raise ValueError for float16, which onnxruntime does not round between nodes."""
    if "tensor(float16)" in draw.types.values():
        raise ValueError("a spectrum of float16")


def _dft(draw: Draw) -> Form:
    """A transform along any axis except the last one, which holds real and imaginary parts."""
    _no_narrow_floats(draw)
    if draw.shape[-1] not in (1, 2) or 0 in draw.shape:
        raise ValueError("no complex numbers")
    axis = draw.random.randrange(draw.rank - 1)
    inverse = draw.chance(0.3)
    length = draw.one_of(None, None, draw.shape[axis], draw.shape[axis] + 2, 3)
    # Of complex numbers, onnxruntime has no half of a spectrum.
    half = not inverse and draw.shape[-1] == 1
    parameters: dict[str, Parameter] = {
        "axis": draw.signed(axis),
        "dft_length": length,
        "inverse": int(inverse),
        "onesided": draw.one_of(None, 1) if half else None,
    }
    return Form(parameters=parameters)


def _complex(draw: Draw) -> Shape:
    return (draw.one_of(1, 2, 3), draw.one_of(1, 2, 3, 5, 8), draw.one_of(2, 3), draw.one_of(1, 2))


def _stft(draw: Draw) -> Form:
    """Frames of a real signal. Their length is that of a window or a number."""
    _no_narrow_floats(draw)
    if draw.shape[-1] != 1 or draw.shape[1] < 2 or 0 in draw.shape:
        raise ValueError("no signal")
    length = draw.random.randint(1, draw.shape[1])
    with_window = draw.chance(0.7)
    parameters: dict[str, Parameter] = {
        "frame_step": draw.one_of(1, 2, 3),
        "onesided": draw.one_of(None, 0, 1),
        "frame_length": None if with_window else length,
    }
    if not with_window:
        parameters["window"] = None
    return Form([None, (length,)], parameters)


def _signal(draw: Draw) -> Shape:
    return (draw.one_of(1, 2), draw.one_of(4, 7, 12), 1)


def _window(draw: Draw) -> Form:
    parameters = {
        "size": draw.one_of(1, 2, 5, 8),
        "output_datatype": draw.one_of(None, 1, 11),
        "periodic": draw.one_of(None, 0, 1),
    }
    if parameters["periodic"] == 0 and parameters["size"] == 1:
        raise ValueError("a division by 0")
    return Form(parameters=parameters)


def _mel_weights(draw: Draw) -> Form:
    rate = draw.one_of(8000, 16000)
    parameters = {
        "num_mel_bins": draw.one_of(1, 3, 8),
        "dft_length": draw.one_of(16, 33, 64),
        "sample_rate": rate,
        "lower_edge_hertz": np.array(draw.one_of(0.0, 125.0)),
        "upper_edge_hertz": np.array(3800.0),
        "output_datatype": draw.one_of(None, 1),
    }
    return Form(parameters=parameters)


SIGNALS: dict[str, Callable[[Draw], Form]] = {
    "DFT": _dft,
    "STFT": _stft,
    "HannWindow": _window,
    "HammingWindow": _window,
    "BlackmanWindow": _window,
    "MelWeightMatrix": _mel_weights,
}
"""Valid combinations of shapes and parameters of these operators."""

SIGNAL_RANKS: dict[str, tuple[int, int]] = {"DFT": (2, 5), "STFT": (3, 3)}
"""The least and the greatest number of axes of the first operand of these operators."""

SIGNAL_SHAPES: dict[str, Callable[[Draw], Shape]] = {"DFT": _complex, "STFT": _signal}
"""Shapes for the first operand of those that accept few shapes."""

MADE_FROM_NUMBERS = ("HannWindow", "HammingWindow", "BlackmanWindow", "MelWeightMatrix")
"""Operators whose first operand is a parameter."""
