"""Tables as columns of NumPy arrays and lists of text, as the schema defines them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ....ir.support.arrays import Array
from .schema import TABLES

Table = Mapping[str, "Array | list[str]"]
"""The columns of a table by name."""

DTYPES = {"int": np.int64, "float": np.float64, "bool": np.bool_}
"""The NumPy type of each kind of column that is not text. A missing float is NaN."""


def table(name: str, columns: Mapping[str, Sequence[Any] | Array]) -> Table:
    """A table with the columns of its schema, in that order.

    Raises KeyError for a column that the schema does not have or that is missing.
    """
    schema = TABLES[name]
    extra = set(columns) - {c.name for c in schema.columns}
    if extra:
        raise KeyError(f"table {name}: no columns {sorted(extra)} in the schema")
    found: dict[str, Array | list[str]] = {}
    for column in schema.columns:
        values = columns[column.name]
        found[column.name] = (
            [str(each) for each in values]
            if column.kind == "text"
            else np.asarray(values, DTYPES[column.kind])
        )
    return found


def rows_table(name: str, rows: Iterable[Mapping[str, Any]]) -> Table:
    """A table from rows, which have a value for each column."""
    every = list(rows)
    names = [c.name for c in TABLES[name].columns]
    return table(name, {each: [row[each] for row in every] for each in names})


def length(found: Table) -> int:
    """The number of rows of a table."""
    return len(next(iter(found.values())))


def empty(name: str) -> Table:
    """A table without rows."""
    return rows_table(name, ())
