"""Matches patterns. If a pattern does not match, the matcher knows the first obstacle."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from typing import Any, cast

from xdsl.dialects.builtin import DYNAMIC_INDEX
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ..provenance import place
from .bound_rule import BoundNested, BoundPattern, Env
from .evaluate import NoValue, attribute_value, evaluate, expression_text, value_text
from .syntax import (
    Call,
    Constant,
    Expression,
    Field,
    Listed,
    Name,
    Operator,
    Place,
    Property,
    Rest,
    Shaped,
    Size,
    TypeName,
    TypePattern,
    Variable,
)
from .values import element_type, equal_values, plain, tensor_parts
from .vocabulary import Vocabulary

ANY = "_"


@dataclass(frozen=True)
class Obstacle:
    """Why a rule did not match.

    Attributes:
        place: of the part that failed.
        depth: parts that had matched.
    """

    place: Place
    reason: str
    depth: int


@dataclass
class Matcher:
    """One attempt to match one pattern.

    Attributes:
        steps: parts that have matched so far.
    """

    vocabulary: Vocabulary
    env: Env = field(default_factory=dict[str, Any])
    matched: list[Operation] = field(default_factory=list[Operation])
    steps: int = 0
    _why: tuple[Place, str, tuple[object, ...]] | None = None

    def obstacle(self) -> Obstacle:
        """The first obstacle."""
        assert self._why is not None
        where, text, parts = self._why
        # Expensive parts of the message are functions, which are called only here.
        texts = [str(part() if callable(part) else part) for part in parts]
        return Obstacle(where, text.format(*texts), self.steps)

    def _no(self, place: Place, text: str, *parts: object) -> bool:
        """Remember the reason. This must be cheap: most attempts fail and nobody asks why."""
        self._why = (place, text, parts)
        return False

    def op(self, pattern: BoundPattern, op: Operation) -> bool:
        """True if the pattern matches an operation. Fills in env and matched."""
        if type(op) not in pattern.classes:
            return self._no(
                pattern.place,
                "{0} at {1} is not {2}",
                op.name,
                partial(place, op),
                pattern.heads,
            )
        if self.matched and op.operands and op.parent is not self.matched[0].parent:
            # If the root is in a loop, rebuilding it there would compute it in every iteration.
            return self._no(
                pattern.place, "{0} at {1} is outside the root's block", op.name, partial(place, op)
            )
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
        fixed = pattern.fixed
        if len(given) < fixed or (len(given) > fixed and not pattern.takes_more):
            return self._no(
                pattern.place,
                "{0} has {1} operands; the rule needs {2}{3}",
                op.name,
                len(given),
                fixed,
                " or more" if pattern.takes_more else "",
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
                "the operand is an argument, not a result of {0}",
                pattern.pattern.heads,
            )
        if value.index != pattern.index:
            return self._no(
                pattern.place,
                "the operand is result {0} of {1}; the rule needs result {2}",
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
        # Values and operations compare by identity, numbers and types by value.
        return known == value or self._no(
            place,
            "{0} is {1} already, and {2} here",
            name,
            partial(_described, known),
            partial(_described, value),
        )

    def _field(self, pattern: Field, op: Operation) -> bool:
        if pattern.is_note:
            value = plain(op.attributes.get(pattern.name))
        else:
            value = attribute_value(op, pattern.name, self.vocabulary)
        if isinstance(pattern.value, Name):
            name = pattern.value.name
            return name == ANY or self._bind(pattern.place, name, value)
        same_kind = isinstance(value, bool) == isinstance(pattern.value, bool)
        if same_kind and equal_values(value, pattern.value):
            return True
        return self._no(
            pattern.place,
            "{0} is {1}; the rule needs {2}",
            pattern.name,
            partial(value_text, value),
            partial(value_text, pattern.value),
        )

    def _type(self, pattern: TypePattern, type_: Attribute) -> bool:
        if isinstance(pattern, TypeName):
            if pattern.name == ANY:
                return True
            return self._bind(pattern.place, pattern.name, type_)
        parts = tensor_parts(type_)
        if parts is None:
            return self._no(pattern.place, "the type is {0}, not a tensor", type_)
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
        return self._no(pattern.place, "the elements are {0}; the rule needs {1}", element, wanted)

    def _sizes(self, pattern: Shaped, sizes: tuple[int, ...]) -> bool:
        fixed = sum(isinstance(each, Size) for each in pattern.sizes)
        spare = len(sizes) - fixed
        if spare < 0 or (spare and fixed == len(pattern.sizes)):
            return self._no(
                pattern.place,
                "the shape is {0}; the rule needs {1}{2} axes",
                list(sizes),
                fixed,
                " or more" if fixed < len(pattern.sizes) else "",
            )
        position = 0
        for each in pattern.sizes:
            if isinstance(each, Rest):
                taken = sizes[position : position + spare]
                position += spare
                if each.name and DYNAMIC_INDEX in taken:
                    return self._no(each.place, "the sizes are {0}; one is not known", list(taken))
                if each.name and not self._bind(each.place, each.name, taken):
                    return False
                continue
            size = sizes[position]
            position += 1
            if size == DYNAMIC_INDEX and each.value != ANY:
                return self._no(each.place, "the size is not known; write _ for any size")
            if isinstance(each.value, int):
                if each.value != size:
                    return self._no(
                        each.place, "the size is {0}; the rule needs {1}", size, each.value
                    )
            elif each.value != ANY and not self._bind(each.place, each.value, size):
                return False
        self.steps += 1
        return True

    def holds(self, guards: Sequence[Expression]) -> bool:
        """True if all guards hold. Raises CallFailed if a guard raises an error."""
        return all(map(self._holds, guards))

    def _holds(self, guard: Expression) -> bool:
        if isinstance(guard, Operator) and guard.symbol == "and":
            return all(map(self._holds, guard.operands))
        try:
            found = evaluate(guard, self.env, self.vocabulary)
        except NoValue as error:
            return self._no(
                guard.place, "{0} does not hold: {1}", partial(expression_text, guard), error
            )
        if found:
            self.steps += 1
            return True
        return self._no(
            guard.place,
            "{0} does not hold{1}",
            partial(expression_text, guard),
            partial(_found, guard, self.env, self.vocabulary),
        )


_NOTHING = object()


def _found(guard: Expression, env: Env, vocabulary: Vocabulary) -> str:
    """What a guard was evaluated on: both sides of a comparison, or else the names in it."""
    if isinstance(guard, Operator) and guard.symbol in _COMPARISONS:
        left, right = (value_text(evaluate(each, env, vocabulary)) for each in guard.operands)
        return f": {left} {guard.symbol} {right}"
    found = {
        expression_text(each): _described(evaluate(each, env, vocabulary))
        for each in leaves(guard)
        if not isinstance(each, Constant)
    }
    return "".join(f"; {name} is {value}" for name, value in found.items())


_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def leaves(expression: Expression) -> Iterator[Name | Property | Constant]:
    """The names, attributes and constants of an expression, from left to right."""
    match expression:
        case Name() | Property() | Constant():
            yield expression
        case Call():
            yield from chain.from_iterable(map(leaves, expression.arguments))
        case Listed():
            yield from chain.from_iterable(map(leaves, expression.items))
        case Operator():
            yield from chain.from_iterable(map(leaves, expression.operands))


def _described(value: object) -> str:
    """A value in the message about a guard, with its number of uses, which often is the reason."""
    if isinstance(value, Operation):
        return f"{value.name} at {place(value)}{_uses(*value.results)}"
    if isinstance(value, SSAValue):
        return f"{value.type}{_uses(cast(SSAValue, value))}"
    return value_text(value)


def _uses(*values: SSAValue) -> str:
    count = sum(1 for value in values for _ in value.uses)
    return f" with {count} use{'s' * (count != 1)}"
