import pytest

from abele.ir.rules.match import match_rule, obstacles

from .some_rules import VOCABULARY, module_of, rules_of

BODY = """
  %0 = nn.add %a, %b : TT loc("add1")
  %1 = nn.relu %0 : T1 loc("relu1")
  %2, %3 = "try.split"(%1) : (T) -> (T, T) loc("split1")
  %4 = "try.tuned"(%3) <{count = 3 : i64, mode = "fast"}> {hint = "h"} : T1 loc("tuned1")
  "try.keep"(%4, %1) : (T, T) -> ()
"""


def attempt(rule: str):
    """The first operation of the rule's root, and the rule."""
    (bound_rule,) = rules_of(rule).bound
    module = module_of(BODY)
    op = next(op for op in module.walk() if type(op) in bound_rule.roots)
    return bound_rule, op, module


FITS = {
    "rule r: nn.relu(nn.add(x, y)) => nn.max(x, y)": {"x": "a", "y": "b"},
    "rule r: nn.relu(x: f32[m, k]) => x where m == 4, k == 8": {"m": 4, "k": 8},
    "rule r: nn.relu(x: ?[m, ...rest]) => x where m == 4, length(rest) == 1": {"rest": (8,)},
    "rule r: try.tuned(x) {count = c, mode = _} => nn.neg(x) where c == 3": {"c": 3},
    'rule r: try.tuned(x) {count = _, mode = m, "hint" = h} => nn.neg(x) where h == "h", '
    'm == "fast"': {"h": "h", "m": "fast"},
    'rule r: try.tuned(x) {count = _, mode = _, "mode" = none} => nn.neg(x)': {},
    "@commutative rule r: nn.relu(nn.add(x, y) as s) => nn.max(x, y) where same_type(x, s)": {},
}


@pytest.mark.parametrize("rule", FITS)
def test_a_pattern_matches_and_binds(rule: str):
    bound_rule, op, _module = attempt(rule)
    match = match_rule(bound_rule, op, VOCABULARY)
    assert match is not None
    assert match.matched[0] is op
    for name, value in FITS[rule].items():
        found = match.env[name]
        assert (found.name_hint if isinstance(value, str) and value in "ab" else found) == value


IN_THE_WAY = {
    "rule r: nn.relu(nn.mul(x, y)) => nn.max(x, y)": "nn.add at add1 is not nn.mul",
    "rule r: nn.relu(nn.add(nn.neg(x), y)) => nn.max(x, y)": (
        "the operand is an argument, not a result of nn.neg"
    ),
    "rule r: nn.relu(nn.add(x, x)) => x": (
        "x is tensor<4x8xf32> with 1 use already, and tensor<4x8xf32> with 1 use here"
    ),
    "rule r: nn.relu(x: f32[m, m]) => x": "m is 4 already, and 8 here",
    "rule r: nn.relu(x: f32[4, 7]) => x": "the size is 8; the rule needs 7",
    "rule r: nn.relu(x: f32[_]) => x": "the shape is [4, 8]; the rule needs 1 axes",
    "rule r: nn.relu(x: f32[_, _, _, ...]) => x": (
        "the shape is [4, 8]; the rule needs 3 or more axes"
    ),
    "rule r: nn.relu(x: f16[_, _]) => x": "the elements are f32; the rule needs f16",
    "rule r: try.tuned(try.split(x)#0) {count = _, mode = _} => x": (
        "the operand is result 1 of try.split; the rule needs result 0"
    ),
    "rule r: try.tuned(x) {mode = _} => nn.neg(x)": (
        "try.tuned has the attribute count, which the rule does not mention"
    ),
    "rule r: try.tuned(x) {count = 4, mode = _} => nn.neg(x)": "count is 3; the rule needs 4",
    "rule r: try.tuned(x) {count = _, mode = none} => nn.neg(x)": (
        'mode is "fast"; the rule needs none'
    ),
    "rule r: try.keep(x) => try.keep(nn.neg(x))": "try.keep has 2 operands; the rule needs 1",
    "rule r: try.keep(x, _, _, ...r) => try.keep(x, ...r)": (
        "try.keep has 2 operands; the rule needs 3 or more"
    ),
    "rule r: nn.relu(x: ?[m, k]) => x where k == 8 and m % 16 == 0": (
        "m % 16 == 0 does not hold: 4 == 0"
    ),
    "rule r: nn.relu(x: ?[m, k]) => x where not (k + 1) * 2 > m": (
        "not (k + 1) * 2 > m does not hold; k is 8; m is 4"
    ),
    "rule r: try.split(nn.relu(x) as n) => (x, x) where one_use(n)": (
        "one_use(n) does not hold; n is nn.relu at relu1 with 2 uses"
    ),
    "rule r: try.tuned(x) {count = _, mode = _, quick = q} => nn.neg(x) where q": (
        "q does not hold; q is false"
    ),
    'rule r: nn.relu(x) {"far" = f} => x where f + 1 > 2': (
        "f + 1 > 2 does not hold: f + 1: + of none and 1"
    ),
    "rule r: nn.relu(x: ?[m, _]) => x where m % (m - 4) == 0": (
        "m % (m - 4) == 0 does not hold: 4 % 0 is not a number"
    ),
}


@pytest.mark.parametrize("rule", IN_THE_WAY)
def test_an_obstacle_says_what_was_found(rule: str):
    bound_rule, op, _module = attempt(rule)
    assert match_rule(bound_rule, op, VOCABULARY) is None
    (obstacle,) = obstacles(bound_rule, op, VOCABULARY)
    assert obstacle.reason == IN_THE_WAY[rule]


def test_the_place_of_an_obstacle_is_the_part_that_failed():
    rule = "rule r: nn.relu(nn.add(x, y: f32[9, _])) => nn.max(x, y)"
    bound_rule, op, _module = attempt(rule)
    (obstacle,) = obstacles(bound_rule, op, VOCABULARY)
    assert rule[obstacle.place.column - 1 : obstacle.place.end - 1] == "9"


def test_an_attempt_that_matches_more_has_a_deeper_obstacle():
    depths = []
    for rule in (
        "rule r: nn.relu(nn.mul(x, y)) => nn.max(x, y)",
        "rule r: nn.relu(nn.add(x, x)) => x",
        "rule r: nn.relu(nn.add(x, y)) => nn.max(x, y) where size(x) == 1",
    ):
        bound_rule, op, _module = attempt(rule)
        depths += [each.depth for each in obstacles(bound_rule, op, VOCABULARY)]
    assert depths == sorted(set(depths))
