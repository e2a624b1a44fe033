"""Replace operations by cheaper ones."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN
from ..ir.rules import RuleSet, RulesPass
from .rules.own import own_rules


@dataclass(frozen=True)
class Canonicalize(RulesPass):
    """Replace operations by cheaper ones with the same results, bit by bit. nn -> nn.

    Rules: rules/canonicalize.rw.
    """

    name = "canonicalize"
    takes = NN
    skips_other_levels = True

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The rules of canonicalize.rw."""
        return own_rules("canonicalize")
