"""Writes the files in `forms`: modules of Flax as StableHLO, and as ONNX by jax2onnx.

Needs JAX, Flax and jax2onnx; the tests that read the files do not. Run it in this folder.
"""

from __future__ import annotations

import re
from pathlib import Path

import jax
import numpy as np
from flax import linen
from jax2onnx import to_onnx

from abele.tools import from_jax

FOLDER = Path(__file__).parent / "forms"


class Perceptron(linen.Module):
    @linen.compact
    def __call__(self, x):
        return linen.Dense(16)(linen.relu(linen.Dense(32)(x)))


class Block(linen.Module):
    @linen.compact
    def __call__(self, x):
        return x + linen.Dense(16)(linen.gelu(linen.Dense(32)(linen.LayerNorm()(x))))


class Residual(linen.Module):
    @linen.compact
    def __call__(self, x):
        y = linen.relu(linen.Conv(8, (3, 3))(x))
        return linen.relu(x + linen.Conv(8, (3, 3))(y))


MODULES = {
    "perceptron": (Perceptron(), (6, 16)),
    "block": (Block(), (6, 16)),
    "residual": (Residual(), (1, 8, 8, 8)),
}


def main() -> None:
    FOLDER.mkdir(exist_ok=True)
    for name, (module, shape) in MODULES.items():
        x = np.ones(shape, np.float32)
        variables = module.init(jax.random.key(0), x)

        def forward(variables, x, module=module):
            return module.apply(variables, x)

        path = FOLDER / f"{name}.mlir"
        from_jax(forward, variables, x, weights="variables").save(path)
        path.write_text(re.sub(r'"[^"\n]*/([^"/\n]+\.py)"', r'"\1"', path.read_text()))
        to_onnx(
            lambda x, module=module, variables=variables: module.apply(variables, x),
            [shape],
            input_names=["x"],
            output_names=["y"],
            return_mode="file",
            output_path=str(FOLDER / f"{name}.onnx"),
        )


if __name__ == "__main__":
    main()
