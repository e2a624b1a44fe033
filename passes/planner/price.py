"""The compute cycles of cells, for many candidate splits at once.

This module also decides how the workers of a tile share a cell.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from ...backends.facts import Mac
from ...backends.prices.codelets import (
    can_share_depth,
    compute_cycles,
    contraction_prices,
    elements,
    method_cycles,
    shares_by_itself,
)
from ...backends.prices.contractions.amp import amp_pass_cycles
from ...backends.prices.contractions.methods import methods_of
from ...backends.prices.workload import Workload
from ...dialects.structured import Structure
from ...ir.geometry.space import AccessMap, AxisMap
from ...ir.support.arrays import Integers

Cycles = NDArray[np.float64]


def cell_cycles(work: Workload, cells: Integers) -> Cycles:
    """Cycles to compute one cell of each candidate, with its workers along their best dimension.

    Args:
        cells: sizes of every candidate's largest cell, (candidates, dimensions).
    """
    best = compute_cycles(work, cells)[0]
    if work.roles is None:
        return best
    methods = methods_of(work.target).values()
    shared = next((each.name for each in methods if not each.supervised), "")
    for d in work.structure.space.of_kind("parallel") if shared else ():
        workers = [1] * cells.shape[1]
        workers[d] = work.target.workers
        if (cells[:, d] > 1).any():
            best = np.minimum(best, compute_cycles(work, cells, shared, workers)[0])
    return best


Decided = tuple[str, tuple[int, ...]]
"""A codelet's method and its workers; "" and () if not decided yet."""


Codelet = tuple[float, str, tuple[int, ...]]
"""Cycles of a codelet, its method and its workers."""


def codelets(
    work: Workload, cells: tuple[tuple[int, ...], ...], decided: tuple[Decided, ...]
) -> tuple[Codelet, ...]:
    """The cheapest codelet for each cell.

    Args:
        cells: the sizes of each cell.
        decided: the method and workers of each codelet, as far as they are decided.
    """
    asked = tuple(zip(cells, decided, strict=True))
    known = _known(work)
    new = tuple(dict.fromkeys(each for each in asked if each not in known))
    if new:
        sizes, given = zip(*new, strict=True)
        known.update(zip(new, _priced(work, sizes, given), strict=True))
    return tuple(known[each] for each in asked)


@lru_cache(maxsize=1024)
def _known(work: Workload) -> dict[tuple[tuple[int, ...], Decided], Codelet]:
    """The cache of codelets by cell, one per workload."""
    del work
    return {}


def _priced(
    work: Workload, cells: tuple[tuple[int, ...], ...], decided: tuple[Decided, ...]
) -> tuple[Codelet, ...]:
    sizes = np.array(cells, np.int64).reshape(len(cells), len(cells[0]))
    kept = work.structure.space.of_kind("parallel")
    methods = methods_of(work.target)
    supervised = {name for name, each in methods.items() if each.supervised}
    own = shares_by_itself(work.structure)
    shared = [
        workers
        or (() if own or method in supervised else worker_parts(cell, kept, work.target.workers))
        for cell, (method, workers) in zip(cells, decided, strict=True)
    ]
    parts = np.array([s or (1,) * len(cells[0]) for s in shared], np.int64)
    if work.roles is None:
        cycles, _ = compute_cycles(work, sizes, workers=parts)
        together = compute_cycles(work, sizes)[0] if can_share_depth(work.structure) else cycles
        return tuple(
            (float(one), method, ()) if one < each and not workers else (float(each), method, s)
            for each, one, (method, workers), s in zip(
                cycles, together, decided, shared, strict=True
            )
        )
    alone, together = method_cycles(work, sizes, parts)
    found: list[Codelet] = []
    for i, (method, workers) in enumerate(decided):
        choices = [
            (float(alone[k, i]), name, ())
            if name in supervised and not workers
            else (float(together[k, i]), name, shared[i])
            for k, name in enumerate(methods)
            if name == method or not method
        ]
        if not choices:
            raise ValueError(f"method {method!r}; need one of {', '.join(methods)}")
        found.append(min(choices, key=lambda choice: choice[0]))
    return tuple(found)


def codelet(
    work: Workload, cell: tuple[int, ...], method: str = "", workers: tuple[int, ...] = ()
) -> Codelet:
    """The cheapest codelet for one cell, as `codelets` finds it."""
    return codelets(work, (cell,), ((method, workers),))[0]


def least_compute_cycles(work: Workload, cells: Integers) -> Cycles:
    """A quick estimate of `compute_cycles`: the steady state, without start-up costs."""
    parts, operand, target = work.roles, work.operand, work.target
    if parts is None:
        return cell_cycles(work, cells)
    units = target.conv_units(operand.name, work.partials.name)
    fixed = elements(cells, parts.field) * elements(cells, parts.kernel)
    fixed = fixed * elements(cells, parts.groups)
    in_, out = elements(cells, parts.in_channels), elements(cells, parts.out_channels)
    width = max(target.vector.vector_bytes // operand.itemsize, 1)
    dots = np.asarray(fixed * out * np.ceil(in_ / width), np.float64)
    if not target.has_unit(Mac):
        dots = np.full(len(cells), np.inf)
    others = [name for name, each in methods_of(target).items() if each.estimated]
    if others:
        threads = np.ones(len(cells), np.int64)
        dots = np.minimum(dots, contraction_prices(work, cells, threads, others).min(axis=0))
    if units is None:
        return dots
    if parts.kernel:
        blocks = np.ceil(in_ / units.in_grain) * np.ceil(out / units.units)
        units_cycles = fixed * blocks * units.worker_cycles_per_element
        return np.minimum(dots, np.asarray(units_cycles, np.float64))
    groups, field = elements(cells, parts.groups), elements(cells, parts.field)
    for streamed, kept in ((field, out), (out, field)):
        passes = np.ceil(in_ / units.in_grain) * np.ceil(kept / units.units) * groups
        dots = np.minimum(dots, passes * amp_pass_cycles(streamed, units, target))
    return dots


def largest_cells(structure: Structure, parts: Integers) -> Integers:
    """The sizes of every candidate's largest cell: (candidates, dimensions), as parts."""
    cells = np.empty(parts.shape, np.int64, order="F")
    for d, size in enumerate(structure.space.sizes):
        # Floats divide several times as fast as integers, and are exact below 2**52.
        cells[:, d] = np.ceil(float(size) / parts[:, d]) if size > 1 else size
    return cells


def window(axis: AxisMap, cells: Integers) -> Integers:
    """The numerators of an axis in each candidate's block, as in `Layout.window`: (candidates,)."""
    reach = np.zeros(len(cells), np.int64)
    for d, a in axis.terms:
        reach += cells[:, d] - 1 if abs(a) == 1 else abs(a) * (cells[:, d] - 1)
    if all(abs(a) == 1 for _, a in axis.terms):
        return reach + 1
    # The step is the greatest common divisor of the coefficients of dimensions with several
    # elements. Group candidates by these dimensions: there are few groups, and a division per
    # candidate is slow.
    moving = np.zeros(len(cells), np.int64)
    steps = [0]
    for k, (d, a) in enumerate(axis.terms):
        moving += (cells[:, d] > 1).astype(np.int64) << k
        steps += [gcd(step, a) for step in steps]
    return reach // np.maximum(np.array(steps), 1)[moving] + 1


def block_elements(access: AccessMap, cells: Integers) -> Integers:
    """The elements of each candidate's block of a tensor: (candidates,)."""
    total = np.ones(len(cells), np.int64)
    for axis in access.axes:
        if axis.terms:
            total = total * window(axis, cells)
    return total


def block_runs(access: AccessMap, cells: Integers) -> Integers:
    """The number of runs of neighbours, row-major in the tensor, in each candidate's
    block: (candidates,).
    """
    runs = np.ones(len(cells), np.int64)
    whole = np.ones(len(cells), np.bool_)
    for axis in reversed(access.axes):
        if axis.size == 1 and not axis.terms:
            continue
        size = window(axis, cells)
        runs = np.where(whole, 1, runs * size)
        whole &= size >= axis.size
    return runs


@lru_cache(maxsize=65536)
def worker_parts(sizes: tuple[int, ...], kept: tuple[int, ...], workers: int) -> tuple[int, ...]:
    """The parts of a cell's dimensions that give the busiest worker the least work.

    Among equals, fewer workers and outer dimensions are preferred.

    Args:
        sizes: of the cell's dimensions.
        kept: the dimensions that workers may share: the parallel ones.
    """
    most = tuple([min(n, workers) if d in kept else 1 for d, n in enumerate(sizes)])
    ways = _ways(most, workers)
    best = int(np.argmin(np.prod(-(-np.array(sizes, np.int64) // ways), axis=1)))
    return tuple(ways[best].tolist())


@lru_cache(maxsize=256)
def _ways(most: tuple[int, ...], workers: int) -> Integers:
    """The ways to share a cell: parts of its dimensions, the best among equals first.

    Args:
        most: the most parts of each dimension.
    """
    found = _products([range(1, n + 1) for n in most], workers)
    found.sort(key=lambda parts: (prod(parts), tuple(-p for p in parts)))
    return np.array(found, np.int64).reshape(len(found), len(most))


def _products(choices: list[range], most: int) -> list[tuple[int, ...]]:
    """All ways to choose one number from each range with a product of at most `most`."""
    found: list[tuple[int, ...]] = [()]
    for choice in choices:
        found = [(*f, n) for f, n in product(found, choice) if prod(f) * n <= most]
    return found
