"""All-gathers in rounds: relayouts that give all chips a tensor of which each chip has a part.

In one exchange, each chip sends its part to all others, and links in the middle of the machine
carry most of these. In rounds, chips stand in a ring, in the order of their numbers. Each sends its
own part to both neighbours, and then what it has received in the round before. After half as many
rounds as there are chips, all have everything. This is the way `middle` of `rounds.py`, backwards.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

import numpy as np

from ...backends.prices import cost
from ...backends.target import Target
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Layout, canonical, with_chips_axis, with_gaps
from ...ir.geometry.space import AxisMap, identity_map
from .rounds import DIRECT, MIDDLE, load_of

SHARE = 1 / 8
"""The part of a tile's memory that the variables between rounds may take. Chosen by judgement."""

LOCAL_COPIES = 3
"""How often a tile copies what it has gathered: to one variable, in order, and to its readers."""


@dataclass(frozen=True)
class Gather:
    """An all-gather over all chips of a machine.

    Attributes:
        shape: of the tensor.
        axis: the one of which each chip has an equal part.
        chips: of the machine.
        tiles: of a chip, without its I/O tiles.
        apart: the tiles from one chip to the next.
    """

    shape: tuple[int, ...]
    axis: int
    chips: int
    tiles: int
    apart: int

    @property
    def part(self) -> tuple[int, ...]:
        """The shape of what a chip has before."""
        shape = list(self.shape)
        shape[self.axis] //= self.chips
        return tuple(shape)

    def layout(self, *leading: int, over: int, rest: tuple[int, ...]) -> Layout:
        """A layout of a tensor with some leading axes, one of which numbers chips.

        A tile has a part of the other axes, and all of the one that chips share. So each tile sends
        to the same tile of another chip.

        Args:
            over: which of the leading axes numbers chips.
            rest: the sizes of the other axes, as many as the tensor has.
        """
        sizes = (*leading, *rest)
        cuts = [Cut(n, n, 1, n) if d == over else Cut(n) for d, n in enumerate(leading)]
        left = self.tiles
        for d, size in enumerate(rest):
            parts = 1 if d == self.axis else min(size, left)
            left //= parts
            cuts.append(Cut(size, parts))
        access = identity_map(tuple(range(len(sizes))), sizes)
        return canonical(Layout(tuple(cuts), access, apart=self.apart))

    @property
    def parts(self) -> Layout:
        """Where the parts lie in each round: a tensor of chips and parts."""
        return self.layout(self.chips, over=0, rest=self.part)

    @property
    def stacked(self) -> Layout:
        """All that a chip has received, by the chips that it has come past."""
        return self.layout(self.chips, self.chips, over=1, rest=self.part)

    @property
    def whole(self) -> Layout:
        """The whole tensor on each chip, in order."""
        return self.layout(self.chips, over=0, rest=self.shape)


def gather_of(source: Layout, wanted: Layout, target: Target) -> Gather | None:
    """The all-gather that a relayout is; None if it is none in which all chips have equal parts."""
    chips = target.chips
    if chips == 1 or source.shape != wanted.shape or 0 in source.shape:
        return None
    source = with_gaps(source, target.tiles_per_chip)
    spread = [d for d, cut in enumerate(source.grid) if cut.chips > 1]
    if len(spread) != 1 or source.grid[spread[0]].chips != chips:
        return None
    cut = source.grid[spread[0]]
    axes = [i for i, a in enumerate(source.access.axes) if any(d == spread[0] for d, _ in a.terms)]
    if len(axes) != 1 or source.access.axes[axes[0]] != AxisMap(cut.size, ((spread[0], 1),)):
        return None
    shares = np.diff(cut.edges()[:: cut.parts // chips])
    if (shares != shares[0]).any() or with_chips_axis(wanted, chips) is None:
        return None
    tiles, apart = target.computing.tiles_per_chip, target.tiles_per_chip
    return Gather(source.shape, axes[0], chips, tiles, apart)


def pays(gather: Gather, itemsize: int, target: Target) -> bool:
    """Whether rounds take fewer cycles than one exchange, and their variables little memory.

    Args:
        itemsize: bytes of an element.
    """
    return cycles_in_rounds(gather, itemsize, target) is not None


@lru_cache(maxsize=1024)
def cycles_in_rounds(gather: Gather, itemsize: int, target: Target) -> int | None:
    """The cycles of a gather in rounds; None if rounds do not pay."""
    held = gather.whole.block_elements * itemsize
    if gather.stacked.block_elements * itemsize + held > target.usable_bytes_per_tile * SHARE:
        return None
    part = prod(gather.part) * itemsize
    at_once, in_rounds = (
        load_of(method, part, gather.chips, target).cycles for method in (DIRECT, MIDDLE)
    )
    in_rounds += LOCAL_COPIES * (int(cost.copy_cycles(held, target)) + cost.sync_cycles(target))
    return in_rounds if in_rounds < at_once else None
