"""Classes of mistakes in rules, as changes of their syntax trees."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from itertools import pairwise
from typing import Any, TypeVar, cast

from xdsl.traits import Commutative

from ....ir.rules.rule_set import RuleSet
from ....ir.rules.syntax import (
    Build,
    Call,
    Constant,
    Expression,
    Field,
    Made,
    Name,
    Operator,
    Pattern,
    Property,
    Reference,
    Rest,
    Rule,
    Setting,
    Size,
    Variable,
)
from ....ir.rules.vocabulary import Vocabulary

T = TypeVar("T")
Changes = Callable[[Rule, Vocabulary], Iterator[Rule]]
"""Yields copies of a rule, each with a different mistake."""


@dataclass(frozen=True)
class RuleClass:
    """A class of mistakes.

    Attributes:
        line: a one-line description.
    """

    name: str
    line: str
    changes: Changes


def _with(node: Any, change: Callable[[Any], Sequence[Any]]) -> Iterator[Any]:
    """Yields copies of a syntax tree, each with one node replaced.

    Args:
        change: returns the replacements for a node.
    """
    if isinstance(node, tuple):
        items = cast("tuple[Any, ...]", node)
        for i, item in enumerate(items):
            for new in _with(item, change):
                yield (*items[:i], new, *items[i + 1 :])
        return
    if not is_dataclass(node) or isinstance(node, type):
        return
    yield from change(node)
    for each in fields(node):
        if each.name not in ("place", "document"):
            for new in _with(getattr(node, each.name), change):
                yield replace(node, **{each.name: new})


def _without(items: tuple[T, ...], index: int) -> tuple[T, ...]:
    return (*items[:index], *items[index + 1 :])


def _swapped(items: tuple[T, ...]) -> Iterator[tuple[T, ...]]:
    """Yields the items with two different neighbours swapped."""
    for i, (a, b) in enumerate(pairwise(items)):
        if a != b:
            yield (*items[:i], b, a, *items[i + 2 :])


def _drop_guard(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def weaker(node: Any) -> Sequence[Any]:
        match node:
            case Operator(symbol="and", operands=operands):
                rests = [_without(operands, i) for i in range(len(operands))]
                return [r[0] if len(r) == 1 else replace(node, operands=r) for r in rests]
            case Pattern(fields=fields, others=others):
                # An attribute that must be absent or have one value may then have any value.
                given = [i for i, f in enumerate(fields) if not isinstance(f.value, Name)]
                free = [replace(node, fields=_without(fields, i)) for i in given]
                return [*free, *([] if others else [replace(node, others=True)])]
            case _:
                return []

    for i in range(len(rule.guards)):
        yield replace(rule, guards=_without(rule.guards, i))
    yield from _with(rule, weaker)


def _forget_same(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    """Yields rules in which two uses of one variable may be different values."""
    seen: list[str] = []

    def other(node: Any) -> Sequence[Any]:
        if not isinstance(node, Variable) or node.name == "_":
            return []
        again = node.name in seen
        seen.append(node.name)
        return [replace(node, name="_")] if again else []

    for pattern in _with(rule.pattern, other):
        yield replace(rule, pattern=pattern)


def _swap_operands(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def swapped(node: Any) -> Sequence[Any]:
        match node:
            case Build(operands=operands) if not _commutes((node.head,), vocabulary):
                return [replace(node, operands=each) for each in _swapped(operands)]
            case Operator(symbol="-" | "/" | "//" | "%", operands=operands):
                return [replace(node, operands=each) for each in _swapped(operands)]
            case Call(arguments=arguments):
                return [replace(node, arguments=each) for each in _swapped(arguments)]
            case _:
                return []

    for results in _with((rule.lets, rule.results), swapped):
        yield replace(rule, lets=results[0], results=results[1])


def _commutative(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def turned(node: Any) -> Sequence[Any]:
        if not isinstance(node, Pattern) or _commutes(node.heads, vocabulary):
            return []
        return [replace(node, operands=each) for each in _swapped(node.operands)]

    for pattern in _with(rule.pattern, turned):
        yield replace(rule, pattern=pattern)


def _commutes(heads: Sequence[str], vocabulary: Vocabulary) -> bool:
    known = [vocabulary.ops[head] for head in heads if head in vocabulary.ops]
    return bool(known) and all(cls.has_trait(Commutative) for cls in known)


def _drop_operation(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def inner(node: Any) -> Sequence[Any]:
        if not isinstance(node, Build):
            return []
        return [each for each in node.operands if not isinstance(each, Rest)]

    for results in _with(rule.results, inner):
        yield replace(rule, results=cast("tuple[Made, ...]", results))


def _wrong_constant(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def other(node: Any) -> Sequence[Any]:
        match node:
            case Constant(value=bool(value)):
                return [replace(node, value=not value)]
            case Constant(value=int(value) | float(value)):
                return [replace(node, value=value + 1)]
            case Field(value=bool(value)):
                return [replace(node, value=not value)]
            case Field(value=int(value) | float(value)):
                return [replace(node, value=value + 1)]
            case _:
                return []

    yield from _with(rule, other)


_RELAXED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
_OTHER = {"+": "-", "-": "+", "*": "+", "//": "*", "/": "*", "%": "//", "and": "or", "or": "and"}


def _comparison(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def relaxed(node: Any) -> Sequence[Any]:
        match node:
            case Operator(symbol=symbol) if symbol in _RELAXED:
                return [replace(node, symbol=_RELAXED[symbol])]
            case Operator(symbol="not", operands=(inner,)):
                return [inner]
            case _:
                return []

    for guards in _with(rule.guards, relaxed):
        yield replace(rule, guards=cast("tuple[Expression, ...]", guards))


def _wrong_formula(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    def other(node: Any) -> Sequence[Any]:
        if isinstance(node, Operator) and node.symbol in _OTHER:
            return [replace(node, symbol=_OTHER[node.symbol])]
        return []

    yield from _with(rule, other)


def _wrong_operation(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    """Yields rules with another operation of the same signature: min for max, neg for abs."""

    def other(node: Any) -> Sequence[Any]:
        if isinstance(node, Build):
            return [replace(node, head=each) for each in _next((node.head,), vocabulary)]
        if isinstance(node, Pattern):
            return [replace(node, heads=(each,)) for each in _next(node.heads, vocabulary)]
        return []

    yield from _with(rule, other)


def _next(heads: tuple[str, ...], vocabulary: Vocabulary) -> Iterator[str]:
    """The next operation, by name, with the same base classes, dialect and attributes, if any."""
    if len(heads) != 1 or heads[0] not in vocabulary.ops:
        return
    own = vocabulary.ops[heads[0]]
    known = vocabulary.info(own)
    alike = sorted(
        name
        for name, cls in vocabulary.ops.items()
        if (cls.__bases__, cls.dialect_name()) == (own.__bases__, own.dialect_name())
        and vocabulary.info(cls).attributes.keys() == known.attributes.keys()
        and vocabulary.info(cls).least == known.least
    )
    if len(alike) > 1:
        yield alike[(alike.index(own.name) + 1) % len(alike)]


def _stale(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    """Yields rules that leave one new attribute unset, so that the old value is kept."""

    def forgotten(node: Any) -> Sequence[Any]:
        if not isinstance(node, Build):
            return []
        return [
            replace(node, settings=_without(node.settings, i)) for i in range(len(node.settings))
        ]

    yield from _with(rule, forgotten)


def _wrong_value(rule: Rule, vocabulary: Vocabulary) -> Iterator[Rule]:
    """Yields rules whose replacement uses another value of the pattern."""
    names = [v.name for p in rule.pattern.walk() for v in p.operands if isinstance(v, Variable)]
    known = list(dict.fromkeys(name for name in names if name != "_"))

    def other(node: Any) -> Sequence[Any]:
        if not isinstance(node, Reference) or node.name not in known or len(known) < 2:
            return []
        at = known.index(node.name)
        return [replace(node, name=known[(at + 1) % len(known)])]

    yield from _with(rule, other)


RULE_CLASSES = (
    RuleClass("rule-drop-guard", "a condition is removed", _drop_guard),
    RuleClass("rule-forget-same", "two equal operands need not be equal", _forget_same),
    RuleClass("rule-swap-operands", "two operands or arguments are swapped", _swap_operands),
    RuleClass("rule-commutative", "two operands of the pattern are swapped", _commutative),
    RuleClass("rule-drop-operation", "an operation is replaced by its operand", _drop_operation),
    RuleClass("rule-wrong-constant", "another number or truth value", _wrong_constant),
    RuleClass("rule-comparison", "< for <=, == for !=, or a not is removed", _comparison),
    RuleClass("rule-wrong-formula", "+ for -, * for +, and for or", _wrong_formula),
    RuleClass("rule-wrong-operation", "min for max, neg for abs", _wrong_operation),
    RuleClass("rule-stale-attribute", "an attribute keeps its old value", _stale),
    RuleClass("rule-wrong-value", "another value of the pattern", _wrong_value),
)
"""All classes of mistakes in rules, in the order in which they are reported."""


def changed_rules(rule: Rule, rules: RuleSet) -> Iterator[tuple[str, Rule]]:
    """Yields each class of mistakes with a copy of a rule that contains such a mistake."""
    for each in RULE_CLASSES:
        for new in each.changes(rule, rules.vocabulary):
            tidy = _tidied(new)
            if tidy != rule:
                yield each.name, tidy


def _tidied(rule: Rule) -> Rule:
    """The rule without unused names, which an author would not write."""
    counts: dict[str, int] = {}
    for name in _names(rule):
        counts[name] = counts.get(name, 0) + 1
    once = {name for name, count in counts.items() if count == 1}
    return replace(rule, pattern=_unnamed(rule.pattern, once))


def _names(node: Any) -> Iterator[str]:
    """Every occurrence of a name in a syntax tree."""
    if isinstance(node, tuple):
        for each in cast("tuple[Any, ...]", node):
            yield from _names(each)
    elif is_dataclass(node) and not isinstance(node, type):
        match node:
            case Rule() | Field() | Setting() | Call():
                pass
            case Property(op=op):
                yield op
            case Build(head=head, like=like):
                yield from (each for each in (head, like) if each and "." not in each)
            case Size(value=value):
                yield from [value] if isinstance(value, str) else []
            case _:
                known = (getattr(node, "name", ""), getattr(node, "element", ""))
                yield from filter(None, known)
        for each in fields(node):
            if each.name != "place":
                yield from _names(getattr(node, each.name))


def _unnamed(node: Any, once: set[str]) -> Any:
    """A syntax tree without the names that occur once."""
    if isinstance(node, tuple):
        return tuple(_unnamed(each, once) for each in cast("tuple[Any, ...]", node))
    if not is_dataclass(node) or isinstance(node, type):
        return node
    changes = {
        each.name: _unnamed(getattr(node, each.name), once)
        for each in fields(node)
        if each.name != "place"
    }
    match node:
        case Variable(name=name) | Name(name=name) if name in once:
            changes["name"] = "_"
        case Pattern(name=name) if name in once:
            changes["name"] = ""
        case Size(value=str(value)) if value in once:
            changes["value"] = "_"
        case _:
            pass
    return replace(node, **changes)
