"""Estimated prices of all candidate splits at once, from block sizes alone.

The exchange of an operand is estimated from the size of its block, independent of the layout that
its producer gives it. Each run of the tensor counts as one fragment.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...backends.prices import cost
from ...backends.prices.codelets import chain_cycles, compute_cycles, elements, merging_cycles
from ...backends.target import Target
from ...ir.geometry.space import Space
from .candidates import splits
from .crossing import least_crossing_cycles
from .orders import arriving, last_dims
from .price import (
    Integers,
    block_elements,
    block_runs,
    cell_cycles,
    largest_cells,
    least_compute_cycles,
)
from .problem import Problem
from .terms import Terms, relaxed

PRICED = 2_048
"""The number of splits that are priced with start-up costs; the others are worse even without them.

Chosen by trial, roomy. Half: up to 0.57 % more cycles in the same time. Double: same.
"""

FAST = 6
"""The number of splits whose exchange is computed exactly, besides inherited and lean splits.

Chosen by trial, roomy. Half: up to 0.35 % more cycles (0.12 % fewer in one network), 10 % less
planning time. Double: at most 0.01 % fewer cycles, 15 % more time.
"""

BYTE_PRICES = tuple(float(p) for p in np.geomspace(1e-2, 30.0, 8))
"""Prices of a resident byte, in cycles, for each of which the best split is kept.

Chosen by trial. With 4 prices in the same range, ResNet-50 takes 1.1 % more cycles on mk1, and
finds no plan that fits mk2:250. With 16, the roomy trial gives the same, the tight one up to 1.8 %
more.
"""


@dataclass(frozen=True)
class Estimates:
    """Estimated prices of candidates; every array is (candidates,).

    Attributes:
        resident, temporary: bytes of the fullest tile.
    """

    cycles: NDArray[np.float64]
    resident: Integers
    temporary: Integers


def result_dims(space: Space) -> tuple[int, ...]:
    """The dimensions of the result: parallel dimensions, and whole dimensions in its access map."""
    kept = space.results[0].dims()
    return tuple(d for d, dim in enumerate(space.dims) if dim.kind == "parallel" or d in kept)


def estimates(problem: Problem, parts: Integers, target: Target, *, quick: bool) -> Estimates:
    """The estimated prices of some splits.

    Args:
        parts: (candidates, dimensions).
        quick: leave out the start-up costs of codelets and messages.
    """
    space, body = problem.structure.space, problem.structure.body
    cells = largest_cells(problem.structure, parts)
    work = problem.workload(target)
    cycles = np.full(len(parts), float(cost.sync_cycles(target)))
    if not problem.moves:
        method = problem.terms.method
        if method:
            cycles += compute_cycles(work.unchained, cells, method)[0]
        else:
            price = least_compute_cycles if quick else cell_cycles
            cycles += price(work.unchained, cells)
    depth = _depth(problem, parts)
    merged = depth > 1
    some_merged = bool(merged.any())
    points = elements(cells, result_dims(space))
    if body.then:
        follows = chain_cycles(work, points)
        cycles += np.where(merged, 0, follows) if some_merged else follows
    resident = np.zeros(len(parts), np.int64)
    moved = np.zeros(len(parts), np.int64)
    copied = np.zeros(len(parts), np.int64)
    fragments = np.zeros(len(parts), np.int64)
    for i, (access, dtype, stays) in enumerate(
        zip(space.operands, problem.operand_dtypes, problem.resident, strict=False)
    ):
        if i in problem.again:
            continue
        block = block_elements(access, cells) * dtype.itemsize
        arrives = arriving(problem, i, parts, cells) if problem.is_free(i) else block
        if i >= problem.structure.own_operands and not problem.moves:
            # The operands of a chain go to the tiles that combine partials, a share to each.
            block = -(-block // depth) if some_merged else block
            arrives = block
        if stays:
            resident += block
        else:
            moved += arrives
            copied += block
            if not quick and not problem.is_free(i):
                fragments += block_runs(access, cells)
    moved -= last_dims(problem, parts, cells, target)[1]
    control = cost.control_cycles(0, fragments, fragments, target)
    cycles += cost.least_exchange_cycles(moved, 0, target, control)
    copies = np.zeros_like(moved) if problem.moves else copied
    between, width = problem.left_itemsize, problem.result_itemsize
    left = points * np.where(merged, between, width)
    if any(problem.resident[i] for i in problem.replaced):
        left = np.where(merged, left, 0)
    if not some_merged:
        return Estimates(cycles, resident, left + copies)
    # A single result overwrites the first partial if their elements have the same size.
    in_place = width == between and len(space.results) == 1
    share = -(-points // depth)
    merging = share * (depth * between + (0 if in_place else width))
    temporary = left + np.maximum(copies, np.where(merged, merging, 0))
    return Estimates(cycles + combining_cycles(problem, parts, target), resident, temporary)


def _depth(problem: Problem, parts: Integers) -> Integers:
    """The number of partials of each result element: (candidates,)."""
    return elements(parts, problem.structure.space.of_kind("reduction"))


def combining_cycles(problem: Problem, parts: Integers, target: Target) -> NDArray[np.float64]:
    """Cycles to merge partials, chain included, if every tile merges its share: (candidates,)."""
    depth = _depth(problem, parts)
    merged = np.flatnonzero(depth > 1)
    found = np.zeros(len(parts))
    if not len(merged):
        return found
    parts, depth = parts[merged], depth[merged]
    cells = largest_cells(problem.structure, parts)
    between, body = problem.partials_dtype, problem.structure.body
    share = -(-elements(cells, result_dims(problem.structure.space)) // depth)
    if body.member_kinds:
        merging = merging_cycles(body, share, depth, between.name, target)
    else:
        merging = cost.reduce_cycles(share, depth, between.name, target)
    exchange = cost.least_exchange_cycles((depth - 1) * share * problem.left_itemsize, 0, target)
    found[merged] = (
        cost.sync_cycles(target)
        + np.maximum(exchange, _partials_crossing(problem, depth, target))
        + merging
        + chain_cycles(problem.workload(target), share)
    )
    return found


def _partials_crossing(
    problem: Problem, depth: Integers, target: Target
) -> NDArray[np.floating[Any]] | float:
    """A guess of the cycles until partials have crossed between chips that share a reduction.

    Each chip merges its share, and takes the partials of every part that the others have.

    Args:
        depth: parts of the reduction, (candidates,).
    """
    space, across = problem.structure.space, problem.terms.across
    chips = prod(across[d] for d in space.of_kind("reduction")) if across else 1
    if chips == 1 or target.chips == 1:
        return 0.0
    assert across is not None
    dims = result_dims(space)
    points = prod(-(-space.dims[d].size // across[d]) for d in dims)
    return least_crossing_cycles(
        points * problem.left_itemsize * (chips - 1) / chips * (depth // chips), target
    )


def _best_by_memory(cycles: NDArray[np.float64], resident: Integers, most: int) -> Integers:
    """The indices of the cheapest candidates in every quarter octave of memory.

    Args:
        most: about how many in total; at least 16 per quarter octave.
    """
    # NumPy sorts 16-bit integers by counting.
    bucket = (4 * np.log2(np.maximum(resident, 1))).astype(np.int16)
    order = cycles.argsort(kind="stable")
    order = order[bucket[order].argsort(kind="stable")]
    ordered = bucket[order]
    first = np.r_[0, np.flatnonzero(np.diff(ordered)) + 1]
    lengths = np.diff(np.r_[first, len(order)])
    rank = np.arange(len(order)) - np.repeat(first, lengths)
    return order[rank < max(16, most // len(first))]


Splits = tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class Shortlist:
    """The splits whose prices are computed exactly.

    Attributes:
        fast: the cheapest splits, best first.
        lean: the cheapest split at each price of a resident byte.
        cycles: of the cheapest split, estimated.
        fits: whether it keeps the memory bound, as estimated.
    """

    fast: Splits
    lean: Splits
    cycles: float
    fits: bool


def shortlist(problem: Problem, target: Target, bound: int) -> Shortlist:
    """The splits of an operator whose prices are computed exactly; at least one fast split."""
    # Plans for one chip of several and for a machine with one chip share this.
    whole = target if problem.terms.across else target.one_chip
    return _shortlist(_alone(problem), whole, bound)


@lru_cache(maxsize=4096)
def _alone(problem: Problem) -> Problem:
    """The same problem where the terms ask for one chip."""
    if problem.terms.across != ():
        return problem
    return replace(problem, terms=replace(problem.terms, across=None))


@lru_cache(maxsize=2048)
def _shortlist(problem: Problem, target: Target, bound: int) -> Shortlist:
    parts = splits(problem, target.tiles_per_chip)
    if len(parts) > PRICED:
        quick = estimates(problem, parts, target, quick=True)
        fits = _fitting(quick, bound, problem.terms)
        kept = _best_by_memory(quick.cycles[fits], quick.resident[fits], PRICED)
        parts = parts[fits[kept]]
    full = estimates(problem, parts, target, quick=False)
    fits = _fitting(full, bound, problem.terms)
    parts = parts[fits]
    cycles, resident = full.cycles[fits], full.resident[fits]
    cells = np.prod(parts, axis=1)
    lean: list[int] = []
    if any(problem.resident):
        for price in BYTE_PRICES:
            lean += _first(2, cycles + price * resident, cells)
        lean += _first(1, resident, cycles)
    fast = _first(FAST, cycles, resident, cells)
    first = fast[0]
    return Shortlist(
        fast=_rows(parts, fast),
        lean=_rows(parts, lean),
        cycles=float(cycles[first]),
        fits=bool(resident[first] + full.temporary[fits[first]] <= bound),
    )


def _first(most: int, *keys: NDArray[Any]) -> list[int]:
    """The first `most` candidates after sorting by the keys, the first key foremost."""
    few = np.arange(len(keys[0]))
    if len(few) > most:
        few = np.flatnonzero(keys[0] <= np.partition(keys[0], most - 1)[most - 1])
    return few[np.lexsort([key[few] for key in reversed(keys)])][:most].tolist()


def trade_offs(problem: Problem, target: Target, bound: int) -> Splits:
    """The cheapest split in every quarter octave of memory, resident and temporary.

    `abele plan` shows these so that users see what a byte is worth.
    """
    parts = splits(problem, target.tiles_per_chip)
    found = estimates(problem, parts, target, quick=len(parts) > PRICED)
    fits = _fitting(found, bound, problem.terms)
    memory = (found.resident + found.temporary)[fits]
    bucket = (4 * np.log2(np.maximum(memory, 1))).astype(np.int64)
    order = np.lexsort((memory, found.cycles[fits], bucket))
    first = np.r_[True, np.diff(bucket[order]) > 0]
    return _rows(parts[fits], order[first].tolist())


def _rows(parts: Integers, rows: list[int]) -> Splits:
    return tuple(tuple(int(n) for n in parts[i]) for i in dict.fromkeys(rows))


def _fitting(estimates: Estimates, bound: int, terms: Terms) -> Integers:
    """The indices of candidates within the memory bound and the terms' own limit.

    If none keeps a limit, the candidates that need the least memory are returned.
    """
    memory = estimates.resident + estimates.temporary
    fits = np.flatnonzero(memory <= max(bound, int(memory.min())))
    temporary = estimates.temporary[fits]
    return fits[temporary <= relaxed(terms.temporary_bytes, int(temporary.min()))]
