"""From grouped copies and vertices to supersteps on bytes."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

from ..dialects import tile
from ..dialects.levels import EXCHANGE, TILE
from ..ir.errors import InputError
from ..ir.provenance import place
from ..ir.rules import RuleSet, RulesPass
from .allocate import ADDRESS
from .rules.own import own_rules

GROUPED = (tile.CopyOp, tile.InputOp, tile.OutputOp, tile.VerticesOp)
"""What a superstep must hold before it can be one of the machine's."""


@dataclass(frozen=True)
class ConvertTileToExchange(RulesPass):
    """Apply addresses and groups: each operation becomes its own at exchange. tile -> exchange.

    All of it is the rules of rules/tile_to_exchange.rw.
    """

    name = "convert-tile-to-exchange"
    takes = TILE
    leaves = EXCHANGE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        for each in op.walk():
            if isinstance(each, tile.VariableOp) and ADDRESS not in each.attributes:
                raise InputError(f"@{each.symbol} at {place(each)}: no address; run allocate")
            if isinstance(each, GROUPED) and not isinstance(each.parent_op(), tile.SuperstepOp):
                raise InputError(
                    f"{each.name} at {place(each)}: in no superstep; run schedule-supersteps and "
                    "group-supersteps"
                )
        super().apply(ctx, op)

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The laws of tile_to_exchange.rw."""
        return own_rules("tile_to_exchange")
