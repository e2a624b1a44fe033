"""ONNX operators that draw random numbers.

Each element is drawn from Philox by its index, the number of the run, a seed, and a key that
distinguishes the draws of a model. The program keeps the seed and the number of the run as states,
so the next run draws other numbers, and the first run of a program with the same seed draws the
same. A node with a seed of its own ignores the program's seed.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import pi, prod
from operator import mul

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, SSAValue

from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....dialects.random_states import SEED, STEP
from .node import Importer, Node, Results
from .ops_extremes import first_largest

MOST_DRAWN = 1 << 32
"""The most elements that one node can draw: the number of possible indices."""

BITS, UNIT = 24, 2.0**-24
"""The number of bits of a word that become a float32, and the distance between two such numbers."""


def _index(node: Node, shape: Sequence[int]) -> SSAValue:
    """The row-major index of each element, as ui32. Raises InputError if there are too many
    elements.
    """
    if prod(shape) > MOST_DRAWN:
        raise node.bad(f"{prod(shape):,} random numbers; need at most {MOST_DRAWN:,}")
    steps = [*accumulate(reversed(shape[1:]), mul, initial=1)][::-1] if shape else []
    return node.add(nn.IotaOp(nn.tensor(shape, element_type(np.dtype(np.uint32))), steps))


def _bits(node: Node, shape: Sequence[int]) -> SSAValue:
    """32 random bits for each element of a shape. Each call in a model draws different bits."""
    graph = node.graph
    if graph.region is not None:
        raise node.unsupported(
            "drawing in a loop or branch", "need random numbers that are drawn outside"
        )
    step, seed = graph.random_state(STEP), graph.random_state(SEED)
    if node.has_attribute("seed"):
        seed = node.emitted(_own_seed(node))
    key = graph.count.draws
    graph.count.draws += 1
    return node.add(nn.RandomBitsOp(_index(node, shape), step, seed, float(key)))


def _own_seed(node: Node) -> NDArray[np.uint32]:
    """The seed of a node: the bits of its float, or its integer for Dropout."""
    if node.operator == "Dropout":
        return np.array(node.integer("seed") % 2**32, np.uint32)
    return np.array([node.number("seed")], np.float32).view(np.uint32).reshape(())


def uniform(node: Node, shape: Sequence[int], *, zero: bool = True) -> SSAValue:
    """Uniform float32 numbers in [0, 1); in (0, 1] if `zero` is false."""
    bits = _bits(node, shape)
    places = node.constant(32 - BITS, bits)
    number = node.cast(node.add(nn.ShiftRightOp(bits, places)), f32)
    number = number if zero else node.add(nn.ShiftOp(number, 1.0))
    return node.add(nn.ScaleOp(number, UNIT))


def _normal(node: Node, shape: Sequence[int]) -> SSAValue:
    """Normal float32 numbers with mean 0 and deviation 1, by the method of Box and Muller."""
    length = node.add(nn.ScaleOp(node.add(nn.LogOp(uniform(node, shape, zero=False))), -2.0))
    angle = node.add(nn.ScaleOp(uniform(node, shape), 2 * pi))
    return node.add(nn.MulOp(node.add(nn.SqrtOp(length)), node.add(nn.CosOp(angle))))


def _line(node: Node, value: SSAValue, factor: float, offset: float) -> SSAValue:
    return node.add(nn.ShiftOp(node.add(nn.ScaleOp(value, factor)), offset))


def _between(node: Node, shape: Sequence[int], element: Attribute) -> Results:
    low, high = node.number("low", 0.0), node.number("high", 1.0)
    if not shape or 0 not in shape:
        return node.cast(_line(node, uniform(node, shape), high - low, low), element)
    return _empty(node, shape, element)


def _around(node: Node, shape: Sequence[int], element: Attribute) -> Results:
    mean, scale = node.number("mean", 0.0), node.number("scale", 1.0)
    if 0 in shape:
        return _empty(node, shape, element)
    return node.cast(_line(node, _normal(node, shape), scale, mean), element)


def _empty(node: Node, shape: Sequence[int], element: Attribute) -> Results:
    return node.filled(np.zeros((), numpy_dtype(element)), shape)


def _element(node: Node, default: Attribute) -> Attribute:
    return node.element(node.integer("dtype")) if node.has_attribute("dtype") else default


def _bernoulli(node: Node) -> Results:
    """1 with the probability in the operand, else 0."""
    shape, element = node.shape(0), _element(node, nn.element_of(node[0]))
    if 0 in shape:
        return _empty(node, shape, element)
    chance = node.cast(node[0], f32)
    return node.cast(node.add(nn.LessOp(uniform(node, shape), chance)), element)


def _multinomial(node: Node) -> Results:
    """Classes drawn by their logarithmic weights: the largest of weights plus Gumbel noise."""
    shape, count = node.shape(0), node.integer("sample_size", 1)
    if len(shape) != 2 or 0 in shape or count < 1:
        raise node.bad(f"weights of shape {list(shape)}, {count} samples; need [batch, classes]")
    weights = node.reshape(node.cast(node[0], f32), (shape[0], 1, shape[1]))
    # The noise is -log(-log(u)), so u must be neither 0 nor 1.
    drawn = uniform(node, (shape[0], count, shape[1]), zero=False)
    drawn = node.add(nn.ClipOp(drawn, 0.0, 1.0 - UNIT))
    rate = node.add(nn.ScaleOp(node.add(nn.LogOp(drawn)), -1.0))
    noisy = node.add(nn.SubOp(weights, node.add(nn.LogOp(rate))))
    chosen = node.reshape(first_largest(node, noisy, 2), (shape[0], count))
    return node.cast(chosen, node.element(node.integer("dtype", 6)))


RANDOM: dict[str, Importer] = {
    "RandomUniform": lambda node: _between(node, node.integers("shape"), _element(node, f32)),
    "RandomUniformLike": lambda node: _between(
        node, node.shape(0), _element(node, nn.element_of(node[0]))
    ),
    "RandomNormal": lambda node: _around(node, node.integers("shape"), _element(node, f32)),
    "RandomNormalLike": lambda node: _around(
        node, node.shape(0), _element(node, nn.element_of(node[0]))
    ),
    "Bernoulli": _bernoulli,
    "Multinomial": _multinomial,
}
