"""The rows of a sweep as tables: for Python, and as Parquet files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ...ir.support.whole_file import whole_file
from .axes import Values, length
from .columns import COLUMNS, FAILED, INTEGER, NUMBER, REFUSED, TEXT, TRUTH
from .folder import Record
from .points import Prepared
from .spec import BASE, CHIPS, FILE, LIGHT, NAME, Spec

PLACES: tuple[tuple[str, str], ...] = (
    ("point", INTEGER),
    ("model", TEXT),
    ("target", TEXT),
    ("chips", INTEGER),
    ("tiles", INTEGER),
)
"""The columns that say which point a row is about, with their kinds. Those of the keys of the spec
follow."""

TIMES: tuple[tuple[str, str], ...] = (
    ("point", INTEGER),
    ("compile_seconds", NUMBER),
    ("price_seconds", NUMBER),
    ("points", INTEGER),
    ("worker", TEXT),
)
"""The columns of the second file: processor seconds of compiling a program, and of pricing it for
all points that have this program; how many these are; and where."""

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Rows:
    """The rows of a sweep, by the place of their points in the grid.

    Attributes:
        kinds: of the columns, in order.
        keys: the columns that come from keys of the spec.
        rows: of results.
        times: of the second file.
    """

    kinds: Mapping[str, str]
    keys: tuple[str, ...]
    rows: tuple[Row, ...]
    times: tuple[Row, ...]


def rows_of(spec: Spec, some: Iterable[Prepared], records: Mapping[str, Record]) -> Rows:
    """The rows of points that have records or no machine."""
    keys = key_columns(spec)
    kinds = column_kinds(spec)
    rows: list[Row] = []
    times: list[Row] = []
    for each in sorted(some, key=lambda prepared: prepared.point.number):
        record = records.get(each.digest)
        if each.machine is None:
            figures: Row = {"status": REFUSED, "reason": each.problem}
        elif record is None:
            continue
        else:
            figures = record.row
            times.append({"point": each.point.number, **record.seconds})
        rows.append(dict.fromkeys(kinds) | _places(each, keys) | dict(figures))
    return Rows(kinds, tuple(name for name, _ in keys.values()), tuple(rows), tuple(times))


def column_kinds(spec: Spec) -> dict[str, str]:
    """The kinds of the columns of a spec's rows, in order."""
    own = {name: kind for name, kind in key_columns(spec).values()}
    return dict(PLACES) | own | {each.name: each.kind for each in COLUMNS}


def check_figures(spec: Spec) -> None:
    """Raise InputError if a goal or a condition names a figure that no row can have."""
    figures = [name for name, kind in column_kinds(spec).items() if kind != TEXT]
    for each in spec.choice.named:
        for name in sorted(each.names.difference(figures)):
            hint = suggestion(name, figures, f"need one of {', '.join(figures)}")
            raise InputError(f"{each.option} {each.text}: no figure {name}{hint}")


def _places(each: Prepared, keys: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    point, machine, values = each.point, each.machine, each.point.values
    return {
        "point": point.number,
        "model": point.name,
        "target": Path(point.target[BASE]).stem,
        "chips": values.get(CHIPS) if machine is None else machine.chips,
        "tiles": values.get("tiles") if machine is None else machine.tiles,
        **{name: _cell(values.get(key), kind) for key, (name, kind) in keys.items()},
    }


def _cell(value: Any, kind: str) -> Any:
    if value is None or kind != TEXT:
        return value
    return value if isinstance(value, str) else str(value)


def key_columns(spec: Spec) -> dict[str, tuple[str, str]]:
    """The name and the kind of the column of each key that is not a column anyway."""
    own = {FILE, LIGHT, NAME, BASE, *(name for name, _ in PLACES)}
    return {
        key: (column_name(key), _kind(values))
        for key, values in spec.keys.items()
        if key not in own
    }


def column_name(key: str) -> str:
    """The name of the column of a key: letters, digits and _, so that conditions can name it."""
    return "".join(c if c.isalnum() and c.isascii() else "_" for c in key.lower())


def _kind(some: Sequence[Values]) -> str:
    """The kind of a column with some values. Those of a range are like its first two."""
    found: set[type] = set()
    for values in some:
        count = len(values) if isinstance(values, tuple) else min(2, length(values))
        listed = [values[k] for k in range(count)]
        found |= {type(each) for each in listed}
    for kinds, kind in (({bool}, TRUTH), ({int}, INTEGER), ({int, float}, NUMBER)):
        if found <= kinds:
            return kind
    return TEXT


def frame_of(rows: Rows) -> Any:
    """The rows as a pandas frame. Raises InputError if pandas is not installed."""
    return table_of(rows.kinds, rows.rows).to_pandas()


def table_of(kinds: Mapping[str, str], rows: Sequence[Row]) -> Any:
    """A table of Arrow."""
    arrow = needs_arrow()
    types = {
        TEXT: arrow.string(),
        INTEGER: arrow.int64(),
        NUMBER: arrow.float64(),
        TRUTH: arrow.bool_(),
    }
    schema = arrow.schema([(name, types[kind]) for name, kind in kinds.items()])
    columns = [
        arrow.array([_exact(row.get(name), kinds[name]) for row in rows], types[kinds[name]])
        for name in kinds
    ]
    return arrow.Table.from_arrays(columns, schema=schema)


def _exact(value: Any, kind: str) -> Any:
    return float(value) if kind == NUMBER and value is not None else value


def write_rows(rows: Rows, results: Path, seconds: Path) -> None:
    """Write both Parquet files. Equal rows make equal files of results. Raises InputError."""
    write_table(table_of(rows.kinds, rows.rows), results)
    write_table(table_of(dict(TIMES), rows.times), seconds)


def write_table(table: Any, path: Path) -> None:
    """Write a table as Parquet. Raises InputError."""
    import pyarrow.parquet as parquet  # noqa: PLC0415

    try:
        with whole_file(path) as stream:
            cast(Any, parquet).write_table(table, stream, compression="zstd")
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {error.strerror or error}") from None


def needs_arrow() -> Any:
    """The module pyarrow. Raises InputError if it is not installed."""
    try:
        import pyarrow  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "a sweep needs pyarrow, which is not installed: pip install 'abele[sweep]'"
        ) from None
    return cast(Any, pyarrow)


def failed_row(reason: str) -> dict[str, Any]:
    """The row of a point that something went wrong with."""
    return {"status": FAILED, "reason": reason}
