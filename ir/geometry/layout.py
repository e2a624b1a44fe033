"""Layouts: which block of a tensor lives on which tile, and in which local order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from ..support.distinct import distinct
from ..support.hash_once import hash_once
from .grid import Cut
from .space import AccessMap, AxisMap, Dim, identity_map
from .table import Table
from .tiles import Tiles, digits_of_chips


@hash_once
@dataclass(frozen=True)
class Layout:
    """Blocks of a tensor over a grid of cells, one cell per tile.

    A block is a window along each axis of the (viewed) tensor, row-major. It goes from the smallest
    to the largest index that its cell touches, in steps. Where the access map divides, indices are
    taken before the division: they are numerators. All blocks have the box and the strides of the
    largest block. Blocks overlap where windows overlap, and repeat over grid dimensions that the
    access map does not name.

        tensor of 7, windows of 3, grid 7-2 outputs by 2:   tile 0: 0 1 2 3 4   tile 1: 3 4 5 6 .

    Attributes:
        grid: the split dimensions. Cells are numbered row-major over their parts, and cell c lives
            on tile first_tile + c. Where parts are spread over several chips, see `Tiles`.
        access: the tensor seen from the grid's dimensions.
        apart: the distance in tiles from a chip to the next; 0 if no part is on another chip.
    """

    grid: tuple[Cut, ...]
    access: AccessMap
    first_tile: int = 0
    apart: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """The tensor's viewed shape."""
        return self.access.shape

    @property
    def tables(self) -> Iterator[Table]:
        """The tables of its map."""
        for axis in self.access.axes:
            if isinstance(axis.outside, Table):
                yield axis.outside

    @cached_property
    def parts(self) -> tuple[int, ...]:
        """Parts of each grid dimension."""
        return tuple(cut.parts for cut in self.grid)

    @cached_property
    def cells(self) -> int:
        """Number of cells, which is the number of tiles."""
        return prod(self.parts)

    @cached_property
    def tiles(self) -> Tiles:
        """The tiles that hold the cells."""
        spread = any(cut.chips > 1 for cut in self.grid)
        chips = tuple(cut.chips for cut in self.grid) if spread else ()
        return Tiles(self.first_tile, self.parts, chips, self.apart)

    @cached_property
    def stacked(self) -> Layout:
        """The same blocks with cell c on tile c."""
        if not (self.first_tile or self.apart):
            return self
        grid = self.grid
        if self.apart:
            grid = tuple(_cut(cut.size, cut.parts, cut.grain) for cut in grid)
        return Layout(grid, self.access)

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """Distance in cells from one part to the next, for each grid dimension."""
        return tuple(prod(self.parts[i + 1 :]) for i in range(len(self.parts)))

    @cached_property
    def steps(self) -> tuple[int, ...]:
        """Distance of neighbouring numerators in a block, for each axis."""
        return tuple(
            gcd(*(abs(a) for d, a in axis.terms if self.grid[d].largest > 1)) or 1
            for axis in self.access.axes
        )

    def window(self, axis: int, sizes: tuple[int, ...]) -> int:
        """Number of numerators of an axis that a cell with these dimension sizes touches."""
        terms = self.access.axes[axis].terms
        if not all(sizes[d] for d, _ in terms):
            return 0
        return sum(abs(a) * (sizes[d] - 1) for d, a in terms) // self.steps[axis] + 1

    @cached_property
    def box(self) -> tuple[int, ...]:
        """Elements of the largest block, for each axis. All blocks have its strides."""
        largest = tuple(cut.largest for cut in self.grid)
        return tuple(self.window(i, largest) for i in range(len(self.access.axes)))

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index of an axis to the next within a block."""
        return tuple(prod(self.box[i + 1 :]) for i in range(len(self.box)))

    @cached_property
    def block_elements(self) -> int:
        """Elements of the largest block."""
        return prod(self.box)

    @cached_property
    def split_dims(self) -> tuple[int, ...]:
        """Grid dimensions in more than one part."""
        return tuple(i for i, cut in enumerate(self.grid) if cut.parts > 1)

    @cached_property
    def replica_dims(self) -> tuple[int, ...]:
        """Cut dimensions that the tensor does not depend on. Each part holds a copy."""
        used = self.access.dims()
        return tuple(i for i in self.split_dims if i not in used)

    @cached_property
    def replicas(self) -> int:
        """Copies of each block."""
        return prod(self.parts[i] for i in self.replica_dims)

    def starts(self, axis: int) -> NDArray[np.int64]:
        """Smallest numerator of each cell along an axis. Read-only.

        The shape is parts, with 1 for dimensions that the axis does not depend on.
        """
        return self._reach[axis][0]

    def counts(self, axis: int) -> NDArray[np.int64]:
        """Number of numerators of each cell along an axis. Read-only.

        The shape is parts, with 1 for dimensions that the axis does not depend on.
        """
        return self._reach[axis][1]

    @cached_property
    def _reach(self) -> tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]:
        """The starts and the counts of numerators along each axis: see `starts` and `counts`."""
        found: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        rank = len(self.grid)
        for axis, step in zip(self.access.axes, self.steps, strict=True):
            # Treat a dimension that is not cut as a plain number, so that the arrays span cut
            # dimensions only.
            alike, length = axis.offset, 0
            cut: list[tuple[int, NDArray[np.int64], NDArray[np.int64]]] = []
            for d, a in axis.terms:
                if self.parts[d] > 1:
                    edges = self.grid[d].edges()
                    along = [-1 if i == d else 1 for i in range(rank)]
                    cut.append((a, edges[:-1].reshape(along), edges[1:].reshape(along) - 1))
                else:
                    last = self.grid[d].size - 1
                    alike += a * last if a < 0 else 0
                    length += abs(a) * last
            low, lengths = np.full((1,) * rank, alike), np.full((1,) * rank, length)
            for a, first, last in cut:
                low = low + a * (first if a > 0 else last)
                lengths = lengths + abs(a) * (last - first)
            # For a grid without dimensions, NumPy returns scalars.
            counts = np.asarray(np.maximum(lengths // step + 1, 0))
            low.flags.writeable = counts.flags.writeable = False
            found.append((low, counts))
        return tuple(found)

    def check_bounds(self) -> None:
        """Raise ValueError if an axis reaches outside the tensor and has no rule for that.

        A tensor without elements always passes.
        """
        if 0 in self.shape:
            return
        sizes = tuple(cut.size for cut in self.grid)
        for i, axis in enumerate(self.access.axes):
            problem = axis.reach_problem(sizes)
            if problem:
                raise ValueError(f"axis {i}: the grid {problem}")

    def bounds(self) -> Bounds:
        """First and one-past-last element of every part, for each grid dimension."""
        return self._bounds

    @cached_property
    def _bounds(self) -> Bounds:
        edges = [cut.edges() for cut in self.grid]
        return tuple((e[:-1], e[1:]) for e in edges)

    def members(
        self, axis: int, within: tuple[int, int] | None = None
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tensor indices in every cell's block along an axis, without padding.

        Returns (part, index), both (entries,). part is row-major over the parts of the grid
        dimensions that the axis names, in grid order.

        Args:
            within: a range of indices (first, one past the last); others are left out.
        """
        starts, counts = self.starts(axis).ravel(), self.counts(axis).ravel()
        rule, step = self.access.axes[axis], self.steps[axis]
        low, high = within or (0, rule.size)
        if rule.divisor == 1 and rule.outside in ("none", "fill"):
            # Only the part of each block that lies within is listed.
            before = np.clip(-((starts - low) // step), 0, counts)
            counts = np.clip(-((starts - high) // step), before, counts) - before
            starts = starts + before * step
        part = np.repeat(np.arange(len(starts)), counts)
        place = np.arange(len(part)) - np.repeat(np.cumsum(counts) - counts, counts)
        index = rule.resolve(starts[part] + place * step)
        keep = (index >= low) & (index < high)
        return part[keep], index[keep]

    def held(self, axis: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The tensor indices that at least one block holds along an axis, and a numerator of each.

        Both are (indices,), in ascending order of the indices. The numerator is the smallest one at
        which a block holds the index.
        """
        starts, counts = self.starts(axis).ravel(), self.counts(axis).ravel()
        within = np.arange(int(counts.max(initial=0)))
        reach = starts[:, None] + within * self.steps[axis]
        reach = distinct(reach[within < counts[:, None]])
        index, first = np.unique(self.access.axes[axis].resolve(reach), return_index=True)
        return index[index >= 0], reach[first[index >= 0]]

    def runs(
        self, axis: int, within: tuple[int, int] | None = None, *, one_by_one: bool = False
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """The tensor indices in every cell's block along an axis, as runs of neighbours.

        They are those of `members`, in the same order. Returns (part, first, length), all (runs,):
        the part, the first index of the run, and the number of indices.

        Args:
            one_by_one: each index is a run.
        """
        rule = self.access.axes[axis]
        in_runs = self.steps[axis] == 1 and rule.divisor == 1 and rule.outside in ("none", "fill")
        if one_by_one or not in_runs:
            part, index = self.members(axis, within)
            return part, index, np.ones_like(index)
        low, high = within or (0, rule.size)
        starts, counts = self.starts(axis).ravel(), self.counts(axis).ravel()
        first = np.clip(starts, max(low, 0), min(high, rule.size))
        last = np.clip(starts + counts, first, min(high, rule.size))
        part = np.flatnonzero(last > first)
        return part, first[part], (last - first)[part]

    @cached_property
    def is_partition(self) -> bool:
        """True if every element lies in exactly one block, not counting replicas.

        Such a layout can be the source of a copy, because each element has one owner.
        """
        used: set[int] = set()
        for i, axis in enumerate(self.access.axes):
            split = {d for d, _ in axis.terms if self.parts[d] > 1}
            if axis.divisor != 1 or split & used:
                return False
            used |= split
            if self._is_cut_in_order(axis):
                continue
            _, index = self.members(i)
            if len(index) != axis.size or len(distinct(index)) != axis.size:
                return False
        return True

    def _is_cut_in_order(self, axis: AxisMap) -> bool:
        """True if the blocks are consecutive runs of an axis.

        This holds if the dimensions are the digits of an index, all digits before some digit are
        cut into parts of one element, and all digits after it are uncut.
        """
        if len({d for d, _ in axis.terms}) < len(axis.terms):
            return False
        left, is_run = axis.size, False
        for d, weight in sorted(axis.terms, key=lambda term: -term[1]):
            cut = self.grid[d]
            if cut.size == 1:
                continue
            if weight * cut.size != left or (is_run and cut.parts > 1):
                return False
            left, is_run = weight, is_run or cut.largest > 1
        return left == 1 and axis.offset == 0

    def reachable(self, axis: int) -> tuple[int, int]:
        """Smallest and largest numerator of an axis over all cells."""
        return self.access.axes[axis].numerators(tuple(cut.size for cut in self.grid))


Bounds = tuple[tuple[NDArray[np.int64], NDArray[np.int64]], ...]
"""For each dimension, the first and one-past-last element of every part."""


def raw_layout(
    dims: tuple[Dim, ...],
    access: AccessMap,
    split: tuple[int, ...],
    order: tuple[int, ...] = (),
    first_tile: int = 0,
    grains: tuple[int, ...] = (),
    across: tuple[int, ...] = (),
    apart: int = 0,
) -> Layout:
    """The layout that a split gives an operand or result, with every dimension kept.

    Args:
        split: parts of each dimension.
        order: the dimensions by which cells are numbered, slowest first; dimensions that are left
            out follow in their own order. The grid has this order too.
        across: the chips over which the parts of each dimension are spread; () for one chip.
        apart: the distance in tiles from a chip to the next.
    """
    full = placement_order(len(dims), order)
    grid = tuple(
        _cut(
            dims[d].size,
            split[d],
            grains[d] if grains and split[d] > 1 else 1,
            across[d] if across else 1,
        )
        for d in full
    )
    if list(full) != sorted(full):
        access = access.renamed({d: i for i, d in enumerate(full)})
    return Layout(grid, access, first_tile, apart)


@lru_cache(maxsize=4096)
def _cut(size: int, parts: int, grain: int = 1, chips: int = 1) -> Cut:
    """A shared Cut for equal cuts. Layouts are compared often, and this makes comparing fast."""
    return Cut(size, parts, grain, chips)


def placement_order(rank: int, order: tuple[int, ...]) -> tuple[int, ...]:
    """order, followed by the dimensions that it leaves out."""
    return order + tuple(d for d in range(rank) if d not in order)


@lru_cache(maxsize=8192)
def canonical(layout: Layout) -> Layout:
    """The canonical form of a layout: equal placements of equal blocks compare equal.

    Cut dimensions come first, in placement order. Then come the uncut dimensions that an axis
    names, in the order of the axes. Dimensions of one element are dropped, and so are rules for
    outside indices that never apply or change nothing. If one dimension counts equal blocks of an
    axis, and another one goes through a block, they become one dimension that is cut into blocks.
    Chips that follow each other without a gap count as one.
    """
    layout = _with_whole_axes(layout)
    if layout.apart:
        layout = _without_gaps(layout)
    sizes = tuple(cut.size for cut in layout.grid)
    named = [d for axis in layout.access.axes for d, _ in sorted(axis.terms)]
    keep = list(layout.split_dims)
    keep += [
        d for d in dict.fromkeys(named) if d not in layout.split_dims and layout.grid[d].size > 1
    ]
    index = {d: i for i, d in enumerate(keep)}
    axes: list[AxisMap] = []
    for axis in layout.access.axes:
        terms = tuple(sorted((index[d], a) for d, a in axis.terms if d in index))
        plain = 0 not in sizes and axis.is_plain(sizes)
        # Calling the constructor is several times as fast as replace().
        axes.append(
            AxisMap(
                axis.size,
                terms,
                axis.offset,
                axis.divisor,
                "floor" if axis.divisor == 1 else axis.division,
                "none" if plain else axis.outside,
            )
        )
    fills = any(a.may_fill or (a.divisor > 1 and a.division == "exact") for a in axes)
    grid = tuple(layout.grid[d] for d in keep)
    fill = layout.access.fill if fills else 0.0
    return Layout(grid, AccessMap(tuple(axes), fill), layout.first_tile, layout.apart)


def _without_gaps(layout: Layout) -> Layout:
    """The layout on one chip if that puts the same cells on the same tiles."""
    tiles = layout.tiles
    if tiles.chips:
        spread = [d for d in layout.split_dims if tiles.chips[d] > 1]
        # The cells of a chip fill it, and chips follow in the order of the cells.
        first = spread == list(layout.split_dims[: len(spread)])
        whole = all(tiles.chips[d] == tiles.parts[d] for d in spread[:-1])
        if not (first and whole and tiles.on_a_chip == tiles.apart):
            return layout
    return replace(layout.stacked, first_tile=layout.first_tile)


def with_gaps(layout: Layout, chip_tiles: int) -> Layout:
    """The layout spread over chips, if its cells fill several chips in a row; else the layout.

    It puts the same cells on the same tiles, and says which parts are on another chip. So it can be
    moved to chips that are further apart.

    Args:
        chip_tiles: the tiles of a chip.
    """
    chips = None if layout.apart else digits_of_chips(layout.tiles, chip_tiles)
    if chips is None:
        return layout
    grid = tuple(
        _cut(cut.size, cut.parts, cut.grain, n) for cut, n in zip(layout.grid, chips, strict=True)
    )
    return replace(layout, grid=grid, apart=chip_tiles)


def with_chips_axis(layout: Layout, chips: int) -> Layout | None:
    """The same blocks on the same tiles, as those of a tensor with a leading axis of chips.

    Entry r of the leading axis is the copy of the tensor that chip r of the layout holds.

        [2 by 2 across 2, 8 by 4] (d1) of [8]  ->  [2 by 2 across 2, 8 by 4] (d0, d1) of [2, 8]

    None if the layout does not hold the whole tensor once on each of so many chips.
    """
    if not layout.apart:
        layout = layout if layout.cells % chips else with_gaps(layout, layout.cells // chips)
    spread = [d for d, cut in enumerate(layout.grid) if cut.chips > 1]
    if prod(layout.grid[d].chips for d in spread) != chips:
        return None
    if chips == 1 or not set(spread) <= set(layout.replica_dims):
        return None
    grid: list[Cut] = []
    index: dict[int, int] = {}
    digits: list[tuple[int, int]] = []
    left = chips
    for d, cut in enumerate(layout.grid):
        index[d] = len(grid)
        if d not in spread:
            grid.append(cut)
            continue
        left //= cut.chips
        digits.append((len(grid), left))
        grid.append(_cut(cut.chips, cut.chips, 1, cut.chips))
        more = cut.parts // cut.chips
        if more > 1:
            grid.append(_cut(more, more))
    access = layout.access.renamed(index)
    axes = (AxisMap(chips, tuple(digits)), *access.axes)
    return Layout(tuple(grid), AccessMap(axes, access.fill), layout.first_tile, layout.apart)


def _with_whole_axes(layout: Layout) -> Layout:
    """The layout with one dimension for each axis that two dimensions divide into equal blocks."""
    grid, axes = list(layout.grid), list(layout.access.axes)
    uses = [d for axis in axes for d, _ in axis.terms]
    for i, axis in enumerate(axes):
        if len(axis.terms) != 2 or axis.offset or axis.divisor != 1:
            continue
        (e, one), (d, block) = sorted(axis.terms, key=lambda term: term[1])
        outer, inner = grid[d], grid[e]
        if (
            one == 1
            and block == inner.size > 1
            and inner.parts == 1
            and outer.parts == outer.size
            and outer.size * block == axis.size
            and uses.count(d) == uses.count(e) == 1
        ):
            grid[d], grid[e] = _cut(axis.size, outer.parts, 1, outer.chips), _cut(1, 1)
            axes[i] = replace(axis, terms=((d, 1),))
    if grid == list(layout.grid):
        return layout
    access = AccessMap(tuple(axes), layout.access.fill)
    return Layout(tuple(grid), access, layout.first_tile, layout.apart)


@lru_cache(maxsize=8192)
def placement(layout: Layout) -> Layout:
    """The layout reduced to which bytes lie on which tile: layouts with equal placements share
    blocks.

    Unlike the canonical form, the placement forgets the sizes of replicated
    dimensions: neighbouring ones are merged into one dimension that has as many elements as parts.
    Axes of one element are dropped.

        [8 by 4, 6 by 3, 64 by 2] (d2) of [64]  ->  [12 by 12, 64 by 2] (d1) of [64]
    """
    layout = canonical(layout)
    replicas = frozenset(layout.replica_dims)
    grid: list[Cut] = []
    index: dict[int, int] = {}
    for d, cut in enumerate(layout.grid):
        before = grid[-1] if d in replicas and d - 1 in replicas else None
        # Of two digits that count chips, the first must count nothing else.
        if before is not None and (cut.chips == 1 or before.chips == before.parts):
            parts = grid.pop().parts * cut.parts
            grid.append(_cut(parts, parts, chips=before.chips * cut.chips))
        else:
            grid.append(_cut(cut.parts, cut.parts, chips=cut.chips) if d in replicas else cut)
        index[d] = len(grid) - 1
    access = layout.access.renamed(index)
    axes = tuple(axis for axis in access.axes if axis.size != 1 or axis.terms or axis.offset)
    return Layout(tuple(grid), AccessMap(axes, access.fill), layout.first_tile, layout.apart)


def block_layout(
    shape: tuple[int, ...],
    parts: tuple[int, ...],
    *,
    copies: int = 1,
    grains: tuple[int, ...] = (),
    first_tile: int = 0,
) -> Layout:
    """A layout that cuts each axis of a tensor into parts.

        block_layout((64, 32), (4, 2))              8 tiles, each with a block of 16 by 16
        block_layout((64, 32), (4, 1), copies=3)    12 tiles: tiles 0, 4 and 8 hold the same rows

    Raises ValueError if parts or grains do not have one number per axis, or if an axis cannot be
    cut so.

    Args:
        parts: the parts of each axis; the blocks are numbered row-major and live on neighbouring
            tiles.
        copies: how often the whole tensor is stored, on further tiles.
        grains: per axis, the number of which the size of each part is a multiple.
    """
    for what, given in (("parts", parts), ("grains", grains or parts)):
        if len(given) != len(shape):
            raise ValueError(f"{len(given)} {what} for {len(shape)} axes; need one per axis")
    cuts = tuple(map(Cut, shape, parts, grains or (1,) * len(shape)))
    # The access map does not name the first dimension, so the tensor repeats over it.
    return canonical(
        Layout(
            (Cut(copies, copies), *cuts),
            identity_map(tuple(range(1, len(shape) + 1)), shape),
            first_tile,
        )
    )


def replicated_layout(tiles: int, chips: int = 1) -> Layout:
    """A layout that puts a tensor of one element on every tile.

    Args:
        tiles: those of all chips.
    """
    cut, apart = Cut(tiles, tiles, chips=chips), tiles // chips if chips > 1 else 0
    return canonical(Layout((cut,), AccessMap((AxisMap(1),)), apart=apart))


def linear_layout(
    shape: tuple[int, ...], itemsize: int, tiles: int, grain_bytes: int = 128, *, chips: int = 1
) -> Layout:
    """A layout that spreads a tensor evenly in row-major order, at least grain_bytes per tile.

    This is the default for tensors whose user prefers no layout. Source of the 128 bytes: poplibs
    TileMapping.cpp (linear mapping, minimum bytes per tile). A tensor that needs no more tiles than
    the first chip has lies there. A larger one is spread over all chips.

    Args:
        tiles: those of all chips.
    """
    elements = prod(shape)
    grain = max(1, grain_bytes // itemsize)
    parts = max(1, min(tiles, -(-elements // grain)))
    if elements <= 1:
        return canonical(Layout((), AccessMap((AxisMap(elements),))))
    if parts <= tiles // chips or parts < chips:
        parts, chips = min(parts, tiles // chips), 1
    parts -= parts % chips
    cut = Cut(elements, parts, max(1, 8 // itemsize) if parts > 1 else 1, chips)
    apart = tiles // chips if chips > 1 else 0
    return canonical(Layout((cut,), AccessMap((AxisMap(elements, ((0, 1),)),)), apart=apart))
