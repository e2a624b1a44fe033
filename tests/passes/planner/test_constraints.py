"""The form of a file of constraints: what is wrong with it is said with file, line and key."""

import json
from pathlib import Path

import pytest

from abele.dialects.abele import Plan
from abele.ir.errors import InputError
from abele.passes.planner.constraints import read_constraints


def test_every_key_of_a_constraints_file_is_read(tmp_path: Path):
    path = tmp_path / "c.json"
    fc1 = {
        "method": "amp",
        "split": {"m": 2},
        "tiles": 8,
        "memory_proportion": 0,
        "steps": {"k": 2},
        "ring": {"k": "n"},
        "partials": "auto",
    }
    fc2 = {"plan": "split [1, 2, 4] order [1, 0] at 3 combine split [1, 4, 1]"}
    path.write_text(json.dumps({"memory_proportion": 1, "operators": {"fc1": fc1, "fc2": fc2}}))
    found = read_constraints(path)
    assert found.proportion == 1.0
    assert found.operators["fc1"] == fc1
    plan = Plan((1, 2, 4), (1, 0), 3, combine=Plan((1, 4, 1)))
    assert found.operators["fc2"] == {"plan": plan}


def test_an_empty_file_asks_for_nothing(tmp_path: Path):
    path = tmp_path / "c.json"
    path.write_text("{}")
    found = read_constraints(path)
    assert found.proportion is None
    assert not found.operators


OPERATORS = "c.json:2: operators.fc1"


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ('{"splits": {}}', f"{OPERATORS}.splits: no such key; did you mean split?"),
        ('{"split": [1, 2]}', f"{OPERATORS}.split: [1, 2]; need an object"),
        ('{"split": {"m": 0}}', f"{OPERATORS}.split.m: 0; need an integer of at least 1"),
        ('{"split": {"m": 1.5}}', f"{OPERATORS}.split.m: 1.5; need an integer"),
        ('{"split": {"m": true}}', f"{OPERATORS}.split.m: True; need an integer"),
        ('{"tiles": "all"}', f"{OPERATORS}.tiles: 'all'; need an integer"),
        ('{"tiles": 99999999999}', f"{OPERATORS}.tiles: 99999999999; need an integer"),
        ('{"method": "amq"}', f"{OPERATORS}.method: no method 'amq'; did you mean amp?"),
        ('{"partials": "half"}', f"{OPERATORS}.partials: 'half'; need float16, float32 or auto"),
        ('{"method": 3}', f"{OPERATORS}.method: 3; need a text"),
        ('{"memory_proportion": 1.01}', f"{OPERATORS}.memory_proportion: 1.01; need a number in"),
        ('{"memory_proportion": -0.1}', f"{OPERATORS}.memory_proportion: -0.1; need a number in"),
        ('{"memory_proportion": NaN}', f"{OPERATORS}.memory_proportion: nan; need a number in"),
        ('{"memory_proportion": true}', f"{OPERATORS}.memory_proportion: True; need a number in"),
        ('{"ring": {"k": 1}}', f"{OPERATORS}.ring.k: 1; need a text"),
        ('{"plan": "split [1"}', f"{OPERATORS}.plan: 'split [1': ']' expected; need what"),
        ('{"plan": "split [0]"}', f"{OPERATORS}.plan: 'split [0]': split [0]; need 1 or more"),
        ('{"plan": "split [1]> junk"}', f"{OPERATORS}.plan: 'split [1]> junk'; need what stands"),
        ('{"plan": "split [1]", "tiles": 2}', f"{OPERATORS}.tiles: a whole plan leaves nothing"),
        ("7", f"{OPERATORS}: 7; need an object"),
    ],
)
def test_an_error_in_constraints_of_an_operator_names_line_and_key(
    tmp_path, monkeypatch, asked, says
):
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(f'{{"operators": {{\n"fc1": {asked}}}}}')
    with pytest.raises(InputError) as raised:
        read_constraints("c.json")
    assert str(raised.value).startswith(says)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("[]", "c.json:1: []; need an object"),
        ('{\n"operator": {}}', "c.json:2: operator: no such key; did you mean operators?"),
        ('{\n"memory_proportion": 2}', "c.json:2: memory_proportion: 2; need a number in 0..1"),
        ('{"operators": []}', "c.json:1: operators: []; need an object"),
    ],
)
def test_an_error_in_constraints_of_the_program_names_line_and_key(
    tmp_path, monkeypatch, text, says
):
    monkeypatch.chdir(tmp_path)
    Path("c.json").write_text(text)
    with pytest.raises(InputError) as raised:
        read_constraints("c.json")
    assert str(raised.value).startswith(says)
