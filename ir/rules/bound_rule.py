"""A rule that can be applied: its pattern, its guards, and a function that builds the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from xdsl.ir import Operation, SSAValue

from ..rewriting import Source
from .syntax import Expression, Field, Place, Rest, TypePattern, Variable

Env: TypeAlias = "dict[str, Any]"
"""The values of a rule's names: SSA values, tuples of them, operations, numbers, attributes."""


@dataclass(frozen=True)
class BoundNested:
    """An operand that is a result of an operation in the pattern."""

    place: Place
    pattern: BoundPattern
    index: int


BoundOperand: TypeAlias = "Variable | Rest | BoundNested"


@dataclass(frozen=True)
class BoundPattern:
    """A pattern whose operations are known.

    Attributes:
        absent: optional attributes that the pattern does not mention, which must be absent.
        heads: as written, for messages.
        others: True if other optional attributes are allowed.
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
        """The pattern and those nested in it, outermost first, in operand order."""
        yield self
        for operand in self.operands:
            if isinstance(operand, BoundNested):
                yield from operand.pattern.walk()

    @cached_property
    def fixed(self) -> int:
        """The number of operands in the pattern that stand for exactly one operand."""
        return sum(not isinstance(each, Rest) for each in self.operands)

    @cached_property
    def takes_more(self) -> bool:
        """True if an operand stands for any number of operands."""
        return self.fixed < len(self.operands)


@dataclass(frozen=True)
class Match:
    """A match of a rule.

    Attributes:
        matched: the operations of its pattern, the root first.
    """

    env: Env
    matched: tuple[Operation, ...]


@dataclass(frozen=True)
class Made:
    """What a rule built.

    Attributes:
        ops: new operations, in order.
        values: one per result of the root.
    """

    ops: tuple[Operation, ...]
    values: tuple[SSAValue, ...]


@dataclass(frozen=True)
class BoundRule:
    """A rule that is bound to operations.

    Attributes:
        variants: its patterns, one per order of the operands of commutative operations.
        make: builds the replacement of the root; returns None if Python code decides against it.
        kind: a lower may change the types of results.
        text: the rule as written.
        document: its documentation.
    """

    source: Source
    kind: Literal["rule", "lower"]
    priority: int
    variants: Sequence[BoundPattern]
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
        """The classes of operations that the rule may replace."""
        return self.variants[0].classes


def ordered(bound: Sequence[BoundRule]) -> tuple[BoundRule, ...]:
    """Rules in the order in which they are tried: by priority, then as written."""
    return tuple(sorted(bound, key=lambda rule: -rule.priority))
