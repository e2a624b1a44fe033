import pytest
from xdsl.ir import SSAValue

from abele.ir.errors import InputError
from abele.ir.rules import bind_python_rules, guard, rewrite
from abele.ir.rules.explain import SHOWN, explain

from .some_rules import VOCABULARY, module_of, rules_of, text_of

RULES = """
// Both at once.
rule fuse: nn.relu(nn.add(x, y) as s: f32[_, k])
  => nn.max(x, y)
  where one_use(s), k % 16 == 0

@priority(1)
rule first: nn.relu(nn.neg(x)) => nn.abs(x)
rule second: nn.relu(nn.neg(x)) => nn.square(x)
rule twice: nn.relu(nn.relu(x)) => nn.relu(x)
rule away: nn.relu(nn.relu(x)) => x
rule bent: nn.relu(nn.relu(x)) => nn.reshape(x) {shape = [32]}
rule absent: nn.tanh(x) => x
rule breaks: nn.relu(x) => x where fails(x)
"""

BODY = """
  %0 = nn.add %a, %b : TT loc("add1")
  %1 = nn.relu %0 : T1 loc("relu1")
  %2 = nn.neg %b : T1 loc("neg1")
  %3 = nn.relu %2 : T1 loc("relu2")
  %4 = nn.relu %3 : T1 loc("relu3")
  "try.keep"(%1, %4) : (T, T) -> ()
"""


@guard
def fails(value: SSAValue) -> bool:
    raise KeyError("lost")


def explanation(rule: str, body: str = BODY) -> str:
    module = module_of(body)
    before = text_of(module)
    text = explain(rule, [rules_of(RULES)], module).text
    assert text_of(module) == before
    return text


def test_operations_are_explained_with_the_closest_match_first():
    assert explanation("fuse") == (
        "fuse (my.rw:3): matches 0 of 3 nn.relu\n"
        "\n"
        "relu1: k % 16 == 0 does not hold: 8 == 0\n"
        "    %1 = nn.relu %0 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "  my.rw:5:21\n"
        "      where one_use(s), k % 16 == 0\n"
        "                        ^~~~~~~~~~~\n"
        "\n"
        "relu2: nn.neg at neg1 is not nn.add\n"
        "    %3 = nn.relu %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "  my.rw:3:20\n"
        "    rule fuse: nn.relu(nn.add(x, y) as s: f32[_, k])\n"
        "                       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~\n"
        "\n"
        "relu3: nn.relu at relu2 is not nn.add\n"
        "    %4 = nn.relu %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "  my.rw:3:20\n"
        "    rule fuse: nn.relu(nn.add(x, y) as s: f32[_, k])\n"
        "                       ^~~~~~~~~~~~~~~~~~~~~~~~~~~~"
    )


def test_for_a_match_the_result_is_shown():
    assert explanation("twice").startswith(
        "twice (my.rw:10): matches 1 of 3 nn.relu\n"
        "\n"
        "relu3: it matches\n"
        "    %4 = nn.relu %3 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
        "  and builds\n"
        "    %new = nn.relu %2 : (tensor<4x8xf32>) -> tensor<4x8xf32>\n"
    )


FITS_BUT = {
    "second": "relu2: it matches, but first (my.rw:8) is tried first and matches too",
    "away": "relu3: it matches, but twice (my.rw:10) is tried first and matches too",
    "absent": "absent (my.rw:13): no nn.tanh here; there are 3 nn.relu, 1 nn.add, 1 nn.neg",
    "breaks": "fails raised KeyError: 'lost'",
}


@pytest.mark.parametrize("rule", FITS_BUT)
def test_other_reasons_against_a_rule_are_explained(rule: str):
    assert FITS_BUT[rule] in explanation(rule)


def test_a_value_in_place_of_an_operation_is_named():
    (rule,) = rules_of("rule away: nn.relu(nn.relu(x)) => x").bound
    found = explain("away", [rules_of(rule.text)], module_of(BODY))
    assert found.fits == 1
    assert found.attempts[0].details == ("  and builds", "    %2 as the replacement")


def test_a_replacement_that_cannot_be_built_is_explained_not_raised():
    alone = rules_of("rule bent: nn.relu(nn.relu(x)) => nn.reshape(x) {shape = [32]}")
    reason = explain("bent", [alone], module_of(BODY)).attempts[0].reason
    assert "it matches, but: my.rw:1:6: rule bent builds tensor<32xf32>" in reason


def test_a_rule_in_python_is_explained_with_its_own_line():
    @rewrite("nn.relu(nn.mul(x, y))")
    def fuse_product(x, y):
        return None

    found = explain(
        "fuse_product", [bind_python_rules([fuse_product], VOCABULARY)], module_of(BODY)
    )
    marked = found.attempts[0].details[-2:]
    assert marked[0].strip() == '@rewrite("nn.relu(nn.mul(x, y))")'
    assert marked[0][marked[1].index("^") :].startswith("nn.mul(x, y)")


def test_a_python_rule_that_returns_none_or_raises_is_explained():
    @rewrite("nn.relu(nn.add(x, y))")
    def undecided(x, y):
        return None

    @rewrite("nn.relu(nn.add(x, y))")
    def broken(x, y):
        return {}[x]

    for rule, reason in (
        (undecided, "the pattern matches, but undecided returned None"),
        (broken, "it matches, but broken raised KeyError: <"),
    ):
        own = bind_python_rules([rule], VOCABULARY)
        assert explain(rule.name, [own], module_of(BODY)).attempts[0].reason.startswith(reason)


def test_many_attempts_are_counted():
    lines = "".join(f"%{i} = nn.relu %a : T1 \n" for i in range(SHOWN + 5))
    assert explanation("fuse", lines).endswith(
        "and 5 more:\n     5  the operand is an argument, not a result of nn.add"
    )


def test_an_unknown_rule_is_refused():
    with pytest.raises(InputError, match="no rule fuze; did you mean fuse"):
        explanation("fuze")


def test_a_name_in_two_files_needs_its_file():
    def in_file(path: str):
        from abele.ir.rules import parse_rule_set

        return parse_rule_set("rule r: nn.neg(nn.neg(x)) => x", VOCABULARY, path)

    sets, module = [in_file("a.rw"), in_file("b.rw")], module_of(BODY)
    with pytest.raises(InputError, match="rule r is in a.rw and b.rw; write which, as in a.rw:r"):
        explain("r", sets, module)
    assert explain("b.rw:r", sets, module).rule is sets[1].bound[0]
