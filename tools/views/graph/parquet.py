"""Write columns to Parquet files, tightly packed and piece by piece."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.support.errors import InputError

DELTA = "DELTA_BINARY_PACKED"

LEVEL = 1
"""The level of zstd. Deltas are so regular that a higher one takes longer and saves little."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its name, type and packing.

    Attributes:
        kind: the name of a NumPy type, or "text" for numbers of names in a list.
        packing: "delta" for numbers that grow, "plain" for numbers that seldom change.
        ranges: whether the file stores the least and largest value of every row group, so that
            queries can skip groups.
    """

    name: str
    kind: str
    packing: str = "plain"
    ranges: bool = False


Piece = Mapping[str, NDArray[Any]]
"""Neighbouring rows of a table: its columns by name, each (rows,)."""


def needs_pyarrow() -> None:
    """Raise InputError if pyarrow is not installed."""
    _pyarrow()


def write_pieces(
    path: Path, columns: Sequence[Column], pieces: Iterable[tuple[Piece, Mapping[str, list[str]]]]
) -> None:
    """Write a table piece by piece, one row group each. Raises OSError.

    Args:
        pieces: the rows, and for each column of kind "text" the list that its numbers index.
    """
    arrow, parquet = _pyarrow()
    text = arrow.dictionary(arrow.int32(), arrow.string())
    schema = arrow.schema(
        [
            # No value is ever missing; a nullable column would store a bit for each.
            arrow.field(
                c.name,
                text if c.kind == "text" else arrow.from_numpy_dtype(np.dtype(c.kind)),
                nullable=False,
            )
            for c in columns
        ]
    )
    with (
        open(path, "xb") as stream,
        parquet.ParquetWriter(
            stream,
            schema,
            compression="zstd",
            compression_level=LEVEL,
            use_dictionary=[c.name for c in columns if c.kind == "text"],
            column_encoding={c.name: DELTA for c in columns if c.packing == "delta"} or None,
            write_statistics=[c.name for c in columns if c.ranges],
        ) as writer,
    ):
        for piece, names in pieces:
            arrays = [
                arrow.DictionaryArray.from_arrays(piece[c.name], arrow.array(names[c.name]))
                if c.kind == "text"
                else arrow.array(piece[c.name])
                for c in columns
            ]
            rows = len(arrays[0])
            writer.write_table(
                arrow.Table.from_arrays(arrays, schema=schema), row_group_size=max(rows, 1)
            )


def write_parquet(path: Path, table: Mapping[str, Sequence[Any] | NDArray[Any]]) -> None:
    """Write a short table, given as columns. Raises OSError."""
    arrow, parquet = _pyarrow()
    with open(path, "xb") as stream:
        parquet.write_table(arrow.table(dict(table)), stream, compression="zstd")


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ModuleNotFoundError:
        raise InputError(
            "tables need pyarrow, which is not installed: pip install 'abele[graph]'"
        ) from None
    return pyarrow, pyarrow.parquet
