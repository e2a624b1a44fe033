"""Convert tile to exchange: from variables with an address attribute to bytes at addresses."""

from __future__ import annotations

from dataclasses import dataclass

from ..dialects import tile
from ..dialects.home import ADDRESS
from ..dialects.levels import EXCHANGE, TILE
from ..dialects.steps import IN_A_SUPERSTEP, Superstep
from ..ir.provenance import place
from ..ir.rules import RuleSet, RulesPass
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp
from .rules.own import own_rules


@dataclass(frozen=True)
class ConvertTileToExchange(RulesPass):
    """Give variables the addresses that the allocator has chosen. tile -> exchange.

    All other operations are the same at both levels; they must be in supersteps.
    The rule is in rules/tile_to_exchange.rw.

        tile.variable @x : tensor<8xf32> layout <[8 by 4] (d0) of [8]> {address = 16 : i64}

    becomes

        exchange.variable @x at 16 : tensor<8xf32> layout <[8 by 4] (d0) of [8]>
    """

    name = "convert-tile-to-exchange"
    takes = TILE
    decided = "grouped"
    leaves = EXCHANGE

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a variable without an address or a step in no
        superstep.
        """
        for each in op.walk():
            if isinstance(each, tile.VariableOp) and ADDRESS not in each.attributes:
                raise InputError(f"@{each.symbol} at {place(each)}: no address; run allocate")
            if isinstance(each, IN_A_SUPERSTEP) and not isinstance(each.parent_op(), Superstep):
                raise InputError(
                    f"{each.name} at {place(each)}: in no superstep; run schedule-supersteps and "
                    "group-supersteps"
                )
        super().apply(ctx, op)

    @classmethod
    def rule_set(cls) -> RuleSet:
        """The rule of tile_to_exchange.rw."""
        return own_rules("tile_to_exchange")
