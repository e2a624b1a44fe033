"""Random choices for one node, given its operator and its first operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from random import Random
from typing import Any

import onnx

Shape = tuple[int, ...]

Parameter = Any
"""The value of an attribute, or of an operand that is known when the model is read."""

MOST_ELEMENTS = 512
"""Elements of an input, weight or constant, at most."""

NEGATIVE_AXES = 11
"""The first opset in which every operator accepts axes counted from the end."""


@dataclass(frozen=True)
class Draw:
    """The state of a node while its parameters are chosen.

    Attributes:
        shape: the shape of its first operand; () if it has none.
        types: the types of its type variables that are bound already.
        sizes: the sizes to choose from for new axes.
    """

    random: Random
    schema: onnx.defs.OpSchema
    opset: int
    shape: Shape
    types: dict[str, str]
    sizes: Sequence[int]

    @property
    def rank(self) -> int:
        """Number of axes of the first operand."""
        return len(self.shape)

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random.random() < probability

    def one_of(self, *choices: Parameter) -> Parameter:
        """A random one of the choices."""
        return self.random.choice(choices)

    def size(self) -> int:
        """A size for a new axis."""
        return self.random.choice(self.sizes)

    def signed(self, axis: int, rank: int | None = None) -> int:
        """The axis, or the same axis counted from the end.

        Args:
            rank: the first operand's if None.
        """
        rank = self.rank if rank is None else rank
        return axis - rank if self.opset >= NEGATIVE_AXES and self.chance(0.4) else axis

    def some_axes(self, rank: int | None = None, least: int = 0) -> list[int]:
        """A random selection of at least `least` different axes, in random order, not negative.

        Args:
            rank: the first operand's if None.
        """
        rank = self.rank if rank is None else rank
        return self.random.sample(range(rank), self.random.randint(min(least, rank), rank))

    def broadcast(self) -> Shape:
        """A shape that broadcasts with the shape of the first operand.

        Some axes have size 1 or are left out. Where the first operand has size 1 or no axis, the
        shape may be larger.
        """
        narrow = [n if self.chance(0.7) else 1 for n in self.shape]
        if self.chance(0.3):
            narrow = narrow[self.random.randint(0, len(narrow)) :]
        if self.chance(0.15):
            grown = [self.size() if n == 1 and self.chance(0.5) else n for n in narrow]
            grown = [self.size()] * self.chance(0.3) + grown
            if prod(grown) * prod(self.shape) <= 8 * MOST_ELEMENTS:
                narrow = grown
        return tuple(narrow)


@dataclass(frozen=True)
class Form:
    """The shapes and parameters of one node, valid together.

    Attributes:
        others: shapes of the operands after the first; None for any shape that broadcasts with the
            first.
        parameters: values by name, for attributes and for constant operands alike; None for absent
            ones.
        results: number of results; chosen from the schema if None.
    """

    others: Sequence[Shape | None] = ()
    parameters: dict[str, Parameter] = field(default_factory=dict[str, Parameter])
    results: int | None = None
