"""Where a pattern fits, and if it does not: the first thing that was in the way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from .evaluate import CallFailed, Inexact, attribute_value, evaluate, shown
from .law import BoundNested, BoundPattern, Env, Law, Match
from .syntax import (
    Expression,
    Field,
    Name,
    Operator,
    Place,
    Rest,
    Shaped,
    Size,
    TypeName,
    TypePattern,
    Variable,
)
from .values import element_type, tensor_parts
from .vocabulary import Vocabulary

ANY = "_"


@dataclass(frozen=True)
class Obstacle:
    """Why a rule did not fire. place: of the part of it that failed. depth: how far it had come."""

    place: Place
    reason: str
    depth: int


@dataclass
class Matcher:
    """One attempt to fit one pattern. steps: parts that have fitted so far."""

    vocabulary: Vocabulary
    env: Env = field(default_factory=dict[str, Any])
    matched: list[Operation] = field(default_factory=list[Operation])
    steps: int = 0
    _why: tuple[Place, str, tuple[object, ...]] | None = None

    def obstacle(self) -> Obstacle:
        """What was in the way."""
        assert self._why is not None
        place, text, parts = self._why
        return Obstacle(place, text.format(*parts), self.steps)

    def _no(self, place: Place, text: str, *parts: object) -> bool:
        """Remember why, as cheaply as may be: most attempts fail and nobody asks."""
        self._why = (place, text, parts)
        return False

    def op(self, pattern: BoundPattern, op: Operation) -> bool:
        """Whether the pattern fits an operation; env and matched say how."""
        if type(op) not in pattern.classes:
            return self._no(pattern.place, "{0} is no {1}", op.name, pattern.heads)
        self.steps += 1
        self.matched.append(op)
        for name in pattern.absent:
            if name in op.properties:
                return self._no(
                    pattern.place,
                    "{0} has the attribute {1}, which the rule does not mention",
                    op.name,
                    name,
                )
        for each in pattern.fields:
            if not self._field(each, op):
                return False
        if pattern.name and not self._bind(pattern.place, pattern.name, op):
            return False
        for pattern_type, result in zip(pattern.types, op.results, strict=False):
            if not self._type(pattern_type, result.type):
                return False
        return self._operands(pattern, op)

    def _operands(self, pattern: BoundPattern, op: Operation) -> bool:
        wanted, given = pattern.operands, tuple(op.operands)
        rest = pattern.rest
        fixed = len(wanted) - (rest is not None)
        if len(given) < fixed or (rest is None and len(given) > fixed):
            return self._no(
                pattern.place,
                "{0} has {1} operands; the rule wants {2}{3}",
                op.name,
                len(given),
                fixed,
                "" if rest is None else " or more",
            )
        spare = len(given) - fixed
        position = 0
        for each in wanted:
            if isinstance(each, Rest):
                values = given[position : position + spare]
                position += spare
                if each.name != ANY and not self._bind(each.place, each.name, values):
                    return False
                continue
            if not self._operand(each, given[position]):
                return False
            position += 1
        return True

    def _operand(self, pattern: Variable | BoundNested, value: SSAValue) -> bool:
        if isinstance(pattern, Variable):
            if pattern.name != ANY and not self._bind(pattern.place, pattern.name, value):
                return False
            self.steps += 1
            return pattern.type is None or self._type(pattern.type, value.type)
        if not isinstance(value, OpResult):
            return self._no(
                pattern.place,
                "the operand is an argument, and no {0} makes it",
                pattern.pattern.heads,
            )
        if value.index != pattern.index:
            return self._no(
                pattern.place,
                "the operand is result {0} of {1}; the rule wants result {2}",
                value.index,
                value.op.name,
                pattern.index,
            )
        return self.op(pattern.pattern, value.op)

    def _bind(self, place: Place, name: str, value: object) -> bool:
        known = self.env.get(name, _NOTHING)
        if known is _NOTHING:
            self.env[name] = value
            return True
        same = known is value if isinstance(value, SSAValue | Operation) else known == value
        # The one result of an operation that is named elsewhere is the same value.
        if isinstance(known, Operation) and isinstance(value, SSAValue):
            same = known.results[0] is value
        if isinstance(value, tuple) and isinstance(known, tuple):
            same = len(value) == len(known) and all(
                a is b if isinstance(a, SSAValue) else a == b
                for a, b in zip(known, value, strict=True)
            )
        return same or self._no(place, "{0} stands for two different things", name)

    def _field(self, pattern: Field, op: Operation) -> bool:
        value = attribute_value(op, pattern.name, self.vocabulary)
        if isinstance(pattern.value, Name):
            name = pattern.value.name
            return name == ANY or self._bind(pattern.place, name, value)
        if value == pattern.value and isinstance(value, bool) == isinstance(pattern.value, bool):
            return True
        return self._no(
            pattern.place, "{0} is {1}; the rule wants {2}", pattern.name, value, pattern.value
        )

    def _type(self, pattern: TypePattern, type_: Attribute) -> bool:
        if isinstance(pattern, TypeName):
            if pattern.name == ANY:
                return True
            return self._bind(pattern.place, pattern.name, type_)
        parts = tensor_parts(type_)
        if parts is None:
            return self._no(pattern.place, "the type is {0}, no tensor", type_)
        sizes, element = parts
        return self._element(pattern, element) and self._sizes(pattern, sizes)

    def _element(self, pattern: Shaped, element: Attribute) -> bool:
        if pattern.element in ("", ANY):
            return True
        wanted = element_type(pattern.element)
        if wanted is None:
            return self._bind(pattern.place, pattern.element, element)
        if wanted == element:
            return True
        return self._no(pattern.place, "the elements are {0}; the rule wants {1}", element, wanted)

    def _sizes(self, pattern: Shaped, sizes: tuple[int, ...]) -> bool:
        fixed = sum(isinstance(each, Size) for each in pattern.sizes)
        spare = len(sizes) - fixed
        if spare < 0 or (spare and fixed == len(pattern.sizes)):
            return self._no(
                pattern.place, "the shape is {0}; the rule wants {1} axes", list(sizes), fixed
            )
        position = 0
        for each in pattern.sizes:
            if isinstance(each, Rest):
                taken = sizes[position : position + spare]
                position += spare
                if each.name and not self._bind(each.place, each.name, taken):
                    return False
                continue
            size = sizes[position]
            position += 1
            if isinstance(each.value, int):
                if each.value != size:
                    return self._no(
                        each.place, "the size is {0}; the rule wants {1}", size, each.value
                    )
            elif each.value != ANY and not self._bind(each.place, each.value, size):
                return False
        self.steps += 1
        return True

    def holds(self, guards: Sequence[Expression]) -> bool:
        """Whether all guards hold for what is bound."""
        for each in guards:
            try:
                found = evaluate(each, self.env, self.vocabulary)
            except (Inexact, CallFailed) as error:
                if isinstance(error, CallFailed):
                    raise
                return self._no(each.place, "{0}", error)
            if not found:
                return self._no(
                    each.place, "{0} does not hold{1}", _Shown(each), _Numbers(each, self)
                )
            self.steps += 1
        return True


_NOTHING = object()


@dataclass(frozen=True)
class _Shown:
    expression: Expression

    def __format__(self, spec: str) -> str:
        return shown(self.expression)


@dataclass(frozen=True)
class _Numbers:
    """What the two sides of a comparison are, if that is what failed."""

    expression: Expression
    matcher: Matcher

    def __format__(self, spec: str) -> str:
        each = self.expression
        if not isinstance(each, Operator) or each.symbol not in _COMPARISONS:
            return ""
        left, right = (
            evaluate(o, self.matcher.env, self.matcher.vocabulary) for o in each.operands
        )
        return f": {_plainly(left)} {each.symbol} {_plainly(right)}"


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def _plainly(value: object) -> str:
    return str(list(value)) if isinstance(value, tuple) else str(value)


def match_law(law: Law, op: Operation, vocabulary: Vocabulary) -> Match | None:
    """How a rule fits an operation as its root; None if it does not."""
    for variant in law.variants:
        matcher = Matcher(vocabulary)
        if matcher.op(variant, op) and matcher.holds(law.guards):
            return Match(matcher.env, tuple(matcher.matched))
    return None


def obstacles(law: Law, op: Operation, vocabulary: Vocabulary) -> Iterator[Obstacle]:
    """What was in the way of a rule at an operation, for each order of operands that was tried."""
    for variant in law.variants:
        matcher = Matcher(vocabulary)
        if matcher.op(variant, op) and matcher.holds(law.guards):
            return
        yield matcher.obstacle()
