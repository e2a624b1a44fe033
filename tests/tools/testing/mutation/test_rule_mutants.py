"""Rules with one mistake read as rules, and are what their author might have written."""

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
def test_the_text_of_rules_reads_as_the_same_rules(path: Path):
    file = parse_rules(path.read_text())
    assert parse_rules(file_text(file)).rules == file.rules


def test_all_that_the_language_can_say_is_written_back():
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
    # The places of a class's members are compared with them.
    assert [name for name, _ in again.classes[0].members or ()] == ["nn.tanh", "nn.sigmoid"]


def mutants(text: str) -> dict[str, list[str]]:
    (rule,) = parse_rules(text).rules
    found: dict[str, list[str]] = {}
    for kind, new in changed_rules(rule, RuleSet((), own_vocabulary())):
        found.setdefault(kind, []).append(" ".join(rule_text(new).split()).partition(": ")[2])
    return found


def test_a_guard_that_goes_takes_the_name_along_that_it_alone_has_used():
    made = mutants("rule a: nn.reshape(x) as r => x where same_type(x, r), one_use(x)")
    assert made["rule-drop-guard"] == [
        "nn.reshape(x) => x where one_use(x)",
        "nn.reshape(x) as r => x where same_type(x, r)",
        "nn.reshape(x) {...} as r => x where same_type(x, r), one_use(x)",
    ]


def test_each_side_of_a_rule_gets_its_mistakes():
    made = mutants("rule a: nn.sub(x, nn.neg(y)) {then = none} => nn.div(nn.abs(x), y)")
    assert (
        "nn.sub(x, nn.neg(y)) {then = none} => nn.div(y, nn.abs(x))" in made["rule-swap-operands"]
    )
    assert "nn.sub(nn.neg(y), x) {then = none} => nn.div(nn.abs(x), y)" in made["rule-commutative"]
    assert "nn.sub(x, nn.neg(y)) {then = none} => nn.div(x, y)" in made["rule-drop-operation"]
    assert "nn.sub(x, nn.neg(y)) => nn.div(nn.abs(x), y)" in made["rule-drop-guard"]
    assert "nn.sub(_, nn.neg(y)) {then = none} => nn.div(nn.abs(y), y)" in made["rule-wrong-value"]


def test_operands_of_what_is_commutative_are_left_as_they_are():
    assert "rule-commutative" not in mutants("rule a: nn.add(x, y) as r => nn.mul(x, y)")
    assert "rule-swap-operands" not in mutants("rule a: nn.add(x, y) => nn.mul(x, y)")


def test_two_that_must_be_one_may_be_different():
    assert mutants("rule a: nn.mul(x, x) => nn.square(x)")["rule-forget-same"] == [
        "nn.mul(x, _) => nn.square(x)"
    ]
