"""Fuse biases, activations and residuals into the operation before them."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects.levels import NN
from ..ir.rules import RuleSet, RulesPass
from .rules.own import own_rules


@dataclass(frozen=True)
class FuseChains(RulesPass):
    """Fuse scalar functions into the operation whose result they read. nn -> nn.

        %1 = nn.conv %x, %w stride [1] ...      %1 = nn.conv %x, %w stride [1] ... then [add] (%b)
        %2 = nn.add %1, %b

    Rules: rules/fuse_chains.rw.
    """

    name = "fuse-chains"
    takes = NN
    skips_other_levels = True

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The rules of fuse_chains.rw."""
        return own_rules("fuse_chains")
