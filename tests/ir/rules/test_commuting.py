"""The search over orders of operands, held to trying them all."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from xdsl.ir import Operation
from xdsl.traits import Commutative

from abele.ir.errors import InputError
from abele.ir.rules.bound_rule import BoundNested, BoundPattern, BoundRule
from abele.ir.rules.commuting import _Search, matching_orders
from abele.ir.rules.evaluate import CallFailed
from abele.ir.rules.library import FUNCTIONS, forget, guard
from abele.ir.rules.match import match_rule
from abele.ir.rules.matcher import Matcher
from abele.ir.rules.orders import MOST_ORDERS, Orders, orders_of
from abele.ir.support.limits import MATCH_STEPS

from .some_rules import VOCABULARY, module_of, rules_of


def all_orders(pattern: BoundPattern) -> Iterator[BoundPattern]:
    """Every order of the operands of commutative operations."""
    choices = [
        [replace(each, pattern=inner) for inner in all_orders(each.pattern)]
        if isinstance(each, BoundNested)
        else [each]
        for each in pattern.operands
    ]
    for operands in product(*choices):
        yield replace(pattern, operands=operands)
        if len(operands) == 2 and all(c.has_trait(Commutative) for c in pattern.classes):
            yield replace(pattern, operands=operands[::-1])


def exhaustive(rule: BoundRule, op: Operation) -> tuple[dict, tuple[Operation, ...]] | None:
    for variant in all_orders(rule.variants[0]):
        matcher = Matcher(VOCABULARY)
        if matcher.op(variant, op) and matcher.holds(rule.guards):
            return matcher.env, tuple(matcher.matched)
    return None


def searched(
    rule: BoundRule, op: Operation, early: bool
) -> tuple[dict, tuple[Operation, ...]] | None:
    orders = Orders(rule.variants[0])
    for variant in matching_orders(orders, rule.guards, op, VOCABULARY, early=early):
        matcher = Matcher(VOCABULARY)
        if matcher.op(variant, op) and matcher.holds(rule.guards):
            return matcher.env, tuple(matcher.matched)
    return None


def a_pattern(random: Random, depth: int, names: list[str]) -> str:
    if depth == 0 or random.random() < 0.25:
        type_ = random.choice(("", "", "", ": f32[4, 8]", ": f32[m, ...]"))
        return random.choice(names) + type_
    name = f" as p{random.randrange(9)}" if random.random() < 0.1 else ""
    if random.random() < 0.2:
        return f"nn.{random.choice(('neg', 'relu'))}({a_pattern(random, depth - 1, names)}){name}"
    head = random.choice(("add", "add", "add", "mul", "sub"))
    inner = [a_pattern(random, depth - 1, names) for _ in range(2)]
    return f"nn.{head}({', '.join(inner)}){name}"


GUARDS = (
    "one_use({0})",
    "same_type({0}, {1})",
    "rank({0}) == 2",
    "not one_use({0})",
    "fails_on_two_uses({0})",
    "rank({0}) == 2 and same_shape({1}, {2})",
)


@pytest.fixture(scope="module", autouse=True)
def _a_guard_that_fails() -> Iterator[None]:
    def fails_on_two_uses(value: object) -> bool:
        count = sum(1 for _ in value.uses)  # type: ignore[attr-defined]
        if count == 2:
            raise ArithmeticError("two uses")
        return count < 4

    from xdsl.ir import SSAValue

    fails_on_two_uses.__annotations__ = {"value": SSAValue, "return": bool}
    guard(fails_on_two_uses)
    yield
    FUNCTIONS.pop("fails_on_two_uses", None)
    forget(__name__)


def a_program(random: Random, size: int):
    values = ["%a", "%b"]
    lines: list[str] = []
    for i in range(size):
        picked = [random.choice(values[-5:]) for _ in range(2)]
        head = random.choice(("add", "add", "add", "mul", "sub", "neg", "relu"))
        if head in ("neg", "relu"):
            lines.append(f"%{i} = nn.{head} {picked[0]} : T1")
        else:
            lines.append(f"%{i} = nn.{head} {', '.join(picked)} : TT")
        values.append(f"%{i}")
    return module_of("\n".join(lines))


def outcome(find, *arguments):
    try:
        return find(*arguments)
    except CallFailed as error:
        return str(error)


@settings(max_examples=60)
@given(st.integers(0, 2**32))
def test_the_search_finds_the_first_order_that_fits(seed: int):
    random = Random(seed)
    repeated = random.random() < 0.5
    names = ["x", "y", "_"] if repeated else [f"v{i}" for i in range(60)]
    pattern = a_pattern(random, 3, names)
    while not pattern.startswith("nn."):
        pattern = a_pattern(random, 3, names)
    bound = sorted(set(re.findall(r"\b[xyvp]\d*\b", pattern)))
    if not bound:
        pattern, bound = f"{pattern} as r", ["r"]
    guards = [
        random.choice(GUARDS).format(*(random.choice(bound) for _ in range(3)))
        for _ in range(random.choice((0, 1, 2)))
    ]
    guards += ["m == 4"] * ("[m" in pattern)
    where = f" where {', '.join(guards)}" if guards else ""
    (rule,) = rules_of(f"rule r: {pattern} => {used(bound)}{where}").bound
    if Orders(rule.variants[0]).total > 4096:
        return
    for op in a_program(random, 14).walk():
        if type(op) in rule.roots:
            wanted = outcome(exhaustive, rule, op)
            assert outcome(searched, rule, op, True) == wanted
            assert outcome(searched, rule, op, False) == wanted


@given(st.integers(0, 2**32))
@settings(max_examples=30)
def test_orders_are_numbered_as_they_are_tried(seed: int):
    random = Random(seed)
    left, right = (a_pattern(random, 2, names) for names in (["x", "y"], ["z", "x"]))
    assume(left != right)  # @commutative is refused where nothing changes places.
    pattern = f"nn.add({left}, {right})"
    bound = sorted(set(re.findall(r"\b[xyzp]\d*\b", pattern)))
    (rule,) = rules_of(f"@commutative rule r: {pattern.replace('[m', '[4')} => {used(bound)}").bound
    orders = Orders(rule.variants[0])
    assert list(dict.fromkeys(orders)) == list(dict.fromkeys(all_orders(rule.variants[0])))
    assert len(orders) == orders.total
    assert orders[-1] == list(orders)[-1]
    assert isinstance(orders_of(orders.pattern), tuple) == (orders.total <= MOST_ORDERS)


def used(names: Sequence[str]) -> str:
    """A right side that uses all names."""
    return names[0] if len(names) == 1 else f"nn.add({names[0]}, {used(names[1:])})"


def sums(depth: int, leaf) -> str:
    return leaf() if depth == 0 else f"nn.add({sums(depth - 1, leaf)}, {sums(depth - 1, leaf)})"


def steps_of(depth: int, guards: bool) -> tuple[int, int]:
    """Steps of a search, and operations of the pattern: one leaf has to be a product."""
    count = iter(range(2**depth))

    def leaf() -> str:
        i = next(count)
        return f"nn.mul(v{i}, _)" if i == 0 else f"v{i}"

    where = " where " + ", ".join(f"rank(v{i}) == 2" for i in range(2**depth)) if guards else ""
    right = used([f"v{i}" for i in range(2**depth)])
    (rule,) = rules_of(f"@commutative rule r: {sums(depth, leaf)} => {right}{where}").bound
    lines: list[str] = []

    def value(level: int, last: bool) -> str:
        if level == 0:
            if last:
                lines.append(f"%{len(lines)} = nn.mul %a, %b : TT")
                return f"%{len(lines) - 1}"
            return "%a"
        operands = f"{value(level - 1, False)}, {value(level - 1, last)}"
        lines.append(f"%{len(lines)} = nn.add {operands} : TT")
        return f"%{len(lines) - 1}"

    value(depth, True)
    *_, root, _ = module_of("\n".join(lines)).ops.first.body.block.ops  # type: ignore[union-attr]
    search = _Search(VOCABULARY, root)
    taken = 0
    orders = Orders(rule.variants[0])

    def counted(self: _Search) -> None:
        nonlocal taken
        taken += 1

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(search), "step", counted)
        variant = next(matching_orders(orders, rule.guards, root, VOCABULARY))
        assert Matcher(VOCABULARY).op(variant, root)
        assert match_rule(rule, root, VOCABULARY) is not None
    return taken, 2**depth - 1


@pytest.mark.parametrize("guards", [False, True])
def test_steps_grow_with_the_square_of_the_pattern_at_most(guards: bool):
    for depth in (2, 3, 4, 5, 6):
        taken, size = steps_of(depth, guards)
        assert taken <= 8 * size * size


def test_a_pattern_with_repeated_names_ends_at_the_limit(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(MATCH_STEPS.variable, "2000")
    names = iter([*(f"v{i % 12}" for i in range(31)), "w"])
    text = sums(5, lambda: next(names))
    right = f"{used([*(f'v{i}' for i in range(12)), 'w'])} where same_type(w, v0)"
    (rule,) = rules_of(f"@commutative rule r: {text} => {right}").bound
    lines = [f"%{i} = nn.neg {'%a' if i == 0 else f'%{i - 1}'} : T1" for i in range(40)]
    values = iter(Random(1).choices([f"%{i}" for i in range(40)], k=32))
    level = list(values)
    while len(level) > 1:
        above: list[str] = []
        for left, right in zip(level[::2], level[1::2], strict=True):
            lines.append(f"%{len(lines)} = nn.add {left}, {right} : TT")
            above.append(f"%{len(lines) - 1}")
        level = above
    *_, root, _ = module_of("\n".join(lines)).ops.first.body.block.ops  # type: ignore[union-attr]
    try:
        match_rule(rule, root, VOCABULARY)
    except InputError as error:
        assert "at most 2,000 match steps are allowed (ABELE_MOST_MATCH_STEPS" in str(error)
        assert "matching nn.add at" in str(error)
