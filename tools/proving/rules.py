"""Proves rules of any level."""

from __future__ import annotations

from ...ir.rules import RuleSet
from ...ir.rules.bound_rule import BoundRule
from ..testing.rules.rule_check import is_about_onnx
from .onnx_rules import prove_onnx_rule
from .proof import SECONDS, prove_rule
from .verdicts import Verdict


def prove(rule: BoundRule, rules: RuleSet, seconds: float = SECONDS) -> Verdict:
    """The verdict on a rule, within some seconds of processor time.

    Args:
        rules: the set that the rule belongs to.
    """
    prover = prove_onnx_rule if is_about_onnx(rule) else prove_rule
    return prover(rule, rules, seconds)
