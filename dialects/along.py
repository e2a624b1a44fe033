"""Functions of all elements along whole dimensions: scans, sorts and users' codelets."""

from __future__ import annotations

from dataclasses import dataclass

from .codelets import Signature, is_codelet, signature_of
from .scalar_functions import ARITHMETIC, COMBINERS

SCANS = ARITHMETIC
"""The scans, by the combiner that merges elements: element i merges elements 0 to i."""

SORTS = ("sort", "sort_indices")
"""The sorts: `sort` gives the elements in order, `sort_indices` the index that each of them had."""


@dataclass(frozen=True)
class Along:
    """A function of all elements along whole dimensions: a scan, a sort or a user's codelet.

    A scan or sort has one whole dimension, and as many results as elements. Equal elements keep
    their order in a sort, in both directions. NaN counts as larger than any number, and -0.0 as
    equal to 0.0.
    Raises ValueError for another name, a codelet that is not loaded, wrong parameters, or an
    exclusive sort.

    Attributes:
        name: one of SCANS or SORTS, or the name of a codelet, which has a dot.
        reverse: scan from the last element to the first, or sort from the largest to the smallest.
        exclusive: element i of a scan leaves out element i itself, and the first result is the
            combiner's identity.
        parameters: the constants of a codelet.
    """

    name: str
    reverse: bool = False
    exclusive: bool = False
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if is_codelet(self.name):
            count = len(signature_of(self.name).parameters)
            if self.reverse or self.exclusive:
                flag = "reverse" if self.reverse else "exclusive"
                raise ValueError(f"a codelet {self.name} that is {flag}; only scans and sorts are")
            if len(self.parameters) != count:
                raise ValueError(
                    f"codelet {self.name} with {len(self.parameters)} parameters; need {count}"
                )
            return
        if self.name not in (*SCANS, *SORTS):
            raise ValueError(
                f"{self.name!r} along a dimension; need one of {', '.join((*SCANS, *SORTS))}"
            )
        if self.exclusive and self.sorts:
            raise ValueError(f"an exclusive {self.name}; only a scan can leave out an element")

    @property
    def signature(self) -> Signature | None:
        """The signature of a user's codelet; None for a scan or sort."""
        return signature_of(self.name) if is_codelet(self.name) else None

    @property
    def scans(self) -> bool:
        """Whether this is a scan."""
        return self.name in SCANS

    @property
    def sorts(self) -> bool:
        """Whether this is a sort."""
        return self.name in SORTS

    @property
    def identity(self) -> float:
        """The first element of an exclusive scan; 0 for a sort, which has none."""
        return COMBINERS.get(self.name, 0.0)
