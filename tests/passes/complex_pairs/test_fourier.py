"""Fourier transforms are NumPy's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from lowered_stablehlo import Array, lowered, operations, values_of

from abele.backends.stablehlo import run_stablehlo
from abele.ir.text import parse_module
from abele.ir.upstream import ModuleOp, VerifyException
from abele.tools.driver.context import new_context

TRANSFORMS: dict[str, Callable[..., Any]] = {
    "FFT": np.fft.fftn,
    "IFFT": np.fft.ifftn,
    "RFFT": np.fft.rfftn,
    "IRFFT": np.fft.irfftn,
}


def text(kind: str, lengths: Sequence[int], given: str, made: str) -> tuple[str, str, str]:
    listed = ", ".join(map(str, lengths))
    body = f"""%0 = "stablehlo.fft"(%x) <{{fft_type = #stablehlo<fft_type {kind}>, fft_length =
        array<i64: {listed}>}}> : ({given}) -> {made}
        "func.return"(%0) : ({made}) -> ()"""
    return body, f"%x: {given}", made


def type_of(array: Array) -> str:
    sizes = "".join(f"{n}x" for n in array.shape)
    return f"tensor<{sizes}{'complex<f32>' if np.iscomplexobj(array) else 'f32'}>"


def transformed(kind: str, lengths: Sequence[int], given: Array) -> tuple[Array, Array, ModuleOp]:
    """What nn computes, what NumPy does, and the program."""
    axes = range(-len(lengths), 0)
    wanted = TRANSFORMS[kind](given.astype(np.result_type(given, np.float64)), lengths, axes)
    single = np.complex64 if np.iscomplexobj(wanted) else np.float32
    program = text(kind, lengths, type_of(given), type_of(wanted.astype(single)))
    module = lowered(*program)
    parts = [given.real, given.imag] if np.iscomplexobj(given) else [given]
    found = values_of(module, *map(np.ascontiguousarray, parts))
    source = parse_module(
        f"builtin.module {{ func.func @main({program[1]}) -> {program[2]} {{ {program[0]} }} }}",
        new_context(),
    )
    (above,) = run_stablehlo(source, {"arg0": given}).outputs.values()
    np.testing.assert_allclose(above, wanted, rtol=1e-5, atol=1e-5)
    return (found[0] + 1j * found[1] if len(found) > 1 else found[0]), wanted, module


@pytest.mark.parametrize("kind", TRANSFORMS)
@pytest.mark.parametrize(
    "lengths", [[1], [2], [5], [8], [3, 4], [2, 3, 4], [67], [96], [2, 130]], ids=str
)
def test_a_transform_is_numpys(kind: str, lengths: list[int]):
    draw = np.random.default_rng(0)
    shape = [2, *lengths]
    if kind == "IRFFT":
        shape[-1] = lengths[-1] // 2 + 1
    given = draw.normal(size=shape)
    given = given.astype(np.float32) if kind == "RFFT" else given + 1j * draw.normal(size=shape)
    given = given.astype(np.float32 if kind == "RFFT" else np.complex64)
    found, wanted, _ = transformed(kind, lengths, given)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=2e-4 if kind != "IFFT" else 1e-5)


def test_a_long_transform_has_small_matrices():
    given = np.ones((1, 1024), np.complex64)
    found, wanted, module = transformed("FFT", [1024], given)
    np.testing.assert_allclose(found, wanted, atol=1e-3)
    assert operations(module).count("nn.matmul") == 2
    sizes = [op.results[0].type.get_shape() for op in module.walk() if op.name == "nn.constant"]
    assert max(np.prod(each) for each in sizes) == 64 * 64


@pytest.mark.parametrize("kind", TRANSFORMS)
def test_a_transform_of_a_large_prime_number_has_small_matrices(kind: str):
    draw = np.random.default_rng(0)
    n = 1019
    given = draw.normal(size=(2, n // 2 + 1 if kind == "IRFFT" else n)).astype(np.float32)
    if kind != "RFFT":
        given = (given + 1j * draw.normal(size=given.shape)).astype(np.complex64)
    found, wanted, module = transformed(kind, [n], given)
    largest = abs(wanted).max()
    np.testing.assert_allclose(found / largest, wanted / largest, atol=1e-6)
    sizes = [op.results[0].type.get_shape() for op in module.walk() if op.name == "nn.constant"]
    assert max(np.prod(each) for each in sizes) == 128 * 128


def test_a_transform_of_nothing_is_nothing():
    found, _, _ = transformed("RFFT", [4], np.zeros((0, 4), np.float32))
    assert found.shape == (0, 3)


@pytest.mark.parametrize(
    ("kind", "lengths", "given", "made", "message"),
    [
        ("FFT", [5], "4xcomplex<f32>", "4xcomplex<f32>", "operand has shape"),
        ("FFT", [4], "4xf32", "4xcomplex<f32>", "FFT has the other kind there"),
        ("RFFT", [4], "4xf32", "4xcomplex<f32>", "the result has shape"),
        ("RFFT", [4], "4xf32", "3xcomplex<f64>", "the result is"),
        ("FFT", [2, 2, 2, 2], "2x2x2x2xcomplex<f32>", "2x2x2x2xcomplex<f32>", "need 1 to 3"),
    ],
)
def test_a_transform_of_other_types_is_an_error(
    kind: str, lengths: list[int], given: str, made: str, message: str
):
    body, arguments, results = text(kind, lengths, f"tensor<{given}>", f"tensor<{made}>")
    with pytest.raises(VerifyException, match=message):
        lowered(body, arguments, results)
