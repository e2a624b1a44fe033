"""Fold the factors that follow a convolution into its weights."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN
from ..ir.rules import RuleSet, RulesPass
from .rules.own import own_rules


@dataclass(frozen=True)
class FoldScales(RulesPass):
    """Multiply weights by the factors that follow their convolution. nn -> nn.

    The pass writes the products as operations, and fold-constants computes them. Powers of a
    quarter, a half or three quarters, and their reciprocals, become square roots if the base cannot
    be negative. Rules: rules/fold_scales.rw.
    """

    name = "fold-scales"
    takes = NN
    skips_other_levels = True

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The rules of fold_scales.rw."""
        return own_rules("fold_scales")
