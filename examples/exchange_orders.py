# exchange_orders.py
"""Three passes about the messages of an exchange: a bad order, a splitter, and a detour."""

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr, TensorType, i64
from xdsl.passes import ModulePass

from abele.dialects.exchange import MoveOp
from abele.dialects.levels import EXCHANGE, TILE
from abele.dialects.message_order import MessageOrder, MessageOrderAttr
from abele.dialects.tile import CopyOp, VariableOp
from abele.dialects.variable import Variable
from abele.ir.geometry.layout import block_layout
from abele.ir.geometry.part_keys import part
from abele.ir.geometry.space import AccessMap, Dim, Space, identity_map
from abele.ir.provenance import locate


def variables_of(module):
    return {op.symbol: op for op in module.ops if isinstance(op, Variable)}


@dataclass(frozen=True)
class ReceiverFirst(ModulePass):
    """Let every tile send to the first receiver first: a bad order, because all wait for it."""

    name = "receiver-first"
    takes = EXCHANGE

    def apply(self, ctx, op):
        variables = variables_of(op)
        for move in op.walk():
            if not isinstance(move, MoveOp):
                continue
            parts = variables[move.destination].placed.parts
            keys = tuple(part("d", dim) for dim, count in enumerate(parts) if count > 1)
            if keys:
                move.properties["order"] = MessageOrderAttr(MessageOrder(keys))


@dataclass(frozen=True)
class SplitMessages(ModulePass):
    """End a message after so many words, unless a pass has decided on fewer."""

    name = "split-messages"
    takes = EXCHANGE

    words: int = 64

    def apply(self, ctx, op):
        for move in op.walk():
            if isinstance(move, MoveOp) and move.message_words > self.words:
                move.properties["chunk"] = IntegerAttr(self.words, i64)


@dataclass(frozen=True)
class TwoHops(ModulePass):
    """Send what every tile has for every other tile in two hops.

    Rows that become columns take a message from each tile to each other one. With a grid of tiles
    in between, a tile sends to one row of the grid. Each tile turns its block, so that what goes to
    a tile lies in one piece. Then it sends to one column of the grid. So it needs fewer messages,
    and less code. All bytes travel twice.
    """

    name = "two-hops"
    takes = TILE
    decided = "plain"

    def apply(self, ctx, op):
        variables = variables_of(op)
        for copy in tuple(op.walk()):
            if not isinstance(copy, CopyOp) or copy.moves or len(copy.sources) != 1:
                continue
            source, wanted = variables[copy.sources[0]], variables[copy.destination]
            grid = between(source, wanted)
            if grid is None:
                continue
            first, second, *rest = source.placed.shape
            there, back = turn((first, second, *rest)), turn((second, first, *rest))
            layout = block_layout((first, second, *rest), grid)
            turned = TensorType(source.tensor.element_type, (second, first, *rest))
            name = copy.destination
            new = [
                VariableOp(f"{name}/between", source.tensor, layout),
                VariableOp(f"{name}/turned", turned, swapped(layout)),
                CopyOp([source.symbol], f"{name}/between"),
                CopyOp([f"{name}/between"], f"{name}/turned", [there]),
                CopyOp([f"{name}/turned"], name, [back]),
            ]
            for each in new:
                locate(each, copy)
            wanted.parent.insert_ops_before(new[:2], wanted)
            copy.parent.insert_ops_before(new[2:], copy)
            copy.detach()
            copy.erase()


def turn(shape):
    """The move that swaps the first two axes of a tensor of a shape."""
    first, second, *rest = shape
    turned = (second, first, *rest)
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(turned))
    others = tuple(range(2, len(shape)))
    read = identity_map((1, 0, *others), shape)
    return Space(dims, (read,), (identity_map((0, 1, *others), turned),))


def swapped(layout):
    """The blocks of a layout on the same tiles, with their first two axes swapped."""
    first, second, *rest = layout.access.axes
    return replace(layout, access=AccessMap((second, first, *rest)))


def between(source, wanted):
    """The grid of tiles between blocks along the first axis and blocks along the second one; None
    for other blocks."""
    count, shape = source.placed.cells, source.placed.shape
    if len(shape) < 2 or shape != tuple(source.tensor.get_shape()):
        return None
    ones = (1,) * (len(shape) - 2)
    if count > min(shape[:2]) or wanted.placed != block_layout(shape, (1, count, *ones)):
        return None
    if source.placed != block_layout(shape, (count, 1, *ones)):
        return None
    down = next(n for n in range(int(count**0.5), 0, -1) if count % n == 0)
    return (down, count // down, *ones) if down > 1 else None
