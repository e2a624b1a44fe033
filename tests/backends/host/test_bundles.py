"""Bundles copy the bytes of the gathered runs that they replace."""

from collections.abc import Iterator
from unittest import mock

import numpy as np
import pytest

from abele.backends.codelets.calls import Scratch, run_calls
from abele.backends.codelets.numerics import Placed
from abele.backends.evaluate.blocks import Blocks, bind_copy
from abele.backends.host import bundles, calls, runs
from abele.backends.host.bundles import GATHERED_LONGS, GATHERED_WORDS, Runs, groups, with_bundles
from abele.backends.host.copies import HostScratch
from abele.backends.host.copies import bind_copy as host_copy
from abele.backends.host.kernels.tables import (
    REPLICA,
    RUN_FIELDS,
    RUN_LENGTH,
    RUN_PIECES,
    RUN_ROW_TABLE,
    RUN_ROWS,
    RUN_SOURCE,
    RUN_TARGET,
    TRANSPOSED,
)
from abele.backends.host.threads import Threads
from abele.ir.geometry.grid import Cut
from abele.ir.geometry.layout import Layout
from abele.ir.geometry.space import AxisMap, identity_map

from .unit_orders import in_another_order

ROW = 1 << 16
TILES = 160


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Runs]]:
    """The runs of the copies that a test binds."""
    found: list[Runs] = []

    def spy(*arguments: np.ndarray) -> Runs:
        found.append(with_bundles(*arguments))
        return found[-1]

    monkeypatch.setattr(runs, "with_bundles", spy)
    return found


def turned(
    rows: int, columns: int, parts: int, replicas: int = 1, pieces: int = 1
) -> tuple[Layout, Layout]:
    """Each column of a matrix on tiles of its own, and its rows on some tiles, perhaps repeatedly.

    pieces: of each column.
    """
    access = identity_map((1, 0), (rows, columns))
    source = Layout((Cut(columns, columns), Cut(rows, pieces)), access)
    grid = (Cut(replicas, replicas), Cut(rows, parts), Cut(columns))
    return source, Layout(grid, identity_map((1, 2), (rows, columns)))


def written(source: Layout, target: Layout, dtype: str, fast: bool) -> np.ndarray:
    """The bytes of all tiles after a copy."""
    memory = np.random.default_rng(0).integers(0, 256, (TILES, ROW), np.uint8)
    there = Blocks(Placed(memory, 8, np.dtype(dtype)), source)
    here = Blocks(Placed(memory, ROW // 2, np.dtype(dtype)), target)
    if fast:
        run_calls(host_copy([there], None, here, HostScratch()))
    else:
        run_calls(bind_copy([there], None, here, Scratch()))
    return memory


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("parts", [1, 3, 37, 70])
@pytest.mark.parametrize("columns", [17, 37, 71])
def test_a_matrix_is_transposed_by_bundles(made: list[Runs], dtype: str, parts: int, columns: int):
    layouts = turned(70, columns, parts)
    assert (written(*layouts, dtype, True) == written(*layouts, dtype, False)).all()
    (runs,) = made
    assert (runs.kind == TRANSPOSED + (dtype == "float64")).any()


@pytest.mark.parametrize("pieces", [2, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_each_piece_of_columns_makes_a_bundle(made: list[Runs], dtype: str, pieces: int):
    layouts = turned(70, 37, 1, pieces=pieces)
    assert (written(*layouts, dtype, True) == written(*layouts, dtype, False)).all()
    (runs,) = made
    assert len(runs.kind) == pieces
    assert (runs.kind == TRANSPOSED + (dtype == "float64")).all()


def test_each_row_of_several_cells_makes_a_bundle(made: list[Runs]):
    shape = (20, 4, 17)
    columns = (Cut(4, 4), Cut(17, 17), Cut(20))
    source = Layout(columns, identity_map((2, 0, 1), shape))
    target = Layout((Cut(20, 20), Cut(4), Cut(17)), identity_map((0, 1, 2), shape))
    assert (
        written(source, target, "float32", True) == written(source, target, "float32", False)
    ).all()
    (runs,) = made
    assert len(runs.kind) == 4
    assert (runs.kind == TRANSPOSED).all()


@pytest.mark.parametrize("rows", [4, 5, 7, 8, 9, 15, 16, 31])
def test_few_rows_of_few_elements_are_bundled(made: list[Runs], rows: int):
    for columns in (16, 21):
        layouts = turned(rows, columns, rows)
        assert (written(*layouts, "float32", True) == written(*layouts, "float32", False)).all()
    assert all((runs.kind == TRANSPOSED).all() for runs in made)


def test_replicas_are_copied_after_the_bundles_that_they_copy(made: list[Runs]):
    layouts = turned(70, 37, 70, replicas=2)
    assert (written(*layouts, "float32", True) == written(*layouts, "float32", False)).all()
    (runs,) = made
    assert {*runs.kind} == {TRANSPOSED, REPLICA}
    group = groups(runs.first, runs.last)
    bundle = runs.kind == TRANSPOSED
    for first, last, own in zip(runs.first[bundle], runs.last[bundle], group[bundle], strict=True):
        inside = (runs.first >= first) & (runs.first <= last)
        assert (group[inside] == own).all()


@pytest.mark.parametrize("columns", [16, 37])
def test_replicas_are_copied_in_the_units_of_their_bundles(
    columns: int, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(calls, "SMALL_NANOSECONDS", 0.0)
    monkeypatch.setattr(calls, "LEAST_NANOSECONDS", 1.0)
    layouts = turned(70, columns, 70, replicas=2)
    expected = written(*layouts, "float32", False)
    for seed in range(3):
        with mock.patch.object(Threads, "run", in_another_order(seed)):
            assert (written(*layouts, "float32", True) == expected).all()


def test_windows_that_overlap_are_bundled_apart(made: list[Runs]):
    # Element (i, j) of a window is row i + j of the matrix, so that windows read rows twice.
    access = identity_map((1, 0), (12, 40))
    source = Layout((Cut(40, 40), Cut(12)), access)
    grid = (Cut(10, 10), Cut(40), Cut(3))
    windows = (AxisMap(12, ((0, 1), (2, 1))), AxisMap(40, ((1, 1),)))
    target = Layout(grid, identity_map((0, 1), (12, 40)).__class__(windows))
    assert (
        written(source, target, "float32", True) == written(source, target, "float32", False)
    ).all()
    assert made


def run(target: int, source: int, length: int, rows: int, entry: int, pieces: int) -> list[int]:
    columns = {
        RUN_TARGET: target,
        RUN_SOURCE: source,
        RUN_LENGTH: length,
        RUN_ROWS: rows,
        RUN_ROW_TABLE: entry,
        RUN_PIECES: pieces,
    }
    return [columns[i] for i in range(RUN_FIELDS)]


def bundled(listed: list[list[int]], entries: list[int], kind: int = GATHERED_WORDS) -> Runs:
    table = np.array(listed, np.int64)
    cell = np.arange(len(table))
    return with_bundles(table, np.full(len(table), kind), cell, np.array(entries, np.int64), 100)


def test_neighbours_of_the_same_pieces_make_one_bundle():
    found = bundled([run(1000 * i, 4 * i, 8, 1, 0, 0) for i in range(6)], [0])
    assert found.kind.tolist() == [TRANSPOSED]
    (line,) = found.table
    assert (line[RUN_TARGET], line[RUN_SOURCE], line[RUN_ROWS]) == (0, 0, 6)
    listed = found.entries[line[RUN_ROW_TABLE] :][:6]
    assert listed.tolist() == [0, 1000, 2000, 3000, 4000, 5000]
    assert (found.first.tolist(), found.last.tolist()) == ([0], [5])


def test_rows_of_a_run_that_follow_each_other_make_one_bundle():
    found = bundled([run(7, 50, 8, 6, 0, 0)], [8, 16, 24, 32, 40, 48], GATHERED_LONGS)
    assert found.kind.tolist() == [TRANSPOSED + 1]
    (line,) = found.table
    assert (line[RUN_TARGET], line[RUN_SOURCE], line[RUN_ROWS]) == (7, 58, 6)
    assert found.entries[line[RUN_ROW_TABLE] :][:6].tolist() == [0, 100, 200, 300, 400, 500]


@pytest.mark.parametrize(
    "listed",
    [
        [run(1000 * i, 8 * i, 8, 1, 0, 0) for i in range(6)],
        [run(1000 * i, 4 * i, 8, 1, 0, 8 * i) for i in range(6)],
        [run(1000 * i, 4 * i, 3, 1, 0, 0) for i in range(6)],
        [run(1000 * i, 4 * i, 8, 1, 0, 0) for i in range(3)],
        [run(0, 0, 8, 2, 0, 0)],
    ],
    ids=["no neighbours", "other pieces", "short rows", "few rows", "few rows of a run"],
)
def test_other_runs_stay_as_they_are(listed: list[list[int]]):
    found = bundled(listed, [0, 4])
    assert found.table.tolist() == listed
    assert (found.kind == GATHERED_WORDS).all()


def test_bundles_of_many_cells_have_equally_many_rows(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundles, "ROWS_AT_ONCE", 8)
    found = bundled([run(1000 * i, 4 * i, 8, 1, 0, 0) for i in range(31)], [0])
    assert sorted(found.table[:, RUN_ROWS].tolist()) == [10, 10, 11]
    assert (found.kind == TRANSPOSED).all()


def test_groups_end_where_no_run_crosses():
    first = np.array([0, 1, 2, 3, 5, 6, 40])
    last = np.array([0, 4, 2, 3, 5, 6, 63])
    found = groups(first, last)
    # Without the second run, the first group would end after four cells.
    assert found[:6].tolist() == [0, 0, 0, 0, 1, 1]
    assert found[6] > 1


def test_an_empty_copy_has_no_groups():
    nothing = np.zeros(0, np.int64)
    assert not len(groups(nothing, nothing))
