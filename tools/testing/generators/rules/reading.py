"""A second, independent matcher of rules, to check the first one against.

The matcher in ir/rules/match.py is fast: it binds names as it goes and stops at the first mismatch.
This one first collects everything that a pattern claims about an operation, and every value that a
name is bound to. A rule fits if no claim is false and no name is bound to two values. The two share
no code, so a mistake in one of them shows as a difference.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, product
from typing import Any

from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.traits import Commutative

from .....ir.rules.bound_rule import BoundNested, BoundPattern, BoundRule
from .....ir.rules.evaluate import NoValue, attribute_value, evaluate, expression_text, value_text
from .....ir.rules.orders import MOST_ORDERS
from .....ir.rules.syntax import (
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
from .....ir.rules.values import element_type, equal_values, plain, tensor_parts
from .....ir.rules.vocabulary import Vocabulary

ANY = "_"


@dataclass(frozen=True)
class Fit:
    """A match of a rule.

    Attributes:
        ops: the operation at each place of the pattern.
        names: bound values.
    """

    ops: dict[Place, Operation]
    names: dict[str, Any]


@dataclass
class Reading:
    """All claims of a pattern about an operation, and all values that its names are bound to.

    Attributes:
        turned: the places of commutative operations whose two operands are swapped.
        false: the claims that do not hold.
        names: all values of each name, one per occurrence.
    """

    vocabulary: Vocabulary
    root: Operation
    turned: frozenset[Place]
    false: list[str] = field(default_factory=list[str])
    names: dict[str, list[Any]] = field(default_factory=dict[str, list[Any]])
    ops: dict[Place, Operation] = field(default_factory=dict[Place, Operation])

    def claim(self, holds: bool, text: str) -> None:
        """Record a claim if it is false."""
        if not holds:
            self.false.append(text)

    def stands(self, name: str, value: object) -> None:
        """Record a value that a name is bound to. Names that match anything are not recorded."""
        if name not in ("", ANY):
            self.names.setdefault(name, []).append(value)

    def op(self, pattern: BoundPattern, op: Operation) -> None:
        """Record what a pattern claims about an operation and the producers of its operands."""
        self.ops[pattern.place] = op
        self.claim(type(op) in pattern.classes, f"{op.name} is {pattern.heads}")
        alone = op is self.root or not op.operands
        self.claim(alone or op.parent is self.root.parent, f"{op.name} is in the root's block")
        self.stands(pattern.name, op)
        info = self.vocabulary.info(type(op))
        let = info.attributes.keys() if pattern.others else set[str]()
        mentioned = {each.name for each in pattern.fields} | let
        for name, known in info.attributes.items():
            optional = known.is_property and known.is_optional and known.default is None
            if optional and name not in mentioned:
                self.claim(name not in op.properties, f"{op.name} has no {name}")
        for each in pattern.fields:
            self.attribute(each, op)
        for each, result in zip(pattern.types, op.results, strict=False):
            self.type(each, result.type)
        self.operands(pattern, op)

    def attribute(self, each: Field, op: Operation) -> None:
        """Record what a pattern claims about an attribute."""
        known = self.vocabulary.info(type(op)).attributes
        if each.is_note:
            value = plain(op.attributes.get(each.name))
        elif each.name not in known:
            self.claim(False, f"{op.name} has {each.name}")
            return
        else:
            value = attribute_value(op, each.name, self.vocabulary)
        if isinstance(each.value, Name):
            self.stands(each.value.name, value)
            return
        same_kind = isinstance(value, bool) == isinstance(each.value, bool)
        same = same_kind and equal_values(value, each.value)
        self.claim(same, f"{each.name} of {op.name} is {value_text(each.value)}")

    def operands(self, pattern: BoundPattern, op: Operation) -> None:
        """Record what a pattern claims about the operands."""
        given = list(op.operands)
        if pattern.place in self.turned:
            given[:2] = reversed(given[:2])
        wanted = pattern.operands
        rests = [i for i, each in enumerate(wanted) if isinstance(each, Rest)]
        spare = len(given) - (len(wanted) - len(rests))
        if spare < 0 or (spare > 0 and not rests):
            self.claim(False, f"{op.name} has {len(wanted) - len(rests)} operands")
            return
        for i in rests:
            given[i : i + spare] = [tuple(given[i : i + spare])]  # pyright: ignore[reportArgumentType, reportCallIssue]
        for each, value in zip(wanted, given, strict=True):
            match each:
                case Rest():
                    self.stands(each.name, value)
                case Variable():
                    self.stands(each.name, value)
                    if each.type is not None:
                        self.type(each.type, value.type)
                case BoundNested():
                    made = isinstance(value, OpResult) and value.index == each.index
                    self.claim(made, f"the operand is made by {each.pattern.heads}")
                    if isinstance(value, OpResult):
                        self.op(each.pattern, value.op)

    def type(self, pattern: TypePattern, type_: Attribute) -> None:
        """Record what a pattern claims about a type."""
        if isinstance(pattern, TypeName):
            self.stands(pattern.name, type_)
            return
        parts = tensor_parts(type_)
        if parts is None:
            self.claim(False, f"{type_} is a tensor")
            return
        sizes, element = parts
        wanted = element_type(pattern.element) if pattern.element else None
        if wanted is None:
            self.stands(pattern.element, element)
        else:
            self.claim(wanted == element, f"the elements are {wanted}")
        self.sizes(pattern, sizes)

    def sizes(self, pattern: Shaped, sizes: Sequence[int]) -> None:
        """Record what a pattern claims about a shape."""
        rests = [i for i, each in enumerate(pattern.sizes) if isinstance(each, Rest)]
        spare = len(sizes) - (len(pattern.sizes) - len(rests))
        if spare < 0 or (spare > 0 and not rests):
            self.claim(False, f"there are {len(pattern.sizes) - len(rests)} axes")
            return
        given: list[Any] = list(sizes)
        for i in rests:
            given[i : i + spare] = [tuple(sizes[i : i + spare])]
        for each, size in zip(pattern.sizes, given, strict=True):
            if isinstance(each, Size) and isinstance(each.value, int):
                self.claim(each.value == size, f"a size is {each.value}")
            else:
                self.stands(each.value if isinstance(each, Size) else each.name, size)  # pyright: ignore[reportArgumentType]

    def agreed(self) -> dict[str, Any]:
        """The value of each name. A name that is bound to two different values is a false claim."""
        for name, values in self.names.items():
            self.claim(all(each == values[0] for each in values), f"{name} has one value")
        return {name: values[0] for name, values in self.names.items()}


def fit(rule: BoundRule, root: Operation, vocabulary: Vocabulary) -> Fit | None:
    """The match of a rule with an operation as its root; None if the rule does not match.

    Raises CallFailed if a guard raises.
    """
    found = _fit(rule, root, vocabulary)
    return found if isinstance(found, Fit) else None


def misfit(rule: BoundRule, root: Operation, vocabulary: Vocabulary) -> str:
    """The reason why a rule does not match an operation; "" if it matches. Raises CallFailed."""
    found = _fit(rule, root, vocabulary)
    return "" if isinstance(found, Fit) else found


def _fit(rule: BoundRule, root: Operation, vocabulary: Vocabulary) -> Fit | str:
    why = ""
    for turned in _turns(rule):
        reading = Reading(vocabulary, root, turned)
        reading.op(rule.variants[0], root)
        names = reading.agreed()
        if not reading.false:
            failed = [g for g in guards_of(rule) if not holds(g, names, vocabulary)]
            if not failed:
                return Fit(reading.ops, names)
            reading.false = [expression_text(each) for each in failed]
        why = why or "it is not true that " + reading.false[0]
    return why


def _turns(rule: BoundRule) -> Iterator[frozenset[Place]]:
    """Every set of places at which the operands of commutative operations may be swapped."""
    places = [
        pattern.place
        for pattern in places_of(rule.variants[0])
        if len(rule.variants) > 1
        and len(pattern.operands) == 2
        and all(cls.has_trait(Commutative) for cls in pattern.classes)
    ]
    for chosen in islice(product((False, True), repeat=len(places)), MOST_ORDERS):
        yield frozenset(place for place, turned in zip(places, chosen, strict=True) if turned)


def places_of(pattern: BoundPattern) -> Iterator[BoundPattern]:
    """A pattern and all patterns nested in it."""
    yield pattern
    for each in pattern.operands:
        if isinstance(each, BoundNested):
            yield from places_of(each.pattern)


def guards_of(rule: BoundRule) -> list[Expression]:
    """The guards of a rule. A guard `a and b` counts as two guards."""
    return [each for guard in rule.guards for each in _conjuncts(guard)]


def _conjuncts(guard: Expression) -> Iterator[Expression]:
    if isinstance(guard, Operator) and guard.symbol == "and":
        for each in guard.operands:
            yield from _conjuncts(each)
    else:
        yield guard


def holds(guard: Expression, names: dict[str, Any], vocabulary: Vocabulary) -> bool:
    """Whether a guard is true. A guard without a value counts as false. Raises CallFailed."""
    try:
        return bool(evaluate(guard, names, vocabulary))
    except NoValue:
        return False


def values_of(found: Fit) -> list[SSAValue]:
    """The results of a match's operations other than the root."""
    root = next(iter(found.ops.values()))
    return [v for op in dict.fromkeys(found.ops.values()) if op is not root for v in op.results]


def unmet(rule: BoundRule, root: Operation, vocabulary: Vocabulary) -> list[Expression] | None:
    """The guards that are false for an operation; None if the pattern does not match.

    If the pattern matches in several ways, the shortest list of false guards. Raises CallFailed.
    """
    found: list[list[Expression]] = []
    for turned in _turns(rule):
        reading = Reading(vocabulary, root, turned)
        reading.op(rule.variants[0], root)
        names = reading.agreed()
        if not reading.false:
            found.append([g for g in guards_of(rule) if not holds(g, names, vocabulary)])
    return min(found, key=len, default=None)
