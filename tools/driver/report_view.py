"""The view that shows a program as a report.

It stands in a room above this one. So `abele.tools`, which knows all rooms, says here where it is.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Protocol


class ReportView(Protocol):
    """The report of a program: a notebook shows its page, and each table is an attribute."""

    @property
    def memory(self) -> Any:
        """The memory of every tile, as a frame with a picture."""
        ...

    @property
    def timeline(self) -> Any:
        """Every execution of a superstep in order, as a frame with a picture."""
        ...

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the page and the tables into a folder. Raises InputError."""
        ...

    def __getattr__(self, name: str) -> Any:
        """The table with this name."""
        ...


VIEWS: dict[str, Callable[[Any], ReportView]] = {}
"""By the name of a view, the function that makes it of an executable."""
