"""Binding the names of rules, and the errors for rules that make no sense."""

import pytest

from abele.ir.errors import InputError
from abele.ir.rules.syntax import Rest

from .some_rules import rules_of

BAD = [
    (
        "rule r: nn.matmul(nn.neg(x), y) {...} => nn.matmul(x, y)",
        "1:9: {...} allows attributes that the right side would lose; build the "
        "operation with p(...), or like p",
        29,
    ),
    (
        "rule r: nn.rel(x) => x",
        "1:9: no operation nn.rel; did you mean nn.relu?",
        9,
    ),
    (
        "rule r: nn.relu(x, y) => nn.add(x, y)",
        "1:9: nn.relu with 2 operands; it has 1",
        13,
    ),
    (
        "rule r: nn.add(x) => x",
        "1:9: nn.add with 1 operand; it has 2",
        9,
    ),
    (
        "rule r: nn.frobnicate(x) => x",
        "1:9: no operation nn.frobnicate",
        16,
    ),
    (
        "rule r: nn.scale(x) {facter = f} => nn.shift(x) {amount = f}",
        "1:22: nn.scale has no attribute facter; did you mean factor?",
        6,
    ),
    (
        'rule r: nn.scale(x) {factor = "a"} => x',
        "1:22: factor of nn.scale is a number; the rule compares it with a text",
        6,
    ),
    (
        "rule r: nn.exp(x) => y",
        "1:22: nothing binds y; there is x",
        1,
    ),
    (
        "rule r: nn.exp(x) => nn.exp(x, x)",
        "1:22: nn.exp with 2 operands; it has 1",
        12,
    ),
    (
        "rule r: nn.add(x, y) => nn.neg(x)",
        "1:19: y is bound and never used; use it, or write _ for any value",
        1,
    ),
    (
        "rule r: nn.exp(x) as e => x",
        "1:9: e is bound and never used; use it, or leave out its as",
        14,
    ),
    (
        "rule r: nn.exp(x) => x where same_typ(x, x)",
        "1:30: no guard or function same_typ is written in Python, with @guard or @function from "
        "abele.ir.rules; did you mean same_type or same_shape?",
        14,
    ),
    (
        "rule r: nn.exp(x) => x where same_type(x)",
        "1:30: same_type takes 2 arguments (value, value); 1 given",
        12,
    ),
    (
        "rule r: nn.exp(x) => x where rank(x)",
        "1:30: rank(x) is a whole number; a guard must be true or false",
        7,
    ),
    (
        "rule r: nn.exp(x) => x where one_use(rank(x))",
        "1:38: one_use takes a value here; rank(x) is a whole number",
        7,
    ),
    (
        "rule r: nn.exp(x: f32[n]) => nn.reshape(x) {shape = [n / 2]}",
        "1:54: n / 2 may leave a remainder; add the guard n % 2 == 0, or write // to round down",
        5,
    ),
    (
        "rule r: nn.exp(x: f32[n]) => nn.reshape(x) {shape = [n / 4]} where n % 2 == 0",
        "1:54: n / 4 may leave a remainder; add the guard n % 4 == 0, or write // to round down",
        5,
    ),
    (
        'rule r: try.followed(x) {words = ["bad"]} => x',
        '1:26: words of try.followed cannot be ["bad"]: no bad words',
        5,
    ),
    (
        "rule r: nn.exp(x) => nn.scale(x) {factor = 1 / 6}",
        "1:44: 1 / 6 is not a whole number; write 1.0 / 6",
        5,
    ),
    (
        "rule r: nn.exp(x) => nn.scale(x) {factor = 1 / 0}",
        "1:44: 1 / 0 is not a whole number; need another divisor",
        5,
    ),
    (
        "rule r: nn.exp(x) => nn.scale(x)",
        "1:22: nn.scale needs factor; give them in {}, or take them from a matched "
        "operation with like",
        11,
    ),
    (
        "rule r: nn.exp(x) => nn.exp(x) like x",
        "1:22: x is a value; like needs an operation",
        16,
    ),
    (
        "rule r: nn.exp(x: f33[n]) => x",
        "1:19: f33 is not an element type; need one such as f32, bf16 or i32",
        6,
    ),
    (
        "rule r: nn.exp(x) => nn.exp(x) : float32[4]",
        "1:34: float32 is not an element type; need one such as f32, bf16 or i32",
        10,
    ),
    (
        "rule r: nn.exp(x: f32) => x",
        "1:19: f32 is an element type; a tensor is written f32[n, m]",
        3,
    ),
    (
        "rule r: nn.concat(...a, ...b) {axis = _} => a",
        "1:25: more than one ... among the operands; need at most one",
        4,
    ),
    (
        "rule r: nn.exp(x) => x\nrule r: nn.exp(x) => x",
        "2:6: rule r is already defined",
        1,
    ),
    (
        "@speed\nrule r: nn.exp(x) => x",
        "1:1: @speed: need @commutative or @priority(NUMBER)",
        6,
    ),
    (
        "@commutative\nrule r: nn.sub(x, y) => nn.sub(x, y)",
        "2:6: @commutative, but no operation of the pattern takes its two operands in any order",
        1,
    ),
    (
        "lower r: nn.exp(x) => nn.exp(x)",
        "1:23: nn.exp is not legal at partition, where a lower of nn.exp ends",
        9,
    ),
    (
        "rule r: nn.scale(x) {factor = x} => x",
        "1:18: x is a number before, and a value here",
        1,
    ),
    (
        "rule r: try.split(x) => x",
        "1:9: try.split has 2 results, and 1 would replace them",
        12,
    ),
    (
        "rule r: nn.exp(x) => (x, x)",
        "1:9: nn.exp has 1 result, and 2 would replace them",
        9,
    ),
    (
        "rule r: nn.exp(x) => x where x == 2",
        "1:30: x == 2 compares a value with a whole number",
        6,
    ),
    (
        "rule r: nn.exp(x) => x where e.f == 2",
        "1:30: nothing binds e; there is x",
        3,
    ),
    (
        "rule r: nn.exp(x) as e => x where e.factor == 2",
        "1:35: nn.exp has no attribute factor; there are none",
        8,
    ),
    (
        "rule r: nn.shift(x) as e => x where e.factor == 2",
        "1:37: nn.shift has no attribute factor; there is amount",
        8,
    ),
    (
        "guard nosuch(x: value)\n",
        "1:7: no guard nosuch is written in Python; decorate it with @guard and load its "
        "file first",
        6,
    ),
    (
        "guard one_use(x: int)\n",
        "1:7: one_use in Python takes (value) and gives bool",
        7,
    ),
    (
        "class c = nn.exp | nn.nix\n",
        "1:20: no operation nn.nix",
        6,
    ),
    (
        'rule r: nn.exp(x) => nn.scale(x) {factor = "a"}',
        '1:35: factor of nn.scale is a number; "a" is a text',
        6,
    ),
    (
        "rule r: nn.exp(x) => try.split(x)",
        "1:9: nn.exp has 1 result, and 2 would replace them",
        9,
    ),
    (
        "rule r: nn.exp(x: f32[..., ...]) => x",
        "1:28: more than one ... among the sizes; need at most one",
        3,
    ),
    (
        "rule r: nn.relu(x) as r => nn.relu(x, x) like r",
        "1:28: nn.relu with 2 operands; it has 1",
        20,
    ),
    (
        "rule r: try.tuned(x) => try.tuned(x) {names = 1}",
        "1:39: names of try.tuned is an attribute; 1 is a whole number",
        5,
    ),
    (
        "rule r: nn.neg(x: f32[n, k]) => nn.reshape(x): f32[n / 2, k]",
        "1:33: nn.reshape needs shape; give them in {}, or take them from a matched "
        "operation with like",
        28,
    ),
    (
        "rule r: nn.exp(x) => x where size",
        "1:30: nothing binds size; a guard or function is called with its arguments in ()",
        4,
    ),
    (
        "rule r: nn.exp(x) => nn.exp(x) where y == 1",
        "1:38: nothing binds y; there is x",
        1,
    ),
    (
        "rule r: nn.exp(x) as e => x where same_type(e, x), e + 1 == 2",
        "1:52: e is an operation; + needs numbers",
        1,
    ),
    (
        "rule r: nn.exp(x: f32[n, k]) => x where n == k or n",
        "1:51: n is a whole number; or needs true or false",
        1,
    ),
    (
        "rule r: nn.exp(try.split(x)) => x",
        "1:16: try.split does not always have one result; write which one, as in (...)#0",
        12,
    ),
    (
        "rule r: nn.exp(try.split(x)#2) => x",
        "1:16: try.split has no result 2",
        14,
    ),
    (
        "rule r: nn.exp(x) => let y = nn.neg(x); let y = nn.exp(y); y",
        "1:45: y is already bound; need another name",
        1,
    ),
    (
        "lower r: nn.exp(x) => nn.neg(x)",
        "1:23: nn.neg is not legal at partition, where a lower of nn.exp ends",
        9,
    ),
    (
        "rule r: nn.scale(x) {factor = f} => x(x) where f == 1.0",
        "1:37: x is a value; only an operation can be built again",
        4,
    ),
]
"""A rule, what is said of it with line and column, and how long the caret is."""


@pytest.mark.parametrize(("text", "message", "length"), BAD, ids=[each[0] for each in BAD])
def test_a_rule_that_makes_no_sense_is_refused_where_it_is_wrong(text, message, length):
    with pytest.raises(InputError) as caught:
        rules_of(text)
    head, line, caret = str(caught.value).split("\n")
    assert head == f"my.rw:{message}"
    row, column, _ = message.split(":", 2)
    assert line == text.split("\n")[int(row) - 1]
    assert caret == " " * (int(column) - 1) + "^" + "~" * (length - 1)


@pytest.mark.parametrize(
    "rule",
    [
        "try.followed(x, b) {then = t} as r => r(x, b) {then = t}",
        "try.followed(x, ...more) {then = t} as r => try.followed(x, ...more) {then = t} like r",
        "nn.gemm(x, y, b) {transpose_lhs = t} as r => r(x, y, b) {transpose_lhs = t}",
        "try.followed(_, _) {...} as r => r",
        "try.split(try.split(_) {...} as s#0) => (s#1, s#0)",
        "nn.relu(x) => nn.relu(x)",
        "try.split(x) => try.cut(x): (type(x), type(x))",
        "try.split(try.split(_) as s#0) => (s#1, s#0)",
        "nn.exp(try.split(x)#1) => nn.neg(x)",
        "nn.exp(x: f32[n]) => nn.reshape(x) {shape = [n / 4]} where n % 16 == 0",
        "nn.exp(x: f32[n, k]) => nn.reshape(x) {shape = [n * k / k]}",
        "nn.exp(x: f32[n]) => nn.reshape(x) {shape = [n // 3]}",
        "nn.exp | nn.neg(x) => nn.abs(x)",
        "nn.exp(x) => try.tuned(x) {count = none, quick = true}: type(x)",
        'try.tuned(x) {"note" = n} as t => t(x) {count = 1} where n == 2',
        "nn.scale(x) {factor = 2} => nn.scale(x) {factor = 3}",
    ],
)
def test_a_rule_that_makes_sense_is_bound(rule):
    assert rules_of(f"rule r: {rule}").bound[0].name == "r"


def test_a_head_without_a_dialect_is_a_class():
    with pytest.raises(InputError) as caught:
        rules_of("rule r: relu(x) => x")
    head = str(caught.value).split("\n")[0]
    assert head.startswith("my.rw:1:9: no class of operations relu")
    assert head.endswith("; an operation is written with its dialect, as in nn.relu")


def test_every_wrong_rule_of_a_file_is_reported():
    with pytest.raises(InputError) as caught:
        rules_of("rule a: nn.exp(x) => y\nrule b: nn.neg(x) => x\nrule c: nn.nege(x) => x")
    assert [each[:8] for each in str(caught.value).split("\n")[::3]] == ["my.rw:1:", "my.rw:3:"]


def test_a_commutative_rule_has_a_variant_for_each_order():
    (rule,) = rules_of("@commutative rule r: nn.add(nn.mul(nn.exp(x), y), x) => y").bound
    assert len(rule.variants) == 4


def test_a_commutative_variant_swaps_two_operands_but_not_the_rest():
    left = "nn.add(nn.mul(x, y), ...z) as s"
    (rule,) = rules_of(f"@commutative rule r: {left} => s(nn.sub(x, y), ...z)").bound
    assert len(rule.variants) == 2
    assert all(len(variant.operands) == 2 for variant in rule.variants)
    assert all(isinstance(variant.operands[1], Rest) for variant in rule.variants)
