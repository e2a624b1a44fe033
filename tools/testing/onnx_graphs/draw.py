"""What one node is drawn from: its operator, its first operand, and what there is beside it."""

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
"""Of a value that a graph is given."""

NEGATIVE_AXES = 11
"""The opset since which every operator counts axes from the end as well."""


@dataclass(frozen=True)
class Draw:
    """What is known of a node when its parameters are chosen.

    shape: of its first operand; () if it has none. types: of its type variables, as far as they are
    bound. sizes: of axes that are new.
    """

    random: Random
    schema: onnx.defs.OpSchema
    opset: int
    shape: Shape
    types: dict[str, str]
    sizes: Sequence[int]

    @property
    def rank(self) -> int:
        """Axes of the first operand."""
        return len(self.shape)

    def chance(self, probability: float) -> bool:
        """Yes, as often as that."""
        return self.random.random() < probability

    def one_of(self, *choices: Parameter) -> Parameter:
        """One of them."""
        return self.random.choice(choices)

    def size(self) -> int:
        """Of a new axis."""
        return self.random.choice(self.sizes)

    def signed(self, axis: int, rank: int | None = None) -> int:
        """An axis, perhaps counted from the end."""
        rank = self.rank if rank is None else rank
        return axis - rank if self.opset >= NEGATIVE_AXES and self.chance(0.4) else axis

    def some_axes(self, rank: int | None = None, least: int = 0) -> list[int]:
        """Different axes, in any order, none of them negative."""
        rank = self.rank if rank is None else rank
        return self.random.sample(range(rank), self.random.randint(min(least, rank), rank))

    def broadcast(self) -> Shape:
        """A shape that broadcasts with the first operand's: axes of 1 and axes left out, and where
        the first operand has 1, or an axis too few, perhaps more."""
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
    """What fits together in one node.

    others: shapes of the operands behind the first; None for any that broadcasts with it.
    parameters: by name, attributes and known operands alike, whichever they are in the opset; None
    for those that are left out. results: how many are named; as the schema says if None.
    """

    others: Sequence[Shape | None] = ()
    parameters: dict[str, Parameter] = field(default_factory=dict[str, Parameter])
    results: int | None = None
