"""The best plans of a matrix product, among all splits and all rotations of operands.

The search space is the comparator's (see `account`). The search is exact: a plan is left unpriced
only if a plan already found is at least as good as its lower bound.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from ....passes.planner.charges import Charges
from ....passes.planner.choice import pareto_rows
from ....passes.planner.price import Integers
from .account import (
    ONCE,
    Account,
    Candidates,
    Sizes,
    Ways,
    account,
    bound,
    bound_of,
    divided,
    ragged,
)


def splits(sizes: Sizes, tiles: int, *, fewest: bool = True) -> Candidates:
    """Every plan without rotation: all part counts whose product is at most the number of tiles.

    Args:
        fewest: for rows and columns, only the fewest parts for each size of the largest part; more
            parts with that size cost the same on more tiles. All part counts of depth are kept,
            because they are also the number of copies to merge.
    """
    rows, depth, columns = (np.arange(1, min(size, tiles) + 1) for size in sizes)
    if fewest:
        rows, columns = _of_sizes(rows, sizes[0]), _of_sizes(columns, sizes[2])
    first, second = np.divmod(np.arange(len(rows) * len(columns)), len(columns))
    product = rows[first] * columns[second]
    few = product <= tiles
    first, second, product = first[few], second[few], product[few]
    row, number = ragged(np.minimum(tiles // product, len(depth)))
    parts = np.stack([rows[first[row]], depth[number], columns[second[row]]])
    return Candidates(sizes, parts, ONCE, ONCE, ONCE)


def _of_sizes(counts: Integers, size: int) -> Integers:
    largest = -(-size // counts)
    return counts[np.r_[True, largest[1:] != largest[:-1]]]


@lru_cache(maxsize=8)
def _turning(tiles: int) -> Integers:
    """All part counts, with the turns along two dimensions whose product divides the count: (3,
    ways).

    They are in ascending order of the count.
    """
    firsts = np.arange(1, tiles + 1)
    row, number = ragged(tiles // firsts)
    first, second = firsts[row], number + 1
    row, number = ragged(tiles // (first * second))
    first, second = first[row], second[row]
    parts = first * second * (number + 1)
    order = np.lexsort((second, first, parts))
    return np.stack([parts, first, second])[:, order]


@dataclass(frozen=True)
class _Choices:
    """Ways to cut one dimension, with the turns of the block that rotates around its parts.

    Attributes:
        parts: number of parts, ascending, (choices,).
        cells: elements of the largest part, (choices,).
        turns: of the block, along the two dimensions that it has, (2, choices).
    """

    parts: Integers
    cells: Integers
    turns: Integers


def _choices(sizes: Sizes, dim: int, tiles: int, *, fewest: bool) -> _Choices:
    """The ways to cut a dimension into at most as many parts as there are tiles.

    Args:
        fewest: of ways with the same turns and the same size of the largest part, keep only the way
            with the fewest parts.
    """
    parts, *turns = _turning(tiles)
    others = [d for d in range(3) if d != dim]
    kept = parts <= sizes[dim]
    for each, other in zip(turns, others, strict=True):
        kept &= each <= sizes[other]
    table = np.stack([-(-sizes[dim] // parts), *turns, parts])[:, kept]
    if fewest:
        _, first = np.unique(table[:3], axis=1, return_index=True)
        table = table[:, np.sort(first)]
    return _Choices(table[3], table[0], table[1:3])


@dataclass(frozen=True)
class Front:
    """The plans that no other plan beats in both cycles and bytes, the smallest first.

    Attributes:
        priced: the number of plans that were priced to find them.
    """

    plans: Candidates
    cost: Account
    priced: int

    def __len__(self) -> int:
        return len(self.plans)

    @property
    def fastest(self) -> float:
        """The fewest cycles of any plan; infinite if there is none."""
        return float(self.cost.cycles[-1]) if len(self) else np.inf

    def beats(self, cost: Account) -> NDArray[np.bool_]:
        """Whether a plan of the front needs at most these bytes and these cycles: (candidates,)."""
        at = np.searchsorted(self.cost.bytes, cost.bytes, "right")
        return np.r_[np.inf, self.cost.cycles][at] <= cost.cycles

    def and_that(self, other: Front) -> Front:
        """The best plans of both fronts."""
        both = front(self.plans.and_those(other.plans), self.cost.and_that(other.cost))
        return replace(both, priced=self.priced + other.priced)


def front(found: Candidates, cost: Account) -> Front:
    """The best of some plans, for each number of bytes."""
    kept = pareto_rows(cost.cycles, cost.bytes)
    return Front(found.at(kept), cost.at(kept), len(found))


Rule = Callable[[Candidates, Charges], NDArray[np.bool_]]
"""Selects the candidates that a search may use."""

THRESHOLD = 0.9
"""The least share of the tiles in use, and of elements that are not padding.

Source: T10's CORE_UTIL and DATA_PAD_THRESHOLD.
"""


def comparators_rule(found: Candidates, charges: Charges) -> NDArray[np.bool_]:
    """The plans that the comparator considers: those that use most tiles and have little padding.

    All its blocks have the same size; the last ones are padded. The smaller the product, the more
    padding it allows. Source: t10_TensorExpression.py, get_util_threshold, get_pad_threshold,
    is_temp_dim_valid_for_variables, valid_temporal_dim_var_parts.
    """
    points = float(np.prod(found.sizes, dtype=np.float64))
    longest = 3 * max(found.sizes) / 220
    used = THRESHOLD * min(points / (points + 2 * charges.tiles), longest)
    filled = THRESHOLD * min(points / (points + charges.tiles), longest)
    cells, steps = found.cells(), found.steps()
    in_space = (np.array(found.sizes)[:, None] / (cells * found.parts)).prod(axis=0)
    in_time = cells / (steps * divided(cells, steps))
    kept = found.parts.prod(axis=0) / charges.tiles >= used
    kept &= (in_space >= filled) & (in_time.prod(axis=0) >= filled)
    return kept & (in_time >= filled).all(axis=0)


FIRST_PAIRS, PAIRS = 1 << 7, 1 << 13
"""The numbers of (rows, columns) cuts whose depth cuts are priced in one batch: the first number
and the largest.

The result does not depend on them. Assumed: few at first, because the first plans rule out most
others.
"""


def best_without_turns(
    sizes: Sizes, charges: Charges, ways: Ways, rule: Rule | None = None
) -> Front:
    """The best plans without rotation, among those that a rule allows."""
    return _priced(splits(sizes, charges.tiles, fewest=rule is None), charges, ways, rule)


def _priced(
    found: Candidates, charges: Charges, ways: Ways, rule: Rule | None, known: Front | None = None
) -> Front:
    """The best plans among those that fit, that a rule allows and that no known plan beats."""
    if rule is not None:
        found = found.at(rule(found, charges))
    cost = account(found, charges, ways)
    kept = cost.bytes <= charges.bytes_per_tile
    if known is not None:
        kept &= ~known.beats(cost)
    rows = np.flatnonzero(kept)
    return replace(front(found.at(rows), cost.at(rows)), priced=len(found))


def best(sizes: Sizes, charges: Charges, ways: Ways, rule: Rule | None = None) -> Front:
    """The best plans, including plans with rotation."""
    found = best_without_turns(sizes, charges, ways, rule)
    cuts = _Cuts(sizes, charges, fewest=rule is None)
    rows, columns, least = cuts.hopeful(found)
    begin, count = 0, FIRST_PAIRS
    while begin < len(rows):
        chunk = np.arange(begin, min(begin + count, len(rows)))
        chunk = chunk[~found.beats(least.at(chunk))]
        plans = cuts.plans(rows[chunk], columns[chunk])
        plans = plans.at(~found.beats(bound(plans, charges)))
        found = found.and_that(_priced(plans, charges, ways, rule, found))
        begin, count = begin + count, min(2 * count, PAIRS)
    return found


class _Cuts:
    """The cuts of rows, depth and columns of a product, and which of them may be combined.

    The right operand rotates around the parts of rows, the result around the parts of depth, and
    the left operand around the parts of columns.
    """

    def __init__(self, sizes: Sizes, charges: Charges, *, fewest: bool) -> None:
        self.sizes, self.charges = sizes, charges
        self.rows = _choices(sizes, 0, charges.tiles, fewest=fewest)
        self.depth = _choices(sizes, 1, charges.tiles, fewest=False)
        self.columns = _choices(sizes, 2, charges.tiles, fewest=fewest)

    def hopeful(self, found: Front) -> tuple[Integers, Integers, Account]:
        """The combinations of cuts of rows and columns, with the lower bound of their plans.

        Combinations whose bound is beaten by a plan already found are left out; the most promising
        come first.
        """
        rows, columns, tiles = self.rows, self.columns, self.charges.tiles
        i, j = ragged(np.searchsorted(columns.parts, tiles // rows.parts, "right"))
        left, right = columns.turns, rows.turns
        kept = _chained(right[0][i], left[1][j])
        kept &= (left[0][j] <= rows.cells[i]) & (right[1][i] <= columns.cells[j])
        i, j = i[kept], j[kept]
        # The depth and the piece of the result are smallest if all tiles are used.
        most = np.minimum(tiles // (rows.parts[i] * columns.parts[j]), self.sizes[1])
        most_cut = np.stack([rows.parts[i], most, columns.parts[j]])
        cells = divided(np.array(self.sizes)[:, None], most_cut)
        block = divided(cells[0] * cells[2], most)
        cost = bound_of(cells, (left[:, j], right[:, i], ONCE), block, self.charges)
        kept = np.flatnonzero((cost.bytes <= self.charges.bytes_per_tile) & ~found.beats(cost))
        kept = kept[np.argsort(cost.cycles[kept] * cost.bytes[kept], kind="stable")]
        return i[kept], j[kept], cost.at(kept)

    def plans(self, i: Integers, j: Integers) -> Candidates:
        """All plans with these cuts of rows and columns."""
        rows, columns, depth = self.rows, self.columns, self.depth
        tiles = self.charges.tiles // (rows.parts[i] * columns.parts[j])
        row, number = ragged(np.searchsorted(depth.parts, tiles, "right"))
        i, j = i[row], j[row]
        left, right, result = columns.turns, rows.turns, depth.turns
        kept = _chained(result[0][number], left[0][j]) & _chained(result[1][number], right[1][i])
        kept &= (result[0][number] <= rows.cells[i]) & (result[1][number] <= columns.cells[j])
        kept &= np.maximum(left[1][j], right[0][i]) <= depth.cells[number]
        i, j, number = i[kept], j[kept], number[kept]
        parts = np.stack([rows.parts[i], depth.parts[number], columns.parts[j]])
        return Candidates(self.sizes, parts, left[:, j], right[:, i], result[:, number])


def _chained(one: Integers, other: Integers) -> NDArray[np.bool_]:
    """Whether one of two numbers divides the other."""
    return np.maximum(one, other) % np.minimum(one, other) == 0
