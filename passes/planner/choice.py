"""A plan of one operator with its price, and how choices compare."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...dialects.abele import Plan
from .terms import FREE, Terms, relaxed


@dataclass(frozen=True)
class Choice:
    """A plan and what it costs on the busiest tile.

    Attributes:
        resident_bytes: operands that stay on the tile for the whole run.
        temporary_bytes: copies of other operands, partials and the result, at the worst moment.
        result_bytes: the result alone.
        cells: tiles used.
        merge: the part of these cycles and bytes that the compute which merges partials takes.
        reload_cycles: the part of the cycles that no run takes: the cost of reloading the operands
            whose homes this plan gives up (see keeping).
    """

    plan: Plan
    cycles: float
    compute_cycles: float
    exchange_cycles: float
    sync_cycles: float
    resident_bytes: int
    temporary_bytes: int
    result_bytes: int
    cells: int
    merge: Choice | None = None
    reload_cycles: float = 0.0


def rank(choice: Choice) -> tuple[float, int, int, int]:
    """The sort key of choices: the fastest first, then the one that needs least memory."""
    return choice.cycles, choice.resident_bytes, choice.temporary_bytes, choice.cells


def fitting(choices: Iterable[Choice], bound: int, terms: Terms = FREE) -> list[Choice]:
    """The choices that fit a memory bound and the terms' own limit, in their order.

    If none fits a limit, the choices that need the least memory are returned.
    """
    every = list(choices)
    least = min(c.resident_bytes + c.temporary_bytes for c in every)
    fits = [c for c in every if c.resident_bytes + c.temporary_bytes <= max(bound, least)]
    most = relaxed(terms.temporary_bytes, min(c.temporary_bytes for c in fits))
    return [c for c in fits if c.temporary_bytes <= most]


def pareto(choices: Iterable[Choice], bound: int, terms: Terms = FREE) -> tuple[Choice, ...]:
    """The choices within a memory bound that no other choice beats in cycles and resident bytes."""
    fits = fitting(choices, bound, terms)
    front: list[Choice] = []
    for c in sorted(fits, key=rank):
        if not front or c.resident_bytes < front[-1].resident_bytes:
            front.append(c)
    return tuple(front)


def pareto_rows(cycles: NDArray[np.float64], size: NDArray[np.integer]) -> NDArray[np.int64]:
    """The candidates that no other candidate beats in both cycles and size, smallest first."""
    order = np.lexsort((cycles, size))
    sorted_cycles = cycles[order]
    before = np.minimum.accumulate(np.r_[np.inf, sorted_cycles])[:-1]
    return order[sorted_cycles < before]


def best(choices: tuple[Choice, ...], byte_price: float) -> Choice:
    """The cheapest choice if a resident byte costs `byte_price` cycles."""
    return min(choices, key=lambda c: c.cycles + byte_price * c.resident_bytes)
