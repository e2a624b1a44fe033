"""Tables of indices: which elements the places after the end of an axis stand for."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ..blob import Blob
from ..support.arrays import Array


@dataclass(frozen=True)
class Table:
    """The elements of an axis that further indices stand for.

    Place i stands for the index that lies i after the last one of the axis.

        axis of 4, table 2 0 -1:    index  0 1 2 3 | 4 5 6
                                    element 0 1 2 3 | 2 0 .

    Indices before the axis, and those after the table, have no element.

    Raises ValueError for numbers that are no integers, or below -1.

    Attributes:
        blob: the elements, int32 (places,). -1 stands for no element.
    """

    blob: Blob

    @staticmethod
    def of(elements: Array) -> Table:
        """The table of these elements, in row-major order; -1 for none."""
        return Table(Blob(np.ascontiguousarray(elements, np.int32).reshape(-1)))

    def __post_init__(self) -> None:
        array = self.blob.array
        if array.dtype != np.int32 or array.ndim != 1:
            raise ValueError(f"table of {array.dtype}{list(array.shape)}; need one axis of int32")
        if array.size and int(array.min()) < -1:
            raise ValueError(f"table: element {int(array.min())}; need -1 or more")

    def __len__(self) -> int:
        return self.blob.array.size

    def __str__(self) -> str:
        """The numbers, or the digest of a long table."""
        array = self.blob.array
        if array.size > MOST_PRINTED:
            return f'"{self.blob.digest}"'
        return f"[{', '.join(map(str, array.tolist()))}]"

    @cached_property
    def elements(self) -> NDArray[np.int64]:
        """The element of each place; -1 for none. Read-only."""
        wide = self.blob.array.astype(np.int64)
        wide.flags.writeable = False
        return wide

    @cached_property
    def highest(self) -> int:
        """The largest element; -1 if there is none."""
        return int(self.blob.array.max(initial=-1))

    def find(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The element of each place; -1 for none, and for places that the table does not have."""
        n = len(self)
        if not n:
            return np.full(places.shape, -1, np.int64)
        found = self.elements[np.clip(places, 0, n - 1)]
        return np.where((places < 0) | (places >= n), -1, found)


MOST_PRINTED = 16
"""The numbers of a table up to which text has them, and not their digest."""
