"""The structure of operators: an iteration space and a body, moves, or a decomposition.

Partitioning, planner, oracle, prices and counts work on these structures, not on operators by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import SSAValue

from ..ir.geometry.space import AxisMap, Space
from ..ir.hash_once import hash_once
from ..ir.same_number import same_numbers
from ..ir.upstream import Builder
from .along import Along
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
        """True for the same function at the same place with the same parameters, including the
        signs of zeros."""
        if not isinstance(other, Stage):
            return NotImplemented
        same = (self.function, self.at) == (other.function, other.at)
        return same and same_numbers(self.parameters, other.parameters)

    @property
    def extras(self) -> int:
        """Number of operands other than the value so far."""
        return FUNCTIONS[self.function].arity - 1


def extras_of(stages: Sequence[Stage]) -> int:
    """Number of operands that a chain takes in addition to the value it starts with."""
    return sum(stage.extras for stage in stages)


@dataclass(frozen=True)
class Body:
    """What happens at each point of an iteration space.

    function: a scalar function of the operands' elements, a key of FUNCTIONS.
    combiner: merges the points of the reduction dimensions; None if there are none.
    parameters: constants of the function (a slope, an exponent).
    then: functions applied to every result element once its points are merged, in order. The
    operands are those of function, then the extras of each stage. narrow: whether points may be
    merged in the first operand's own type, if that is narrower than 32 bits. along: what is
    computed along the whole dimension of the space, from the values of function; None if points
    are independent, or merged.
    """

    function: str
    combiner: str | None = None
    parameters: tuple[float, ...] = ()
    then: tuple[Stage, ...] = ()
    narrow: bool = False
    along: Along | None = None

    def __post_init__(self) -> None:
        if self.combiner is not None and self.combiner not in COMBINERS:
            raise ValueError(f"combiner {self.combiner!r}; need one of {', '.join(COMBINERS)}")
        if self.combiner is not None and self.along is not None:
            raise ValueError(f"combiner {self.combiner} and {self.along.name} along; need one")

    def __eq__(self, other: object) -> bool:
        """True if all fields are equal, including the signs of zeros in parameters."""
        if not isinstance(other, Body):
            return NotImplemented
        mine = self.function, self.combiner, self.then, self.narrow, self.along
        same = mine == (other.function, other.combiner, other.then, other.narrow, other.along)
        return same and same_numbers(self.parameters, other.parameters)

    @property
    def identity(self) -> float:
        """The identity of the combiner; 0 without a combiner."""
        return COMBINERS[self.combiner] if self.combiner else 0.0

    @property
    def function_arity(self) -> int:
        """Number of operands of the function, without those of relations and of the chain."""
        return FUNCTIONS[self.function].arity


@hash_once
@dataclass(frozen=True)
class Structure:
    """An operator as mathematics: where it reads and writes, and what it computes.

    The operands are those of the function, then the index operand of each relation, then those of
    the chain. A point at which a relation does not hold contributes the identity of the combiner.
    """

    space: Space
    body: Body

    @property
    def own_operands(self) -> int:
        """Number of operands without those of the chain."""
        return self.body.function_arity + len(self.space.relations)

    @property
    def arity(self) -> int:
        """Number of all operands."""
        return self.own_operands + extras_of(self.body.then)

    @cached_property
    def unchained(self) -> Structure:
        """The structure without its chain and the chain's operands."""
        if not self.body.then:
            return self
        own = self.space.operands[: self.own_operands]
        return Structure(replace(self.space, operands=own), replace(self.body, then=()))

    def reads_in_place(self, operand: int) -> bool:
        """True if the result may be written over an operand that starts at the same address.

        This holds if every point reads only the element of the operand that it writes. It also
        holds for partials, which have further leading axes, all of them merged: the result takes
        the place of the first partial. It does not hold for a sum of products, which accumulates
        in the place of the result. A sequence along a whole dimension reads all elements of a row
        before it writes any, so it may be written over the row.
        """
        space, body = self.space, self.body
        if body.combiner is not None and self.own_operands > 1:
            return False
        if body.along is not None and body.along.name == "sort_indices":
            # The indices move with the elements.
            return False
        result, axes = space.results[0].axes, space.operands[operand].axes
        merged = axes[: max(len(axes) - len(result), 0)]
        all_merged = {
            AxisMap(dim.size, ((d, 1),))
            for d, dim in enumerate(space.dims)
            if dim.kind == "reduction"
        }
        wanted = all_merged if operand < self.own_operands else set[AxisMap]()
        return axes[len(merged) :] == result and set(merged) == wanted


class Structured(ABC):
    """An operation with an iteration space and a body. Each parallel point is a result element."""

    @abstractmethod
    def structure(self) -> Structure:
        """The space and the body. Operand i of the operation is operand i of the space."""

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """The properties whose numbers may be elements of the result."""
        return ()


class Movement(ABC):
    """An operation that only moves elements."""

    @abstractmethod
    def moves(self) -> tuple[Space, ...]:
        """One space per operand, in order, each with one operand map and one result map."""

    @property
    def result_numbers(self) -> tuple[str, ...]:
        """The properties whose numbers may be elements of the result."""
        return ()


class Reinterpretation(ABC):  # noqa: B024 - a mark: there is nothing to ask
    """An operation that returns its operand's elements, in row-major order, in another shape."""


class Composite(ABC):
    """An operation that is defined by simpler ones."""

    @abstractmethod
    def decompose(self, builder: Builder) -> Sequence[SSAValue]:
        """Build the simpler operations. Returns one value per result."""

    @property
    def wide_operands(self) -> tuple[int, ...]:
        """The operands that stay float32 when the program's other values get a narrower type."""
        return ()
