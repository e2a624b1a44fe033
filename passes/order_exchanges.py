"""Choose in which order the messages of each move leave."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerAttr, i64

from ..backends.prices.price import variables_of
from ..backends.timetable.link_lanes import LinkLanes
from ..backends.timetable.moves import Move, moves_of_copy
from ..backends.timetable.orders import best_order
from ..dialects.levels import EXCHANGE
from ..dialects.message_order import MessageOrderAttr
from ..dialects.steps import Copy
from ..ir.geometry.tile_pairs import partners_alike
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass
from .plans.planned import asked_target


@dataclass(frozen=True)
class OrderExchanges(ModulePass):
    """Write the order of a move's messages that makes its exchange shortest. exchange -> exchange.

    It tries a few orders for each move, computes the timetable of each, and keeps the shortest: by
    a shift along places at the sender and at the receiver, by direction, and by class (see
    backends/timetable/orders.py). A move that has an order keeps it. A move whose messages leave in
    the best order anyway gets none, and so does one with too many messages to list.
    Where pairs of tiles want the same words, it tries `width 64` too.

        exchange.move [@x] -> @y

    becomes

        exchange.move [@x] -> @y order <((p1 - q0) mod 16) of [1, 16] from [16, 1]>

    Attributes:
        target: whose fabric carries the messages; "" for the target that the module names.
    """

    name = "order-exchanges"
    takes = EXCHANGE
    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        target = asked_target(op, self.target)
        variables, links = variables_of(op), LinkLanes.of(target)
        for copy in op.walk():
            if isinstance(copy, Copy) and copy.order is None:
                moves = moves_of_copy(copy, variables)
                try:
                    best = best_order(
                        moves, target.exchange, target.tiles, _may_widen(copy, moves), links
                    )
                except InputError:
                    continue
                if best.order is not None:
                    copy.order = MessageOrderAttr(best.order)
                if best.width != copy.lane_bits:
                    copy.width = IntegerAttr(best.width, i64)


def _may_widen(copy: Copy, moves: Sequence[Move]) -> bool:
    """Whether nobody chose a width, both tiles of each pair hold the same block, and all blocks
    begin at multiples of 8 bytes, as items of 64 bits must."""
    return (
        copy.width is None
        and not any(a % 8 for move in moves for a in move.address)
        and all(partners_alike(move.destination).all() for move in moves)
    )
