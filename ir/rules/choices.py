"""Chooses sizes, types and attributes where a pattern leaves them open.

Each choice is one of a few named ways to make a value from known values. The ways that an operation
accepts are remembered, so after the first program, more programs with other numbers are found at
once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import lcm, prod
from random import Random
from typing import Any, TypeAlias

from xdsl.dialects.builtin import TensorType, f16, f32, i1, i32
from xdsl.ir import Attribute
from xdsl.irdl import AttrConstraint

from .bound_rule import BoundNested, BoundPattern
from .syntax import Call, Constant, Expression, Listed, Name, Operator, Shaped, Size
from .values import Plain, attribute_of

Shape: TypeAlias = "tuple[int, ...]"

ELEMENTS: dict[str, Attribute] = {"f32": f32, "f16": f16, "i32": i32, "i1": i1}
"""Element types of tensors, by name."""

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37)
"""Sizes with different names are different primes, so nothing holds for them by coincidence."""


@dataclass(frozen=True)
class Hints:
    """The numbers, strings and lists that a rule, or a pass in Python, mentions and may require."""

    ints: tuple[int, ...] = ()
    floats: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    lists: tuple[tuple[Any, ...], ...] = ()

    @staticmethod
    def of(patterns: Iterable[BoundPattern], guards: Iterable[Expression]) -> Hints:
        """The literals in patterns and guards."""
        found = [value for each in guards for value in _constants(each)]
        found += [value for each in patterns for value in _literals(each)]
        whole = [each for each in found if isinstance(each, int) and not isinstance(each, bool)]
        return Hints(
            tuple(dict.fromkeys(whole)),
            tuple(dict.fromkeys(each for each in found if isinstance(each, float))),
            tuple(dict.fromkeys(each for each in found if isinstance(each, str))),
            tuple(dict.fromkeys(each for each in found if isinstance(each, tuple))),
        )


def _constants(expression: Expression) -> Iterator[Plain]:
    match expression:
        case Constant():
            yield expression.value
        case Call():
            for each in expression.arguments:
                yield from _constants(each)
        case Listed():
            values = [each.value for each in expression.items if isinstance(each, Constant)]
            if len(values) == len(expression.items):
                yield tuple(values)
            for each in expression.items:
                yield from _constants(each)
        case Operator():
            for each in expression.operands:
                yield from _constants(each)
        case _:
            return


def _literals(pattern: BoundPattern) -> Iterator[Plain]:
    for each in pattern.fields:
        if not isinstance(each.value, Name):
            yield each.value
    for each in pattern.operands:
        if isinstance(each, BoundNested):
            yield from _literals(each.pattern)
    types = [*pattern.types, *(getattr(each, "type", None) for each in pattern.operands)]
    for type_ in types:
        if isinstance(type_, Shaped):
            for each in type_.sizes:
                if isinstance(each, Size) and isinstance(each.value, int):
                    yield each.value


@dataclass
class Choices:
    """Random choices by name.

    Attributes:
        replay: ways that led to an operation in an earlier attempt, by the name of the choice.
        taken: the ways of this attempt, by the same names.
        uniform: the way used for every list that is not replayed, because the lists of an operation
            often have one entry for each of the same axes.
        sizes: the sizes that axes may have; primes if empty.
    """

    random: Random
    hints: Hints
    replay: dict[str, str] = field(default_factory=dict[str, str])
    taken: dict[str, str] = field(default_factory=dict[str, str])
    uniform: str = ""
    sizes: Sequence[int] = ()
    _primes: list[int] = field(default_factory=list[int])

    def again(self, replay: dict[str, str]) -> Choices:
        """New choices for another attempt."""
        uniform = self.random.choice(tuple(LISTS)) if self.random.random() < 0.5 else ""
        return Choices(self.random, self.hints, replay, {}, uniform, self.sizes, self._primes)

    def way(self, what: str, ways: Sequence[str]) -> str:
        """One of several ways to choose something: the one from replay if there is one."""
        known = self.replay.get(what)
        found = known if known is not None and known in ways else self.random.choice(ways)
        self.taken[what] = found
        return found

    def _known(self, what: str) -> tuple[str, ...]:
        known = self.replay.get(what)
        return () if known is None else (known,)

    def fresh(self) -> int:
        """A size that differs from the others, or one that the rule's guards mention, or 1."""
        if not self._primes:
            self._primes = list(self.sizes or PRIMES)
            self.random.shuffle(self._primes)
        chance, prime = self.random.random(), self._primes.pop()
        divisors = [each for each in self.hints.ints if 1 < each <= 4096]
        if chance < 0.12:
            return 1
        if divisors and chance < 0.7:
            return self._asked(divisors, prime)
        return prime

    def _asked(self, numbers: Sequence[int], prime: int) -> int:
        common = min(lcm(*numbers), 1 << 16)
        number = self.random.choice(numbers)
        ways = (number, number * prime, common, common * prime, number + 1, number - 1)
        return self.random.choice(ways)

    # Types

    def element(self, what: str, known: Sequence[TensorType[Attribute]]) -> Attribute:
        """An element type: that of the known tensors, or another."""
        way = self.way(what, (*(("same",) * 8 if known else ("f32",) * 4), *ELEMENTS))
        return known[0].element_type if way == "same" else ELEMENTS[way]

    def shape(self, what: str, known: Sequence[Shape]) -> Shape:
        """The shape of a tensor, given the shapes of others."""
        if not known:
            rank = int(self.way(what, "0112223334444"))
            return tuple(self.fresh() for _ in range(rank))
        way = self.way(what, _SHAPES)
        return SHAPES[way](self, self.random.choice(known) if way[-1] == "?" else known[-1])

    # Attributes

    def attribute(
        self,
        what: str,
        kind: str,
        constraint: AttrConstraint,
        tensors: Sequence[TensorType[Attribute]],
        texts: Sequence[str],
    ) -> Attribute | None:
        """A value that the attribute's definition allows; None if no such value is known.

        Args:
            tensors: the types of the operands, and of the results known so far.
            texts: the strings that the operation's verifier allows.
        """
        if kind in ("attribute", "any"):
            found = self._by_class(constraint, tensors)
            if found is not None or kind == "attribute":
                return found
            kind = self.random.choice(("int", "float", "string"))
        shape = tuple(tensors[0].get_shape()) if tensors else ()
        return attribute_of(self._plain(what, kind, shape, texts), constraint)

    def _plain(self, what: str, kind: str, shape: Shape, texts: Sequence[str]) -> Plain:
        match kind:
            case "bool":
                return True
            case "int":
                numbers = INTEGERS[self.way(what, tuple(INTEGERS))](self, shape)
                return self.random.choice(tuple(numbers) or (0,))
            case "float":
                return self.random.choice((0.5, 1.0, 2.0, -1.5, 0.0, *self.hints.floats))
            case "string":
                return self.way(what, (*self.hints.texts, *texts) or ("a",))
            case "ints":
                asked = ("asked",) * 4 if self.hints.lists else ()
                ways = (self.uniform,) if self.uniform else (*LISTS, "shuffled", "rotated", *asked)
                return LISTS[self.way(what, self._known(what) or ways)](self, shape)
            case _:
                return tuple(self.random.choice((0.5, 1.0, 2.0)) for _ in shape)

    def _by_class(
        self, constraint: AttrConstraint, tensors: Sequence[TensorType[Attribute]]
    ) -> Attribute | None:
        """An attribute of a class that defines its own samples, or a type."""
        for base in sorted(constraint.get_bases() or (), key=lambda each: each.name):
            sample: Callable[[Random, Sequence[TensorType[Attribute]]], Attribute | None] | None = (
                getattr(base, "sample", None)
            )
            if sample is not None:
                return sample(self.random, tensors)
        types = (*tensors, f32, f16, i32, i1)
        fitting = [each for each in types if constraint.verifies(each)]
        return self.random.choice(fitting) if fitting else None


def _small(choices: Choices) -> int:
    return choices.random.choice((1, 1, 2, 3))


SHAPES: dict[str, Callable[[Choices, Shape], Shape]] = {
    "same": lambda _, s: s,
    "same?": lambda _, s: s,
    "repeated?": lambda c, s: tuple(1 if c.random.random() < 0.5 else n for n in s),
    "trailing?": lambda c, s: s[c.random.randrange(len(s) + 1) :],
    "channels?": lambda _, s: s[1:2],
    "axis?": lambda c, s: (c.random.choice(s),) if s else (),
    "scalar": lambda _c, _s: (),
    "product": lambda c, s: (*s[:-2], *s[-1:], c.fresh()),
    "transposed product": lambda c, s: (*s[:-2], c.fresh(), *s[-1:]),
    "other product": lambda c, s: (*s[:-2], *s[-2:-1], c.fresh()),
    "weights": lambda c, s: (c.fresh(), *s[1:2], *(_small(c) for _ in s[2:])),
    "weights of a gradient": lambda c, s: (*s[1:2], c.fresh(), *(_small(c) for _ in s[2:])),
    "gradient": lambda c, s: (*s[:1], c.fresh(), *(_small(c) for _ in s[2:])),
    "beside": lambda c, s: _one_other(c, s),
    "larger": lambda c, s: (*(c.fresh() for _ in range(_small(c))), *s),
    "other": lambda c, s: tuple(c.fresh() for _ in s),
}
"""Shapes that a tensor may have, given another shape. With ?, given any of the known shapes."""

_SHAPES = ("same", "same", "repeated?", "repeated?", "larger", *SHAPES)


def _one_other(choices: Choices, shape: Shape) -> Shape:
    if not shape:
        return shape
    at = choices.random.randrange(len(shape))
    return (*shape[:at], choices.fresh(), *shape[at + 1 :])


INTEGERS: dict[str, Callable[[Choices, Shape], Iterable[int]]] = {
    "one": lambda _c, _s: (1,),
    "axis": lambda _, s: range(len(s)),
    "small": lambda _c, _s: (0, 2, 3, -1),
    "size": lambda _, s: s,
    "asked": lambda c, _: c.hints.ints,
}
"""Integers that an attribute may be, given the shape of the first operand."""


def _filled(length: int, values: Sequence[int]) -> Callable[[Choices, Shape], Shape]:
    """A list with an entry for each axis after the first `length` axes."""
    return lambda c, s: tuple(c.random.choice(values) for _ in s[length:])


def _factors(choices: Choices, shape: Shape) -> Shape:
    """The shape with two neighbouring axes merged, or with one axis split in two."""
    splits = [(i, d) for i, n in enumerate(shape) for d in (*PRIMES, 1) if n > 0 and n % d == 0]
    if len(shape) > 1 and choices.random.random() < 0.5:
        at = choices.random.randrange(len(shape) - 1)
        return (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :])
    if not splits:
        return shape
    at, divisor = choices.random.choice(splits)
    return (*shape[:at], divisor, shape[at] // divisor, *shape[at + 1 :])


def _shuffled(choices: Choices, shape: Shape) -> Shape:
    order = list(range(len(shape)))
    choices.random.shuffle(order)
    return tuple(order)


def _some_axes(choices: Choices, shape: Shape) -> Shape:
    return tuple(i for i in range(len(shape)) if choices.random.random() < 0.5)


def _asked_list(choices: Choices, shape: Shape) -> Shape:
    lists = [each for each in choices.hints.lists if all(isinstance(n, int) for n in each)]
    return choices.random.choice(lists) if lists else shape


LISTS: dict[str, Callable[[Choices, Shape], Shape]] = {
    "zeros": _filled(0, (0,)),
    "ones": _filled(0, (1,)),
    "small": _filled(0, (0, 1, 2)),
    "zeros of a window": _filled(2, (0,)),
    "ones of a window": _filled(2, (1,)),
    "window": _filled(2, (1, 2, 3)),
    "small of a window": _filled(2, (0, 1, 2)),
    "shape": lambda _, s: s,
    "image": lambda _, s: s[2:],
    "smaller": lambda c, s: tuple(c.random.randint(1, n) if n else 0 for n in s),
    "larger": lambda c, s: (c.fresh(), *(c.fresh() if n == 1 else n for n in s)),
    "elements": lambda _, s: (prod(s),),
    "factors": _factors,
    "in order": lambda _, s: tuple(range(len(s))),
    "reversed": lambda _, s: tuple(reversed(range(len(s)))),
    "shuffled": _shuffled,
    "rotated": lambda _, s: (*range(1, len(s)), *range(min(1, len(s)))),
    "some axes": _some_axes,
    "all axes": lambda _, s: tuple(range(len(s))),
    "asked": _asked_list,
}
"""Lists of integers that an attribute may be, given the shape of the first operand."""
