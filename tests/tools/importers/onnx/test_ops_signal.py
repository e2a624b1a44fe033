"""Fourier transforms and windows."""

import numpy as np
import pytest

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx

from .one_node import agree_with_onnx, computed, one_node


def floats(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def as_complex(values: np.ndarray) -> np.ndarray:
    return values[..., 0] + 1j * values[..., 1]


@pytest.mark.parametrize("size", [6, 288, 521, 1000])
@pytest.mark.parametrize("inverse", [0, 1])
def test_long_transforms_are_made_of_short_ones(size: int, inverse: int):
    x = floats(2, size, 2)
    model, inputs = one_node("DFT", x, inverse=inverse)
    (found,) = computed(model, inputs)
    exact = (np.fft.ifft if inverse else np.fft.fft)(as_complex(x.astype(np.float64)))
    assert np.abs(as_complex(found) - exact).max() <= 1e-6 * np.abs(exact).max()
    sizes = [max(op.operands[1].type.get_shape()) for op in products(model)]
    assert max(sizes) <= (512 if size != 521 else 2 * 521)


def products(model):
    return [op for op in import_onnx(model, AbeleContext()).walk() if op.name == "nn.matmul"]


@pytest.mark.parametrize(
    ("shape", "length", "axis", "inverse", "onesided"),
    [
        ((2, 5, 1), None, -2, 0, 1),
        ((5, 2, 2), 7, 0, 0, 0),
        ((5, 3, 2), 4, 0, 1, 0),
        ((2, 4, 2), None, 1, 1, 1),
        ((2, 4, 2), 7, 1, 1, 1),
    ],
)
def test_signals_are_cut_or_filled_and_spectra_may_be_halves(
    shape, length, axis, inverse, onesided
):
    operands = [None if n is None else np.array(n) for n in (length, axis)]
    attributes = {"inverse": inverse, "onesided": onesided}
    agree_with_onnx(*one_node("DFT", floats(*shape), *operands, known=2, **attributes))


@pytest.mark.parametrize("onesided", [0, 1])
def test_frames_of_a_signal_are_transformed(onesided: int):
    signal, window = floats(2, 30, 1), np.abs(floats(8))
    step = np.array(3)
    agree_with_onnx(*one_node("STFT", signal, step, window, known=2, onesided=onesided))


@pytest.mark.parametrize("name", ["Hann", "Hamming", "Blackman"])
@pytest.mark.parametrize("periodic", [0, 1])
def test_windows_are_constants(name: str, periodic: int):
    agree_with_onnx(*one_node(f"{name}Window", np.array(9), known=1, periodic=periodic))


def test_mel_weights_are_triangles():
    parameters = (20, 256, 16000, 125.0, 3800.0)
    operands = [np.array(p, np.int64 if isinstance(p, int) else np.float32) for p in parameters]
    agree_with_onnx(*one_node("MelWeightMatrix", *operands, known=5))


def test_a_transform_along_the_parts_is_refused():
    model, _ = one_node("DFT", floats(3, 2), None, np.array(1), known=1)
    with pytest.raises(InputError, match="axis 1 is that of real and imaginary parts"):
        import_onnx(model, AbeleContext(), lenient=True)
