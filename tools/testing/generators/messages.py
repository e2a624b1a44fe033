"""Random orders, chunks and widths for the moves of a program. Any leaves the same bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

from xdsl.dialects.builtin import IntegerAttr, i64

from ....dialects.message_order import (
    LONGEST_MESSAGE,
    WIDTHS,
    MessageOrder,
    MessageOrderAttr,
)
from ....dialects.steps import Copy
from ....dialects.variable import Variable
from ....ir.geometry.part_keys import Key, applied, difference, part, total
from ....ir.geometry.tile_pairs import partners_alike
from ....ir.upstream import ModuleOp

ORDERED = 0.5
"""How often a move gets an order."""

CHUNKED = 0.3
"""How often a move gets a chunk."""

WIDE = 0.5
"""How often a move to pairs of tiles that hold the same blocks takes 64 bits at once."""

MOST_KEYS = 3

CHUNKS = (1, 2, 3, 64, 65, LONGEST_MESSAGE)
"""Words that chunks are drawn from: the fewest, the most, and those around a short send."""


def decide_messages(module: ModuleOp, random: Random) -> None:
    """Write random orders, chunks and widths on the moves of a module, in place."""
    variables = {op.symbol: op for op in module.body.block.ops if isinstance(op, Variable)}
    for op in module.walk():
        if isinstance(op, Copy):
            _decide(op, variables, random)


def _decide(op: Copy, variables: Mapping[str, Variable], random: Random) -> None:
    written = variables[op.destination].placed
    grids = {variables[name].placed.parts for name in op.sources}
    # The parts of a source are those of one grid.
    source = grids.pop() if len(grids) == 1 else ()
    if random.random() < ORDERED and (source or written.parts):
        order = random_order(written.parts, source, random, one_grid=not grids)
        op.properties["order"] = MessageOrderAttr(order)
    if random.random() < CHUNKED:
        op.properties["chunk"] = IntegerAttr(random.choice(CHUNKS), i64)
    if random.random() < WIDE and partners_alike(written).all():
        op.properties["width"] = IntegerAttr(WIDTHS[-1], i64)


def random_order(
    of: Sequence[int], sources: Sequence[int], random: Random, *, one_grid: bool = True
) -> MessageOrder:
    """A random order of keys over the parts of two grids, one of which has a dimension at least.

    Args:
        of, sources: the parts of each dimension of the destination's and of the source's grid.
        one_grid: whether all sources have this grid. If not, no key has numbers.
    """
    parts = [(part("d", i), n) for i, n in enumerate(of)]
    parts += [(part("s", i), n) for i, n in enumerate(sources)]
    keys = [_key(parts, random, numbers=one_grid) for _ in range(random.randint(1, MOST_KEYS))]
    if (one_grid and random.random() < 0.5) or any(key.has_numbers for key in keys):
        return MessageOrder(tuple(keys), of=tuple(of), sources=tuple(sources))
    return MessageOrder(tuple(keys))


def _key(parts: Sequence[tuple[Key, int]], random: Random, *, numbers: bool) -> Key:
    (one, n), (other, _) = random.choice(parts), random.choice(parts)
    kind = random.choice(("part", "back", "difference", "sign", "mod", "floordiv", "sum"))
    if not numbers and kind in ("mod", "floordiv", "sum"):
        kind = "part"
    match kind:
        case "back":
            return total((one, -1))
        case "difference":
            return difference(one, other)
        case "sign":
            return applied("sign", difference(one, other))
        case "mod":
            return applied("mod", difference(one, other), n)
        case "floordiv":
            return applied("floordiv", one, random.randint(1, n))
        case "sum":
            return total((one, random.randint(-9, 9)), (applied("mod", other, n), 1))
        case _:
            return one
