"""Cases of the routes kernel: copies from tile to tile with runs of every kind, length and
width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import numpy as np

from ....ir.geometry.grid import Cut
from ....ir.geometry.layout import Layout
from ....ir.geometry.space import AccessMap, AxisMap, Dim, Space, identity_map
from ...codelets.calls import Array, Scratch
from ...codelets.numerics import Placed
from ...evaluate import blocks as plain
from ...evaluate.blocks import Blocks
from ..kernels.tables import LANES, LEAST_SIDE
from ..routes import bind_routes
from .comparing import (
    ONE_UNIT,
    Battery,
    any_bits,
    compare,
    filled,
    make,
    need,
    unit_count,
)

DTYPES = tuple(map(np.dtype, (np.uint8, np.float16, np.float32, np.float64)))
"""A dtype of each width."""

DRAWN = 40
"""The number of copies between random layouts, which are the same in each run."""


@dataclass(frozen=True)
class Copy:
    """A copy: its sources and their moves, its destination, and the dtype."""

    sources: tuple[Layout, ...]
    moves: tuple[Space, ...] | None
    target: Layout
    dtype: np.dtype[Any]

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """The layouts of all variables."""
        return *self.sources, self.target


def check(case: str, copy: Copy, in_units: bool = False) -> bool:
    """Copy on separate tiles with kernels and with NumPy, and compare; False if there are no
    routes.
    """
    places, row = list[int](), 0
    for layout in copy.layouts:
        places.append(row)
        row += -(-layout.block_elements * copy.dtype.itemsize // 8) * 8 + 16
    tiles = max(layout.tiles.end for layout in copy.layouts)
    begun = any_bits(tiles, (tiles, row), np.uint8)
    actual, expected = filled(begun), filled(begun)
    *sources, target = _blocks(copy, actual, places)
    given = [(each.placed, each.layout) for each in sources]
    calls = bind_routes(given, copy.moves, (target.placed, target.layout))
    if calls is None:
        return False
    need(case, not in_units or unit_count(calls) > 1, ONE_UNIT)
    make(calls, in_units)
    *sources, target = _blocks(copy, expected, places)
    make(plain.bind_copy(sources, copy.moves, target, Scratch()))
    compare(case, actual, expected)
    return True


def _blocks(copy: Copy, memory: Array, places: Sequence[int]) -> list[Blocks]:
    """All variables, in the memory of tiles."""
    return [
        Blocks(Placed(memory, at, copy.dtype), layout)
        for at, layout in zip(places, copy.layouts, strict=True)
    ]


def _must(case: str, copy: Copy, in_units: bool = False) -> None:
    """Like check, for a copy that must have routes."""
    need(case, check(case, copy, in_units), "there are no routes")


def _cut(shape: Sequence[int], parts: Sequence[int], first_tile: int = 0) -> Layout:
    """A tensor that is cut into parts along its axes."""
    cuts = tuple(Cut(n, k) for n, k in zip(shape, parts, strict=True))
    return Layout(cuts, identity_map(tuple(range(len(shape))), tuple(shape)), first_tile)


def _moved(sizes: Sequence[int], axes: Sequence[AxisMap], fill: float = 0.0) -> Space:
    """A move that reads a tensor through these axes, and gives a tensor of these sizes."""
    dims = tuple(Dim(f"d{d}", n) for d, n in enumerate(sizes))
    result = AccessMap(tuple(AxisMap(n, ((d, 1),)) for d, n in enumerate(sizes)))
    return Space(dims, (AccessMap(tuple(axes), fill),), (result,))


SIDES = (1, LEAST_SIDE - 1, LEAST_SIDE, LEAST_SIDE + 1, 9, LANES, LANES + 1, 2 * LANES + 3)
"""Rows and columns of transposed matrices: too few to transpose, whole vectors, and tails."""


def transposed() -> int:
    """Matrices of all sizes that are transposed from tile to tile, with elements of each width."""
    count = 0
    for (i, rows), (j, columns) in product(enumerate(SIDES), enumerate(SIDES)):
        if rows == columns == 1:
            continue
        dtype = DTYPES[(i + j) % len(DTYPES)]
        parts = min(rows, 3) if (i + 2 * j) % 3 else 1
        source = _cut((columns, rows), (1, parts))
        move = _moved((rows, columns), [AxisMap(columns, ((1, 1),)), AxisMap(rows, ((0, 1),))])
        split = 1 if (i + j // 2) % 2 else min(columns, 2)
        target = _cut((rows, columns), (1, split), count % 2)
        name = f"{rows}x{columns} of {dtype} from {parts} tiles to {split}, transposed"
        _must(name, Copy((source,), (move,), target, dtype))
        count += 1
    return count


def lengths_of_runs() -> int:
    """Rows of all lengths up to more than a vector, whole and from two tiles."""
    count = 0
    for i, length in enumerate((*range(1, LANES + 3), 31, 32, 33, 63, 64, 65, 129)):
        k = i % len(DTYPES)
        shape, dtype = (5, length), DTYPES[k]
        source = _cut(shape, (1, min(length, 1 + k % 2)))
        target = _cut(shape, (min(5, 2 + k), 1), k)
        _must(f"5 rows of {length} {dtype}", Copy((source,), None, target, dtype))
        count += 1
    return count


def gathered_pieces() -> int:
    """Every second and third element, pairs of elements, and rows in reverse."""
    count = 0
    lengths = 1, 3, LEAST_SIDE, 7, LANES, LANES + 1, 37
    for (i, length), (j, step) in product(enumerate(lengths), enumerate((2, 3, -1, -2))):
        dtype = DTYPES[(i + j) % len(DTYPES)]
        rows, reach = 3, abs(step) * (length - 1) + 1
        at = 0 if step > 0 else reach - 1
        axes = [AxisMap(rows, ((0, 1),)), AxisMap(reach, ((1, step),), at)]
        source, target = _cut((rows, reach), (1, 1)), _cut((rows, length), (min(rows, 2), 1))
        name = f"{rows}x{length} of {dtype} by {step}"
        _must(name, Copy((source,), (_moved((rows, length), axes),), target, dtype))
        count += 1
    for pairs, dtype in product((3, 8, 19), DTYPES):
        shape = 4, pairs, 2
        source = _cut((pairs, 4, 2), (1, 2, 1))
        axes = [AxisMap(pairs, ((1, 1),)), AxisMap(4, ((0, 1),)), AxisMap(2, ((2, 1),))]
        target = _cut(shape, (2, 1, 1))
        copy = Copy((source,), (_moved(shape, axes),), target, dtype)
        _must(f"4x{pairs} pairs of {dtype}", copy)
        count += 1
    return count


def windows() -> int:
    """Windows that overlap and reach outside the tensor, where they are filled, with rows of all
    lengths.
    """
    count = 0
    for length, (step, reach), dtype in product((1, 5, LANES, 21), ((1, 3), (2, 2)), DTYPES):
        channels, rows = 3, 6
        grid = Cut(channels), Cut(rows, 3), Cut(length, min(length, 2)), Cut(reach)
        size = (rows - 1) * step + reach - 2
        access = AccessMap(
            (
                AxisMap(channels, ((0, 1),)),
                AxisMap(size, ((1, step), (3, 1)), -1, outside="fill"),
                AxisMap(length, ((2, 1),)),
            ),
            1.0 if dtype.kind == "f" else 7.0,
        )
        source = _cut((channels, size, length), (1, min(size, 4), 1))
        copy = Copy((source,), None, Layout(grid, access), dtype)
        _must(f"windows of {reach} by {step} of rows of {length} {dtype}", copy)
        count += 1
    return count


def replicas() -> int:
    """Blocks that several tiles hold, contiguous or with gaps between their rows."""
    count = 0
    for length, copies, parts in product((1, 7, LANES + 1, 41), (2, 5), (1, 2)):
        shape, dtype = (4, length), DTYPES[count % len(DTYPES)]
        grid = Cut(copies, copies), Cut(4, 2), Cut(length, min(length, parts))
        target = Layout(grid, identity_map((1, 2), shape), count % 3)
        copy = Copy((_cut(shape, (3, 1)),), None, target, dtype)
        _must(f"{copies} replicas of 4x{length} of {dtype} in {parts} parts", copy)
        count += 1
    return count


def joined_and_padded() -> int:
    """Tensors joined side by side, and a tensor padded on all sides."""
    count = 0
    for length, dtype in product((1, 5, LANES - 1, LANES + 2), DTYPES):
        rows = 5
        sizes = length, length + 2
        target = _cut((rows, sum(sizes)), (2, 2))
        sources, moves, offset = list[Layout](), list[Space](), 0
        for n in sizes:
            dims = Dim("r", rows), Dim("c", n)
            axis = AxisMap(sum(sizes), ((1, 1),), offset)
            result = AccessMap((AxisMap(rows, ((0, 1),)), axis))
            moves.append(Space(dims, (identity_map((0, 1), (rows, n)),), (result,)))
            sources.append(_cut((rows, n), (1, min(n, 3)), len(sources)))
            offset += n
        copy = Copy(tuple(sources), tuple(moves), target, dtype)
        _must(f"{rows} rows of {sizes[0]} beside {sizes[1]} {dtype}", copy)
        axes = [AxisMap(rows, ((0, 1),)), AxisMap(length, ((1, 1),), -3, outside="fill")]
        move = _moved((rows, length + 7), axes)
        copy = Copy((_cut((rows, length), (5, 1)),), (move,), _cut(move.sizes, (1, 2)), dtype)
        _must(f"{rows} rows of {length} {dtype}, padded", copy)
        count += 2
    return count


def _held(draw: Random, shape: tuple[int, ...]) -> Layout:
    """A random layout in which each element has one owner, perhaps with replicas."""
    order = draw.sample(range(len(shape)), len(shape))
    left, cuts = 12, list[Cut]()
    for d in order:
        parts = draw.randint(1, max(1, min(left, shape[d])))
        cuts.append(Cut(shape[d], parts))
        left //= parts
    access = identity_map(tuple(order.index(d) for d in range(len(shape))), shape)
    if draw.random() < 0.3:
        cuts.insert(0, Cut(2, 2))
        access = access.renamed({i: i + 1 for i in range(len(shape))})
    return Layout(tuple(cuts), access, draw.randint(0, 3))


def _drawn() -> Iterator[Copy]:
    """Copies between random layouts, most of them with a random move."""
    for seed in range(DRAWN):
        draw = Random(seed)
        rank, dtype = draw.randint(1, 4), draw.choice(DTYPES)
        shape = tuple(draw.choice((1, 2, 3, 4, 5, 8, 17)) for _ in range(rank))
        target = _held(draw, shape)
        if draw.random() < 0.3:
            yield Copy((_held(draw, shape),), None, target, dtype)
            continue
        axes = list[AxisMap]()
        for d in draw.sample(range(rank), rank):
            step = draw.choice((1, 1, 1, 2, -1))
            reach, outside = abs(step) * (shape[d] - 1) + 1, draw.choice(("fill", "edge", "wrap"))
            at = draw.choice((-1, 0, 0, 1)) + (0 if step > 0 else reach - 1)
            axes.append(AxisMap(reach, ((d, step),), at, outside=outside))
        source = _held(draw, tuple(axis.size for axis in axes))
        yield Copy((source,), (_moved(shape, axes),), target, dtype)


def drawn_layouts() -> int:
    """Copies between random layouts, with moves that permute, stride, reverse and pad."""
    count = sum(check(f"drawn {i}", copy) for i, copy in enumerate(_drawn()))
    need("drawn layouts", count > DRAWN // 2, "too few have routes")
    return count


def shared_work() -> int:
    """Many cells and long rows, in units that threads share, in any order."""
    shapes = (64, 600), (37, 2111)
    for shape, in_units in product(shapes, (False, True)):
        rows, columns = shape
        axes = [AxisMap(columns, ((1, 1),)), AxisMap(rows, ((0, 1),))]
        source, target = _cut((columns, rows), (1, 8)), _cut(shape, (min(rows, 20), 1))
        copy = Copy((source,), (_moved(shape, axes),), target, np.dtype(np.float32))
        _must(f"{rows}x{columns}" + ", by units" * in_units, copy, in_units)
        grid = Cut(3, 3), Cut(rows, 8), Cut(columns)
        spread = Layout(grid, identity_map((1, 2), shape))
        copy = Copy((_cut(shape, (4, 1)),), None, spread, np.dtype(np.float16))
        _must(f"{rows}x{columns} replicas" + ", by units" * in_units, copy, in_units)
    return 4 * len(shapes)


BATTERY: Battery = {
    "transposed": transposed,
    "lengths of runs": lengths_of_runs,
    "gathered pieces": gathered_pieces,
    "windows": windows,
    "replicas": replicas,
    "joined and padded": joined_and_padded,
    "drawn layouts": drawn_layouts,
    "shared work": shared_work,
}
