"""Conditions on the figures of a program, such as "cycles > 1.02 * baseline.cycles".

The grammar is in condition.lark: numbers, figures, arithmetic, comparisons, and, or, not.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedInput

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion

COMPARES: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "+": float.__add__,
    "-": float.__sub__,
    "*": float.__mul__,
    "/": float.__truediv__,
}

FAIL_IF = "--fail-if"
"""The option whose conditions name a baseline."""

LONGEST = 1_000
"""The most letters of a condition. Assumed: nobody writes a longer condition by hand."""

Figures = Mapping[str, float]


@dataclass(frozen=True)
class Condition:
    """A condition that was read.

    Attributes:
        text: as it was given.
        option: the option that gave it, for messages.
    """

    text: str
    tree: Tree[Token] | Token
    option: str = FAIL_IF

    @property
    def names(self) -> frozenset[str]:
        """The figures that it names, but for those of the baseline."""
        return _names_in(self.tree)

    def holds(self, figures: Figures, baseline: Figures | None) -> bool:
        """Whether the condition is true of a program.

        Raises InputError for a figure that is not known, and for a division by zero.

        Args:
            baseline: the baseline's figures, if any.
        """
        return _Value(f"{self.option} {self.text}", figures, baseline).truth(self.tree)


@dataclass(frozen=True)
class Value:
    """A number that was read, such as "items_per_s / tiles".

    Attributes:
        text, option: as of Condition.
    """

    text: str
    tree: Tree[Token] | Token
    option: str

    @property
    def names(self) -> frozenset[str]:
        """The figures that it names."""
        return _names_in(self.tree)

    def of(self, figures: Figures) -> float:
        """The number for a program. Raises InputError as Condition.holds does."""
        return _Value(f"{self.option} {self.text}", figures, None).number(self.tree)


def read_condition(text: str, option: str = FAIL_IF) -> Condition:
    """The condition in a text. Raises InputError with the position of a mistake."""
    example = "a comparison of figures, such as cycles > 1.02 * baseline.cycles"
    return Condition(text, _parsed(text, option, "start", example), option)


def read_value(text: str, option: str) -> Value:
    """The number in a text. Raises InputError with the position of a mistake."""
    return Value(text, _parsed(text, option, "value", "a figure, such as cycles / items"), option)


def _parsed(text: str, option: str, start: str, example: str) -> Tree[Token] | Token:
    if len(text) > LONGEST:
        raise InputError(f"{option}: {len(text):,} letters; need at most {LONGEST:,}")
    try:
        return _parser(start).parse(text)
    except UnexpectedInput as error:
        at = f"at letter {error.column}" if error.column > 0 else "at its end"
        raise InputError(f"{option} {text}: not understood {at}; need {example}") from None


def _names_in(tree: Tree[Token] | Token) -> frozenset[str]:
    found = tree.find_data("figure") if isinstance(tree, Tree) else ()
    return frozenset(str(each.children[0]) for each in found)


def figures_of(program: Mapping[str, Any]) -> dict[str, float]:
    """The figures of a program that conditions can name."""
    numbers = {
        name: float(value)
        for name, value in program.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
    return numbers | {"fits": float(program["fits"])}


@cache
def _parser(start: str) -> Lark:
    grammar = files(__package__ or "").joinpath("condition.lark").read_text(encoding="utf-8")
    return Lark(grammar, parser="earley", start=start)


@dataclass(frozen=True)
class _Value:
    """Evaluates a condition.

    Attributes:
        text: the option and the condition, for messages.
    """

    text: str
    figures: Figures
    baseline: Figures | None

    def truth(self, node: Tree[Token] | Token) -> bool:
        assert isinstance(node, Tree)
        match str(node.data):
            case "either":
                return any([self.truth(each) for each in node.children])
            case "both":
                return all([self.truth(each) for each in node.children])
            case "negation":
                return not self.truth(node.children[0])
            case "group":
                return self.truth(node.children[0])
            case _:
                left, compares, right = node.children
                return COMPARES[str(compares)](self.number(left), self.number(right))

    def number(self, node: Tree[Token] | Token) -> float:
        assert isinstance(node, Tree)
        first = node.children[0]
        match str(node.data):
            case "number":
                return float(str(first))
            case "minus":
                return -self.number(first)
            case "figure":
                return self._figure(str(first), self.figures, "")
            case "baseline":
                if self.baseline is None:
                    raise InputError(f"{self.text}: there is no baseline; need BASELINE")
                return self._figure(str(first), self.baseline, "baseline.")
            case _:
                total = self.number(first)
                rest = node.children[1:]
                for sign, each in zip(rest[::2], rest[1::2], strict=True):
                    value = self.number(each)
                    if str(sign) == "/" and not value:
                        raise InputError(f"{self.text}: divides by zero")
                    total = ARITHMETIC[str(sign)](total, value)
                return total

    def _figure(self, name: str, figures: Figures, prefix: str) -> float:
        if name not in figures:
            hint = suggestion(name, figures, f"need one of {', '.join(sorted(figures))}")
            raise InputError(f"{self.text}: no figure {prefix}{name}{hint}")
        return figures[name]
