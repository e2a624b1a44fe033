"""Cases of the lookups kernels: rows of tables looked up and replaced, by indices of each width."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np

from ....dialects.abele import Plan
from ....dialects.structured import Body, Structure
from ....ir.geometry.layout import Layout
from ....ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space, identity_map
from ...codelets.calls import Array, Scratch, run_calls
from ...codelets.numerics import Placed, VertexSet, bind_vertices
from ...codelets.stamps import History
from ...evaluate.blocks import Blocks, read_blocks, write_blocks
from ...faults import IndexFault
from .. import vertices
from ..copies import HostScratch
from .comparing import (
    CACHE_LINE,
    ONE_UNIT,
    Battery,
    Differs,
    any_bits,
    compare,
    filled,
    make,
    need,
    unit_count,
)

INDEX_TYPES = tuple(map(np.dtype, ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8")))
"""Every dtype of indices."""

ROWS_OF = tuple(map(np.dtype, (np.float32, np.float16, np.uint8, np.float64)))
"""Dtypes of tables."""

WIDTHS = (1, 2, 3, 7, 33)
"""Elements of a row."""


def _lookup(rows: int, n: int, width: int) -> Structure:
    """A table [rows, width] looked up at indices [n]."""
    dims = Dim("n", n), Dim("k", width), Dim("row", rows, "reduction")
    table, at = identity_map((2, 1), (rows, width)), identity_map((0,), (n,))
    space = Space(dims, (table, at), (identity_map((0, 1), (n, width)),), (_reached(rows, 2),))
    return Structure(space, Body("identity", "pick"))


def _replacement(rows: int, n: int, width: int) -> Structure:
    """Rows [n, width] that replace those of a table [rows, width] at indices [n]."""
    dims = Dim("n", n, "reduction"), Dim("k", width), Dim("row", rows)
    table = identity_map((2, 1), (rows, width))
    named = AccessMap((AxisMap(n, ((0, 1),)), AxisMap(1)))
    maps = identity_map((0, 1), (n, width)), named, table
    body = Body("identity", "last", resumes=True)
    return Structure(Space(dims, maps, (table,), (_reached(rows, 2),)), body)


def _reached(rows: int, along: int) -> Relation:
    return Relation(AxisMap(rows, ((along, 1),) if rows > 1 else ()), 1)


def _numbers(kind: np.dtype[Any], rows: int, count: int) -> Array:
    """Indices of a table's rows: the first and the last row, counted from both ends, and others."""
    low = -rows if kind.kind == "i" else 0
    edges = [0, rows - 1, low, max(low, -1)]
    more = np.random.default_rng(rows).integers(low, rows, max(count - len(edges), 0))
    return np.array([*edges, *more][:count]).astype(kind)


def _placed(
    values: Array, layout: Layout, history: History | None = None, index: int = 0
) -> Placed:
    """A tensor in the blocks of a layout, on tiles of their own."""
    size = max(CACHE_LINE, -(-layout.block_elements * values.dtype.itemsize // 8) * 8 + 8)
    blocks = Placed(
        filled(any_bits(1, (layout.tiles.end, size), np.uint8)),
        0,
        values.dtype,
        None if history is None else history.stamps[index],
    )
    write_blocks(values.reshape(layout.shape), Blocks(blocks, layout))
    return blocks


def _check(
    case: str,
    structure: Structure,
    plan: Plan,
    arrays: Sequence[Array],
    is_equal: bool = False,
    in_units: bool = False,
) -> None:
    """Compute a vertex set with kernels and with NumPy, and compare all bytes of its result's
    tiles.

    Args:
        arrays: the operands, then the previous contents of the result.
        is_equal: whether the binder knows that the replicas of indices are equal, so that a row may
            have a piece on each of several tiles.
    """
    layouts = VertexSet.of(structure, plan).layouts
    actual, expected = (
        [_placed(*each) for each in zip(arrays, layouts, strict=True)] for _ in range(2)
    )
    *operands, result = actual
    bound = vertices.bind_vertices(
        structure, plan, operands, result, HostScratch(), equal=[1] if is_equal else []
    )
    calls = bound.calls
    need(case, unit_count(calls) > 0)
    need(case, not in_units or unit_count(calls) > 1, ONE_UNIT)
    faults = ["", ""]
    for i, bound in enumerate((calls, _plain(structure, plan, expected))):
        try:
            make(bound, in_units)
        except IndexFault as fault:
            faults[i] = str(fault)
    if faults[0] != faults[1]:
        raise Differs(f"{case}: fault {faults[0]!r}, but NumPy has {faults[1]!r}")
    compare(case, result.memory, expected[-1].memory)
    compare(case + ", table", operands[0].memory, expected[0].memory)


def _plain(structure: Structure, plan: Plan, placed: Sequence[Placed]) -> list[Any]:
    return bind_vertices(structure, plan, placed[:-1], placed[-1], Scratch())


def looked_up() -> int:
    """Indices of each dtype, negative ones too, of tables of each width, whole and in parts."""
    count = 0
    for kind, width in product(INDEX_TYPES, WIDTHS):
        rows, n, dtype = (7, 120, 1)[count % 3], (1, 5, 14)[count // 3 % 3], ROWS_OF[count % 4]
        if rows == 1:
            rows = 2
        structure = _lookup(rows, n, width)
        plan = Plan((min(n, 2), min(width, 1 + count % 3), 1), first_tile=count % 2)
        table = any_bits(count, (rows, width), dtype)
        result = np.zeros((n, width), dtype)
        case = f"{n} of {rows} rows of {width} {dtype} by {kind}"
        _check(case, structure, plan, [table, _numbers(kind, rows, n), result], count % 2 > 0)
        count += 1
    return count


def outside() -> int:
    """Indices that the table does not have, which give faults with equal messages."""
    count = 0
    for kind in INDEX_TYPES:
        rows, n, width = 9, 6, 5
        for wrong in (rows, -rows - 1):
            if wrong < 0 and kind.kind == "u":
                continue
            at = _numbers(kind, rows, n)
            at[4] = wrong
            arrays = [any_bits(3, (rows, width), np.float32), at, np.zeros((n, width), np.float32)]
            _check(f"index {wrong} as {kind}", _lookup(rows, n, width), Plan((2, 1, 1)), arrays)
            count += 1
    return count


def replaced() -> int:
    """Rows that replace others, the same row several times, in tables that are cut."""
    count = 0
    for kind, width in product(INDEX_TYPES, WIDTHS):
        rows, n, dtype = (9, 120, 4)[count % 3], (1, 5, 14)[count // 3 % 3], ROWS_OF[count % 4]
        structure = _replacement(rows, n, width)
        plan = Plan((1, min(width, 1 + count % 2), (1, 3, 2)[count % 3]))
        new, old = any_bits(count, (n, width), dtype), any_bits(99, (rows, width), dtype)
        at = _numbers(kind, rows, n).reshape(n, 1)
        at[n // 2 :] = at[: n - n // 2]
        case = f"{n} of {rows} rows of {width} {dtype} replaced by {kind}"
        _check(case, structure, plan, [new, at, old, np.zeros_like(old)], count % 2 > 0)
        count += 1
    return count


def packed_tables() -> int:
    """Tables that are packed from the second run on, because they are not written, until one is."""
    count = 0
    for (rows, n, width), dtype in product(((6, 5, 3), (40, 9, 7)), ROWS_OF):
        structure, plan = _lookup(rows, n, width), Plan((2, width, 1))
        layouts = VertexSet.of(structure, plan).layouts
        history = History([np.array([i]) for i in range(2)], [True, True])
        for stamp in history.stamps:
            stamp.write(True)
        at = _numbers(np.dtype(np.int32), rows, n)
        table = _placed(any_bits(5, (rows, width), dtype), layouts[0], history, 0)
        named = _placed(at, layouts[1], history, 1)
        result = _placed(np.zeros((n, width), dtype), layouts[2])
        bound = vertices.bind_vertices(
            structure, plan, [table, named], result, HostScratch(), equal=[0]
        )
        for iteration in range(4):
            if iteration == 3:
                write_blocks(any_bits(6, (rows, width), dtype), Blocks(table, layouts[0]))
                history.stamps[0].write(True)
            wanted = _placed(np.zeros((n, width), dtype), layouts[2])
            run_calls(_plain(structure, plan, [table, named, wanted]))
            # Only the bytes that are not written differ.
            result.memory[...] = ~wanted.memory
            run_calls(bound.calls)
            found, expected = (read_blocks(Blocks(each, layouts[2])) for each in (result, wanted))
            if found.tobytes() != expected.tobytes():
                raise Differs(f"{n} of {rows} rows of {width} {dtype}, run {iteration + 1}")
            count += 1
    return count


def shared_work() -> int:
    """Many lookups and replacements, in units that threads share, in any order."""
    rows, n, width = 300, 4000, 9
    at = _numbers(np.dtype(np.int16), rows, n)
    table, result = any_bits(1, (rows, width), np.float32), np.zeros((n, width), np.float32)
    plan = Plan((1, 3, 1))
    _check(f"{n} lookups by units", _lookup(rows, n, width), plan, [table, at, result], True, True)
    rows, n, width = 40, 30, 700
    at = _numbers(np.dtype(np.int16), rows, n).reshape(n, 1)
    new, old = any_bits(2, (n, width), np.float32), any_bits(3, (rows, width), np.float32)
    arrays = [new, at, old, np.zeros_like(old)]
    structure, plan = _replacement(rows, n, width), Plan((1, 175, 1))
    _check(f"{n} replacements by units", structure, plan, arrays, True, True)
    return 2


BATTERY: Battery = {
    "lookups": looked_up,
    "indices outside": outside,
    "replacements": replaced,
    "packed tables": packed_tables,
    "shared work": shared_work,
}
