"""Stamps: the times at which the variables of a running program were last written.

Code that keeps something computed from a variable's bytes compares stamps to find out whether it is
still valid.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

Table = NDArray[np.int64]


class History:
    """The time of the last write of each variable, counted in writes.

    Attributes:
        overlaps: for each variable, all variables that share bytes with it, including itself.
        states: whether each variable has a value before the program begins.
    """

    def __init__(self, overlaps: Sequence[Table], states: Sequence[bool]) -> None:
        self._now = 0
        self._written = [0] * len(overlaps)
        self.stamps = [
            Stamp(self, i, others, is_state)
            for i, (others, is_state) in enumerate(zip(overlaps, states, strict=True))
        ]

    def write(self, index: int) -> int:
        """Record a write of a variable; returns its time."""
        self._now += 1
        self._written[index] = self._now
        return self._now

    def set_apart(self, indices: Collection[int]) -> None:
        """Record that some variables share no bytes with any other variable after all."""
        for stamp in self.stamps:
            stamp.forget(indices)

    def write_all(self) -> None:
        """Record that any variable may have been written."""
        self._now += 1
        self._written = [self._now] * len(self._written)

    def latest(self, chosen: Callable[[list[int]], tuple[int, ...]]) -> int:
        """The time of the latest write of some variables.

        Args:
            chosen: selects their times from the list.
        """
        return max(chosen(self._written))


class Stamp:
    """The write times of one variable while a program runs.

    Attributes:
        is_state: whether the variable has a value before the program begins, which it probably
            keeps.
    """

    __slots__ = ("_history", "_index", "_others", "_overlapping", "_whole", "is_state")

    def __init__(self, history: History, index: int, overlaps: Table, is_state: bool) -> None:
        self._history, self._index = history, index
        self._others: set[int] = {*overlaps.tolist()}
        self._overlapping: itemgetter[Any] = itemgetter(index, index)
        self.is_state = is_state
        self._whole = -1
        self.forget(())

    def forget(self, separate: Collection[int]) -> None:
        """Forget overlaps with some variables, because they share no bytes with any other."""
        own = self._index
        self._others = {own} if own in separate else self._others.difference(separate) | {own}
        # With a single argument, itemgetter returns no tuple.
        self._overlapping = itemgetter(*self._others, own)

    def write(self, is_whole: bool) -> None:
        """Record a write.

        Args:
            is_whole: whether it wrote all blocks, with equal replicas.
        """
        now = self._history.write(self._index)
        self._whole = now if is_whole else -1

    @property
    def index(self) -> int:
        """The number of the variable."""
        return self._index

    @property
    def others(self) -> frozenset[int]:
        """All variables that share bytes with this one, including itself."""
        return frozenset(self._others)

    @property
    def is_alone(self) -> bool:
        """Whether no other variable shares bytes with it."""
        return len(self._others) == 1

    @property
    def latest(self) -> int:
        """The latest time at which any of its bytes may have changed."""
        return self._history.latest(self._overlapping)

    @property
    def whole(self) -> int | None:
        """The time at which all blocks were last written, with equal replicas.

        None if any byte may have changed since.
        """
        return self._whole if self._whole == self.latest else None
