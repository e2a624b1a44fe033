"""Repeated blocks of a network: neighbouring layers with the same sequence of operations."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile

import numpy as np
from numpy.typing import NDArray

from .columns import Table

LONGEST = 256
"""The most layers in a block. Assumed: more than any block of a network has."""


@dataclass(frozen=True)
class Repeat:
    """A block that runs several times in a row: `count` times `period` items, from `start` on."""

    start: int
    period: int
    count: int

    @property
    def stop(self) -> int:
        """The first item after the last block."""
        return self.start + self.period * self.count


def repeated_blocks(operations: Table, plans: Table) -> list[list[list[int]]]:
    """The repeated blocks of a program: for each, the operations of every repeat.

    Operations are alike if they have the same kind and phase, and the same dimensions. Operations
    without a plan have no known dimensions, and are compared by bytes instead. A block is made of
    whole layers.
    """
    layer, phase = operations["layer"], operations["phase"]
    count = len(layer)
    runs = [
        list(each) for _, each in groupby(range(count), lambda k: (str(phase[k]), str(layer[k])))
    ]

    spaces: dict[int, list[str]] = {}
    for operation, space in zip(plans["operation"], plans["space"], strict=True):
        spaces.setdefault(int(operation), []).append(str(space))

    def look(k: int) -> Hashable:
        size = spaces.get(k) or [int(operations[n][k]) for n in ("resident_bytes", "value_bytes")]
        return str(operations["kind"][k]), str(phase[k]), *size

    looks = [tuple(look(k) for k in run) for run in runs]
    names = [str(layer[run[0]]) for run in runs]
    found: list[list[list[int]]] = []
    for each in repeats(looks, names):
        starts = range(each.start, each.stop, each.period)
        found.append([[k for run in runs[s : s + each.period] for k in run] for s in starts])
    return found


def repeats(items: Sequence[Hashable], names: Sequence[str]) -> list[Repeat]:
    """The repeats in a sequence, from left to right, each as long as possible.

    Among blocks that repeat equally often but begin at different items, the block whose names have
    the longest common prefix is taken: all names within a block of a network share a part.
    """
    numbers: dict[Hashable, int] = {}
    codes = np.array([numbers.setdefault(each, len(numbers)) for each in items], np.int64)
    found: list[Repeat] = []
    at = 0
    while at < len(codes):
        periods = range(1, min(LONGEST, (len(codes) - at) // 2) + 1)
        tried = [Repeat(at, period, _count(codes, at, period)) for period in periods]
        # The longest stretch; among equal stretches, the shortest block.
        best = max(tried, key=lambda each: (_stretch(each), -each.period), default=None)
        if best is None or best.count < 2:
            at += 1
            continue
        shifted = [
            Repeat(start, best.period, best.count)
            for start in range(at, at + best.period)
            if _count(codes, start, best.period) >= best.count
        ]
        found.append(max(shifted, key=lambda each: (_in_common(names, each), -each.start)))
        at = found[-1].stop
    return found


def _stretch(each: Repeat) -> int:
    return each.period * each.count if each.count > 1 else 0


def _count(codes: NDArray[np.int64], start: int, period: int) -> int:
    """The number of times that the block at `start` runs in a row; 0 if the sequence is too
    short."""
    if start + period > len(codes):
        return 0
    if start + period == len(codes) or codes[start] != codes[start + period]:
        return 1
    differs = np.flatnonzero(codes[start:-period] != codes[start + period :])
    equal = int(differs[0]) if len(differs) else len(codes) - start - period
    return 1 + equal // period


def _in_common(names: Sequence[str], each: Repeat) -> int:
    """The length of the common prefix of the names within a block, summed over all blocks."""
    starts = range(each.start, each.stop, each.period)
    blocks = (zip(*names[start : start + each.period], strict=False) for start in starts)
    return sum(sum(1 for _ in takewhile(_all_equal, block)) for block in blocks)


def _all_equal(letters: Sequence[str]) -> bool:
    return len(set(letters)) == 1
