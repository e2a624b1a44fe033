"""Verdicts on rules with mistakes."""

from functools import partial
from pathlib import Path

import pytest

from abele.ir.rules import parse_rule_set
from abele.ir.support.errors import InputError
from abele.passes.canonicalize import Canonicalize
from abele.passes.rules.own import own_vocabulary
from abele.tools.proving.verdicts import Verdict
from abele.tools.testing.mutation.mutant import Mutant
from abele.tools.testing.search.contracts import with_methods
from abele.tools.workshop.proofs import proofs, verdict_on

RIGHT = "rule abs_of_abs: nn.abs(nn.abs(_) as a) => a"


def mutant(text: str) -> Mutant:
    def make():
        rules = parse_rule_set(text, own_vocabulary(), "wrong.rw")
        return with_methods(Canonicalize(), {"rule_set": staticmethod(lambda: rules)})

    return Mutant("canonicalize", "wrong", 1, "wrong.rw:1", RIGHT, text, partial(make))


def test_a_mistake_is_refuted_and_what_is_no_mistake_is_proved():
    wrong = verdict_on(mutant("rule abs_of_abs: nn.abs(nn.neg(x)) => nn.neg(x)"), 5.0)
    assert isinstance(wrong, Verdict)
    assert wrong.kind == "refuted"
    right = verdict_on(mutant(RIGHT), 5.0)
    assert isinstance(right, Verdict)
    assert right.proved


def test_a_mistake_that_the_rule_language_refuses_is_none_of_a_proof():
    refused = verdict_on(mutant("rule abs_of_abs: nn.abs(nn.abs(x)) => y"), 5.0)
    assert isinstance(refused, InputError)


def test_the_tables_have_abeles_own_rules_and_those_of_a_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(f"{proofs.__module__}.RULED", ("fold-scales",))
    file = tmp_path / "mine.rw"
    file.write_text("rule there_and_back: nn.cast(nn.cast(x: f16[...]): f32[...]): f16[...] => x\n")
    proofs(rules=[file], limit=0, seconds=0.1)
    printed = capsys.readouterr().out
    assert "there_and_back" in printed
    assert "power_of_a_half" in printed
    assert "1 rule: " in printed
