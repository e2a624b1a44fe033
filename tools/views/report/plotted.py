"""A table of a report with a small picture, as a notebook shows it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .folder import polars_library
from .plots import Plot

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 8
"""Rows that a notebook shows below the picture."""


class PlottedFrame:
    """A pandas frame with a picture. It has the columns, the methods and the length of the frame.

    Attributes:
        frame: the frame itself, for functions that need a pandas frame.
    """

    def __init__(self, frame: pd.DataFrame, plot: Callable[[], Plot]) -> None:
        self.frame = frame
        self._plot = plot

    def plot(self) -> Plot:
        """The picture, which a notebook shows; `.save(FILE)` writes it."""
        return self._plot()

    def polars(self) -> Any:
        """The table as a polars frame. Raises InputError if polars is not installed."""
        frame: Any = self.frame
        columns = {name: frame[name].to_numpy() for name in frame.columns}
        return polars_library().DataFrame(columns)

    def __repr__(self) -> str:
        """The text of the frame."""
        return repr(self.frame)

    def _repr_html_(self) -> str:
        """The picture, and the first rows."""
        rows = len(self.frame)
        more = f"<p>{SHOWN} of {rows:,} rows</p>" if rows > SHOWN else ""
        table = self.frame.head(SHOWN).to_html(escape=True, border=0)
        return f"<div>{self.plot().svg}{table}{more}</div>"

    def __len__(self) -> int:
        """The number of rows."""
        return len(self.frame)

    def __getitem__(self, key: Any) -> Any:
        """A column, or whatever else the frame returns for a key."""
        frame: Any = self.frame
        return frame[key]

    def __getattr__(self, name: str) -> Any:
        """The attribute of the frame with this name."""
        if name == "frame":
            raise AttributeError(name)
        return getattr(self.frame, name)
