"""Keys: whole numbers that follow from the parts of a sending and of a receiving cell.

A key orders messages. It adds, divides with rounding down, takes remainders and signs:

    (d1 - s1) mod 46        sign(d0 - s0)        2 * (s0 floordiv 4) + s1

`d0, d1 ...` number the parts of the destination's grid, `s0, s1 ...` those of the source's.
`p0, p1 ...` and `q0, q1 ...` are the places of a message among those of its sender and of its
receiver, for each group of axes (see streams.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Parts = NDArray[np.int64]
"""Numbers of parts, one for each message."""

Side = Literal["d", "s", "p", "q"]
"""What a number counts: parts of the destination or of the source, or places at the sender or at
the receiver."""

SIDES: tuple[Side, ...] = ("d", "s", "p", "q")

Numbers = Mapping[Side, Sequence[Parts]]
"""The numbers that keys read, for each side: of each dimension of a grid, or of each group of
axes. All arrays broadcast together."""

MOST = 1 << 31
"""Numbers in keys are smaller. Parts are too."""

MOST_VALUE = 1 << 62
"""No value that a key can have is larger, so that 64 bits hold it."""


@dataclass(frozen=True)
class Part:
    """The number of a cell's part along one dimension of a grid, or a place in a group of axes.

    Attributes:
        side: d for the destination's grid, s for the source's, p for places among the messages of
            the sender, q for those of the receiver.
        dim: the dimension of that grid, or the group.
    """

    side: Side
    dim: int

    @property
    def most(self) -> int:
        """A number that no value exceeds."""
        return MOST

    def parts(self) -> Iterator[Part]:
        """The parts that it reads."""
        yield self

    def values(self, numbers: Numbers) -> Parts:
        """Its value for each message."""
        return numbers[self.side][self.dim]

    def text(self) -> str:
        """Its text: d0."""
        return f"{self.side}{self.dim}"


Rule = Literal["mod", "floordiv", "sign"]

_RULES: dict[Rule, Callable[[Parts, int], Parts]] = {
    "mod": np.mod,
    "floordiv": np.floor_divide,
    "sign": lambda values, _: np.sign(values),
}
"""The functions of a key, on values and the number that follows."""


@dataclass(frozen=True)
class Function:
    """A remainder, a quotient that is rounded down, or a sign.

    Raises ValueError for a divisor below 1 or of 32 bits or more.

    Attributes:
        rule: mod, floordiv or sign.
        of: the key that it takes.
        by: the divisor; 1 for a sign.
    """

    rule: Rule
    of: Key
    by: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.by < MOST:
            raise ValueError(f"{self.rule} {self.by}; need 1 to {MOST - 1}")

    @property
    def most(self) -> int:
        """A number that no value exceeds."""
        return {"mod": self.by, "floordiv": self.of.most, "sign": 1}[self.rule]

    def parts(self) -> Iterator[Part]:
        """The parts that it reads."""
        return self.of.parts()

    def values(self, numbers: Numbers) -> Parts:
        """Its value for each message."""
        return _RULES[self.rule](self.of.values(numbers), self.by)

    def text(self) -> str:
        """Its text: (d0 - s0) mod 4."""
        if self.rule == "sign":
            return f"sign({self.of.text()})"
        inner = self.of.text()
        return f"{inner if self.of.is_atom else f'({inner})'} {self.rule} {self.by}"


@dataclass(frozen=True)
class Key:
    """A sum of parts and functions, each times a number, and of a number.

    Raises ValueError if a number has 32 bits or more, or if a value might not fit in 64 bits.

    Attributes:
        terms: what is added, each with its factor, which is not 0.
        offset: the number that is added.
    """

    terms: tuple[tuple[Part | Function, int], ...] = ()
    offset: int = 0
    most: int = field(init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        for number in (self.offset, *(factor for _, factor in self.terms)):
            if abs(number) >= MOST:
                raise ValueError(f"{number} in a key; need at most {MOST - 1}")
        most = abs(self.offset) + sum(abs(factor) * term.most for term, factor in self.terms)
        if most > MOST_VALUE:
            raise ValueError("a key whose values may not fit in 64 bits; use smaller numbers")
        object.__setattr__(self, "most", most)

    @property
    def is_atom(self) -> bool:
        """Whether the text is one part, one sign or one number, which need no parentheses."""
        if not self.terms:
            return self.offset >= 0
        ((term, factor), *more) = self.terms
        simple = isinstance(term, Part) or term.rule == "sign"
        return simple and factor == 1 and not more and not self.offset

    @property
    def has_numbers(self) -> bool:
        """Whether the key names a number, which may suit some numbers of parts only."""
        return bool(self.offset) or any(
            abs(factor) != 1
            or (isinstance(term, Function) and (term.rule != "sign" or term.of.has_numbers))
            for term, factor in self.terms
        )

    def parts(self) -> Iterator[Part]:
        """The parts that it reads; a part that it reads twice comes twice."""
        for term, _ in self.terms:
            yield from term.parts()

    def values(self, numbers: Numbers) -> Parts:
        """The value for each message."""
        total = np.array(self.offset, np.int64)
        for term, factor in self.terms:
            value = np.asarray(term.values(numbers), np.int64)
            total = total + (value if factor == 1 else factor * value)
        return total

    def text(self) -> str:
        """The text: 2 * d0 - s1 + 3."""
        text = ""
        alone = len(self.terms) == 1 and not self.offset
        for term, factor in self.terms:
            plain = isinstance(term, Part) or term.rule == "sign" or (alone and factor == 1)
            word = term.text() if plain else f"({term.text()})"
            word = word if abs(factor) == 1 else f"{abs(factor)} * {word}"
            sign = f" {'-' if factor < 0 else '+'} " if text else "-" if factor < 0 else ""
            text += sign + word
        if self.offset or not text:
            sign = "-" if self.offset < 0 else "+"
            text = f"{text} {sign} {abs(self.offset)}" if text else str(self.offset)
        return text


def part(side: Side, dim: int) -> Key:
    """The key that is the number of one part: d0, s1."""
    return Key(((Part(side, dim), 1),))


def total(*parts: tuple[Key, int]) -> Key:
    """The sum of keys, each times a number. Equal terms are added."""
    factors: dict[Part | Function, int] = {}
    offset = 0
    for key, factor in parts:
        offset += key.offset * factor
        for term, own in key.terms:
            factors[term] = factors.get(term, 0) + own * factor
    return Key(tuple((term, f) for term, f in factors.items() if f), offset)


def difference(left: Key, right: Key) -> Key:
    """One key minus another: d0 - s0."""
    return total((left, 1), (right, -1))


def applied(rule: Rule, key: Key, by: int = 1) -> Key:
    """The key that is a function of a key: (d0 - s0) mod 4, sign(d0 - s0)."""
    return Key(((Function(rule, key, by), 1),))
