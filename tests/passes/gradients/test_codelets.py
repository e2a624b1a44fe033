"""Gradients of users' codelets, by codelets and by functions."""

from collections.abc import Generator
from pathlib import Path

import numpy as np
import pytest
from some_extensions import abele, loads_taken_back
from xdsl.dialects.builtin import f32

from abele.tools import compile_model
from abele.tools.extensions import load_extensions
from abele.tools.testing import Miscompiled, Operators, check_pass, programs

WAVE = '''
import numpy as np

from abele.dialects import nn
from abele.tools.extensions import codelet, ulps


@codelet(
    space="n, d = 3 whole",
    reads={"x": "n + d - 1 fill", "g": "n + d - 1 fill"},
    writes={"dx": "n"},
    cycles=lambda n: 10 + 8 * n,
    bound=ulps(8, of="largest"),
)
def blur_grad(x, g, *, weight=0.25):
    """The gradient of blur."""
    return FACTOR * x[:, 1] * (g[:, 1] + g.dtype.type(weight) * (g[:, 0] + g[:, 2]))


@codelet(
    space="n, d = 3 whole",
    reads={"x": "n + d - 1 fill"},
    writes={"out": "n"},
    cycles=lambda n: 10 + 8 * n,
    bound=ulps(8, of="largest"),
    gradient=blur_grad,
)
def blur(x, *, weight=0.25):
    """A blur of squares."""
    y = x * x
    return y[:, 1] + y.dtype.type(weight) * (y[:, 0] + y[:, 2])


def passed(emit, op, gradients):
    both = emit(nn.AddOp(gradients[0], gradients[1]))
    return {0: emit(nn.MulOp(both, op.operands[1])), 1: emit(nn.MulOp(both, op.operands[0]))}


@codelet(
    space="n",
    reads={"a": "n", "b": "n"},
    writes={"one": "n", "two": "n"},
    cycles=lambda n: 10 + 8 * n,
    bound=ulps(2),
    gradient=passed,
)
def products(a, b):
    """The same product twice."""
    return a * b, a * b


@codelet(space="n", reads={"a": "n"}, writes={"out": "n"}, cycles=lambda n: n, bound=ulps(2))
def plain(a):
    """No gradient."""
    return a * a
'''

PROGRAM = """
builtin.module {
  func.func @main(%x: tensor<9xf32>, %y: tensor<9xf32>) -> tensor<f32>
      attributes {arg_names = ["x", "y"], result_names = ["loss"]} {
    %0 = wave.blur(%x) weight 0.25 : (tensor<9xf32>) -> tensor<9xf32>
    %1, %2 = wave.products(%0, %y)
        : (tensor<9xf32>, tensor<9xf32>) -> (tensor<9xf32>, tensor<9xf32>)
    %3 = nn.add %1, %2 : (tensor<9xf32>, tensor<9xf32>) -> tensor<9xf32>
    %4 = nn.reduce "sum" %3 axes [0] : (tensor<9xf32>) -> tensor<f32>
    func.return %4 : tensor<f32>
  }
}
"""


@pytest.fixture
def wave(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[Path]:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "wave.py"
    path.write_text(WAVE.replace("FACTOR", "2"))
    Path("m.mlir").write_text(PROGRAM)
    with loads_taken_back():
        yield path


def test_gradients_by_a_codelet_and_by_a_function_are_right(wave: Path):
    exe = compile_model(
        "m.mlir", "tiny:4", passes="differentiate,nn,partition,tile,exchange", load=[wave]
    )
    random = np.random.default_rng(0)
    x, y = (random.normal(size=9).astype(np.float32) for _ in range(2))
    found = exe.run({"x": x, "y": y})

    def loss(x: np.ndarray, y: np.ndarray) -> float:
        square = np.pad(x.astype(np.float64) ** 2, 1)
        blurred = square[1:-1] + 0.25 * (square[:-2] + square[2:])
        return float((2 * blurred * y).sum())

    for name, at in (("x", 0), ("y", 1)):
        given = [x.astype(np.float64), y.astype(np.float64)]
        for i in range(9):
            up, down = ([v.copy() for v in given] for _ in range(2))
            up[at][i] += 1e-5
            down[at][i] -= 1e-5
            slope = (loss(*up) - loss(*down)) / 2e-5
            assert abs(found[f"grad.{name}"][i] - slope) < 1e-4


def test_a_codelet_without_a_gradient_is_named(wave: Path):
    Path("p.mlir").write_text(PROGRAM.replace("wave.blur(%x) weight 0.25", "wave.plain(%x)"))
    made = abele("opt", "p.mlir", "--load", wave, "-p", "differentiate")
    assert made.exit_code == 2
    assert "wave.plain at p.mlir:5:5 is a codelet without a gradient" in made.stderr
    assert "give it `gradient=`" in made.stderr


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("gradient=passed", "gradient=blur_grad"), "reads 2 tensors and writes 1; need 4 and 2"),
        (("gradient=passed", "gradient=lambda emit, op, g: g[0]"), "its gradient returns a"),
        (("gradient=passed", "gradient=lambda emit, op, g: {5: g[0]}"), "need an operand"),
        (("gradient=passed", "gradient=lambda emit, op, g: 1 / 0"), "ZeroDivisionError"),
        (('"g": "n + d - 1 fill"', '"g": "n, d"'), "VerifyException: g has 1 axes"),
    ],
)
def test_a_gradient_that_is_none_is_one_message(wave: Path, change: tuple[str, str], message: str):
    wave.write_text(wave.read_text().replace(*change))
    made = abele("opt", "m.mlir", "--load", wave, "-p", "differentiate")
    assert made.exit_code == 2
    assert message in made.stderr


@pytest.mark.parametrize("factor", ["2", "3"])
def test_the_kit_finds_a_wrong_gradient(wave: Path, factor: str):
    wave.write_text(WAVE.replace("FACTOR", factor))
    found = Operators(load_extensions([wave]).context(), ["wave.blur", "nn.add"])
    tested = programs(operators=found, data=["normal"], dtypes=[f32])
    if factor == "2":
        check_pass("differentiate", programs=tested, examples=25, seed=1)
        return
    with pytest.raises(Miscompiled, match=r"gradient"):
        check_pass("differentiate", programs=tested, examples=60, seed=1)
