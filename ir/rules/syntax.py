"""The syntax of a rule file, as parsed, before names are bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal as Choice
from typing import TypeAlias

LiteralValue: TypeAlias = "int | float | bool | str | tuple[LiteralValue, ...] | None"
"""A literal: a number, a truth value, a string, a list, or none for an absent attribute."""


@dataclass(frozen=True)
class Place:
    """A piece of a line.

    Attributes:
        line, column: from 1.
        end: the column after it, on the same line.
    """

    file: str
    line: int
    column: int
    end: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"


@dataclass(frozen=True)
class _Node:
    place: Place = field(compare=False, repr=False)


# The left side


@dataclass(frozen=True)
class Rest(_Node):
    """...name: any number of operands or sizes. name is "" if nothing is bound."""

    name: str


@dataclass(frozen=True)
class TypeName(_Node):
    """A name for a whole type: the same type wherever the name occurs."""

    name: str


@dataclass(frozen=True)
class Size(_Node):
    """A dimension: its size, or a name for its size. "_" is any size."""

    value: int | str


@dataclass(frozen=True)
class Shaped(_Node):
    """A tensor type.

    Attributes:
        element: f32, a name for any element type, or "" for any.
    """

    element: str
    sizes: tuple[Size | Rest, ...]


TypePattern: TypeAlias = "TypeName | Shaped"


@dataclass(frozen=True)
class Variable(_Node):
    """An operand with any producer: the same value wherever the name occurs. "_" binds nothing."""

    name: str
    type: TypePattern | None


@dataclass(frozen=True)
class Field(_Node):
    """An attribute of a pattern: equal to a literal, or bound to a name.

    Attributes:
        is_note: True if it is quoted, which means that the definition does not know it.
    """

    name: str
    value: LiteralValue | Name
    is_note: bool = False


@dataclass(frozen=True)
class Nested(_Node):
    """An operand that is a result of an operation.

    Attributes:
        index: the number of the result.
    """

    pattern: Pattern
    index: int | None


Operand: TypeAlias = "Variable | Rest | Nested"


@dataclass(frozen=True)
class Pattern(_Node):
    """An operation.

    Attributes:
        heads: names of operations, or of one class.
        name: the name that it binds.
        others: True if optional attributes other than the fields are allowed.
    """

    heads: tuple[str, ...]
    operands: tuple[Operand, ...]
    fields: tuple[Field, ...]
    name: str
    types: tuple[TypePattern, ...]
    others: bool = False

    def walk(self) -> Iterator[Pattern]:
        """The pattern and those nested in it, outermost first, in operand order."""
        yield self
        for operand in self.operands:
            if isinstance(operand, Nested):
                yield from operand.pattern.walk()


# Expressions


@dataclass(frozen=True)
class Name(_Node):
    """A name that a pattern has bound."""

    name: str


@dataclass(frozen=True)
class Constant(_Node):
    """A number, truth value, string, or none."""

    value: int | float | bool | str | None


@dataclass(frozen=True)
class Property(_Node):
    """An attribute of a matched operation; none if it is absent."""

    op: str
    name: str


@dataclass(frozen=True)
class Call(_Node):
    """A guard or function written in Python."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Listed(_Node):
    """[a, b]"""

    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Operator(_Node):
    """An operator on one or two operands.

    Attributes:
        symbol: + - * / // % == != < <= > >= and or not neg; the last two have one operand.
    """

    symbol: str
    operands: tuple[Expression, ...]


Expression: TypeAlias = "Name | Constant | Property | Call | Listed | Operator"


# The right side


@dataclass(frozen=True)
class TypeOf(_Node):
    """type(x): the type of a value."""

    name: str


@dataclass(frozen=True)
class NewShaped(_Node):
    """f32[n, k / 2]"""

    element: str
    sizes: tuple[Expression | Rest, ...]


NewType: TypeAlias = "TypeName | TypeOf | NewShaped"


@dataclass(frozen=True)
class Reference(_Node):
    """A value that the pattern or a let has bound.

    Attributes:
        index: the number of the result.
    """

    name: str
    index: int | None


@dataclass(frozen=True)
class Setting(_Node):
    """An attribute of a new operation."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Build(_Node):
    """A new operation.

    Attributes:
        head: the name of an operation, or of a matched one whose class, attributes and regions it
            copies.
        like: a matched operation whose attributes and regions it copies, as far as they exist in
            its own definition.
    """

    head: str
    operands: tuple[Made | Rest, ...]
    settings: tuple[Setting, ...]
    like: str
    types: tuple[NewType, ...]


Made: TypeAlias = "Build | Reference"


@dataclass(frozen=True)
class Let(_Node):
    """A new operation with a name."""

    name: str
    build: Build


@dataclass(frozen=True)
class Rule(_Node):
    """A rule, as it is written.

    Attributes:
        place: where its name is written.
        kind: a rule stays on its level, a lower ends in the next level's operations.
        results: one for each result of the pattern, () to erase it.
        document: the comment above it.
    """

    kind: Choice["rule", "lower"]
    name: str
    priority: int
    commutative: bool
    pattern: Pattern
    lets: tuple[Let, ...]
    results: tuple[Made, ...]
    guards: tuple[Expression, ...]
    document: str = field(default="", compare=False)


# Declarations


@dataclass(frozen=True)
class Declared(_Node):
    """What a file declares of its pass.

    Attributes:
        level: "" for rounds.
    """

    what: Choice["takes", "leaves", "rounds"]
    level: str


@dataclass(frozen=True)
class Class(_Node):
    """A name for several operations. Those of a class written in Python are not listed."""

    name: str
    members: tuple[tuple[str, Place], ...] | None


@dataclass(frozen=True)
class Declaration(_Node):
    """A guard or function written in Python.

    Attributes:
        kinds: of its parameters.
        result: "" for a guard.
    """

    name: str
    kinds: tuple[str, ...]
    result: str


@dataclass(frozen=True)
class RuleFile:
    """A whole rule file.

    Attributes:
        text: as it was read, for messages.
    """

    path: str
    text: str
    classes: tuple[Class, ...]
    declarations: tuple[Declaration, ...]
    rules: tuple[Rule, ...]
    declared: tuple[Declared, ...] = ()
