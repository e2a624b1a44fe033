"""Factors behind a convolution, in its weights."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN
from ..ir.rules import RuleSet, RulesPass
from .rules.own import own_rules


@dataclass(frozen=True)
class FoldScales(RulesPass):
    """Multiply weights by the factors behind their convolution. nn -> nn.

    The products are operations until fold-constants computes them. Rules: rules/fold_scales.rw.
    """

    name = "fold-scales"
    takes = NN
    skips_other_levels = True

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The laws of fold_scales.rw."""
        return own_rules("fold_scales")
