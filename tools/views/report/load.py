"""Read a report into frames, and ask questions to its database."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion
from .folder import DATABASE, needs_libraries, polars_library, read_facts
from .schema import TABLES

if TYPE_CHECKING:
    import pandas as pd


class LoadedReport:
    """A report on disk: its facts, its tables as frames, and its database.

    Each table is an attribute, such as `operations`, and `table` takes its name.

    Attributes:
        program: the facts of report.json by name, such as cycles.
    """

    def __init__(self, folder: Path) -> None:
        needs_libraries()
        self.folder = folder
        self.program: Mapping[str, Any] = read_facts(folder)["program"]

    def __repr__(self) -> str:
        """The program and the folder."""
        return f"<report of {self.program['name']} in {self.folder}>"

    def table(self, name: str) -> pd.DataFrame:
        """A table as a pandas frame. Raises InputError for a name that is no table."""
        import pyarrow.parquet as parquet  # noqa: PLC0415

        return cast(Any, parquet).read_table(self._path(name)).to_pandas()

    def polars(self, name: str) -> Any:
        """A table as a polars frame. Raises InputError if polars is not installed."""
        return polars_library().read_parquet(self._path(name))

    def sql(self, query: str) -> pd.DataFrame:
        """The answer of the report's database to a query in DuckDB's SQL, as a pandas frame."""
        import duckdb  # noqa: PLC0415

        with duckdb.connect(str(self.folder / DATABASE), read_only=True) as database:
            return database.execute(query).df()

    def __getattr__(self, name: str) -> pd.DataFrame:
        """The table with this name."""
        if name not in TABLES:
            raise AttributeError(f"a report has no table {name!r}{suggestion(name, TABLES)}")
        return self.table(name)

    def _path(self, name: str) -> Path:
        if name not in TABLES:
            raise InputError(f"a report has no table {name!r}{suggestion(name, TABLES)}")
        return self.folder / f"{name}.parquet"


def load_report(folder: str | os.PathLike[str]) -> LoadedReport:
    """The report that `abele report MODEL -o DIR` wrote to a folder.

    Raises InputError if the folder holds no report, one of another version, or if pyarrow or duckdb
    is not installed.
    """
    return LoadedReport(Path(folder))
