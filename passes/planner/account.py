"""What plans of a product of matrices cost under some charges, phase by phase.

Rows, depth and columns are cut into parts, a tile each. A block that several tiles need is there
once, cut again, and its pieces go round those tiles, as T10's do:

    left operand    rows x depth      needed by the parts of columns
    right operand   depth x columns   needed by the parts of rows
    result          rows x columns    made by the parts of depth

How often it is cut, along each of its two dimensions, are its turns: their product divides the
tiles that it goes round. Two blocks that both turn along a dimension do so together, as far as one
count divides the other, which it must. A tile multiplies one piece by another at a time, so a
dimension takes as many steps as the larger of its turns says.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from .charges import Charges, Cycles, divided
from .price import Integers

Sizes = tuple[int, int, int]
"""Rows, depth and columns of a product."""

Turns = tuple[Integers, Integers, Integers]
Blocks = tuple[Cycles, Cycles, Cycles]
"""Of left operand, right operand and result."""


@dataclass(frozen=True)
class Candidates:
    """Plans of one product; sizes are of the whole of it.

    parts: of rows, depth and columns, (3, candidates). left: turns of the left operand along rows
    and depth; right: along depth and columns; result: along rows and columns; (2, candidates), or
    (2, 1) for all alike.
    """

    sizes: Sizes
    parts: Integers
    left: Integers
    right: Integers
    result: Integers

    @property
    def turns(self) -> Turns:
        """Of left operand, right operand and result."""
        return self.left, self.right, self.result

    def __len__(self) -> int:
        return self.parts.shape[1]

    def at(self, where: NDArray[np.integer] | NDArray[np.bool_]) -> Candidates:
        """Some of them."""
        parts = self.parts[:, where]
        turns = (each if each.shape[1] == 1 else each[:, where] for each in self.turns)
        return Candidates(self.sizes, parts, *turns)

    def and_those(self, other: Candidates) -> Candidates:
        """These, then others of the same product."""

        def columns(each: Integers, count: int) -> Integers:
            return np.broadcast_to(each, (len(each), count))

        turns = (
            np.concatenate([columns(one, len(self)), columns(two, len(other))], axis=1)
            for one, two in zip(self.turns, other.turns, strict=True)
        )
        parts = np.concatenate([self.parts, other.parts], axis=1)
        return Candidates(self.sizes, parts, *turns)

    def cells(self) -> Cycles:
        """Rows, depth and columns of the largest part: (3, candidates)."""
        return divided(np.array(self.sizes)[:, None], self.parts)

    def steps(self) -> Integers:
        """Steps that rows, depth and columns of a part take: (3, candidates) or (3, 1)."""
        (a, b), (c, d), (e, f) = self.left, self.right, self.result
        return np.stack(np.broadcast_arrays(np.maximum(a, e), np.maximum(b, c), np.maximum(d, f)))


ONCE = np.ones((2, 1), np.int64)


# How the phases of a plan are put together.

Order = Callable[[Charges, Cycles, Cycles, Cycles], Cycles]
Merging = Callable[[Charges, Cycles, Cycles], Cycles]


@dataclass(frozen=True)
class Ways:
    """How plans are carried out.

    order: cycles of a product of (rows, depth, columns), which of rows and columns goes where
    decided. merging: cycles of adding up results of so many elements, of so many copies, the best
    of these ways.
    """

    order: Order
    merging: tuple[Merging, ...]


def longer_first(charges: Charges, rows: Cycles, depth: Cycles, columns: Cycles) -> Cycles:
    """The comparator's order: the longer of rows and columns streams past the units, unless it has
    16 or less."""
    longer, shorter = np.maximum(rows, columns), np.minimum(rows, columns)
    few = longer <= 16
    return charges.multiply_cycles(
        np.where(few, shorter, longer), depth, np.where(few, longer, shorter)
    )


def either_order(charges: Charges, rows: Cycles, depth: Cycles, columns: Cycles) -> Cycles:
    """The cheaper order."""
    return np.minimum(
        charges.multiply_cycles(rows, depth, columns),
        charges.multiply_cycles(columns, depth, rows),
    )


def merged_in_turn(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """The comparator's way: a copy at a time to the next tile, a sync each, then all are added.

    Of two copies half a block goes each way, in two syncs.
    """
    two = copies == 2
    moved = np.where(two, np.floor(elements / 2), elements) * charges.partial_bytes
    share = elements / copies
    adding = np.where(two, charges.pair_cycles(share), charges.reduce_cycles(share, copies))
    return copies * charges.sync_cycles + charges.receive_cycles(moved) + adding


def merged_at_once(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """Every tile receives its share of all other copies in one exchange."""
    share = elements / copies
    received = (elements - np.floor(share)) * charges.partial_bytes
    adding = charges.reduce_cycles(share, copies)
    adding = np.where(copies == 2, np.minimum(adding, charges.pair_cycles(share)), adding)
    return charges.sync_cycles + charges.receive_cycles(received) + adding


def merged_in_stages(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """The tiles of a group add up theirs, then the groups do; the best number in a group.

    Infinite where copies are no product.
    """
    divisors, first = _divisors(int(copies.max(initial=1)))
    whole = copies.astype(np.int64)
    row, number = ragged(first[whole + 1] - first[whole])
    group, groups = divisors[first[whole[row]] + number], copies[row]
    groups = groups / group
    left = divided(elements[row], group)
    cycles = merged_at_once(charges, elements[row], group) + merged_at_once(charges, left, groups)
    best = np.full(len(copies), np.inf)
    np.minimum.at(best, row, cycles)
    return best


def ragged(lengths: Integers) -> tuple[Integers, Integers]:
    """The rows and the places in them of a table whose rows are so long."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@lru_cache(maxsize=64)
def _divisors(most: int) -> tuple[Cycles, Integers]:
    """The divisors of 0 to most but for 1 and the number itself, and where each one's begin."""
    each = np.arange(most + 1)
    divisor, times = ragged(most // np.maximum(each, 1) * (each > 0))
    product = divisor * (times + 1)
    kept = (divisor > 1) & (product > divisor)
    divisor, product = divisor[kept], product[kept]
    order = np.argsort(product, kind="stable")
    begins = np.searchsorted(product[order], np.arange(most + 2))
    return divisor[order].astype(np.float64), begins


COMPARED = Ways(longer_first, (merged_in_turn,))
"""As the comparator carries plans out."""

WIDER = Ways(either_order, (merged_in_turn, merged_at_once, merged_in_stages))
"""What abele adds: more ways of adding up, and either order of operands."""


@dataclass(frozen=True)
class Account:
    """What candidates cost; every array is (candidates,). bytes: of the tile that has most."""

    cycles: Cycles
    bytes: Integers

    def at(self, where: Integers) -> Account:
        """Some of it."""
        return Account(self.cycles[where], self.bytes[where])

    def and_that(self, other: Account) -> Account:
        """This, then that of other candidates."""
        return Account(np.r_[self.cycles, other.cycles], np.r_[self.bytes, other.bytes])


def pareto_rows(cycles: Cycles, size: Integers) -> Integers:
    """The candidates of which none is both slower and larger than another, smallest first."""
    order = np.lexsort((cycles, size))
    sorted_cycles = cycles[order]
    before = np.minimum.accumulate(np.r_[np.inf, sorted_cycles])[:-1]
    return order[sorted_cycles < before]


def account(found: Candidates, charges: Charges, ways: Ways) -> Account:
    """What plans are charged, put together as the comparator does.

    Operands are where they are needed. A step multiplies; between steps, pieces go round, with
    room for the next one beside the one in use: two syncs for each step and operand, in loops of
    which the one that moves most is outermost. The result's copies are added up, charged for one
    step's part of it, and its block is moved once, with six syncs. Room for copies that arrive to
    be added up is not charged.
    """
    cells, steps = found.cells(), found.steps()
    pieces = divided(cells, steps)
    blocks = _blocks(found, cells)
    sync = charges.sync_cycles
    cycles = steps.prod(axis=0) * ways.order(charges, *pieces)
    cycles = cycles + charges.receive_cycles(blocks[2] * charges.element_bytes) + 6 * sync
    cycles = cycles + _going_round(found, blocks, charges)
    copies = (found.parts[1] // found.result.prod(axis=0)).astype(np.float64)
    merged = np.flatnonzero(copies > 1)
    elements = np.broadcast_to(pieces[0] * pieces[2], copies.shape)[merged]
    cycles[merged] += np.min([way(charges, elements, copies[merged]) for way in ways.merging], 0)
    return Account(_settled(cycles), _held(found.turns, blocks, charges))


def _settled(cycles: Cycles) -> Cycles:
    """Sums of hundredths of cycles without what rounding makes of them, which would tell plans
    apart that cost the same."""
    return np.round(cycles, 3)


def _held(turns: Turns, blocks: Blocks, charges: Charges) -> Integers:
    """Bytes of a tile: of what goes round, the piece in use and the next one."""
    total = np.zeros(1)
    for (along, across), block in zip(turns, blocks, strict=True):
        total = total + block * np.where(along * across > 1, 2, 1)
    return (total * charges.element_bytes).astype(np.int64)


def _blocks(found: Candidates, cells: Cycles) -> Blocks:
    """Elements of a piece of the left operand, the right one and the result."""
    rows, depth, columns = cells
    (a, b), (c, d), (e, f) = found.left, found.right, found.result
    return (
        divided(rows, a) * divided(depth, b),
        divided(depth, c) * divided(columns, d),
        divided(rows, e) * divided(columns, f),
    )


def _going_round(found: Candidates, blocks: Blocks, charges: Charges) -> Cycles:
    """Cycles in which pieces move on.

    What turns equally often along a dimension moves together. Loops whose pieces are of one size
    are one loop here: their turns multiply.
    """
    if found.left.shape[1] == 1:
        return np.zeros(1)
    left, right, result = blocks
    (a, b), (c, d), (e, f) = found.turns
    rows, depth, columns = np.minimum(a, e), np.minimum(b, c), np.minimum(d, f)
    loops = (
        (rows, 2, result + left),
        ((a // rows) * (b // depth), 1, left),
        ((e // rows) * (f // columns), 1, result),
        (columns, 2, result + right),
        ((c // depth) * (d // columns), 1, right),
        (depth, 2, left + right),
    )
    turns = np.stack([each for each, _, _ in loops])
    moving = np.array([count for _, count, _ in loops])
    sizes = np.stack([size for _, _, size in loops])
    order = np.argsort(-sizes, axis=0, kind="stable")
    turns, sizes = np.take_along_axis(turns, order, 0), np.take_along_axis(sizes, order, 0)
    moves = np.diff(np.cumprod(turns, axis=0), axis=0, prepend=1)
    each = charges.receive_cycles(sizes * charges.element_bytes)
    each = each + 2 * charges.sync_cycles * moving[order]
    return np.asarray((moves * each).sum(axis=0), np.float64)


def bound(found: Candidates, charges: Charges) -> Account:
    """Cycles that plans are not below, whatever the ways, and their bytes.

    Quicker than what they cost: everything goes round by itself, and copies are added up for
    nothing.
    """
    cells = found.cells()
    return bound_of(cells, found.turns, _blocks(found, cells)[2], charges)


def bound_of(cells: Cycles, turns: Turns, result: Cycles, charges: Charges) -> Account:
    """The bound of plans of which less is known.

    cells, turns: as of candidates; those plans may have more depth, and more turns of the result.
    result: elements of its piece at least. Nothing of that makes a plan cost less: a product in
    parts costs at least as much as the whole.
    """
    (a, b), (c, d), (e, f) = turns
    steps = np.stack(np.broadcast_arrays(np.maximum(a, e), np.maximum(b, c), np.maximum(d, f)))
    rows, depth, columns = cells
    cycles = steps.prod(axis=0) * either_order(charges, *divided(cells, steps))
    cycles = cycles + charges.receive_cycles(result * charges.element_bytes)
    cycles = cycles + 6 * charges.sync_cycles
    left, right = divided(rows, a) * divided(depth, b), divided(depth, c) * divided(columns, d)
    for (along, across), block in zip(turns, (left, right, result), strict=True):
        each = charges.receive_cycles(block * charges.element_bytes) + 2 * charges.sync_cycles
        cycles = cycles + (along * across - 1) * each
    return Account(_settled(cycles), _held(turns, (left, right, result), charges))
