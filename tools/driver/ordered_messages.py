"""The pass that orders messages, which the default pipeline runs if exchanges have timetables."""

from __future__ import annotations

from collections.abc import Sequence

from ...backends.target import Target
from ...ir.upstream import ModulePass
from ...passes.convert_tile_to_exchange import ConvertTileToExchange
from ...passes.order_exchanges import OrderExchanges


def with_orders(pipeline: Sequence[ModulePass], target: Target) -> tuple[ModulePass, ...]:
    """A pipeline that orders messages once variables have their addresses, if the target prices
    exchanges by timetables and no pass of the pipeline orders messages."""
    found = [*pipeline]
    if not target.exchange.timetables or any(isinstance(each, OrderExchanges) for each in found):
        return tuple(found)
    last = [i for i, each in enumerate(found) if isinstance(each, ConvertTileToExchange)]
    if last:
        found.insert(last[-1] + 1, OrderExchanges())
    return tuple(found)
