"""Mutated rules can be parsed, and look like rules that an author might have written."""

from pathlib import Path

import pytest

import abele.passes.canonicalize
from abele.ir.rules.parse import parse_rules
from abele.ir.rules.rule_set import RuleSet
from abele.passes.rules.own import own_vocabulary
from abele.tools.testing.mutation.rule_classes import changed_rules
from abele.tools.testing.mutation.rule_text import file_text, rule_text

FILES = sorted((Path(abele.passes.canonicalize.__file__).parent / "rules").glob("*.rw"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_the_text_of_rules_parses_to_the_same_rules(path: Path):
    file = parse_rules(path.read_text())
    assert parse_rules(file_text(file)).rules == file.rules


def test_every_construct_of_the_language_is_printed():
    text = """
class soft = nn.tanh|nn.sigmoid
guard mine(value, int)
function yours(ints) -> int
lower a: nn.add(x: f32[n, 4, ...rest], nn.split(y)#1) {then = none, "note" = [1, -2.5]} as p: t
  => let z = nn.neg(x) {a = (1 + n) * 2} like p; (z, p(...xs): type(x), q(z#0): f32[n / 2, ...rest])
  where not (n < 3 or n > 5 and true), mine(x, -1)
rule b: soft(nn.relu(_) {...}) {then = none, ...} => erase
"""
    file = parse_rules(text)
    again = parse_rules(file_text(file))
    assert again.rules == file.rules
    assert again.declarations == file.declarations
    # Compare names only, because the members' source positions differ.
    assert [name for name, _ in again.classes[0].members or ()] == ["nn.tanh", "nn.sigmoid"]


def mutants(text: str) -> dict[str, list[str]]:
    (rule,) = parse_rules(text).rules
    found: dict[str, list[str]] = {}
    for kind, new in changed_rules(rule, RuleSet((), own_vocabulary())):
        found.setdefault(kind, []).append(" ".join(rule_text(new).split()).partition(": ")[2])
    return found


def test_removing_a_guard_removes_the_names_that_only_it_uses():
    made = mutants("rule a: nn.reshape(x) as r => x where same_type(x, r), one_use(x)")
    assert made["rule-drop-guard"] == [
        "nn.reshape(x) => x where one_use(x)",
        "nn.reshape(x) as r => x where same_type(x, r)",
        "nn.reshape(x) {...} as r => x where same_type(x, r), one_use(x)",
    ]


def test_both_sides_of_a_rule_are_mutated():
    made = mutants("rule a: nn.sub(x, nn.neg(y)) {then = none} => nn.div(nn.abs(x), y)")
    assert (
        "nn.sub(x, nn.neg(y)) {then = none} => nn.div(y, nn.abs(x))" in made["rule-swap-operands"]
    )
    assert "nn.sub(nn.neg(y), x) {then = none} => nn.div(nn.abs(x), y)" in made["rule-commutative"]
    assert "nn.sub(x, nn.neg(y)) {then = none} => nn.div(x, y)" in made["rule-drop-operation"]
    assert "nn.sub(x, nn.neg(y)) => nn.div(nn.abs(x), y)" in made["rule-drop-guard"]
    assert "nn.sub(_, nn.neg(y)) {then = none} => nn.div(nn.abs(y), y)" in made["rule-wrong-value"]


def test_operands_of_commutative_operations_are_not_swapped():
    assert "rule-commutative" not in mutants("rule a: nn.add(x, y) as r => nn.mul(x, y)")
    assert "rule-swap-operands" not in mutants("rule a: nn.add(x, y) => nn.mul(x, y)")


def test_forget_same_lets_equal_operands_differ():
    assert mutants("rule a: nn.mul(x, x) => nn.square(x)")["rule-forget-same"] == [
        "nn.mul(x, _) => nn.square(x)"
    ]
