"""The report of a program in a notebook."""

from __future__ import annotations

import os
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion
from ...driver.executable import Executable
from ...driver.html_page import escaped
from ..layer_names import names_in
from .collect import Report, collect
from .files import files_of
from .folder import write_report
from .page import page_text
from .plots import memory_plot, timeline_plot
from .plotted import PlottedFrame
from .schema import TABLES

if TYPE_CHECKING:
    import pandas as pd

HEIGHT = 720
"""Height of the page in a notebook, in pixels."""


class NotebookReport:
    """The report of a program: a notebook shows its page, and each table is a frame.

    Each table is an attribute, such as `operations`.

    Attributes:
        exe: the program.
        data: the tables as arrays.
    """

    def __init__(self, exe: Executable, data: Report) -> None:
        self.exe = exe
        self.data = data

    def __repr__(self) -> str:
        """The program and its target."""
        program = self.data.program
        return f"<report of {program['name']} on {program['target']['name']}>"

    @cached_property
    def page(self) -> str:
        """The text of the page, which needs no network."""
        return page_text(self.data)

    def _repr_html_(self) -> str:
        """The page in a frame of its own, so that its style stays inside."""
        title = escaped(str(self.data.program["name"]))
        return (
            f'<iframe srcdoc="{escaped(self.page)}" title="report of {title}" '
            f'style="width:100%;height:{HEIGHT}px;border:0" sandbox="allow-scripts"></iframe>'
        )

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the page and the tables into a folder, as `abele report -o` does.

        Raises InputError.
        """
        write_report(self.data, Path(folder), files_of(self.exe, self.data, self.page))

    def table(self, name: str) -> pd.DataFrame:
        """A table as a pandas frame. Raises InputError if there is none, or without pandas."""
        if name not in TABLES:
            raise InputError(f"a report has no table {name!r}{suggestion(name, TABLES)}")
        try:
            import pandas as pd  # noqa: PLC0415
        except ModuleNotFoundError:
            raise InputError("frames need pandas: pip install pandas") from None
        return pd.DataFrame(dict(self.data.tables[name]))

    @property
    def memory(self) -> PlottedFrame:
        """The memory of every tile, with a picture."""
        return PlottedFrame(self.table("tiles"), lambda: memory_plot(self.data))

    @property
    def timeline(self) -> PlottedFrame:
        """Every execution of a superstep, in order, with the superstep's own columns; a picture."""
        steps = self.table("supersteps").drop(columns=["cycles", "times"])
        frame = self.table("executions").merge(steps, on="superstep", how="left")
        return PlottedFrame(frame, lambda: timeline_plot(self.data))

    def __getattr__(self, name: str) -> Any:
        """The table with this name."""
        if name not in TABLES:
            raise AttributeError(f"a report has no table {name!r}{suggestion(name, TABLES)}")
        return self.table(name)


def notebook_report(exe: Executable) -> NotebookReport:
    """The report of a compiled program. Raises InputError as `collect` does."""
    names = names_in(exe.path) if os.path.isfile(exe.path) else dict[str, str]()
    return NotebookReport(exe, collect(exe, names))
