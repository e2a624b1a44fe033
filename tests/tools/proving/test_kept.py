"""Verdicts that are kept beside rules."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from abele.ir.rules import RuleSet, parse_rule_set
from abele.ir.support.errors import InputError
from abele.passes.rules.own import own_rules, own_vocabulary
from abele.tools.proving import kept
from abele.tools.proving.kept import digest_of, keep, kept_in, own_verdicts
from abele.tools.proving.verdicts import OTHER, Grid, Verdict

FILES = ("canonicalize", "fold_scales", "tile_to_exchange")
SHARE = 0.8
"""The least share of abele's own rules that are proved for all sizes or ranks."""


def rules_of(text: str) -> RuleSet:
    return parse_rule_set(text, own_vocabulary(), "tried.rw")


@pytest.mark.parametrize("name", FILES)
def test_abeles_own_verdicts_are_those_of_its_rules_as_they_are(name: str):
    found = own_verdicts(name)
    assert found.keys() == {rule.name for rule in own_rules(name).bound}
    stale = [rule for rule, each in found.items() if each.stale]
    assert not stale, "run abele prove all --keep, then make reference"


def test_abeles_own_rules_are_proved_and_none_is_refuted():
    verdicts = [each.verdict for name in FILES for each in own_verdicts(name).values()]
    kinds = [each.kind for each in verdicts if each.kind != OTHER]
    assert "refuted" not in kinds
    assert sum(kind in ("all ranks", "all sizes") for kind in kinds) >= SHARE * len(kinds)


def test_a_verdict_is_read_as_it_was_written(tmp_path: Path):
    rules = rules_of("rule twice: nn.neg(nn.neg(x)) => x")
    grid = Grid(3, ("nn.neg",), ("f32", "i8"), (0, 2), 1, 40)
    verdict = Verdict("twice", "all ranks", "equal to the bit", grid=grid, seconds=1.5)
    keep(tmp_path / "a.json", [verdict], rules.bound, rules.vocabulary)
    known = kept_in(tmp_path / "a.json", rules.bound, rules.vocabulary)["twice"]
    assert (known.verdict, known.stale) == (verdict, False)


def test_verdicts_on_other_rules_stay(tmp_path: Path):
    rules = rules_of("rule a: nn.neg(nn.neg(x)) => x\nrule b: nn.relu(nn.relu(_) as r) => r\n")
    for name in ("a", "b"):
        only = rules.chosen(only=[name])
        keep(tmp_path / "a.json", [Verdict(name, "all sizes")], only.bound, rules.vocabulary)
    assert kept_in(tmp_path / "a.json", rules.bound, rules.vocabulary).keys() == {"a", "b"}


def test_a_verdict_is_stale_once_its_rule_has_changed(tmp_path: Path):
    rules = rules_of("rule twice: nn.neg(nn.neg(x)) => x")
    keep(tmp_path / "a.json", [Verdict("twice", "all ranks")], rules.bound, rules.vocabulary)
    other = rules_of("rule twice: nn.neg(nn.neg(x)) => x where is_float(x)")
    known = kept_in(tmp_path / "a.json", other.bound, other.vocabulary)["twice"]
    assert known.stale
    assert known.text.endswith("Stale: the rule, a definition or the prover has changed since.")


def test_the_digest_covers_the_operations_that_a_rule_names(monkeypatch: pytest.MonkeyPatch):
    (rule,) = rules_of("rule twice: nn.neg(nn.neg(x)) => x").bound
    before = digest_of(rule, own_vocabulary())
    monkeypatch.setattr(kept, "_definitions", lambda module: {"NegOp": "another definition"})
    assert digest_of(rule, own_vocabulary()) != before


def test_a_verdict_is_stale_once_the_code_that_proves_has_changed(monkeypatch: pytest.MonkeyPatch):
    (rule,) = rules_of("rule twice: nn.neg(nn.neg(x)) => x").bound
    before = digest_of(rule, own_vocabulary())
    monkeypatch.setattr(kept, "_engine", lambda: "another prover")
    assert digest_of(rule, own_vocabulary()) != before


def test_documentation_and_comments_of_the_code_that_proves_do_not_count():
    plain = "A = 1\ndef f():\n    return A\n"
    told = '"""A file."""\nA = 1  # One.\n"""A number."""\ndef f():\n    """One."""\n    return A\n'
    assert kept.code_of(plain) == kept.code_of(told)
    assert kept.code_of(plain) != kept.code_of(plain.replace("1", "2"))


def test_a_file_of_another_form_is_refused(tmp_path: Path):
    rules = rules_of("rule twice: nn.neg(nn.neg(x)) => x")
    (tmp_path / "a.json").write_text(json.dumps({"twice": {"made": "today"}}))
    with pytest.raises(InputError, match=r"not a file of verdicts .* abele prove --keep"):
        kept_in(tmp_path / "a.json", rules.bound, rules.vocabulary)
