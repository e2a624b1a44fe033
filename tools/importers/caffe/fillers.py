"""The first values of weights: what Caffe's fillers draw, from a seed.

Caffe draws from generators of its own, so the values differ from Caffe's; the distributions are
the same.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..first_values import fans, generator_of
from .fields import Fields
from .kinds import FILLER

Shape = tuple[int, ...]
Floats = NDArray[np.float32]
Fill = Callable[[Fields, Shape, np.random.Generator], Floats]

NORMS = ("FAN_IN", "FAN_OUT", "AVERAGE")


def filler(
    fields: Fields, name: str, shape: Shape, label: str, default: float = 0.0
) -> Callable[[], Floats]:
    """What makes the first value of a weight. Raises InputError for a filler that cannot be.

    Args:
        fields: has the filler in a field.
        name: the field.
        label: the weight's name, which decides the seed.
        default: every element, if there is no filler.
    """
    if not fields.has(name):
        return lambda: np.full(shape, default, np.float32)
    given = fields.inner(name, FILLER)
    kind = given.text("type", "constant")
    if kind not in FILLERS:
        raise given.bad("type", f"is {kind[:60]!r}; need one of {', '.join(FILLERS)}")
    sparse = given.integer("sparse", -1)
    if sparse != -1 and kind != "gaussian":
        raise given.bad("sparse", f"with the filler {kind}; need gaussian")
    if kind == "bilinear" and (len(shape) != 4 or shape[2] != shape[3]):
        raise given.bad("type", f"is bilinear, of a weight of shape {list(shape)}; need a square")
    if kind in OF_ROWS and not shape:
        raise given.bad("type", f"is {kind}, of a weight that is one number; need axes")
    if sparse >= 0 and not shape:
        raise given.bad("sparse", "of a weight that is one number; need axes")
    make = FILLERS[kind]
    # Errors in numbers belong to reading the file, and drawing to the use of the weight.
    for each in ("value", "min", "max", "mean", "std"):
        _ = given.number(each)

    def drawn() -> Floats:
        # The range of a uniform filler may be more than the largest float, as in Caffe.
        with np.errstate(all="ignore"):
            return make(given, shape, generator_of(label))

    return drawn


def _constant(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    return np.full(shape, fields.number("value"), np.float32)


def _uniform(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    low, high = fields.number("min"), fields.number("max", 1.0)
    return random.random(shape, np.float32) * np.float32(high - low) + np.float32(low)


def _gaussian(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    mean, deviation = fields.number("mean"), fields.number("std", 1.0)
    found = random.standard_normal(shape, np.float32)
    found *= np.float32(deviation)
    found += np.float32(mean)
    sparse = fields.integer("sparse", -1)
    if sparse >= 0:
        found *= random.random(shape, np.float32) < sparse / shape[0]
    return found


def _unit_ball(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    rows = random.random((shape[0], prod(shape[1:])), np.float32)
    return (rows / rows.sum(1, keepdims=True)).reshape(shape)


def _fan(fields: Fields, shape: Shape) -> float:
    """The number of terms that a weight's element is one of."""
    into, out = fans(shape)
    norm = fields.choice("variance_norm", NORMS, "FAN_IN")
    return {"FAN_IN": into, "FAN_OUT": out, "AVERAGE": (into + out) / 2}[norm]


def _xavier(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    most = np.float32((3 / _fan(fields, shape)) ** 0.5)
    return (random.random(shape, np.float32) * 2 - 1) * most


def _msra(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    return random.standard_normal(shape, np.float32) * np.float32((2 / _fan(fields, shape)) ** 0.5)


def _bilinear(fields: Fields, shape: Shape, random: np.random.Generator) -> Floats:
    size = shape[3]
    half = (size + 1) // 2
    centre = (size - 1) / (2 * half)
    along = 1 - np.abs(np.arange(size) / half - centre)
    return np.broadcast_to(np.outer(along, along), shape).astype(np.float32)


FILLERS: dict[str, Fill] = {
    "constant": _constant,
    "gaussian": _gaussian,
    "uniform": _uniform,
    "xavier": _xavier,
    "msra": _msra,
    "bilinear": _bilinear,
    "positive_unitball": _unit_ball,
}
"""The fillers by name."""

OF_ROWS = ("xavier", "msra", "positive_unitball")
"""The fillers that follow from the sizes of axes."""
