"""Rules written after public rewrites are judged right: those that others shipped wrong, too."""

from __future__ import annotations

from pathlib import Path

import pytest

from abele.tools.proving.proof import prove_rule
from abele.tools.testing.rules import rules_of

HERE = Path(__file__).parent
RIGHT, WRONG = (rules_of(HERE / name)[0] for name in ("public.rw", "public_wrong.rw"))

TO_THE_BIT = ("largest_of_one", "there_and_back", "concat_of_functions")
QUICK = (
    *("shift_by_nothing", "logarithm_of_exponential", "largest_of_one", "sum_of_sum"),
    *("product_with_transpose", "concat_of_functions", "there_and_back"),
)
"""Some rules that take about a second each; `abele bench proofs` judges all."""


def test_there_are_forty_rules_with_the_source_of_each_wrong_one():
    assert (len(RIGHT.bound), len(WRONG.bound)) == (32, 8)
    text = (HERE / "public_wrong.rw").read_text()
    assert text.count("// https://github.com/") == 8
    assert set(TO_THE_BIT) <= set(QUICK) <= set(RIGHT.names)


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG.names)
def test_a_wrong_rule_is_refuted_with_a_program_that_shows_it(name: str):
    (rule,) = (each for each in WRONG.bound if each.name == name)
    verdict = prove_rule(rule, WRONG)
    assert verdict.kind == "refuted", verdict.text
    assert "func.func @main" in verdict.example


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_right_rule_is_proved(name: str):
    (rule,) = (each for each in RIGHT.bound if each.name == name)
    verdict = prove_rule(rule, RIGHT)
    assert verdict.proved, verdict.text
    if name in TO_THE_BIT:
        assert verdict.equality == "equal to the bit"
