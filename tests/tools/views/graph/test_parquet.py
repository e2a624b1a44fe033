import builtins
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from abele.ir.errors import InputError
from abele.tools.views.graph.parquet import Column, needs_pyarrow, write_parquet, write_pieces

COLUMNS = (
    Column("id", "int32", "delta", ranges=True),
    Column("small", "int8"),
    Column("name", "text"),
)


def piece(first: int, last: int) -> tuple[dict[str, np.ndarray], dict[str, list[str]]]:
    ids = np.arange(first, last, dtype=np.int32)
    columns = {"id": ids, "small": (ids % 5).astype(np.int8), "name": (ids % 2).astype(np.int32)}
    return columns, {"name": ["even", "odd"]}


def test_pieces_become_row_groups_of_one_table(tmp_path: Path):
    path = tmp_path / "t.parquet"
    write_pieces(path, COLUMNS, [piece(0, 10), piece(10, 15)])
    assert pq.read_table(path).to_pydict() == {
        "id": list(range(15)),
        "small": [n % 5 for n in range(15)],
        "name": [("even", "odd")[n % 2] for n in range(15)],
    }
    metadata = pq.read_metadata(path)
    assert [metadata.row_group(k).num_rows for k in range(2)] == [10, 5]
    ids, small, _ = (metadata.row_group(1).column(k) for k in range(3))
    assert (ids.statistics.min, ids.statistics.max) == (10, 14)
    assert "DELTA_BINARY_PACKED" in ids.encodings
    assert small.statistics is None
    assert all(not field.nullable for field in pq.read_schema(path))


def test_a_table_may_have_no_rows(tmp_path: Path):
    write_pieces(tmp_path / "t.parquet", COLUMNS, [])
    assert pq.read_table(tmp_path / "t.parquet").num_rows == 0


def test_an_existing_file_is_never_overwritten(tmp_path: Path):
    path = tmp_path / "t.parquet"
    write_parquet(path, {"n": [1, 2]})
    for again in (
        lambda: write_parquet(path, {"n": [3]}),
        lambda: write_pieces(path, COLUMNS, []),
    ):
        with pytest.raises(FileExistsError):
            again()
    assert pq.read_table(path).to_pydict() == {"n": [1, 2]}


def test_without_pyarrow_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    load = builtins.__import__

    def without(name: str, *rest: object) -> object:
        if name.startswith("pyarrow"):
            raise ModuleNotFoundError(name)
        return load(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(InputError, match=r"pip install 'abele\[graph\]'"):
        needs_pyarrow()
