"""Parsing rules, with one message for a syntax error."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from abele.ir.errors import InputError
from abele.ir.rules.parse import parse_guards, parse_pattern, parse_rules
from abele.ir.rules.syntax import Constant, Name, Nested, Operator, Place, Rest, Shaped, Variable

HERE = Place("", 0, 0, 0)


def test_a_rule_is_parsed_with_all_its_parts():
    (rule,) = parse_rules("""
// Two scales are one.
// Their factors are multiplied.
@commutative @priority(2)
rule scales: nn.mul(nn.scale(x: f32[n, ...]) {factor = a} as s, ...rest): t
  => let y = nn.exp(x); nn.scale(y, ...rest) {factor = a * 2} like s : type(x)
  where n % 2 == 0, one_use(s)
""").rules
    assert (rule.name, rule.kind, rule.priority, rule.commutative) == ("scales", "rule", 2, True)
    assert rule.document == "Two scales are one. Their factors are multiplied."
    assert str(rule.place) == "<rules>:5:6"
    inner, rest = rule.pattern.operands
    assert isinstance(inner, Nested)
    assert inner.pattern.name == "s"
    assert isinstance(inner.pattern.operands[0], Variable)
    assert isinstance(inner.pattern.operands[0].type, Shaped)
    assert rest == Rest(HERE, "rest")
    assert [let.name for let in rule.lets] == ["y"]
    assert len(rule.guards) == 2


def test_operators_bind_as_in_python():
    (found,) = parse_guards("a + b * c == 2 or not d and e")
    assert isinstance(found, Operator)
    assert found.symbol == "or"
    equal, both = found.operands
    assert isinstance(equal, Operator)
    assert equal.operands[1] == Constant(HERE, 2)
    assert isinstance(both, Operator)
    assert both.symbol == "and"


def test_places_do_not_count_for_equality():
    assert parse_pattern("nn.exp(x)") == parse_pattern("  nn.exp( x )", "other.rw", 7)


def test_two_slashes_divide_behind_an_expression_and_comment_on_a_line_of_their_own():
    file = parse_rules("""// Halves.
rule a: nn.exp(x: f32[n]) => nn.reshape(x) // what is left
  {shape = [n // 2]} where n // 2 == 3
  // and not
  , n != 5

// Another.
rule b: nn.exp(x) => x""")
    halves, another = file.rules
    assert len(halves.guards) == 2
    assert isinstance(halves.guards[0], Operator)
    assert halves.guards[0].operands[0] == Operator(
        HERE, "//", (Name(HERE, "n"), Constant(HERE, 2))
    )
    assert (halves.document, another.document, another.place.line) == ("Halves.", "Another.", 8)


def test_a_pattern_begins_at_the_given_line():
    found = parse_pattern("nn.exp(x)", "rules.py", 12)
    assert str(found.place) == "rules.py:12:1"
    assert parse_guards("x", "rules.py", 3) == (Name(HERE, "x"),)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "rule r: nn.exp(x) = x",
            "my.rw:1:19: '=' is not expected here; need ':' or '=>' or 'as' or '{'\n"
            "rule r: nn.exp(x) = x\n"
            "                  ^",
        ),
        (
            "rule r: nn.exp(x) => x if x",
            "my.rw:1:24: 'if' is not expected here; need 'where' before the conditions\n"
            "rule r: nn.exp(x) => x if x\n"
            "                       ^~",
        ),
        (
            "rule r: nn.max(x, 0) => x",
            "my.rw:1:19: '0' is not expected here; a number cannot be an operand; write an "
            "attribute, as in nn.op(x) {name = 1}, or an nn.constant\n"
            "rule r: nn.max(x, 0) => x\n"
            "                  ^",
        ),
        (
            "rule r: nn.exp(x: tensor<4x6xf32>) => x",
            "my.rw:1:25: '<' is not expected here; a tensor of f32 is written f32[4, 6]\n"
            "rule r: nn.exp(x: tensor<4x6xf32>) => x\n"
            "                        ^",
        ),
        (
            "rule r nn.exp(x) => x",
            "my.rw:1:8: 'nn.exp' is not expected here; need ':'\n"
            "rule r nn.exp(x) => x\n"
            "       ^~~~~~",
        ),
        (
            "rule r: nn.exp(x) =>\n",
            "my.rw:1:21: the end is not expected here",
        ),
        (
            "rule r: nn.exp(x) => x $",
            "my.rw:1:24: '$' is not expected here\nrule r: nn.exp(x) => x $\n" + " " * 23 + "^",
        ),
        (
            "\n@speed\nrule r: nn.exp(x) => x",
            "my.rw:2:1: @speed: need @commutative or @priority(NUMBER)\n@speed\n^~~~~~",
        ),
        ("rule r: " + "nn.neg(" * 3000 + "x", "my.rw"),
    ],
)
def test_syntax_errors_are_shown_with_a_caret(text, message):
    with pytest.raises(InputError) as caught:
        parse_rules(text, "my.rw")
    assert str(caught.value).startswith(message)


HOSTILE = {
    'where "\\q" == "a"': r'no escape \\q; need \\"',
    'where "\\u12" == "a"': r"no escape \\u",
    f"where {'9' * 5000} > 1": "an integer of 5,000 digits; at most 4,096 integer bits are",
    f"where -{'9' * 5000} > 1": "an integer of 5,000 digits",
    "where 1e999 > 1": "too large for a float",
    f"where {'(' * 2000}1{')' * 2000} == 1": "nested too deeply; at most 64 nested brackets",
    f"where {'not ' * 2000}true": "nested too deeply; at most 64 nested brackets",
    f"where {'-' * 2000}1 < 2": "nested too deeply",
    f"where {'not - ' * 2000}1 < 2": "nested too deeply",
    f"where {'[' * 2000}": "nested too deeply",
    f"where {'1 + ' * 5000}1 < 2": "5,001 terms count as 1,250 brackets; at most 64",
    "where \u0663 > 1": "is not expected here",
    "where \0 > 1": "U\\+0000 is not expected here",
}


@pytest.mark.parametrize("ending", HOSTILE, ids=lambda ending: ending[:16])
def test_hostile_text_is_refused_at_its_place(ending: str):
    text = f"// A remark\nrule r: nn.neg(x) => x {ending}\n"
    with pytest.raises(InputError, match=HOSTILE[ending]) as raised:
        parse_rules(text, "my.rw")
    head, *shown = str(raised.value).split("\n")
    assert head.startswith("my.rw:2:")
    assert all(len(line) <= 160 for line in shown)
    assert len(head) < 300


@pytest.mark.parametrize(
    "start",
    [
        f"@priority({'1' * 5000}) rule r: nn.neg(x) => x",
        f"rule r: nn.neg(nn.neg(x)#{'1' * 5000}) => x",
        f"rule r: nn.neg(x: f32[{'1' * 5000}]) => x",
        f"rule r: nn.neg(x) => y#{'1' * 5000}",
        f"rule r: nn.neg(x) {{a = {'1' * 5000}}} => x",
        f"rule r: nn.neg(x) => nn.neg(x) {{a = {'1' * 5000}}}",
    ],
)
def test_long_integers_are_refused_wherever_they_stand(start: str):
    with pytest.raises(InputError, match=r"^my\.rw:1:\d+: an integer of 5,000 digits"):
        parse_rules(start, "my.rw")


@given(st.text(alphabet='()[]{}"\\\n/-,=>. 019eE#:;@\u0663\ufeff\0rulewhnotx', max_size=60))
@example('rule r: nn.neg(x) => x where "\\')
def test_any_text_is_parsed_or_refused_with_its_place(text: str):
    try:
        parse_rules(f"rule r: nn.neg(x) => x {text}", "my.rw")
    except InputError as error:
        assert str(error).startswith("my.rw:")


def test_the_limit_of_nesting_can_be_changed(monkeypatch: pytest.MonkeyPatch):
    text = f"rule r: nn.neg(x) => x where {'(' * 70}1{')' * 70} == 1"
    monkeypatch.setenv("ABELE_MOST_NESTED_BRACKETS", "80")
    parse_rules(text)
    monkeypatch.setenv("ABELE_MOST_NESTED_BRACKETS", "many")
    with pytest.raises(InputError, match="BRACKETS='many'; need an integer from 1"):
        parse_rules(text)
