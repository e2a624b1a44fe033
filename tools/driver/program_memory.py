"""The memory of a compiled program, which a notebook shows as a frame with a picture."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any

from ...backends.memory import MemoryReport


@dataclass(frozen=True, eq=False)
class ProgramMemory(MemoryReport):
    """The memory of a program's tiles, and a frame of it.

    Attributes:
        view: a function that makes the frame with its picture, as the report shows it.
    """

    view: Callable[[], Any] = field(repr=False)

    @classmethod
    def of(cls, found: MemoryReport, view: Callable[[], Any]) -> ProgramMemory:
        """The memory of a report, with a view."""
        return cls(**{f.name: getattr(found, f.name) for f in fields(found)}, view=view)

    @property
    def frame(self) -> Any:
        """A row for every tile, as a pandas frame. Raises InputError if pandas is not installed."""
        return self.view().frame

    def polars(self) -> Any:
        """The same as a polars frame. Raises InputError if polars is not installed."""
        return self.view().polars()

    def plot(self) -> Any:
        """The picture: bytes by tile and category."""
        return self.view().plot()

    def __getitem__(self, column: str) -> Any:
        """A column of the frame."""
        return self.frame[column]

    def _repr_html_(self) -> str:
        return str(self.view()._repr_html_())
