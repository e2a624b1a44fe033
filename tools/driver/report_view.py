"""The views of a program: as a report, and the health of what it computes.

They lie in a folder that this one may not import. So `abele.tools`, which may import both,
registers them here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
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

FRAMES: dict[str, Callable[[Any, Mapping[str, Any]], Any]] = {}
"""The function that makes each table of a run, given the executable and the run's inputs, by the
name of the table."""
