"""The lanes of an exchange over time, as a grid of the tiles that send."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....backends.timetable.timetable import Timetable
from ....ir.support.arrays import Integers


def used_tiles(table: Timetable) -> Integers:
    """The tiles that send or receive, in order."""
    return np.unique(table.windows.lane[table.on_tiles] // 2)


def lanes_picture(table: Timetable, tiles: Integers, side: int, most: int) -> NDArray[np.float32]:
    """The sender whose words each lane carries: (tiles, columns), NaN where it is idle.

    Args:
        tiles: whose lanes are shown, in order.
        side: 0 for lanes out, 1 for lanes in.
        most: columns at most. Each has as many cycles as the others.
    """
    end = max(table.cycles, 1)
    columns = min(most, end)
    picture = np.full((len(tiles), columns), np.nan, np.float32)
    windows = table.windows
    mine = (windows.lane % 2 == side) & table.on_tiles & np.isin(windows.lane // 2, tiles)
    here = np.flatnonzero(mine)
    row = np.searchsorted(tiles, windows.lane[here] // 2)
    first = table.begin[here] * columns // end
    last = np.maximum(-(-(table.begin[here] + windows.length[here]) * columns // end), first + 1)
    last = np.minimum(last, columns)
    count = np.maximum(last - first, 0)
    each = np.repeat(np.arange(len(here)), count)
    column = first[each] + np.arange(len(each)) - np.repeat(np.cumsum(count) - count, count)
    picture[row[each], column] = table.messages.tile[windows.message[here]][each]
    return picture
