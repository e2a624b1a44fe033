"""What every operator shows of itself: an iteration space and a body, moves, or a decomposition.

Passes, planner, oracle, prices and counts work on these and know no operator by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.builder import Builder
from xdsl.ir import SSAValue

from ..ir.geometry.space import AxisMap, Space
from ..ir.hash_once import hash_once
from ..ir.signed import same_numbers
from .scalar_functions import COMBINERS, FUNCTIONS, chain_operands, chainable


@dataclass(frozen=True)
class Stage:
    """A scalar function that follows in a chain.

    function: the name of a function that may be in a chain. parameters: its constants. at: which
    operand of the function is the value so far; its other operands, in order, are further operands
    of the operation.
    Raises ValueError for a function, an operand or constants that a chain cannot have.
    """

    function: str
    parameters: tuple[float, ...] = ()
    at: int = 0

    def __post_init__(self) -> None:
        allowed = chain_operands(self.function)
        if not allowed:
            raise ValueError(
                f"function {self.function!r} in a chain; need one of "
                f"{', '.join(sorted(chainable()))}"
            )
        if self.at not in allowed:
            raise ValueError(
                f"{self.function} at {self.at} in a chain; need {' or '.join(map(str, allowed))}"
            )
        count = FUNCTIONS[self.function].parameters
        if len(self.parameters) != count or any(p != p for p in self.parameters):
            raise ValueError(
                f"{self.function} with parameters {list(self.parameters)}; need {count} numbers"
            )

    def __eq__(self, other: object) -> bool:
        """The same function at the same place, with the same parameters, whose signs count."""
        if not isinstance(other, Stage):
            return NotImplemented
        same = (self.function, self.at) == (other.function, other.at)
        return same and same_numbers(self.parameters, other.parameters)

    @property
    def extras(self) -> int:
        """Operands beside the value so far."""
        return FUNCTIONS[self.function].arity - 1


def extras_of(stages: Sequence[Stage]) -> int:
    """Operands that a chain takes beside the value it begins with."""
    return sum(stage.extras for stage in stages)


@dataclass(frozen=True)
class Body:
    """What happens at each point of an iteration space.

    function: a scalar function of the operands' elements, a key of FUNCTIONS.
    combiner: merges the points of the reduction dimensions; None where there are none.
    parameters: constants of the function (a slope, an exponent).
    then: functions applied to every result element once its points are merged, in order. The
    operands are those of function, then the extras of each stage. narrow: whether points may be
    merged in the first operand's own type, where that is narrower than 32 bits.
    """

    function: str
    combiner: str | None = None
    parameters: tuple[float, ...] = ()
    then: tuple[Stage, ...] = ()
    narrow: bool = False

    def __post_init__(self) -> None:
        if self.combiner is not None and self.combiner not in COMBINERS:
            raise ValueError(f"combiner {self.combiner!r}; need one of {', '.join(COMBINERS)}")

    def __eq__(self, other: object) -> bool:
        """All the same, with the same parameters, whose signs count."""
        if not isinstance(other, Body):
            return NotImplemented
        mine = self.function, self.combiner, self.then, self.narrow
        same = mine == (other.function, other.combiner, other.then, other.narrow)
        return same and same_numbers(self.parameters, other.parameters)

    @property
    def identity(self) -> float:
        """What merging leaves unchanged; 0 without a combiner."""
        return COMBINERS[self.combiner] if self.combiner else 0.0

    @property
    def own_arity(self) -> int:
        """Operands of the function, the chain's extras left out."""
        return FUNCTIONS[self.function].arity

    @property
    def arity(self) -> int:
        """All operands."""
        return self.own_arity + extras_of(self.then)


@hash_once
@dataclass(frozen=True)
class Structure:
    """An operator as mathematics: where it reads and writes, and what it does there."""

    space: Space
    body: Body

    @cached_property
    def unchained(self) -> Structure:
        """The same without its chain and the chain's operands."""
        if not self.body.then:
            return self
        own = self.space.operands[: self.body.own_arity]
        return Structure(replace(self.space, operands=own), replace(self.body, then=()))

    def reads_in_place(self, operand: int) -> bool:
        """Whether the result may be written over an operand, both from the same address on.

        Every point reads of it just the element that the point writes; or it has further axes
        before those, all of them merged: of partials, the result takes the place of the first.
        What a sum of products adds up it keeps where the result is: it may lie on no operand.
        """
        space, body = self.space, self.body
        if body.combiner is not None and body.own_arity > 1:
            return False
        result, axes = space.results[0].axes, space.operands[operand].axes
        merged = axes[: max(len(axes) - len(result), 0)]
        all_merged = {
            AxisMap(dim.size, ((d, 1),))
            for d, dim in enumerate(space.dims)
            if dim.kind != "parallel"
        }
        wanted = all_merged if operand < body.own_arity else set[AxisMap]()
        return axes[len(merged) :] == result and set(merged) == wanted


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
