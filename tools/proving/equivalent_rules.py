"""Rules of users that make equivalent models of ONNX, which must be proved."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...ir.rules import RuleSet
from ...ir.support.errors import InputError
from ..testing.rules.rule_check import is_about_onnx, rules_of
from .kept import file_beside, kept_in
from .rules import prove
from .scalars.equality import SPECIAL_TEXT
from .solver import z3
from .verdicts import Verdict

WEAK = (SPECIAL_TEXT["zeros"], SPECIAL_TEXT["differ"], SPECIAL_TEXT["open"])
"""What a verdict may say that is too little: a later node may turn the sign of a zero, or a NaN,
into another number."""


def rules_for_equivalents(files: Sequence[str]) -> RuleSet:
    """The rules of the .rw files among some files; the others are loaded for them.

    Raises InputError for a rule that is not about ONNX, that is not proved, or that may change NaN,
    infinities or signs of zeros.
    """
    paths = [Path(each) for each in files if Path(each).suffix == ".rw"]
    others = [each for each in files if Path(each).suffix != ".rw"]
    if not paths:
        raise InputError(f"--load {', '.join(files)}: no rules; --equivalents needs a .rw file")
    sets = [_proved(path, rules_of(path, others)[0]) for path in paths]
    first, *more = sets
    return sum(more, first)


def _proved(path: Path, rules: RuleSet) -> RuleSet:
    """Rules that may make equivalents. Raises InputError."""
    kept = kept_in(file_beside(path), rules.bound, rules.vocabulary)
    for rule in rules.bound:
        if not is_about_onnx(rule):
            raise InputError(
                f"{rule.place}: rule {rule.name} is about {min(c.name for c in rule.roots)}; "
                "equivalents are models of ONNX, so write it with operators such as onnx.Conv"
            )
        known = kept.get(rule.name)
        if known is None or known.stale:
            z3()
        verdict = prove(rule, rules) if known is None or known.stale else known.verdict
        problem = problem_of(verdict)
        if problem:
            raise InputError(
                f"{rule.place}: rule {rule.name} {problem}; take it out of the file, or see "
                f"abele prove {path} --rule {rule.name}"
            )
    return rules


def problem_of(verdict: Verdict) -> str:
    """Why a rule makes no equivalents; "" if it does."""
    if not verdict.proved:
        return f"is not proved: {verdict.text}"
    weak = next((each for each in WEAK if each in verdict.equality), "")
    return f"does not keep all values: {weak}" if weak else ""
