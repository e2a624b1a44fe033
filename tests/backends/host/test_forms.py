"""Wide kernels, narrow kernels and NumPy alone give the same bytes, on whatever host it is."""

from pathlib import Path
from random import Random

import numpy as np
import pytest
from every_form import different
from training import training_step

from abele.passes.train import Train
from abele.tools.driver.compile import compile_model
from abele.tools.driver.executable import Executable
from abele.tools.workshop.transformers.graphs import Shape, encoder

pytest.importorskip("numba")

SIZES = 1, 2, 3, 4, 5, 6, 7, 9, 11, 12, 13, 16, 17, 24, 25, 33, 49
"""Rows and columns: those of panels, of vectors, and around them."""

TERMS = 1, 3, 64, 127, 128, 129, 200, 256, 257, 300, 511, 600, 641, 1000
"""Terms of sums: chains have 128, and what is added up in a block has several chains."""

WINDOWS = [(c, h, k) for c in (3, 17, 40, 130) for h in (4, 5, 7, 9) for k in (1, 2, 3)]
"""Channels, side of the image, and side of the window."""

PARTS, EACH = 2, 8

BLOCK = Shape(layers=1, width=48, heads=3, hidden=150, words=50, tokens=19)


def seeded(exe: Executable) -> dict[str, np.ndarray]:
    """Normal values for what is a float, and small numbers for the rest."""
    rng = np.random.default_rng(0)
    return {
        each.name: rng.standard_normal(each.shape).astype(each.dtype)
        if each.dtype.kind == "f"
        else rng.integers(0, 10, each.shape).astype(each.dtype)
        for each in exe.inputs
    }


def forms_that_differ(exe: Executable) -> list[tuple[str, str]]:
    return different(exe.module_at("exchange"), exe.target, seeded(exe))


def thin_sum(number: int, path: Path) -> Executable:
    """A product of matrices, or a convolution, of long sums with few results, on a few tiles."""
    random = Random(f"thin {number}")
    element = random.choice(("f32", "f32", "f16"))
    if number % 2:
        m, k, n = random.choice(SIZES), random.choice(TERMS), random.choice(SIZES)
        left, right, result = (m, k), (k, n), (m, n)
        op = "nn.matmul %a, %b"
    else:
        c, h, k = random.choice(WINDOWS)
        n, pad = random.choice(SIZES), random.randrange(k)
        side = h + 2 * pad - k + 1
        left, right, result = (1, c, h, h), (n, c, k, k), (1, n, side, side)
        op = f"nn.conv %a, %b stride [1, 1] dilation [1, 1] pad [{pad}, {pad}] to [{pad}, {pad}]"
    a, b, y = (f"tensor<{'x'.join(map(str, (*each, element)))}>" for each in (left, right, result))
    path.write_text(
        f"builtin.module {{ func.func @main(%a: {a}, %b: {b}) -> {y} {{\n"
        f"%y = {op} : ({a}, {b}) -> {y}\nfunc.return %y : {y} }} }}"
    )
    return compile_model(path, f"mk2:{random.choice((1, 2, 3, 4, 6, 8, 16))}", cache=False)


@pytest.mark.parametrize("part", range(PARTS))
def test_long_sums_with_few_results(part: int, tmp_path: Path):
    for number in range(part * EACH, (part + 1) * EACH):
        exe = thin_sum(number, tmp_path / "sum.mlir")
        assert forms_that_differ(exe) == [], exe.path


def sparse_product(side: int, element: str, flags: str) -> str:
    """A product of a matrix of 11 x 10 blocks, whose operands are all inputs, and its relu."""
    blocks, high, wide, columns = 40, 11, 10, 33
    k, m = (high, wide)[:: 1 if "transposed" in flags else -1]
    last = "dense_last" in flags
    sizes = [(columns, n * side) if last else (n * side, columns) for n in (k, m)]
    x, y = (f"tensor<{a}x{b}x{element}>" for a, b in sizes)
    v, i = f"tensor<{blocks}x{side}x{side}x{element}>", f"tensor<{blocks}xi32>"
    return f"""func.func @main(%v: {v}, %x: {x}, %r: {i}, %c: {i}) -> {y} {{
      %0 = nn.block_matmul %v, %x at %r, %c size {m * side} {flags}
          : ({v}, {x}, {i}, {i}) -> {y}
      %1 = nn.relu %0 : ({y}) -> {y}
      func.return %1 : {y}
    }}"""


@pytest.mark.parametrize("flags", ["", "transposed dense_last"])
@pytest.mark.parametrize(("side", "element"), [(1, "f32"), (4, "f16"), (7, "f32"), (16, "f32")])
def test_sparse_products(side: int, element: str, flags: str, tmp_path: Path):
    path = tmp_path / "product.mlir"
    path.write_text(sparse_product(side, element, flags))
    assert forms_that_differ(compile_model(path, "mk2:6", cache=False)) == []


def test_gradients_of_convolutions(tmp_path: Path):
    path = tmp_path / "gradients.mlir"
    path.write_text(training_step(layers=2, channels=11, side=13))
    assert forms_that_differ(compile_model(path, "tiny:6", cache=False)) == []


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_transformer_block(dtype: str):
    exe = compile_model(encoder(BLOCK, dtype), "mk2:12", cache=False)
    assert forms_that_differ(exe) == []


@pytest.mark.large
def test_a_step_of_training_and_the_weights_after_it():
    train = Train(loss="mean_square", optimizer="adam")
    exe = compile_model(encoder(BLOCK, "float32"), "mk2:24", train=train, cache=False)
    assert forms_that_differ(exe) == []
