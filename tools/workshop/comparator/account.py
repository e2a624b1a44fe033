"""The cost of plans of a matrix product, phase by phase, under the charges of a machine.

Rows, depth and columns are cut into parts, one cell per tile. A block that several tiles need is
stored once: it is cut again, and its pieces rotate around those tiles, as in T10:

    left operand    rows x depth      needed by the parts of columns
    right operand   depth x columns   needed by the parts of rows
    result          rows x columns    made by the parts of depth

The turns of a block are the numbers of pieces along its two dimensions. Their product divides the
number of tiles that the block rotates around. If two blocks turn along the same dimension, one
number of turns divides the other, and they move together. A tile multiplies one piece by another at
a time, so a dimension takes as many steps as the larger of its turns.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....passes.planner.charges import Charges, Cycles
from ....passes.planner.price import Integers

Sizes = tuple[int, int, int]
"""Rows, depth and columns of a product."""

Turns = tuple[Integers, Integers, Integers]
Blocks = tuple[Cycles, Cycles, Cycles]
"""Turns of the left operand, the right operand and the result; then elements of their pieces."""


def divided(value: ArrayLike, by: ArrayLike) -> Cycles:
    """A quotient of integers below 2**52, rounded up.

    Floats divide several times as fast as 64-bit integers, and are exact below 2**52.
    """
    return np.ceil(np.true_divide(value, by))


@dataclass(frozen=True)
class Candidates:
    """Plans of one product.

    Attributes:
        sizes: of the whole product.
        parts: of rows, depth and columns, (3, candidates).
        left: turns of the left operand along rows and depth.
        right: turns along depth and columns.
        result: turns along rows and columns. Turns are (2, candidates), or (2, 1) if all candidates
            have the same.
    """

    sizes: Sizes
    parts: Integers
    left: Integers
    right: Integers
    result: Integers

    @property
    def turns(self) -> Turns:
        """Turns of the left operand, the right operand and the result."""
        return self.left, self.right, self.result

    def __len__(self) -> int:
        return self.parts.shape[1]

    def at(self, where: NDArray[np.integer] | NDArray[np.bool_]) -> Candidates:
        """The candidates at some indices, or those selected by a mask."""
        parts = self.parts[:, where]
        turns = (each if each.shape[1] == 1 else each[:, where] for each in self.turns)
        return Candidates(self.sizes, parts, *turns)

    def and_those(self, other: Candidates) -> Candidates:
        """These candidates, followed by other candidates of the same product."""

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
        """Steps along rows, depth and columns of a part: (3, candidates) or (3, 1)."""
        (a, b), (c, d), (e, f) = self.left, self.right, self.result
        return np.stack(np.broadcast_arrays(np.maximum(a, e), np.maximum(b, c), np.maximum(d, f)))


ONCE = np.ones((2, 1), np.int64)
"""The turns of a block that does not rotate."""


# How plans are carried out.

Order = Callable[[Charges, Cycles, Cycles, Cycles], Cycles]
Merging = Callable[[Charges, Cycles, Cycles], Cycles]


@dataclass(frozen=True)
class Ways:
    """How plans are carried out.

    Attributes:
        order: cycles of a product of (rows, depth, columns); it decides whether rows or columns
            stream past the units.
        merging: ways to add up partial results, as cycles of (elements, copies); the cheapest one
            counts.
    """

    order: Order
    merging: tuple[Merging, ...]


def longer_first(charges: Charges, rows: Cycles, depth: Cycles, columns: Cycles) -> Cycles:
    """Cycles in the comparator's order of operands: the longer of rows and columns streams past the
    units.

    If the longer one has at most 16 elements, the shorter one streams.
    """
    longer, shorter = np.maximum(rows, columns), np.minimum(rows, columns)
    few = longer <= 16
    return charges.multiply_cycles(
        np.where(few, shorter, longer), depth, np.where(few, longer, shorter)
    )


def either_order(charges: Charges, rows: Cycles, depth: Cycles, columns: Cycles) -> Cycles:
    """Cycles in the cheaper order of operands."""
    return np.minimum(
        charges.multiply_cycles(rows, depth, columns),
        charges.multiply_cycles(columns, depth, rows),
    )


def merged_in_turn(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """Cycles of the comparator's way to merge.

    One copy per superstep goes to the next tile, then all copies are added. Of two copies, half a
    block goes each way, in two syncs.
    """
    two = copies == 2
    moved = np.where(two, np.floor(elements / 2), elements) * charges.partial_bytes
    share = elements / copies
    adding = np.where(two, charges.pair_cycles(share), charges.reduce_cycles(share, copies))
    return copies * charges.sync_cycles + charges.receive_cycles(moved) + adding


def merged_at_once(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """Cycles to merge if each tile receives its share of all other copies in a single exchange."""
    share = elements / copies
    received = (elements - np.floor(share)) * charges.partial_bytes
    adding = charges.reduce_cycles(share, copies)
    adding = np.where(copies == 2, np.minimum(adding, charges.pair_cycles(share)), adding)
    return charges.sync_cycles + charges.receive_cycles(received) + adding


def merged_in_stages(charges: Charges, elements: Cycles, copies: Cycles) -> Cycles:
    """Cycles to merge within groups of tiles first, then between groups, with the best group size.

    Infinite where the number of copies is prime.
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
    """The row of each entry, and its index in the row, of a table whose rows have these lengths."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    return row, np.arange(len(row)) - np.repeat(np.cumsum(lengths) - lengths, lengths)


@lru_cache(maxsize=64)
def _divisors(most: int) -> tuple[Cycles, Integers]:
    """The divisors of 0..most without 1 and the number itself, and the first index of each number's
    divisors."""
    each = np.arange(most + 1)
    divisor, times = ragged(most // np.maximum(each, 1) * (each > 0))
    product = divisor * (times + 1)
    kept = (divisor > 1) & (product > divisor)
    divisor, product = divisor[kept], product[kept]
    order = np.argsort(product, kind="stable")
    begins = np.searchsorted(product[order], np.arange(most + 2))
    return divisor[order].astype(np.float64), begins


COMPARED = Ways(longer_first, (merged_in_turn,))
"""The comparator's way to carry out plans."""

WIDER = Ways(either_order, (merged_in_turn, merged_at_once, merged_in_stages))
"""The comparator's ways and abele's own: more ways to merge, and either order of operands."""


@dataclass(frozen=True)
class Account:
    """The cost of candidates; every array is (candidates,).

    Attributes:
        bytes: of the fullest tile.
    """

    cycles: Cycles
    bytes: Integers

    def at(self, where: Integers) -> Account:
        """The cost of the candidates at some indices."""
        return Account(self.cycles[where], self.bytes[where])

    def and_that(self, other: Account) -> Account:
        """This cost, followed by that of other candidates."""
        return Account(np.r_[self.cycles, other.cycles], np.r_[self.bytes, other.bytes])


def account(found: Candidates, charges: Charges, ways: Ways) -> Account:
    """The cost of plans, put together in the comparator's way.

    Operands lie where they are needed. Each step multiplies. Between steps, pieces rotate in nested
    loops, the loop that moves most outermost, with two syncs per step and operand and with room for
    the next piece besides the current one. The copies of the result are merged, charged for one
    step's part of it, and its block is moved once, with six syncs. Room for copies that arrive to
    be merged is not charged.
    Source: t10_TensorExpression.py, as for `t10.T10`.
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
    """Cycles rounded to thousandths, so that rounding errors do not distinguish equal plans."""
    return np.round(cycles, 3)


def _held(turns: Turns, blocks: Blocks, charges: Charges) -> Integers:
    """Bytes on a tile. A block that rotates takes two pieces: the current one and the next."""
    total = np.zeros(1)
    for (along, across), block in zip(turns, blocks, strict=True):
        total = total + block * np.where(along * across > 1, 2, 1)
    return (total * charges.element_bytes).astype(np.int64)


def _blocks(found: Candidates, cells: Cycles) -> Blocks:
    """Elements of a piece of the left operand, of the right operand and of the result."""
    rows, depth, columns = cells
    (a, b), (c, d), (e, f) = found.left, found.right, found.result
    return (
        divided(rows, a) * divided(depth, b),
        divided(depth, c) * divided(columns, d),
        divided(rows, e) * divided(columns, f),
    )


def _going_round(found: Candidates, blocks: Blocks, charges: Charges) -> Cycles:
    """Cycles to move the pieces that rotate.

    Blocks that turn equally often along a dimension move together. Loops whose pieces have the same
    size count as one loop, whose turns are the product of theirs.
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
    """A lower bound of the cycles of plans, over all ways to carry them out, and their exact bytes.

    It is quicker to compute than the cost: each block rotates separately, and merging is free.
    """
    cells = found.cells()
    return bound_of(cells, found.turns, _blocks(found, cells)[2], charges)


def bound_of(cells: Cycles, turns: Turns, result: Cycles, charges: Charges) -> Account:
    """A lower bound for all plans with these cells and turns.

    The plans may have more depth than the cells, and more turns of the result.

    Args:
        result: the fewest elements that a piece of the result has. Neither makes a plan cheaper,
            since a product in parts costs at least as much as the whole.
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
