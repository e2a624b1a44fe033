"""The view that shows a program as a report.

The view lies in a folder that this one may not import. So `abele.tools`, which may import both,
registers it in VIEWS.
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
"""The function that makes each view of an executable, by the name of the view."""
