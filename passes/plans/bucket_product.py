"""Products with blocks in buckets: one bucket for each band of rows and part of columns.

The row of a block that is missing is none of its band, so such a block adds nothing, and has no
gradient.
"""

from __future__ import annotations

from dataclasses import dataclass

from ...dialects.nn.base import axis_map
from ...dialects.structured import Body, Structure
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Relation, Space
from ...ir.geometry.table import Table


@dataclass(frozen=True)
class BucketSizes:
    """The sizes of buckets, all of which have the same.

    Attributes:
        bands: of rows of blocks.
        high: the rows of blocks of a band.
        parts: of columns of blocks.
        wide: the columns of blocks that a bucket has.
        room: the blocks of a bucket.
        block: the height and width of a block.
    """

    bands: int
    high: int
    parts: int
    wide: int
    room: int
    block: tuple[int, int]


@dataclass(frozen=True)
class Columns:
    """Which columns of blocks each bucket has, where they are not those of its part.

    Attributes:
        table: for each bucket, the columns of blocks in their order.
        count: the columns of blocks of the matrix.
    """

    table: Table
    count: int


def bucket_structure(
    sizes: BucketSizes,
    others: tuple[int, ...],
    *,
    transposed: bool = False,
    before: int,
    columns: Columns | None = None,
) -> Structure:
    """The product of the blocks in buckets with a dense matrix.

    The operands are values, the dense matrix, rows and columns of blocks, as in nn.block_matmul.

    Args:
        others: the sizes of the axes of the dense matrix that the result keeps.
        transposed: whether the matrix that the buckets hold is to be transposed. It must have no
            columns of its own then.
        before: how many of these axes come before the terms.
        columns: those that buckets have.
    """
    (height, width), rank = sizes.block, len(others)
    rows_of = (("band", sizes.bands), ("row", sizes.high), ("y", height))
    columns_of = (("part", sizes.parts), ("column", sizes.wide), ("x", width))
    kept, merged = (columns_of, rows_of) if transposed else (rows_of, columns_of)
    (outer, inner, last), slot = merged, ("block", sizes.room)
    dims = (
        *(Dim(f"n{i}" if rank > 1 else "n", n) for i, n in enumerate(others)),
        *(Dim(*each) for each in kept),
        *(Dim(*each, "reduction") for each in (outer, slot, inner, last)),
    )
    at = {dim.name: d for d, dim in enumerate(dims)}

    def axes(*names: str) -> tuple[AxisMap, ...]:
        along = (at[name] for name in names)
        return tuple(axis_map(dims[d].size, dims, [(d, 1)]) for d in along)

    def beside(own: tuple[AxisMap, ...]) -> AccessMap:
        mine = axes(*(dim.name for dim in dims[:rank]))
        return AccessMap((*mine[:before], *own, *mine[before:]))

    terms = axes(*(name for name, _ in merged))
    if columns is not None:
        steps = (sizes.parts * sizes.wide, sizes.wide, 1)
        places = [(at[name], n) for name, n in zip(("band", "part", "column"), steps, strict=True)]
        n = columns.count
        terms = (axis_map(n, dims, places, n, outside=columns.table), *axes("x"))
    indices = AccessMap(axes("band", "part", "block"))
    values = AccessMap(axes("band", "part", "block", "y", "x"))
    relations = (
        Relation(axis_map(sizes.high + 1, dims, [(at["row"], 1)]), 2),
        Relation(axis_map(sizes.wide, dims, [(at["column"], 1)]), 3),
    )
    result = beside(axes(*(name for name, _ in kept)))
    space = Space(dims, (values, beside(terms), indices, indices), (result,), relations)
    return Structure(space, Body("mul", "sum"))
