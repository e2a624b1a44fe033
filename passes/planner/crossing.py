"""What bytes between chips cost while operands arrive.

Each layout is reduced to its chips: a block for each chip, which is the union of those of its
tiles. Bytes that several tiles of a chip want cross a link once, so these blocks say what crosses.
If blocks are not ranges of elements, all chips are assumed to have blocks of equal size.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from math import ceil, gcd, prod
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...backends.fabrics.traffic import Carried
from ...backends.links.links import routes_of
from ...backends.prices import cost
from ...backends.target import Target
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Space
from ...ir.support.arrays import Integers
from ..replicas.gathers import cycles_in_rounds, gather_of
from .traffic import shifts, traffic

LINKS_OF_A_CHIP = 2
"""For a guess: the links over which a chip receives at the same time, as fast as the fastest one.
In a ladder, the rung and the two rails of a chip carry twice as much as the rung."""


_Number = TypeVar("_Number", float, NDArray[np.floating[Any]])


def crossing_cycles(
    operands: Iterable[tuple[Layout, Layout, int, Space | None]], target: Target
) -> int:
    """The cycles until all operands have crossed the links of their chips, with the longer sync.

    0 if nothing crosses. An operand that all chips gather in rounds crosses before the others.

    Args:
        operands: for each the present layout, the wanted one, bytes of an element, and the space
            of the movement that it passes through, or None.
    """
    moved: Integers | None = None
    rounds = 0
    for source, wanted, itemsize, move in operands:
        before = 0 if move is not None else _in_rounds(source, wanted, itemsize, target)
        rounds += before
        if before:
            continue
        crossing = _crossing(source, wanted, move, target)
        if len(crossing.pairs):
            moved = np.zeros(target.chips**2, np.int64) if moved is None else moved
            moved[crossing.pairs] += crossing.elements * itemsize
    if moved is None:
        return rounds
    pairs = np.flatnonzero(moved)
    seconds = routes_of(target.links).longest_seconds(pairs, moved[pairs])
    seconds += target.links.first_word_seconds()
    return rounds + ceil(seconds * target.clock_hz) + _longer_sync(target)


@lru_cache(maxsize=4096)
def _in_rounds(source: Layout, wanted: Layout, itemsize: int, target: Target) -> int:
    """The cycles in which all chips gather an operand in rounds; 0 if it comes otherwise."""
    gather = gather_of(source, wanted, target)
    return (gather and cycles_in_rounds(gather, itemsize, target)) or 0


def least_crossing_cycles(received: _Number, target: Target) -> _Number:
    """A low guess of the cycles in which a chip receives some bytes.

    Args:
        received: more than 0.
    """
    seconds = received / (LINKS_OF_A_CHIP * _fastest_link(target))
    seconds += target.links.first_word_seconds()
    return seconds * target.clock_hz + _longer_sync(target)


@lru_cache(maxsize=64)
def _fastest_link(target: Target) -> float:
    return float(routes_of(target.links).bytes_per_second.max())


def _longer_sync(target: Target) -> int:
    return cost.sync_cycles(target, "all") - cost.sync_cycles(target)


@lru_cache(maxsize=4096)
def on_chips(layout: Layout, target: Target) -> Layout:
    """A layout of the same tensor whose cells are chips."""
    chips = _chips(layout, target.tiles_per_chip)
    grid = tuple(
        Cut(cut.size, min(n, max(cut.size, 1))) for cut, n in zip(layout.grid, chips, strict=True)
    )
    first = layout.first_tile // target.tiles_per_chip
    return replace(layout, grid=grid, first_tile=first, apart=0)


def _chips(layout: Layout, chip_tiles: int) -> list[int]:
    """The chips over which the parts of each dimension of a layout are spread."""
    if layout.apart:
        return [cut.chips for cut in layout.grid]
    # Cells that fill several chips without a gap are numbered row-major.
    left = layout.cells // chip_tiles if layout.cells % chip_tiles == 0 else 1
    found = [1] * len(layout.grid)
    for d in layout.split_dims:
        parts = layout.parts[d]
        if left % parts == 0:
            found[d] = parts
        elif parts % left == 0:
            found[d] = left
        else:
            break
        left //= found[d]
    return found


def _only_chip(layout: Layout, target: Target) -> int:
    """The chip on which a layout lies; -1 if there are several."""
    first, last = layout.first_tile, layout.first_tile + layout.cells - 1
    chip = first // target.tiles_per_chip
    return chip if not layout.apart and last // target.tiles_per_chip == chip else -1


class _Blocks(NamedTuple):
    """The blocks of a layout on its chips.

    Attributes:
        chips: their numbers, (chips,).
        first: for each chip, the position of the first one that holds the same block, (chips,).
        runs: along each axis, the first element of each block and one past the last, (chips,) each.
        steps: the distance of neighbouring elements of a block, for each axis.
    """

    chips: Integers
    first: Integers
    runs: tuple[tuple[Integers, Integers], ...]
    steps: tuple[int, ...]


@lru_cache(maxsize=4096)
def _blocks(layout: Layout, target: Target) -> _Blocks | None:
    """The blocks of a layout on its chips; None if they are no ranges of elements."""
    if any(axis.divisor > 1 or axis.outside not in ("none", "fill") for axis in layout.access.axes):
        return None
    chips = _chips(layout, target.tiles_per_chip)
    number = np.arange(prod(chips))
    named = layout.access.dims()
    kept = tuple(slice(n if d in named else 1) for d, n in enumerate(chips))
    first = np.broadcast_to(number.reshape(chips)[kept], chips).ravel()
    runs: list[tuple[Integers, Integers]] = []
    steps: list[int] = []
    for axis in layout.access.axes:
        begins = np.full((1,) * len(chips), axis.offset)
        ends = begins + 1
        for d, a in axis.terms:
            edges = _edges(layout.grid[d], chips[d])
            along = [-1 if e == d else 1 for e in range(len(chips))]
            low, high = edges[:-1].reshape(along), edges[1:].reshape(along) - 1
            begins = begins + a * (low if a > 0 else high)
            ends = ends + a * (high if a > 0 else low)
        begins = np.minimum(np.maximum(begins, 0), axis.size)
        ends = np.minimum(np.maximum(ends, begins), axis.size)
        runs.append((_of_each(begins, chips), _of_each(ends, chips)))
        steps.append(gcd(*(a for d, a in axis.terms if layout.grid[d].size > chips[d])) or 1)
    each = layout.apart // target.tiles_per_chip or 1
    at = number * each + layout.first_tile // target.tiles_per_chip
    return _Blocks(at, first, tuple(runs), tuple(steps))


@lru_cache(maxsize=4096)
def _edges(cut: Cut, chips: int) -> Integers:
    """The boundaries between the chips of a cut: (chips + 1,)."""
    return cut.edges()[:: cut.parts // chips]


def _of_each(values: Integers, chips: list[int]) -> Integers:
    """Values by dimension as values of each chip."""
    return np.broadcast_to(values, chips).ravel()


class _Crossing(NamedTuple):
    """What crosses between chips, a row for each pair of chips: source * chips + destination."""

    pairs: Integers
    elements: Integers


_NOTHING = _Crossing(np.zeros(0, np.int64), np.zeros(0, np.int64))


@lru_cache(maxsize=4096)
def _crossing(of: Layout, to: Layout, move: Space | None, target: Target) -> _Crossing:
    """The elements that go from each chip to each other one."""
    chip = _only_chip(of, target)
    if chip >= 0 and chip == _only_chip(to, target):
        return _NOTHING
    source, wanted = _blocks(of, target), _blocks(to, target)
    pairs = None if source is None or wanted is None else _axes(of, to, move)
    if source is None or wanted is None or pairs is None or max(source.steps, default=1) > 1:
        return _with_equal_blocks(of, to, move, target)
    firsts = np.flatnonzero(source.first == np.arange(len(source.first)))
    shared = np.ones((len(firsts), len(wanted.chips)), np.int64)
    for i, j, by, low, high in pairs:
        begins, ends = (each[firsts][:, None] for each in source.runs[i])
        first, last = (np.clip(each + by, low, high) for each in wanted.runs[j])
        common = np.maximum(np.minimum(ends, last) - np.maximum(begins, first), 0)
        shared *= common if wanted.steps[j] == 1 else -(-common // wanted.steps[j])
    # A chip reads its own copy of a block.
    chips = np.zeros(target.chips, np.int64) - 1
    chips[source.chips] = np.searchsorted(firsts, source.first)
    own = chips[wanted.chips]
    here = np.flatnonzero(own >= 0)
    shared[own[here], here] = 0
    block, at = shared.nonzero()
    numbers = source.chips[firsts][block] * target.chips + wanted.chips[at]
    return _Crossing(numbers, shared[block, at])


def _axes(
    of: Layout, to: Layout, move: Space | None
) -> list[tuple[int, int, int, int, int]] | None:
    """The pairs of axes of two layouts along which elements correspond, with the shift and the
    range of elements; None if a move does more than shift."""
    if move is None:
        mine, theirs = _moving(of), _moving(to)
        sizes = [of.shape[i] for i in mine]
        if sizes != [to.shape[j] for j in theirs]:
            return None
        return [(i, j, 0, 0, n) for i, j, n in zip(mine, theirs, sizes, strict=True)]
    if (of.shape, to.shape) != (move.operands[0].shape, move.results[0].shape):
        return None
    found = shifts(move)
    return [(i, j, s.by, s.low, s.high) for i, j, s in found] if found else None


def _moving(layout: Layout) -> list[int]:
    """The indices of all axes of more than one element."""
    return [i for i, n in enumerate(layout.shape) if n != 1]


def _with_equal_blocks(of: Layout, to: Layout, move: Space | None, target: Target) -> _Crossing:
    """The elements that go from each chip to each other one, if chips have blocks of equal size."""
    source, wanted = on_chips(of, target), on_chips(to, target)
    flows = Carried(traffic(source, wanted, move), 1).flows()
    pairs, which = np.unique(flows.source * target.chips + flows.destination, return_inverse=True)
    return _Crossing(pairs, np.bincount(which, flows.bytes, len(pairs)).astype(np.int64))
