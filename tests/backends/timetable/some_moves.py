"""Moves between small layouts, with any order, chunk and width."""

from dataclasses import replace
from math import prod

from hypothesis import strategies as st

from abele.backends.timetable.moves import Move
from abele.dialects.message_order import MessageOrder
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.part_keys import Key, applied, difference, part
from abele.ir.geometry.space import AccessMap, AxisMap, identity_map


def blocks(shape: tuple[int, ...], parts: tuple[int, ...], copies: int = 1) -> Layout:
    """A tensor cut into parts along each axis, each held by so many tiles next to each other."""
    cuts = tuple(Cut(n, p) for n, p in zip(shape, parts, strict=True))
    again = (Cut(copies, copies),) if copies > 1 else ()
    return Layout((*cuts, *again), identity_map(tuple(range(len(shape))), shape))


def windows(shape: tuple[int, ...], parts: tuple[int, ...], reach: int) -> Layout:
    """As blocks, with elements of the neighbours around each block."""
    rank = len(shape)
    axes = tuple(
        AxisMap(n, ((i, 1), (rank + i, 1)), -reach, outside="fill") for i, n in enumerate(shape)
    )
    cuts = tuple(Cut(n, p) for n, p in zip(shape, parts, strict=True))
    return Layout((*cuts, *(Cut(2 * reach + 1),) * rank), AccessMap(axes))


def shifted(move: Move, destination: int, source: int, parts: int) -> Move:
    """A move in the order of a Latin square: (d - s) mod parts."""
    d, s = part("d", destination), part("s", source)
    return ordered(move, applied("mod", difference(d, s), parts))


def ordered(move: Move, *keys: Key) -> Move:
    """A move in the order of some keys."""
    return replace(move, order=MessageOrder(keys, None, move.destination.parts, move.source.parts))


def transposed(rows: int, columns: int, tiles: int) -> Move:
    """Rows on tiles, to columns on tiles: every tile sends to every other one."""
    shape = rows, columns
    return Move("@a -> @b", blocks(shape, (tiles, 1)), blocks(shape, (1, tiles)), None, 4)


def halo(shape: tuple[int, ...], parts: tuple[int, ...]) -> Move:
    """The rim of each neighbour's block."""
    return Move("@a -> @b", blocks(shape, parts), windows(shape, parts, 1), None, 4)


@st.composite
def keys(draw: st.DrawFn, move: Move) -> MessageOrder | None:
    """Any order of a move."""
    parts = [part("d", d) for d in range(len(move.destination.parts))]
    parts += [part("s", d) for d in range(len(move.source.parts))]
    if not parts:
        return None
    one = st.sampled_from(parts)
    summed = st.builds(difference, one, one)
    key = st.one_of(
        one,
        summed,
        st.builds(lambda k, n: applied("mod", k, n), summed, st.integers(1, 5)),
        st.builds(lambda k: applied("sign", k), summed),
        st.just(Key()),
    )
    chosen = draw(st.lists(key, max_size=3))
    return ordered(move, *chosen).order if chosen else None


@st.composite
def moves(draw: st.DrawFn, most_tiles: int = 4) -> Move:
    """A move between blocks of a small tensor, in any order."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=2)))

    def parts() -> tuple[int, ...]:
        found: list[int] = []
        for n in shape:
            found.append(draw(st.integers(1, min(n, most_tiles // max(prod(found), 1)))))
        return tuple(found)

    source = blocks(shape, parts())
    if draw(st.booleans()):
        destination = windows(shape, parts(), 1)
    else:
        own = parts()
        copies = draw(st.integers(1, most_tiles // prod(own)))
        destination = blocks(shape, own, copies)
    move = Move("@a -> @b", source, destination, None, draw(st.sampled_from([1, 2, 4, 8])))
    return replace(
        move,
        address=(0, 512),
        order=draw(keys(move)),
        chunk=draw(st.sampled_from([1, 2, 3, 4148])),
        width=draw(st.sampled_from([32, 64])),
    )
