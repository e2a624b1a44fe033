"""Writes the Keras model in `forms`: as StableHLO by JAX, and as ONNX by TensorFlow and tf2onnx.

Needs Keras 3, JAX, TensorFlow and tf2onnx; the test that reads the files does not. A process has
one backend, so run it twice in this folder, first with KERAS_BACKEND=jax, which draws the weights,
then with KERAS_BACKEND=tensorflow.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import keras
import numpy as np
from keras import layers

from abele.tools import from_jax

FOLDER = Path(__file__).parent / "forms"

WEIGHTS = Path("keras.npz")
"""The weights for the second run, in the order of the model's variables."""

SHAPE = 2, 8, 8, 3


def network() -> Any:
    return keras.Sequential(
        [
            keras.Input(SHAPE[1:], batch_size=SHAPE[0], name="image"),
            layers.Conv2D(8, 3, padding="same", activation="relu"),
            layers.BatchNormalization(),
            layers.MaxPooling2D(),
            layers.DepthwiseConv2D(3, activation="silu"),
            layers.GlobalAveragePooling2D(),
            layers.Dense(10, activation="softmax"),
        ]
    )


def by_jax() -> None:
    model = network()
    random = np.random.default_rng(0)
    for each in model.variables:
        # Those of a variance are positive.
        each.assign(random.uniform(0.1, 0.5, each.shape))
    np.savez(WEIGHTS, *(keras.ops.convert_to_numpy(each) for each in model.variables))

    def forward(weights: dict[str, Any], image: Any) -> Any:
        trained = [weights[each.path] for each in model.trainable_variables]
        fixed = [weights[each.path] for each in model.non_trainable_variables]
        return model.stateless_call(trained, fixed, image)[0]

    weights = {each.path: each.value for each in model.variables}
    path = FOLDER / "keras.mlir"
    from_jax(forward, weights, np.ones(SHAPE, np.float32), weights="weights").save(path)
    path.write_text(re.sub(r'"[^"\n]*/([^"/\n]+\.py)"', r'"\1"', path.read_text()))


def by_tensorflow() -> None:
    import tensorflow as tf
    import tf2onnx

    model = network()
    for each, (_, array) in zip(model.variables, np.load(WEIGHTS).items(), strict=True):
        each.assign(array)
    signature = [tf.TensorSpec(SHAPE, tf.float32, name="image")]
    tf2onnx.convert.from_function(
        tf.function(model), signature, opset=18, output_path=str(FOLDER / "keras.onnx")
    )


if __name__ == "__main__":
    by_jax() if keras.backend.backend() == "jax" else by_tensorflow()
