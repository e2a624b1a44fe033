"""The folder of a report: written as a whole, and read back."""

from __future__ import annotations

import errno
import json
import math
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from ....ir.support.errors import InputError
from ....ir.support.whole_folder import check_whole_folder, whole_folder
from ..graph.parquet import needs_pyarrow, write_parquet
from .collect import Report
from .columns import DTYPES, Table, length, table
from .schema import REPORT, SCHEMA, TableSchema

KIND = "a report of abele"

FACTS = "report.json"
DATABASE = "report.duckdb"
IN_JSON = ("operations", "supersteps", "passes", "chips", "chip_links", "crossings")
"""Tables that report.json holds as well, for scripts that read no Parquet."""


def check_report_folder(folder: Path) -> None:
    """Raise InputError unless a report can be written to a folder. Writes nothing.

    An existing folder must be empty, or contain a report that nobody has changed.
    """
    check_whole_folder(folder, KIND)


def needs_libraries() -> None:
    """Raise InputError if a library that writes the tables is missing."""
    needs_pyarrow()
    _duckdb()


def polars_library() -> Any:
    """The module of polars. Raises InputError if it is not installed."""
    try:
        import polars  # noqa: PLC0415 # pyright: ignore[reportMissingImports]
    except ModuleNotFoundError:
        raise InputError("polars is not installed: pip install polars") from None
    return cast(Any, polars)


def write_report(
    report: Report,
    folder: Path,
    pages: Mapping[str, str | bytes] | None = None,
    more: Sequence[Callable[[Path], None]] = (),
) -> None:
    """Write the tables of a report, its database and its facts, all or nothing.

    Raises InputError if the folder cannot be written or contains other files, or if a library is
    missing.

    Args:
        pages: the contents of further files by path.
        more: writers of further folders, each called with the folder of the report.
    """
    needs_libraries()
    check_report_folder(folder)
    with whole_folder(folder, KIND) as made:
        for schema in SCHEMA:
            write_parquet(made / _file(schema.name), _arrow_columns(report.tables[schema.name]))
        _write_database(made)
        (made / FACTS).write_text(facts_text(report), encoding="utf-8")
        for name, content in (pages or {}).items():
            data = content.encode() if isinstance(content, str) else content
            (made / name).parent.mkdir(exist_ok=True)
            (made / name).write_bytes(data)
        for write in more:
            write(made)


def facts_text(report: Report) -> str:
    """The text of report.json."""
    facts = {
        "format": REPORT.name,
        "version": REPORT.version,
        "program": dict(report.program),
        "absent": dict(report.absent),
        "tables": {
            each.name: {
                "meaning": each.meaning,
                "file": _file(each.name),
                "rows": length(report.tables[each.name]),
                "columns": [vars(column) for column in each.columns],
            }
            for each in SCHEMA
        },
        **{name: rows_of(report.tables[name]) for name in IN_JSON},
    }
    return json.dumps(facts, indent=1, allow_nan=False) + "\n"


def rows_of(found: Table) -> list[dict[str, Any]]:
    """The rows of a table as plain values; a missing float is None."""
    columns = plain_columns(found)
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def plain_columns(found: Table) -> dict[str, list[Any]]:
    """The columns of a table as lists of plain values; a missing float is None."""
    return {
        name: values if isinstance(values, list) else _plain(values.tolist())
        for name, values in found.items()
    }


def _plain(values: list[Any]) -> list[Any]:
    return [None if isinstance(v, float) and not math.isfinite(v) else v for v in values]


def _file(name: str) -> str:
    return f"{name}.parquet"


def _arrow_columns(found: Table) -> dict[str, Any]:
    """The columns as the file has them: missing floats are null."""
    return {
        name: _plain(v.tolist()) if not isinstance(v, list) and v.dtype.kind == "f" else v
        for name, v in found.items()
    }


def _write_database(folder: Path) -> None:
    """Write all tables and the meanings of their columns into a database."""
    duckdb = _duckdb()
    try:
        with duckdb.connect(str(folder / DATABASE)) as database:
            for schema in SCHEMA:
                file = str(folder / _file(schema.name)).replace("'", "''")
                database.execute(
                    f"CREATE TABLE {schema.name} AS SELECT * FROM read_parquet('{file}')"
                )
                _comment(database, f"TABLE {schema.name}", schema.meaning)
                for column in schema.columns:
                    _comment(database, f'COLUMN {schema.name}."{column.name}"', column.meaning)
    except duckdb.Error as error:
        _raise_system_error(str(error))
        first = str(error).partition("\n")[0]
        raise InputError(f"{DATABASE}: cannot be written: {first}") from error


def _raise_system_error(text: str) -> None:
    """Raise the OSError at the end of a database's message, if there is one."""
    first = text.partition("\n")[0].rstrip()
    for number in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS, errno.EACCES):
        if first.endswith(os.strerror(number)):
            raise OSError(number, os.strerror(number))


def _comment(database: Any, what: str, meaning: str) -> None:
    text = meaning.replace("'", "''")
    database.execute(f"COMMENT ON {what} IS '{text}'")


def _duckdb() -> Any:
    try:
        import duckdb  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "reports need duckdb, which is not installed: pip install 'abele[graph]'"
        ) from None
    return duckdb


# Reading


def read_facts(folder: Path) -> dict[str, Any]:
    """The facts of a report. Raises InputError if the folder holds no report of this version."""
    try:
        found: object = json.loads((folder / FACTS).read_bytes())
    except OSError as error:
        raise InputError(
            f"{folder}: no report: {FACTS}: {error.strerror or error}; `abele report MODEL -o "
            f"{folder}` writes one"
        ) from None
    except ValueError:
        raise InputError(f"{folder / FACTS}: not JSON; write the report again") from None
    if not isinstance(found, dict):
        raise InputError(f"{folder / FACTS}: not the facts of a report; write the report again")
    facts = cast(dict[str, Any], found)
    if facts.get("format") != REPORT.name:
        raise InputError(f"{folder / FACTS}: not the facts of a report; write the report again")
    REPORT.check(facts.get("version"), str(folder / FACTS))
    if not all(isinstance(facts.get(name), dict) for name in ("program", "absent")):
        raise InputError(f"{folder / FACTS}: facts are missing; write the report again")
    return facts


def read_report(folder: Path) -> Report:
    """The report that a folder holds. Raises InputError."""
    needs_pyarrow()
    facts = read_facts(folder)
    return Report(
        program=cast(dict[str, Any], facts["program"]),
        tables={each.name: _read_table(folder, each) for each in SCHEMA},
        absent=cast(dict[str, str], facts["absent"]),
    )


def _read_table(folder: Path, schema: TableSchema) -> Table:
    import pyarrow as arrow  # noqa: PLC0415
    import pyarrow.parquet as parquet  # noqa: PLC0415

    path = folder / _file(schema.name)
    try:
        found = cast(Any, parquet).read_table(path)
        columns: dict[str, Any] = {
            c.name: found.column(c.name).to_pylist()
            if c.kind == "text"
            else found.column(c.name)
            .to_numpy(zero_copy_only=False)
            .astype(DTYPES[c.kind], copy=False)
            for c in schema.columns
        }
    except (OSError, KeyError, ValueError, cast(Any, arrow).ArrowException) as error:
        said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        first = said.partition("\n")[0]
        raise InputError(f"{path}: cannot be read: {first}; write the report again") from None
    return table(schema.name, columns)
