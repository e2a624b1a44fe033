"""What every operator shows of itself: an iteration space and a body, moves, or a decomposition.

Passes, planner, oracle, prices and counts work on these and know no operator by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from ..ir.geometry.space import Space
from ..ir.user_entries import add_entry

COMBINERS: dict[str, float] = {
    "sum": 0.0,
    "max": float("-inf"),
    "min": float("inf"),
    "prod": 1.0,
}
"""Merge functions over reduction dimensions, with their identities."""


FUNCTIONS: dict[str, tuple[int, int]] = {
    **dict.fromkeys(
        (
            "add",
            "sub",
            "mul",
            "div",
            "max",
            "min",
            "pow",
            "less",
            "less_equal",
            "greater",
            "greater_equal",
            "equal",
            "logical_and",
            "logical_or",
        ),
        (2, 0),
    ),
    **dict.fromkeys(
        (
            "identity",
            "relu",
            "exp",
            "log",
            "sqrt",
            "reciprocal",
            "tanh",
            "sigmoid",
            "neg",
            "abs",
            "square",
            "logical_not",
        ),
        (1, 0),
    ),
    **dict.fromkeys(("leaky_relu", "scale", "shift", "power"), (1, 1)),
    "clip": (1, 2),
    "select": (3, 0),
}
"""Scalar functions of a body: how many operands and how many parameters each takes. What they
compute is the codelets' business."""


def register_function(name: str, arity: int, parameters: int, owner: str) -> None:
    """Let bodies name a user's scalar function. Raises InputError if the name is taken."""
    add_entry(FUNCTIONS, "scalar function", name, (arity, parameters), owner)


@dataclass(frozen=True)
class Body:
    """What happens at each point of an iteration space.

    function: a scalar function of the operands' elements, a key of the codelets' table.
    combiner: merges the points of the reduction dimensions; None where there are none.
    parameters: constants of the function (a slope, an exponent).
    """

    function: str
    combiner: str | None = None
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if self.combiner is not None and self.combiner not in COMBINERS:
            raise ValueError(f"combiner {self.combiner!r}; need one of {', '.join(COMBINERS)}")

    @property
    def identity(self) -> float:
        """What merging leaves unchanged; 0 without a combiner."""
        return COMBINERS[self.combiner] if self.combiner else 0.0


@dataclass(frozen=True)
class Structure:
    """An operator as mathematics: where it reads and writes, and what it does there."""

    space: Space
    body: Body


class Structured(ABC):
    """An operation with an iteration space and a body: one result element a parallel point."""

    @abstractmethod
    def structure(self) -> Structure:
        """The space and body; operand i of the op is operand i of the space."""


class Movement(ABC):
    """An operation that only moves elements: operand i goes through space i of moves()."""

    @abstractmethod
    def moves(self) -> tuple[Space, ...]:
        """One space an operand, each with one operand map and one result map, no body."""


class Reinterpretation(ABC):  # noqa: B024 - a mark: there is nothing to ask
    """An operation whose result is its operand's elements in row-major order, as another shape."""


class Composite(ABC):
    """An operation that is made of simpler ones."""

    @abstractmethod
    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Build the simpler operations; returns one value for each result."""
