"""Seeded inputs for published models: numbers of the kind that each model expects."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import onnx

from ....ir.support.arrays import Array

Make = Callable[[np.random.Generator], Array]

LINE = 32
"""Rows from one line of a page to the next. Half of them are white."""

RATE = 16_000
"""Samples per second of the recordings that models of speech expect."""


def uniform(*shape: int) -> Make:
    """Numbers between 0 and 1, such as the pixels of an image."""
    return lambda random: random.random(shape, np.float32)


def centred(*shape: int) -> Make:
    """Numbers between -1 and 1, such as pixels without their mean."""
    return lambda random: random.random(shape, np.float32) * np.float32(2) - np.float32(1)


def page(*shape: int) -> Make:
    """Lines of dark strokes on white, between -1 and 1. The last axes are rows and columns."""

    def make(random: np.random.Generator) -> Array:
        rows, columns = shape[-2:]
        line = np.arange(rows) % LINE < LINE // 2
        stroke = random.random(columns) < 0.5
        image = np.where(line[:, None] & stroke, np.float32(-1), np.float32(1))
        return np.broadcast_to(image, shape).copy()

    return make


def below(limit: int, *shape: int, dtype: str = "int64") -> Make:
    """Indices below a limit: words of a vocabulary, or the bytes of a file."""
    return lambda random: random.integers(0, limit, shape).astype(dtype)


def constant(value: float, *shape: int, dtype: str = "float32") -> Make:
    """One value everywhere."""
    return lambda random: np.full(shape, value, dtype)


def tone(*shape: int, scale: float = 1.0) -> Make:
    """A tone of 220 Hz with noise, sampled as speech is. The longest axis is time."""
    samples = max(shape)

    def make(random: np.random.Generator) -> Array:
        time = np.arange(samples) / RATE
        wave = 0.3 * np.sin(2 * np.pi * 220 * time) + 0.05 * random.standard_normal(samples)
        return (scale * wave).astype(np.float32).reshape(shape)

    return make


def one_hot(classes: int, *shape: int) -> Make:
    """Vectors with `classes` elements, one of which is 1."""
    return lambda random: np.eye(classes, dtype=np.float32)[random.integers(0, classes, shape)]


def fed(
    model: onnx.ModelProto, given: dict[str, Make], dims: dict[str, int], seed: int = 0
) -> dict[str, Array]:
    """The inputs of a model by name: those given, and standard normal numbers for the others.

    Args:
        dims: free sizes, by their name or as input:axis. A size that is not given is 1.
    """
    held = {each.name for each in model.graph.initializer}
    found: dict[str, Array] = {}
    for each in model.graph.input:
        if each.name in held:
            continue
        random = np.random.default_rng([seed, zlib.crc32(each.name.encode())])
        if each.name in given:
            found[each.name] = given[each.name](random)
            continue
        tensor = each.type.tensor_type
        shape = [
            d.dim_value
            if d.dim_value > 0
            else dims.get(d.dim_param, dims.get(f"{each.name}:{i}", 1))
            for i, d in enumerate(tensor.shape.dim)
        ]
        dtype = cast(Any, onnx.helper).tensor_dtype_to_np_dtype(tensor.elem_type)
        found[each.name] = random.standard_normal(shape).astype(dtype)
    return found
