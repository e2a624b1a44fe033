"""Verdicts on rules with mistakes."""

from functools import partial
from pathlib import Path

import pytest
import typer

from abele.ir.rules import parse_rule_set
from abele.ir.support.errors import InputError
from abele.passes.canonicalize import Canonicalize
from abele.passes.rules.own import own_vocabulary
from abele.tools.proving.verdicts import Verdict
from abele.tools.testing.mutation.mutant import Mutant
from abele.tools.testing.search.contracts import with_methods
from abele.tools.workshop.proofs import COUNTED, judged, proofs, verdict_on

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


def test_what_becomes_of_mistakes_is_told_apart():
    def what(text: str) -> str:
        return judged(mutant(f"rule abs_of_abs: {text}"), 1.0, 0.2).what

    assert what("nn.abs(nn.neg(x)) => nn.neg(x)") == "refuted"
    assert what("nn.neg(nn.neg(x: f32[...])) => x") == "harmless"
    assert what("nn.abs(nn.abs(x)) => y") == "refused when read"


def test_a_mistake_that_is_proved_though_a_program_differs_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
):
    proved = Verdict("abs_of_abs", "all ranks", "equal to the bit")
    monkeypatch.setattr(f"{proofs.__module__}.prove_rule", lambda *_: proved)
    found = judged(mutant("rule abs_of_abs: nn.abs(nn.neg(x)) => nn.neg(x)"), 1.0, 5.0)
    assert found.what == COUNTED[-1]


def test_the_tables_of_the_page_are_markdown(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    listed = [mutant("rule abs_of_abs: nn.abs(nn.neg(x)) => nn.neg(x)")]
    monkeypatch.setattr(f"{proofs.__module__}.mutants", lambda *_: iter(listed))
    file = tmp_path / "mine.rw"
    file.write_text("// xla: |-(-A)|.\nrule twice: nn.neg(nn.neg(x: f32[...])) => x\n")
    proofs(rules=[file], limit=1, seconds=0.5, markdown=True)
    printed = capsys.readouterr().out
    assert r"| `twice` | xla: \|-(-A)\|. | right | all ranks |" in printed
    assert "| canonicalize | 1 | 0 | 1 | 0 | 0 | 0 | 0 |" in printed


def test_a_proved_rule_that_is_known_to_be_wrong_ends_with_status_1(tmp_path: Path):
    file = tmp_path / "mine.rw"
    file.write_text("rule twice: nn.neg(nn.neg(x: f32[_])) => x\n")
    with pytest.raises(typer.Exit):
        proofs(wrong=[file], limit=0, seconds=0.5, markdown=True)


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
