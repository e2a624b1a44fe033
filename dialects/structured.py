"""The structure of operators: an iteration space and a body, moves, or a decomposition.

Partitioning, planner, oracle, prices and counts work on these structures, not on operators by name.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from xdsl.ir import SSAValue

from ..ir.geometry.space import AxisMap, Position, Space
from ..ir.support.hash_once import hash_once
from ..ir.support.number_formats import Overflow
from ..ir.support.same_number import same_numbers
from ..ir.upstream import Builder
from ..ir.well_known import MOST_TERMS
from .along import Along
from .codelets import Signature
from .combiners import MEMBERS, TUPLE_COMBINERS, Combiner, MemberKind
from .scalar_functions import (
    COMBINERS,
    FUNCTIONS,
    PACKED,
    PRODUCTS,
    SCALED,
    STOCHASTIC,
    chain_operands,
    chainable,
)

T = TypeVar("T")

FURTHER = -1
"""In the reads of a stage, the next further operand."""

HELD = (
    *("f32", "f16", "bf16", "f8E4M3FNUZ", "f8E5M2FNUZ"),
    *("i1", "i8", "ui8", "i16", "ui16"),
)
"""The element types that a value between two stages may be cast to: float32 holds each of their
values, so that all values of a chain are kept in the type that it computes in."""

LAST = ("i32", "ui32")
"""Further element types that only the last stage of a chain may cast to."""

WIDE = "f64"
"""A further element type for casts in a chain that computes in it."""

CASTS = (*HELD, *LAST, WIDE)
"""All element types that a stage may cast to."""

FLOATS = ("f32", "f16", "bf16", "f8E4M3FNUZ", "f8E5M2FNUZ", WIDE)


@dataclass(frozen=True)
class Stage:
    """A scalar function that is applied to the result of a body or of an earlier stage.

    Raises ValueError for a function, an operand or constants that no stage can have.

    Attributes:
        function: the name of a function that may be a stage.
        parameters: its constants.
        at: the operand of the function that is the value of the stage before; its other operands,
            in order, are further operands of the operation.
        reads: for a function that reads other values, the source of each of its operands: 0 for the
            value that the stages begin with, i for the value of stage i, counted from 1, and
            FURTHER for the next further operand.
        element: the type that the identity casts to.
    """

    function: str
    parameters: tuple[float, ...] = ()
    at: int = 0
    reads: tuple[int, ...] = ()
    element: str = ""

    def __post_init__(self) -> None:
        if self.element and (self.function != "identity" or self.element not in CASTS):
            raise ValueError(
                f"{self.function} as {self.element}; need identity as one of {', '.join(CASTS)}"
            )
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
        arity, wrong = FUNCTIONS[self.function].arity, [k for k in self.reads if k < FURTHER]
        if self.reads and (len(self.reads) != arity or self.at or wrong):
            raise ValueError(
                f"{self.function} of {len(self.reads)} operands; need {arity}: earlier values, "
                "counted from 0, or further operands"
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
        own, others = ((each.function, each.at, each.reads, each.element) for each in (self, other))
        return own == others and same_numbers(self.parameters, other.parameters)

    @property
    def extras(self) -> int:
        """Number of further operands."""
        return self.reads.count(FURTHER) if self.reads else FUNCTIONS[self.function].arity - 1

    def after(self, count: int) -> Stage:
        """The same stage in a chain to which this many stages are added in front."""
        reads = tuple(k if k == FURTHER else k + count for k in self.reads)
        return replace(self, reads=reads)

    def arguments(self, values: Sequence[T], further: Sequence[T]) -> list[T]:
        """The operands of the function, in order.

        Args:
            values: the value that the stages begin with, and the value of each earlier stage.
            further: the stage's own further operands.
        """
        if not self.reads:
            given = list(further)
            given.insert(self.at, values[-1])
            return given
        rest = iter(further)
        return [next(rest) if k == FURTHER else values[k] for k in self.reads]


def extras_of(stages: Sequence[Stage]) -> int:
    """Number of operands that a chain takes in addition to the value it starts with."""
    return sum(stage.extras for stage in stages)


@dataclass(frozen=True)
class Narrow:
    """How the terms of a sum are merged in the type of its first operand, narrower than 32 bits.

    Raises ValueError for less than one term, and for too many.

    Attributes:
        terms: how many terms are added before the sum is rounded to that type. An operator of nn
            has 1, which allows a rounding after each term, up or down; the machine's units round
            less often.
        overflow: which number replaces a sum that is too large.
    """

    terms: int = 1
    overflow: Overflow = Overflow.INFINITY

    def __post_init__(self) -> None:
        if not 1 <= self.terms <= MOST_TERMS:
            raise ValueError(f"a rounding after {self.terms} terms; need 1 to {MOST_TERMS}")


@dataclass(frozen=True)
class Body:
    """What happens at each point of an iteration space.

    Raises ValueError for a combiner that does not exist, or cannot be used this way.

    Attributes:
        function: a scalar function of the operands' elements, a key of FUNCTIONS; or MEMBERS, if
            the operands are members already.
        combiner: merges the points of the reduction dimensions; None if there are none.
        parameters: constants of the function (a slope, an exponent).
        then: functions applied to every result element once its points are merged, in order. The
            operands are those of function, then the further operands of each stage.
        narrow: how points are merged in the first operand's own type, if that is narrower than 32
            bits; None if they are merged in 32 bits.
        along: the scan or sort of the function's values along the whole dimension of the space, or
            the codelet of a user's that reads whole dimensions; None if points are independent or
            merged.
        resumes: whether merging begins with further operands: the members that an earlier step has
            left, or the elements that are updated where a relation holds.
        unfinished: whether the results are members, which needs a combiner of several values.
    """

    function: str
    combiner: str | None = None
    parameters: tuple[float, ...] = ()
    then: tuple[Stage, ...] = ()
    narrow: Narrow | None = None
    along: Along | None = None
    resumes: bool = False
    unfinished: bool = False

    def __post_init__(self) -> None:
        known = (*COMBINERS, *TUPLE_COMBINERS)
        if self.combiner is not None and self.combiner not in known:
            raise ValueError(f"combiner {self.combiner!r}; need one of {', '.join(known)}")
        several = self.combiner in TUPLE_COMBINERS
        if self.resumes != (self.combiner == "last") and self.combiner in ("last", "pick", None):
            verb = "needs to begin" if self.combiner == "last" else "cannot begin"
            raise ValueError(f"combiner {self.combiner!r} {verb} with the elements of an operand")
        if not several and (self.function == MEMBERS or self.unfinished):
            raise ValueError(
                f"members of combiner {self.combiner!r}; need one of {', '.join(TUPLE_COMBINERS)}"
            )
        if several and (self.then or self.narrow):
            raise ValueError(
                f"combiner {self.combiner!r} with a chain or narrow sums; need neither"
            )
        for i, stage in enumerate(self.then, 1):
            later = [k for k in stage.reads if k >= i]
            if later:
                raise ValueError(
                    f"stage {i}, {stage.function}, reads value {later[0]}; need 0..{i - 1}"
                )
            if stage.element in LAST and i != len(self.then):
                raise ValueError(
                    f"stage {i} of {len(self.then)}, a cast to {stage.element}; need one of "
                    f"{', '.join(HELD)}, or the last stage"
                )
        if self.combiner is not None and self.along is not None:
            raise ValueError(f"combiner {self.combiner} and {self.along.name} along; need one")

    def __eq__(self, other: object) -> bool:
        """True if all fields are equal, including the signs of zeros in parameters."""
        if not isinstance(other, Body):
            return NotImplemented
        same = self._form == other._form
        return same and same_numbers(self.parameters, other.parameters)

    @property
    def chained_elements(self) -> list[str]:
        """The element type of the value that the stages begin with, and of the value of each stage.

        "" stands for a float in the type that the chain computes in, "?" for a type that only
        further operands decide.
        """
        begins = self.combiner is None and self.function in FUNCTIONS
        found = ["i1" if begins and FUNCTIONS[self.function].boolean else ""]
        for stage in self.then:
            function = FUNCTIONS[stage.function]
            numbers = stage.arguments(found, ["?"] * stage.extras)[function.values :]
            if stage.element:
                found.append("" if stage.element in FLOATS else stage.element)
            elif function.boolean:
                found.append("i1")
            elif function.selects or stage.function == "identity":
                known = [each for each in numbers if each != "?"]
                found.append(known[0] if known else "?")
            else:
                found.append("")
        return found

    @property
    def _form(self) -> tuple[object, ...]:
        """All fields but the parameters."""
        own = self.function, self.combiner, self.then, self.narrow, self.along
        return (*own, self.resumes, self.unfinished)

    @property
    def tuple_combiner(self) -> Combiner | None:
        """The combiner of several values; None if the body has another, or none."""
        return None if self.combiner is None else TUPLE_COMBINERS.get(self.combiner)

    @property
    def member_kinds(self) -> tuple[MemberKind, ...]:
        """The types of the members of a combiner of several values; () for other bodies."""
        combiner = self.tuple_combiner
        return () if combiner is None else combiner.members

    @property
    def result_kinds(self) -> tuple[MemberKind, ...]:
        """The types of the results of a combiner of several values; () for other bodies."""
        combiner = self.tuple_combiner
        if combiner is None:
            return ()
        return combiner.members if self.unfinished else combiner.results

    @property
    def updates(self) -> bool:
        """Whether the body is an update: merging begins with the elements of an operand.

        That operand has the result's map.
        """
        return self.resumes and not self.member_kinds

    @property
    def begun_with(self) -> int:
        """The number of operands that merging begins with: the elements or members of an earlier
        result.
        """
        return (len(self.member_kinds) or 1) if self.resumes else 0

    @property
    def result_count(self) -> int:
        """The number of results."""
        signature = self.signature
        return len(self.result_kinds) or (1 if signature is None else len(signature.writes))

    @property
    def signature(self) -> Signature | None:
        """The signature of the user's codelet; None if the body has none."""
        return None if self.along is None else self.along.signature

    @property
    def position_count(self) -> int:
        """How many positions the body reads at each point."""
        combiner = self.tuple_combiner
        if combiner is None or self.function == MEMBERS:
            return 0
        return int(combiner.reads_position)

    @property
    def identity(self) -> float:
        """The element that the combiner ignores.

        It is 0 without a combiner, without such an element, and if the function's operands are
        members.
        """
        combiner = self.tuple_combiner
        if combiner is not None:
            return combiner.fill or 0.0
        return COMBINERS[self.combiner] if self.combiner else 0.0

    @property
    def rounding_of_sums(self) -> int | None:
        """The stage whose random words round narrow sums as well; None if they round to nearest.

        It rounds the sum before anything else is done with it, but for adding the sum of an earlier
        step.
        """
        if self.narrow is None:
            return None
        first = int(bool(self.then) and self.then[0].function == "add")
        is_rounding = len(self.then) > first and self.then[first].function == STOCHASTIC
        return first if is_rounding and not self.then[first].reads else None

    @property
    def is_product(self) -> bool:
        """Whether the body sums products of two operands."""
        return self.function in PRODUCTS and self.combiner == "sum"

    @property
    def sums_products(self) -> bool:
        """Whether the body sums products of two operands without a factor, and begins with 0."""
        return self.is_product and not self.is_scaled_product and not self.updates

    @property
    def is_scaled_product(self) -> bool:
        """Whether the body sums products of 8-bit floats, which units add up in float16."""
        return self.is_product and self.function == SCALED

    @property
    def is_packed_product(self) -> bool:
        """Whether the body sums products with integers that share a byte."""
        return self.function == PACKED and self.combiner == "sum"

    @property
    def product_factor(self) -> float:
        """The constant by which each product of a sum of products is multiplied."""
        return self.parameters[0] if self.is_scaled_product else 1.0

    @property
    def function_arity(self) -> int:
        """Number of operands of the function, without those of relations and of the chain."""
        if self.function == MEMBERS:
            return len(self.member_kinds)
        signature = self.signature
        return FUNCTIONS[self.function].arity if signature is None else len(signature.reads)


@hash_once
@dataclass(frozen=True)
class Structure:
    """An operator as mathematics: where it reads and writes, and what it computes.

    The operands are those of the function, then the index operand of each relation, then those that
    merging begins with, then those of the chain. Coordinates take the places of some operands of
    the body; they are not operands of the space. A point at which a relation does not hold
    contributes the identity of the combiner. There are as many results as the body has; all of them
    have all parallel dimensions.
    """

    space: Space
    body: Body

    @property
    def own_places(self) -> int:
        """The number of operands of the body before those of its chain, coordinates included."""
        relations = len(self.space.relations)
        return self.body.function_arity + relations + self.body.begun_with

    @property
    def own_operands(self) -> int:
        """The number of operands of the space before those of the chain: coordinates are left
        out."""
        own = self.own_places
        return own - sum(each.operand < own for each in self.space.coordinates)

    @property
    def arity(self) -> int:
        """The number of all operands of the space."""
        places = self.own_places + extras_of(self.body.then)
        return places - len(self.space.coordinates)

    def chain_coordinates(self, own_places: int | None = None) -> tuple[Position, ...]:
        """The coordinates that the chain reads.

        Args:
            own_places: renumber the coordinates for a structure with this `own_places`, to whose
                chain they are added; by default, they keep their numbers.
        """
        own = self.own_places
        shift = 0 if own_places is None else own_places - own
        return tuple(
            replace(each, operand=each.operand + shift)
            for each in self.space.coordinates
            if each.operand >= own
        )

    def with_coordinates(self, operands: Sequence[T], coordinates: Sequence[T]) -> list[T]:
        """All operands of the body in order.

        Args:
            operands: those of the space.
            coordinates: one per coordinate.
        """
        made = list(operands)
        for position, value in zip(self.space.coordinates, coordinates, strict=True):
            made.insert(position.operand, value)
        return made

    def is_never_cut(self, dim: int) -> bool:
        """Whether no plan may cut a dimension: a whole dimension, or a merged dimension of an
        update.

        If an update's merged dimension were cut, each part would begin with the old element again,
        or would be the last to write it.
        """
        kind = self.space.dims[dim].kind
        return kind == "whole" or (kind == "reduction" and self.body.updates)

    @cached_property
    def unchained(self) -> Structure:
        """The structure without its chain and the chain's operands."""
        if not self.body.then:
            return self
        own, chain = self.space.operands[: self.own_operands], self.chain_coordinates()
        positions = tuple(each for each in self.space.positions if each not in chain)
        space = replace(self.space, operands=own, positions=positions)
        return Structure(space, replace(self.body, then=()))

    @cached_property
    def partial(self) -> Structure:
        """The structure that computes partials for a second compute: sums without the chain, or
        members.
        """
        kinds = self.body.member_kinds
        if not kinds:
            return self.unchained
        results = (self.space.results[0],) * len(kinds)
        return Structure(replace(self.space, results=results), replace(self.body, unfinished=True))

    def reads_in_place(self, operand: int) -> bool:
        """True if the result may be written over an operand that starts at the same address.

        This holds if every point reads only the element of the operand that it writes. It also
        holds for partials, which have further leading axes, all of them merged: the result takes
        the place of the first partial. It does not hold for a sum of products, which accumulates
        in the place of the result, nor for several results, one of which may be written before
        another is computed. A sequence along a whole dimension reads all elements of a row before
        it writes any, so it may be written over the row. Updates at indices are written over the
        operand that they begin with, and touch only what the indices name.
        """
        space, body = self.space, self.body
        if body.updates:
            begins = operand == self.own_operands - 1
            return begins and space.operands[operand].axes == space.results[0].axes
        if body.result_count > 1 or (body.combiner is not None and self.own_operands > 1):
            return False
        if body.signature is not None:
            # A cell may read any of its elements after it has written one.
            return False
        if body.along is not None and body.along.name == "sort_indices":
            # The indices move together with the elements.
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
