"""Functions of all elements along a whole dimension: scans and sorts."""

from __future__ import annotations

from dataclasses import dataclass

from .scalar_functions import ARITHMETIC, COMBINERS

SCANS = ARITHMETIC
"""The scans, by the combiner that merges elements: element i merges elements 0 to i."""

SORTS = ("sort", "sort_indices")
"""The sorts: `sort` gives the elements in order, `sort_indices` the index that each of them had."""


@dataclass(frozen=True)
class Along:
    """A scan or sort: a function of all elements along a whole dimension, with as many results.

    Equal elements keep their order in a sort, in both directions. NaN counts as larger than any
    number, and -0.0 as equal to 0.0.
    Raises ValueError for another name, or an exclusive sort.

    Attributes:
        name: one of SCANS or SORTS.
        reverse: scan from the last element to the first, or sort from the largest to the smallest.
        exclusive: element i of a scan leaves out element i itself, and the first result is the
            combiner's identity.
    """

    name: str
    reverse: bool = False
    exclusive: bool = False

    def __post_init__(self) -> None:
        if self.name not in (*SCANS, *SORTS):
            raise ValueError(
                f"{self.name!r} along a dimension; need one of {', '.join((*SCANS, *SORTS))}"
            )
        if self.exclusive and self.sorts:
            raise ValueError(f"an exclusive {self.name}; only a scan can leave out an element")

    @property
    def sorts(self) -> bool:
        """Whether this is a sort."""
        return self.name in SORTS

    @property
    def identity(self) -> float:
        """The first element of an exclusive scan; 0 for a sort, which has none."""
        return COMBINERS.get(self.name, 0.0)
