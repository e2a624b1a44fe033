"""Addresses for variables that are live at different times and lie on different tiles."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from ...dialects.variable import Variable
from ...ir.geometry.tiles import TileSets
from ...ir.provenance import place
from ...ir.support.errors import InputError
from .lifetimes import FOREVER, Lifetimes


class Boxes:
    """Variables as boxes of tiles and phases, which are given addresses.

    Attributes:
        size: bytes of each variable on one tile, (variables,).
    """

    def __init__(self, variables: Sequence[Variable], lives: Lifetimes) -> None:
        self._lives = lives.phases
        self._inherits = [np.array(sorted(each), np.int64) for each in lives.inherits]
        self.size = np.array([v.bytes_per_tile for v in variables], np.int64)
        self._tiles = TileSets([v.placed.tiles for v in variables])

    def clash(self, index: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """The variables among `others` that share a tile and a phase of life with a variable."""
        first, last = self._lives[index]
        return others[
            self._tiles.meeting(index, others)
            & (self._lives[others, 0] <= last)
            & (first <= self._lives[others, 1])
            & (self.size[others] > 0)
        ]

    def hit(
        self, index: int, others: NDArray[np.int64], address: NDArray[np.int64]
    ) -> NDArray[np.int64]:
        """The variables among `others` whose bytes a variable overlaps illegally at its address."""
        if self.size[index] == 0:
            return others[:0]
        clash = self.clash(index, others)
        begin, ends = address[clash], address[clash] + self.size[clash]
        hit = clash[(begin < address[index] + self.size[index]) & (address[index] < ends)]
        on_it = hit[address[hit] == address[index]]
        return hit[~np.isin(hit, np.intersect1d(on_it, self._inherits[index]))]

    def place(self, index: int, others: NDArray[np.int64], address: NDArray[np.int64]) -> int:
        """An address for a variable, in bytes.

        If possible, it is the address of a variable from which this one inherits its bytes, or
        which inherits them from this one; else the lowest address that no variable of `others`
        overlaps.
        """
        clash = self.clash(index, others)
        if not len(clash) or self.size[index] == 0:
            return 0
        for near in np.intersect1d(clash, self._inherits[index]):
            tried = address.copy()
            tried[index] = address[near]
            if not len(self.hit(index, clash, tried)):
                return int(address[near])
        return self._lowest(index, address[clash], address[clash] + self.size[clash])

    def first_fit(
        self,
        index: int,
        others: NDArray[np.int64],
        address: NDArray[np.int64],
        kept_free: tuple[NDArray[np.int64], NDArray[np.int64]],
    ) -> int:
        """The lowest address at which a variable overlaps no variable of `others`.

        Args:
            kept_free: the begins and ends of ranges that it does not overlap either.
        """
        clash = self.clash(index, others)
        begins, ends = address[clash], address[clash] + self.size[clash]
        return self._lowest(
            index, np.concatenate((begins, kept_free[0])), np.concatenate((ends, kept_free[1]))
        )

    def on_its_tiles(self, index: int, others: NDArray[np.int64]) -> NDArray[np.int64]:
        """The variables among `others` that have bytes on a tile of a variable."""
        return others[self._tiles.meeting(index, others) & (self.size[others] > 0)]

    def shares_place(self, index: int, address: NDArray[np.int64]) -> bool:
        """Whether a variable lies on one from which it inherits its bytes, or the other way."""
        return bool((address[self._inherits[index]] == address[index]).any())

    def _lowest(self, index: int, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> int:
        """The lowest address at which a variable overlaps none of some ranges."""
        order = np.argsort(begins, kind="stable")
        starts = np.concatenate(((0,), np.maximum.accumulate(ends[order])))
        room = np.concatenate((begins[order], (FOREVER,))) - starts
        return int(starts[np.argmax(room >= self.size[index])])


ORDERS: tuple[Callable[[NDArray[np.int64], NDArray[np.int64]], NDArray[np.int64]], ...] = (
    lambda size, spans: -size,
    lambda size, spans: -size * spans,
    lambda size, spans: -spans,
)
"""The orders in which variables are placed, as keys of their bytes on a tile and their phases.

Chosen by trial. For the nine light networks on mk2 and on mk1, the first order needs fewest bytes,
within 24 of those that are live at once. The others save something elsewhere: the second 0.9 % for
Inception v1 on mk2:64, and the three together 3.8 % for a training step of eight convolutions on
tiny:16 in which every tanh is computed again. For 600 random sets of 10 to 60 variables on one
tile, the first order needs 1.35 % more bytes than are live at once, the first two 0.97 %, these
three 0.81 %, and three more (such as bytes times bytes times phases) 0.58 %.
"""


def pack(
    variables: Sequence[Variable],
    lives: Lifetimes,
    given: Sequence[int | None] | None = None,
    room: int = 0,
    *,
    shared: bool = False,
) -> NDArray[np.int64]:
    """An address in bytes for each variable, by first fit with the largest first: (variables,).

    Raises InputError if two variables overlap at their given addresses.

    Args:
        given: addresses that are decided already; None for the others.
        room: bytes of a tile; if the variables need more, other orders are tried, and the order
            that needs least is used.
        shared: whether other programs use the tiles too. Then variables that are always live are
            not placed by size but by the bytes that loading them moves over the host's link per
            byte of a tile, the most first. These are the most likely to stay when programs
            alternate, and the rest of the tile stays in one piece.
    """
    boxes = Boxes(variables, lives)
    fixed = np.array([g is not None for g in given or [None] * len(variables)], bool)
    resident = np.array([v.is_resident for v in variables], bool)
    start = np.array([g or 0 for g in given or [0] * len(variables)], np.int64)
    _check_given(variables, boxes, np.flatnonzero(fixed), start)
    number = np.arange(len(variables))
    # The cap does not change the order, since variables that are always live are placed first.
    spans = np.minimum(np.diff(lives.phases)[:, 0], 1 << 31)
    worth = np.zeros(len(variables))
    if shared:
        tensors = np.array([v.tensor_bytes for v in variables], np.int64)
        worth = np.where(resident, tensors / np.maximum(boxes.size, 1), 0.0)
    best, least = start, FOREVER
    for key in ORDERS if room else ORDERS[:1]:
        address = start.copy()
        order = np.lexsort((number, key(boxes.size, spans), -worth, ~resident, ~fixed))
        for count, i in enumerate(map(int, order)):
            if not fixed[i]:
                address[i] = boxes.place(i, order[:count], address)
        end = int((address + boxes.size).max(initial=0))
        if end < least:
            best, least = address, end
        if least <= room:
            break
    return best


def _check_given(
    variables: Sequence[Variable],
    boxes: Boxes,
    fixed: NDArray[np.int64],
    address: NDArray[np.int64],
) -> None:
    """Raise InputError if two variables overlap at their given addresses.

    Args:
        fixed: the indices of the variables that have one.
    """
    for count, i in enumerate(map(int, fixed)):
        over = boxes.hit(i, fixed[:count], address)
        if len(over):
            own = variables[i]
            raise InputError(
                f"@{own.symbol} at {place(own)}: address {address[i]} lies "
                f"on @{variables[over[0]].symbol}, which is live at the same time"
            )
