"""Rows of a measurement file that can be priced, and those that cannot."""

from __future__ import annotations

from dataclasses import dataclass

from ....backends.target import Target
from .cases import Case


@dataclass(frozen=True)
class Measurement:
    """A row that can be priced.

    Attributes:
        name: its id, for tables.
        cycles: measured for one step; of a speed-up, how many times as long the dense product took.
    """

    name: str
    family: str
    case: Case
    target: Target
    cycles: float


@dataclass(frozen=True)
class Skipped:
    """A row that cannot be priced.

    Attributes:
        family: "" if it is unknown.
    """

    name: str
    family: str
    reason: str
