"""Strategies for layouts and tensors, and slow but obvious reference implementations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import prod

import hypothesis.strategies as st
import numpy as np

from abele.ir.geometry.layout import Layout, raw_layout
from abele.ir.geometry.part_keys import SIDES, Key, applied, part, total
from abele.ir.geometry.space import AccessMap, AxisMap, Dim

FILL = 7.0
TILES = 12
MOST_TILES = 100
"""Tiles that the memory of a test has."""


@dataclass(frozen=True)
class Cutting:
    """A space with one operand, and the cuts of its dimensions."""

    dims: tuple[Dim, ...]
    axes: tuple[AxisMap, ...]
    split: tuple[int, ...]
    order: tuple[int, ...]
    first_tile: int
    across: tuple[int, ...] = ()
    apart: int = 0

    @property
    def access(self) -> AccessMap:
        return AccessMap(self.axes, FILL)

    def layout(self) -> Layout:
        return raw_layout(
            self.dims,
            self.access,
            self.split,
            self.order,
            self.first_tile,
            across=self.across,
            apart=self.apart,
        )


shapes = st.lists(st.integers(1, 7), max_size=3).map(tuple)


@st.composite
def cuttings(draw: st.DrawFn, shape: tuple[int, ...], windows: bool = True) -> Cutting:
    """Layouts of a shape: plain axes, strided, dilated, padded and divided windows, replicas; on
    one chip or across several.
    """
    dims: list[Dim] = []
    axes: list[AxisMap] = []
    for n in shape:
        d = len(dims)
        if windows and draw(st.booleans()):
            size = draw(st.integers(1, n))
            kernel = draw(st.integers(1, 3))
            step = draw(st.sampled_from([1, 2, -1]))
            pad = draw(st.integers(0, 1))
            dims += [Dim(f"y{d}", size), Dim(f"k{d}", kernel, "reduction")]
            axes.append(
                AxisMap(
                    n,
                    ((d, step), (d + 1, draw(st.sampled_from([1, 2])))),
                    -pad if step > 0 else size - 1,
                    draw(st.sampled_from([1, 1, 2])),
                    draw(st.sampled_from(["exact", "floor"])),
                    draw(st.sampled_from(["fill", "edge", "reflect", "wrap"])),
                )
            )
        else:
            dims.append(Dim(f"x{d}", n))
            axes.append(AxisMap(n, ((d, 1),)))
    if draw(st.booleans()):
        dims.append(Dim("replica", draw(st.integers(1, 4))))
    split: list[int] = []
    for dim in dims:
        split.append(draw(st.integers(1, max(1, min(TILES // prod(split), dim.size)))))
    order = tuple(draw(st.permutations(range(len(dims)))))
    placed = Cutting(tuple(dims), tuple(axes), tuple(split), order, draw(st.integers(0, 3)))
    if prod(split) == 1 or draw(st.booleans()):
        return placed
    across = tuple(draw(st.sampled_from([k for k in (1, 2, 3) if n % k == 0])) for n in split)
    apart = prod(split) // prod(across) + draw(st.integers(0, 1))
    most = prod(split) * apart <= MOST_TILES
    return replace(placed, across=across, apart=apart) if prod(across) > 1 and most else placed


@st.composite
def tensors_and_cuttings(draw: st.DrawFn, windows: bool = True) -> tuple[np.ndarray, Cutting]:
    """A dense tensor of distinct numbers, and a cutting of its shape."""
    shape = draw(shapes)
    dense = np.arange(1, 1 + prod(shape), dtype=np.float32).reshape(shape)
    return dense, draw(cuttings(shape, windows))


def cell_indices(layout: Layout, cell: int) -> list[np.ndarray]:
    """For each axis, the tensor index of every element of a cell's block; -1 where filled."""
    at = np.unravel_index(cell, layout.parts) if layout.parts else ()
    indices: list[np.ndarray] = []
    for i, axis in enumerate(layout.access.axes):
        low = high = axis.offset
        for d, a in axis.terms:
            edges = layout.grid[d].edges()
            first, last = int(edges[at[d]]), int(edges[at[d] + 1]) - 1
            low += min(a * first, a * last)
            high += max(a * first, a * last)
        indices.append(axis.resolve(np.arange(low, high + 1, layout.steps[i])))
    return indices


def cell_block(layout: Layout, cell: int, dense: np.ndarray) -> np.ndarray:
    """The block that a cell must hold, element by element."""
    indices = cell_indices(layout, cell)
    block = np.full([len(i) for i in indices], FILL, dense.dtype)
    for position in np.ndindex(*block.shape):
        element = tuple(int(i[p]) for i, p in zip(indices, position))
        if min(element, default=0) >= 0:
            block[position] = dense[element]
    return block


def part_keys() -> st.SearchStrategy[Key]:
    """Keys over two dimensions of each side, with small numbers."""
    number = st.integers(-9, 9)
    atoms = st.builds(part, st.sampled_from(SIDES), st.integers(0, 1)) | st.builds(
        lambda offset: Key(offset=offset), number
    )

    def larger(keys: st.SearchStrategy[Key]) -> st.SearchStrategy[Key]:
        functions = st.builds(
            applied, st.sampled_from(["mod", "floordiv"]), keys, st.integers(1, 9)
        ) | st.builds(lambda key: applied("sign", key), keys)
        sums = st.lists(st.tuples(keys, number), max_size=3).map(lambda terms: total(*terms))
        return functions | sums

    return st.recursive(atoms, larger, max_leaves=6)
