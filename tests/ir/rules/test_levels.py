import pytest

from abele.dialects.levels import NN, PARTITION
from abele.ir.errors import InputError
from abele.ir.pass_levels import PassLevels, declared_levels
from abele.ir.rules import parse_rule_set, rules_pass
from abele.passes.rules.own import own_vocabulary

RULE = "rule abs_of_abs: nn.abs(nn.abs(_) as a) => a"


@pytest.mark.parametrize(
    ("lines", "declared"),
    [
        ("", None),
        ("takes nn", PassLevels(NN)),
        ("rounds", PassLevels(rounds=True)),
        ("// Words\ntakes nn\nleaves partition\nrounds", PassLevels(NN, PARTITION, rounds=True)),
    ],
)
def test_a_file_declares_for_its_pass(lines: str, declared: PassLevels | None):
    rules = parse_rule_set(f"{lines}\n\n{RULE}\n", own_vocabulary())
    assert rules.levels == declared
    assert declared_levels(rules_pass("mine", rules)) == declared


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("takes tlie\n", "1:7: no level tlie; did you mean tile"),
        ("takes nn\nleaves nn\ntakes nn\n", "3:7: takes is already declared"),
        ("rounds rounds", "1:8: rounds is already declared"),
        (f"{RULE}\ntakes nn\n", "2:1: 'takes' is not expected here"),
    ],
)
def test_a_wrong_declaration_is_refused_where_it_is(text: str, says: str):
    with pytest.raises(InputError, match=f"mine.rw:{says}"):
        parse_rule_set(text, own_vocabulary(), "mine.rw")
