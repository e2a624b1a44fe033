"""A rule that can be applied: what it is found by, what must hold, what it makes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from xdsl.ir import Operation, SSAValue

from ..rewriting import Source
from .syntax import Expression, Field, Place, Rest, TypePattern, Variable

Env: TypeAlias = "dict[str, Any]"
"""What the names of a rule stand for: values, tuples of them, operations, numbers, attributes."""


@dataclass(frozen=True)
class BoundNested:
    """An operand that is a result of an operation."""

    place: Place
    pattern: BoundPattern
    index: int


BoundOperand: TypeAlias = "Variable | Rest | BoundNested"


@dataclass(frozen=True)
class BoundPattern:
    """A pattern whose operations are known.

    absent: optional attributes that the pattern does not mention, which an operation must lack.
    heads: as written, for messages. others: whether optional ones may be there all the same.
    """

    place: Place
    heads: str
    classes: frozenset[type[Operation]]
    operands: tuple[BoundOperand, ...]
    fields: tuple[Field, ...]
    name: str
    types: tuple[TypePattern, ...]
    absent: tuple[str, ...]
    others: bool = False

    def walk(self) -> Iterator[BoundPattern]:
        """The pattern and those nested in it, outermost first, in order of operands."""
        yield self
        for operand in self.operands:
            if isinstance(operand, BoundNested):
                yield from operand.pattern.walk()

    @cached_property
    def fixed(self) -> int:
        """How many operands stand for one each."""
        return sum(not isinstance(each, Rest) for each in self.operands)

    @cached_property
    def takes_more(self) -> bool:
        """Whether an operand stands for any number of them."""
        return self.fixed < len(self.operands)


@dataclass(frozen=True)
class Match:
    """Where a rule fits. matched: the operations of its pattern, the root first."""

    env: Env
    matched: tuple[Operation, ...]


@dataclass(frozen=True)
class Made:
    """What a rule has built. ops: new operations, in order; values: one a result of the root."""

    ops: tuple[Operation, ...]
    values: tuple[SSAValue, ...]


@dataclass(frozen=True)
class Law:
    """A rule. variants: its patterns, one for each order of the operands of commutative operations.

    make: builds what takes the root's place; None where Python code has changed its mind.
    kind: a lower may change the types of results. text: what is shown of it. document: what is
    said of it.
    """

    source: Source
    kind: Literal["rule", "lower"]
    priority: int
    variants: tuple[BoundPattern, ...]
    guards: tuple[Expression, ...]
    make: Callable[[Match], Made | None]
    text: str = field(default="", repr=False)
    document: str = ""
    place: Place = field(default=Place("", 0, 0, 0), repr=False)

    @property
    def name(self) -> str:
        """The rule's name."""
        return self.source.name

    @property
    def roots(self) -> frozenset[type[Operation]]:
        """The classes of operations that it may replace."""
        return self.variants[0].classes


def ordered(laws: Sequence[Law]) -> tuple[Law, ...]:
    """Laws in the order in which they are tried: by priority, then as written."""
    return tuple(sorted(laws, key=lambda law: -law.priority))
