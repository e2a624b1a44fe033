"""Products with blocks in buckets, whose rows and columns only a run knows.

The row of a block that is missing is none of its band, so such a block adds nothing, and has no
gradient.
"""

from __future__ import annotations

from ...dialects.nn.base import axis_map
from ...dialects.structured import Body, Structure
from ...ir.geometry.block_lists import Tier
from ...ir.geometry.space import AccessMap, Dim, Relation, Space


def tier_structure(
    tier: Tier,
    shape: tuple[int, int],
    block: tuple[int, int],
    others: tuple[int, ...],
    *,
    transposed: bool,
    dense_last: bool,
) -> Structure:
    """The product of the blocks in the buckets of a tier with a dense matrix.

    The operands are values, the dense matrix, rows and columns of blocks, as in nn.block_matmul.

    Args:
        shape: the rows and columns of blocks of the matrix that the buckets hold.
        block: the height and width of its blocks.
        others: the sizes of the axes of the dense matrix that the result keeps.
        transposed: whether this matrix is to be transposed.
        dense_last: whether the other axes come first.
    """
    (high, wide), (height, width), rank = tier.sizes(shape), block, len(others)
    rows = (("band", tier.bands), ("row", high), ("y", height))
    columns = (("part", tier.parts), ("column", wide), ("x", width))
    kept, merged = (columns, rows) if transposed else (rows, columns)
    (outer, column, x), slot = merged, ("block", tier.room)
    dims = (
        *(Dim(f"n{i}" if rank > 1 else "n", n) for i, n in enumerate(others)),
        *(Dim(*each) for each in kept),
        *(Dim(*each, "reduction") for each in (outer, slot, column, x)),
    )
    at = {dim.name: d for d, dim in enumerate(dims)}

    def access(*names: str) -> AccessMap:
        along = (at[name] for name in names)
        return AccessMap(tuple(axis_map(dims[d].size, dims, [(d, 1)]) for d in along))

    def dense(sides: tuple[tuple[str, int], ...]) -> AccessMap:
        names = [name for name, _ in sides]
        mine = [dim.name for dim in dims[:rank]]
        return access(*mine, *names) if dense_last else access(*names, *mine)

    indices = access("band", "part", "block")
    operands = (access("band", "part", "block", "y", "x"), dense(merged), indices, indices)
    relations = (
        Relation(axis_map(high + 1, dims, [(at["row"], 1)]), 2),
        Relation(axis_map(wide, dims, [(at["column"], 1)]), 3),
    )
    return Structure(Space(dims, operands, (dense(kept),), relations), Body("mul", "sum"))
