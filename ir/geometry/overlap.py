"""Which cells of two layouts share elements, how many, and the traffic between them.

The elements of a cell are a product over axes. Overlaps are therefore computed for each axis group
and multiplied. An axis group is a smallest set of axes on which the shapes of both tensors agree.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..support.distinct import distinct
from ..support.kept_tables import kept_tables
from .blocks import moved_piece, plain_move
from .layout import Layout
from .space import AccessMap, Space
from .tiles import Rows, in_common

Counts = NDArray[np.int64]


FEW_PAIRS = 1 << 12
"""At most this many pairs of parts are counted in a table of all pairs."""


@dataclass(frozen=True, eq=False)
class SharedElements:
    """The number of elements that each destination part shares with each source part.

    Only pairs of parts that share elements are stored, because a table of all pairs grows with the
    square of the tiles.

    Attributes:
        shape: (destination parts, source parts).
        destination, source: the two parts of each pair, row-major, (pairs,) each.
        count: the number of elements that each pair shares, (pairs,).
        pieces: the number of runs of neighbours, row-major over the axes of the group, that these
            elements form, (pairs,); None if every pair has one run.
        table: the counts of all pairs, shape `shape`; None unless it is small.
    """

    shape: tuple[int, int]
    destination: Counts
    source: Counts
    count: Counts
    pieces: Counts | None
    table: Counts | None

    @staticmethod
    def from_table(table: Counts, pieces: Counts | None = None) -> SharedElements:
        """The shared elements, from a table of counts of all pairs: (destination parts, source
        parts).

        Args:
            pieces: the number of pieces of each pair, of the same shape; None if each pair has one.
        """
        destination, source = np.nonzero(table)
        rows, columns = table.shape
        kept = table if table.size <= FEW_PAIRS else None
        several = None if pieces is None else _or_none(pieces[destination, source])
        return SharedElements(
            (rows, columns), destination, source, table[destination, source], several, kept
        )

    @staticmethod
    def from_runs(
        destination: Counts, source: Counts, first: Counts, count: Counts, shape: tuple[int, int]
    ) -> SharedElements:
        """The shared elements, from a list of runs of elements.

        Runs that continue one another count as one piece.

        Args:
            destination, source, first, count: the two parts, the first index and the number of
                elements of each run, (runs,) each, in the order of each destination part's block.
        """
        keys = destination * shape[1] + source
        apart = np.diff(keys, prepend=-1) != 0
        apart[1:] |= first[1:] != (first + count)[:-1]
        begins = np.flatnonzero(apart)
        keys = keys[begins]
        if len(begins) < len(count):
            count = np.add.reduceat(count, begins)
        if prod(shape) <= FEW_PAIRS:
            table = np.zeros(prod(shape), np.int64)
            np.add.at(table, keys, count)
            pieces = np.bincount(keys, minlength=prod(shape))
            return SharedElements.from_table(table.reshape(shape), pieces.reshape(shape))
        order = keys.argsort(kind="stable")
        keys = keys[order]
        begins = np.flatnonzero(np.diff(keys, prepend=-1))
        total = np.add.reduceat(count[order], begins) if len(begins) else count
        pieces = np.diff(begins, append=len(keys))
        destination, source = np.divmod(keys[begins], shape[1])
        return SharedElements(shape, destination, source, total, _or_none(pieces), None)

    def at(self, destination: Counts, source: Counts) -> Counts:
        """Elements that the given pairs share: (given pairs,)."""
        if self.table is not None:
            return self.table[destination, source]
        return self._at(self.count, destination, source)

    def pieces_at(self, destination: Counts, source: Counts) -> Counts:
        """Pieces in which the given pairs share elements: (given pairs,)."""
        if self.pieces is None:
            return np.minimum(self.at(destination, source), 1)
        return self._at(self.pieces, destination, source)

    def _at(self, values: Counts, destination: Counts, source: Counts) -> Counts:
        """The values of the given pairs, (given pairs,); 0 for a pair that shares nothing."""
        keys = self.destination * self.shape[1] + self.source
        asked = destination * self.shape[1] + source
        place = np.minimum(np.searchsorted(keys, asked), len(keys) - 1)
        return np.where(keys[place] == asked, values[place], 0) if len(keys) else 0 * asked


def _or_none(pieces: Counts) -> Counts | None:
    """The number of pieces of each pair; None if every pair has one piece."""
    return None if (pieces == 1).all() else pieces


@dataclass(frozen=True, eq=False)
class Group:
    """Axes of destination and source that depend only on each other.

    Attributes:
        shared: elements that each pair of parts shares. The parts are row-major over
            destination_dims and source_dims, dimensions of the two grids.
        sent: (source parts,), elements of each source part that at least one destination part
            needs.
        destination_axes, source_axes: the axes of the two layouts.
    """

    destination_dims: tuple[int, ...]
    source_dims: tuple[int, ...]
    shared: SharedElements
    sent: Counts
    destination_axes: tuple[int, ...]
    source_axes: tuple[int, ...]

    @cached_property
    def wanted(self) -> Counts:
        """Elements of each destination part that a source part holds: (destination parts,)."""
        return summed(self.shared.destination, self.shared.count, self.shared.shape[0])

    @cached_property
    def requested(self) -> Counts:
        """Elements of each source part, counted once per part that needs them: (source parts,)."""
        return summed(self.shared.source, self.shared.count, self.shared.shape[1])


def summed(part: Counts, count: Counts, parts: int) -> Counts:
    """The sum of counts by part: (parts,)."""
    total = np.zeros(parts, np.int64)
    np.add.at(total, part, count)
    return total


@dataclass(frozen=True)
class Overlap:
    """The elements that each pair of cells of two layouts shares, as a product over axis groups."""

    source: Layout
    destination: Layout
    groups: tuple[Group, ...]

    @cached_property
    def wanted(self) -> Counts:
        """Elements of the source that each destination cell holds: (destination cells,)."""
        return self.at_destinations(tuple(g.wanted for g in self.groups))

    @cached_property
    def local(self) -> Counts:
        """Elements of `wanted` that the same tile holds, in any replica: (destination cells,).

        A tile reads what it holds itself. All other elements come from the first replica.
        """
        total = np.zeros(self.destination.cells, np.int64)
        to, of = tiles_in_common(self)
        here = np.ones_like(total[to])
        for g in self.groups:
            if g.shared.shape == (1, 1):
                here *= g.wanted[0]
                continue
            part = parts_of_cells(self.destination.parts, g.destination_dims)[to]
            here *= g.shared.at(part, parts_of_cells(self.source.parts, g.source_dims)[of])
        total[to] = here
        return total

    @property
    def received(self) -> Counts:
        """Elements that reach each destination cell from other tiles: (destination cells,)."""
        return self.wanted - self.local

    def at_destinations(self, counts: tuple[Counts, ...]) -> Counts:
        """For each destination cell, the product of the counts of its parts over all groups."""
        return _product(self.destination, [g.destination_dims for g in self.groups], counts)

    def at_sources(self, counts: tuple[Counts, ...]) -> Counts:
        """For each source cell, the product of the counts of its parts over all groups."""
        return _product(self.source, [g.source_dims for g in self.groups], counts)

    @cached_property
    def sent(self) -> Counts:
        """Upper bound of the elements that each source cell puts on the fabric: (source cells,).

        A word that several tiles need is sent once. Words that only the sending tile itself needs
        are counted too.
        """
        total = self.at_sources(tuple(g.sent for g in self.groups))
        for d in self.source.replica_dims:
            total *= parts_of_cells(self.source.parts, (d,)) == 0
        return total

    def pairs(self) -> tuple[Counts, Counts, Counts]:
        """Every (source cell, destination cell, shared elements) with at least one element."""
        source = np.zeros(1, np.int64)
        destination = np.zeros(1, np.int64)
        shared = np.ones(1, np.int64)

        def add(values: Counts, part: Counts, layout: Layout, dims: tuple[int, ...]) -> Counts:
            offset = np.zeros(len(part), np.int64)
            parts = tuple(layout.parts[d] for d in dims)
            for d, at in zip(dims, np.unravel_index(part, parts) if dims else (), strict=True):
                offset += at * layout.weights[d]
            return (values[:, None] + offset).ravel()

        for g in self.groups:
            destination = add(
                destination, g.shared.destination, self.destination, g.destination_dims
            )
            source = add(source, g.shared.source, self.source, g.source_dims)
            shared = (shared[:, None] * g.shared.count).ravel()
        named = {d for g in self.groups for d in g.destination_dims}
        for d in self.destination.split_dims:
            if d not in named:
                part = np.arange(self.destination.parts[d])
                destination = add(destination, part, self.destination, (d,))
                source = np.repeat(source, len(part))
                shared = np.repeat(shared, len(part))
        return source, destination, shared


def tiles_in_common(shared: Overlap) -> tuple[Rows, Rows]:
    """The cells of the tiles that hold both a destination cell and a source cell.

    Returns these destination cells and these source cells, tile by tile.
    """
    return in_common(shared.destination.tiles, shared.source.tiles)


def at_first_replicas(shared: Overlap, values: Counts) -> Counts:
    """Values of destination cells, added up at source cells: (source cells,).

    Each value goes to the first replica of the source block that lies on the tile of the
    destination cell. Destination cells on tiles without a source cell are left out.
    """
    source = shared.source
    to, of = tiles_in_common(shared)
    return np.bincount(first_replicas(source)[of], values[to], source.cells).astype(np.int64)


def first_replicas(layout: Layout) -> Counts:
    """The first cell that holds the same block as each cell: (cells,)."""
    first = np.arange(layout.cells)
    for d in layout.replica_dims:
        first -= parts_of_cells(layout.parts, (d,)) * layout.weights[d]
    return first


def _copies(shared: Overlap) -> int:
    """The number of destination cells that hold equal blocks because the layout repeats blocks."""
    named = {d for g in shared.groups for d in g.destination_dims}
    return prod(
        shared.destination.parts[d] for d in shared.destination.split_dims if d not in named
    )


def is_sent_once(shared: Overlap) -> bool:
    """Whether the destination layout repeats no block, so that no element is sent twice for that
    reason.
    """
    return _copies(shared) == 1


def sent_elements(shared: Overlap, local: Counts | None = None) -> Counts:
    """Elements that each source cell sends to other tiles: (source cells,).

    Elements that several tiles want are sent once. The count is exact unless some elements of a
    cell have several receivers and others none; then it is an upper bound.

    Args:
        local: shared.local, if it is known from elsewhere.
    """
    wanted = _copies(shared) * shared.at_sources(tuple(group.requested for group in shared.groups))
    for d in shared.source.replica_dims:
        wanted *= parts_of_cells(shared.source.parts, (d,)) == 0
    # The first replica does not send elements to a tile that has a replica itself.
    wanted = wanted - at_first_replicas(shared, shared.local if local is None else local)
    return np.minimum(wanted, shared.sent)


def _product(layout: Layout, dims: list[tuple[int, ...]], counts: tuple[Counts, ...]) -> Counts:
    """For every cell, the product of the counts of its parts along each group of dims: (cells,)."""
    alike = prod(int(count[0]) for count in counts if len(count) == 1)
    total = np.full(layout.cells, alike, np.int64)
    for along, count in zip(dims, counts, strict=True):
        if len(count) > 1:
            total *= count[parts_of_cells(layout.parts, along)]
    return total


@kept_tables(len, entries=4096)
def parts_of_cells(parts: tuple[int, ...], dims: tuple[int, ...]) -> Counts:
    """The part of every cell of a grid along some dimensions, row-major over them: (cells,)."""
    part = np.zeros((1,) * len(parts), np.int64)
    for d in dims:
        along = [-1 if e == d else 1 for e in range(len(parts))]
        part = part * parts[d] + np.arange(parts[d]).reshape(along)
    part = np.broadcast_to(part, parts).flatten()
    part.flags.writeable = False
    return part


def _rows(shared: Overlap) -> int:
    """The rows of the tables that an overlap has, and of those that it makes when it is asked."""
    pairs = sum(len(group.shared.count) for group in shared.groups)
    return shared.source.cells + shared.destination.cells + pairs


@kept_tables(_rows, entries=2048)
def overlap(source: Layout, destination: Layout, move: Space | None = None) -> Overlap:
    """The overlap of the blocks of destination with the blocks of source, through a move.

    The source must be a partition.

    Args:
        move: a space with one operand (the source's tensor) and one result (the destination's).
            None means the same tensor, perhaps reshaped.
    """
    chain = (move,) if move else (plain_move(source.shape),)
    if any(0 in sizes for sizes in (source.shape, destination.shape, *(m.sizes for m in chain))):
        # A tensor without elements cannot be treated axis by axis.
        nothing = Group(
            *((), (), SharedElements.from_table(np.zeros((1, 1), np.int64)), np.zeros(1, np.int64)),
            *((), ()),
        )
        return Overlap(source, destination, (nothing,))
    found = components(source.access, destination.access, chain)
    groups = tuple(_group(part, source, destination, chain) for part in found)
    return Overlap(source, destination, groups)


Component = dict[str, list[int]]
"""For each array of the chain, the axes that belong to one group of axes; for each grid, the
dimensions. The arrays are "source", "operand 0", "result 0", "operand 1", ..., "destination"."""


def linear_groups(a: tuple[int, ...], b: tuple[int, ...]) -> list[tuple[list[int], list[int]]]:
    """Smallest groups of neighbouring axes of two shapes with equal products.

    [2, 12] and [2, 3, 4]: ([0], [0]), ([1], [1, 2]).
    """
    groups: list[tuple[list[int], list[int]]] = []
    i = j = 0
    while i < len(a) or j < len(b):
        left, right = ([i] if i < len(a) else []), ([j] if j < len(b) else [])
        p, q = (a[i] if left else 1), (b[j] if right else 1)
        i, j = i + len(left), j + len(right)
        while p != q:
            if p < q and i < len(a):
                left.append(i)
                p, i = p * a[i], i + 1
            elif j < len(b):
                right.append(j)
                q, j = q * b[j], j + 1
            else:
                break
        groups.append((left, right))
    return groups


def components(
    source: AccessMap, destination: AccessMap, chain: tuple[Space, ...]
) -> list[Component]:
    """Connected components of the axes of every array between source and destination."""
    parent: dict[tuple[str, int], tuple[str, int]] = {}

    def find(x: tuple[str, int]) -> tuple[str, int]:
        parent.setdefault(x, x)
        while parent[x] != x:
            parent[x] = parent[parent[x]]
            x = parent[x]
        return x

    def join(*nodes: tuple[str, int]) -> None:
        for node in nodes:
            parent[find(node)] = find(nodes[0])

    def join_axes(name: str, access: AccessMap, dims: str) -> None:
        for i, axis in enumerate(access.axes):
            join((name, i), *((dims, d) for d, _ in axis.terms))

    def join_shapes(left: str, a: tuple[int, ...], right: str, b: tuple[int, ...]) -> None:
        for x, y in linear_groups(a, b):
            join(*((left, i) for i in x), *((right, i) for i in y))

    join_axes("source", source, "source grid")
    name, shape = "source", source.shape
    for k, space in enumerate(chain):
        join_shapes(name, shape, f"operand {k}", space.operands[0].shape)
        join_axes(f"operand {k}", space.operands[0], f"dims {k}")
        join_axes(f"result {k}", space.results[0], f"dims {k}")
        for d in range(len(space.dims)):
            find((f"dims {k}", d))
        name, shape = f"result {k}", space.results[0].shape
    join_shapes(name, shape, "destination", destination.shape)
    join_axes("destination", destination, "destination grid")
    found: dict[tuple[str, int], Component] = {}
    for node in list(parent):
        found.setdefault(find(node), {}).setdefault(node[0], []).append(node[1])
    for component in found.values():
        for axes in component.values():
            axes.sort()
    return list(found.values())


def _keeps(space: Space, axes_in: list[int], axes_out: list[int]) -> bool:
    """True if a move keeps the index of every element along some axes."""
    if len(axes_in) != len(axes_out):
        return False
    for i, j in zip(axes_in, axes_out, strict=True):
        read, written = space.operands[0].axes[i], space.results[0].axes[j]
        if (read.terms, read.offset, read.divisor) != (written.terms, 0, 1):
            return False
        if (written.offset, written.divisor, read.size) != (0, 1, written.size):
            return False
        if [(space.dims[d].size, a) for d, a in read.terms] not in ([(read.size, 1)], []):
            return False
        if not read.terms and read.size != 1:
            return False
    return True


def _restricted(space: Space, axes_in: list[int], axes_out: list[int], dims: list[int]) -> Space:
    """A space reduced to some of its dimensions and axes."""
    index = {d: i for i, d in enumerate(dims)}

    def some(access: AccessMap, axes: list[int]) -> AccessMap:
        return AccessMap(tuple(access.axes[i] for i in axes), access.fill).renamed(index)

    return Space(
        tuple(space.dims[d] for d in dims),
        (some(space.operands[0], axes_in),),
        (some(space.results[0], axes_out),),
    )


def without_fill(space: Space) -> Space:
    """A move with fill value -1 everywhere: it moves owners as the given move moves elements.

    Padding has no owner, which is written as -1.
    """
    return Space(space.dims, (AccessMap(space.operands[0].axes, -1.0),), space.results)


def carried(owner: Counts, component: Component, chain: tuple[Space, ...]) -> Counts:
    """The owner of each element of a component's axes after a chain of moves.

    The result is row-major over the axes of the destination.

    Args:
        owner: the owner of each element of the source's axes, row-major; -1 for none.
    """
    for k, space in enumerate(chain):
        axes_in = component.get(f"operand {k}", [])
        axes_out = component.get(f"result {k}", [])
        if _keeps(space, axes_in, axes_out):
            continue
        piece = _restricted(space, axes_in, axes_out, component.get(f"dims {k}", []))
        whole, region = moved_piece(owner, without_fill(piece))
        if whole.shape != piece.results[0].shape:
            written, whole = whole, np.full(piece.results[0].shape, -1, np.int64)
            whole[region] = written
        owner = np.ascontiguousarray(whole).ravel()
    return owner


class SharedRuns(NamedTuple):
    """Runs of elements that the parts of one group of axes share: (runs,) each.

    Attributes:
        destination_dims, source_dims: the dimensions of the two grids that number the parts,
            row-major.
        shape: (destination parts, source parts).
        destination, source: the two parts of each run, in the order of the destination's blocks.
        first: its first element, row-major over the axes of the moved tensor.
        length: its elements.
        sent: elements of each source part that at least one destination part needs,
            (source parts,).
    """

    destination_dims: tuple[int, ...]
    source_dims: tuple[int, ...]
    shape: tuple[int, int]
    destination: Counts
    source: Counts
    first: Counts
    length: Counts
    sent: Counts


def shared_runs(
    component: Component, source: Layout, destination: Layout, chain: tuple[Space, ...]
) -> SharedRuns:
    """The runs shared by the parts of one component, by following the owners of elements."""

    def axes(name: str) -> list[int]:
        return component.get(name, [])

    source_dims = tuple(d for d in axes("source grid") if source.parts[d] > 1)
    destination_dims = tuple(d for d in axes("destination grid") if destination.parts[d] > 1)
    # A move that reads one part of a concatenation or of a split looks at that part only.
    read = _bounds(source.shape, chain[0].operands[0], chain[0].sizes)
    written = _bounds(destination.shape, chain[-1].results[0], chain[-1].sizes)
    of = _runs(source, axes("source"), source_dims, read)
    to = _runs(destination, axes("destination"), destination_dims, written)
    rows = prod(destination.parts[d] for d in destination_dims)
    columns = prod(source.parts[d] for d in source_dims)
    numbers = destination_dims, source_dims, (rows, columns)
    stays = all(
        _keeps(space, axes(f"operand {k}"), axes(f"result {k}")) for k, space in enumerate(chain)
    )
    in_order = of.in_order() if stays and to.are_long else None
    if in_order is not None:
        return SharedRuns(*numbers, *_met(in_order, to, columns))
    owner = np.full(prod(source.shape[i] for i in axes("source")), -1, np.int64)
    part, index = of.elements()
    owner[index[::-1]] = part[::-1]
    owner = carried(owner, component, chain)
    part, index = to.elements()
    owners = owner[index]
    part, owners, index = part[owners >= 0], owners[owners >= 0], index[owners >= 0]
    read_by_some = np.zeros(len(owner), bool)
    read_by_some[index] = True
    sent = np.bincount(owner[read_by_some], minlength=columns)
    return SharedRuns(*numbers, part, owners, index, np.ones_like(index), sent)


def _group(
    component: Component, source: Layout, destination: Layout, chain: tuple[Space, ...]
) -> Group:
    """The elements shared by the parts of one component."""
    found = shared_runs(component, source, destination, chain)
    shared = SharedElements.from_runs(
        found.destination, found.source, found.first, found.length, found.shape
    )
    both = tuple(component.get("destination", [])), tuple(component.get("source", []))
    return Group(found.destination_dims, found.source_dims, shared, found.sent, *both)


LONG = 4
"""Average length from which runs are compared as runs, not element by element.

Comparing runs of one element takes twice as long as comparing elements.
"""


class _Runs(NamedTuple):
    """Runs of neighbouring elements of some axes: (runs,) each.

    Attributes:
        part: the part that holds a run.
        first: its first element, row-major over the axes.
        length: its elements, 1 or more.
    """

    part: Counts
    first: Counts
    length: Counts

    @property
    def are_long(self) -> bool:
        """Whether the runs are long enough on average to be compared as runs, not element by
        element.
        """
        return 0 < LONG * len(self.length) <= int(self.length.sum())

    def elements(self) -> tuple[Counts, Counts]:
        """The part and the row-major position of every element, run by run: (elements,) each."""
        if (self.length == 1).all():
            return self.part, self.first
        part = np.repeat(self.part, self.length)
        before = np.cumsum(self.length) - self.length
        return part, np.arange(len(part)) + np.repeat(self.first - before, self.length)

    def in_order(self) -> _Runs | None:
        """The runs sorted by first element; None if they leave gaps or hold an element twice."""
        if not len(self.part):
            return None
        order = self.first.argsort(kind="stable")
        found = _Runs(*(each[order] for each in self))
        ends = found.first + found.length
        return found if (found.first[1:] == ends[:-1]).all() else None


def _met(of: _Runs, to: _Runs, source_parts: int) -> tuple[Counts, Counts, Counts, Counts, Counts]:
    """The runs that source and destination runs share, and the elements that each source part
    sends.

    Returns the destination part, the source part, the first element and the number of elements of
    each shared run, and, (source parts,), the number of elements of each source part that at least
    one destination part needs.

    Args:
        of: the source's runs, consecutive and in order.
        to: the destination's runs.
    """
    edges = np.append(of.first, of.first[-1] + of.length[-1])
    begin = np.maximum(to.first, edges[0])
    end = np.maximum(np.minimum(to.first + to.length, edges[-1]), begin)
    # Each run of the destination is cut where a run of the source begins.
    low = np.searchsorted(edges, begin, side="right") - 1
    pieces = np.where(end > begin, np.searchsorted(edges, end, side="left") - low, 0)
    at = np.repeat(np.arange(len(begin)), pieces)
    run = low[at] + np.arange(len(at)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    first = np.maximum(begin[at], edges[run])
    count = np.minimum(end[at], edges[run + 1]) - first
    sent = np.zeros(source_parts, np.int64)
    np.add.at(sent, of.part, heard(edges[:-1], edges[1:], begin, end))
    return to.part[at], of.part[run], first, count, sent


def heard(first: Counts, last: Counts, starts: Counts, ends: Counts) -> Counts:
    """The number of elements of each run that lie in at least one of the other runs: (runs,).

    Args:
        first, last: the first element of each run, and one past its last.
        starts, ends: the same of the other runs.
    """
    if ((starts[1:] <= ends[:-1]) & (ends[1:] >= starts[:-1])).all():
        # The other runs touch each other, so together they form a single run.
        low, high = int(starts.min()), int(ends.max())
        # np.clip takes several times as long for a few values.
        last, first = (np.minimum(np.maximum(each, low), high) for each in (last, first))
        return last - first
    # Count, before each edge, the elements that lie in at least one other run. Working on edges and
    # not on elements matters: an axis may have a hundred million elements.
    edges = distinct(np.concatenate([starts, ends, first, last]))
    opens, closes = np.searchsorted(edges, starts), np.searchsorted(edges, ends)
    n = len(edges)
    is_open = np.cumsum(np.bincount(opens, minlength=n) - np.bincount(closes, minlength=n)) > 0
    before = np.concatenate([[0], np.cumsum(np.diff(edges) * is_open[:-1])])
    return before[np.searchsorted(edges, last)] - before[np.searchsorted(edges, first)]


def _bounds(
    shape: tuple[int, ...], access: AccessMap, sizes: tuple[int, ...]
) -> dict[int, tuple[int, int]]:
    """For each axis of a tensor, the range (first, one past the last) that a map can reach.

    Args:
        shape: the layout's view of the tensor. If the map views it in another shape, only the first
            axis is bounded.
    """
    rules = {"none", "fill"}
    if 0 in sizes or not shape or not rules.issuperset(axis.outside for axis in access.axes):
        return {}
    reached: list[tuple[int, int]] = []
    for axis in access.axes:
        low, high = axis.numerators(sizes)
        reached.append((max(low // axis.divisor, 0), min(high // axis.divisor, axis.size - 1)))
    if access.shape == shape:
        return {i: (low, high + 1) for i, (low, high) in enumerate(reached)}
    rest = prod(shape[1:])
    first, last = (
        sum(at[end] * prod(access.shape[i + 1 :]) for i, at in enumerate(reached)) for end in (0, 1)
    )
    return {0: (first // rest, last // rest + 1)}


def _runs(
    layout: Layout,
    axes: list[int],
    dims: tuple[int, ...],
    within: Mapping[int, tuple[int, int]],
) -> _Runs:
    """The elements of some axes that each part holds, the part row-major over dims.

    Args:
        within: for some axes, a range of elements (first, one past the last); others are left out.
    """
    part = np.zeros(1, np.int64)
    element = np.zeros(1, np.int64)
    length = np.ones(1, np.int64)
    weight = {d: prod(layout.parts[e] for e in dims[k + 1 :]) for k, d in enumerate(dims)}
    cut = {i: sorted({d for d, _ in layout.access.axes[i].terms if d in weight}) for i in axes}
    known: dict[int, Counts] = {}
    for k, i in enumerate(axes):
        mine = cut[i]
        # Along the last axis, neighbours are neighbours among all elements.
        p, e, n = layout.runs(i, within.get(i), one_by_one=i != axes[-1])
        parts = tuple(layout.parts[d] for d in mine)
        at = dict(zip(mine, np.unravel_index(p, parts) if mine else (), strict=True))
        offset = np.zeros(len(p), np.int64)
        for d in mine:
            if d not in known:
                offset += at[d] * weight[d]
        # Join the entries of this axis with those of the other axes that have the same parts.
        agree = np.ones((len(part), len(p)), bool)
        for d in known.keys() & at.keys():
            agree &= known[d][:, None] == at[d]
        pairs = slice(None) if agree.all() else agree
        part = (part[:, None] + offset)[pairs].ravel()
        element = (element[:, None] * layout.access.axes[i].size + e)[pairs].ravel()
        length = np.broadcast_to(n, agree.shape)[pairs].ravel()
        again = {d for j in axes[k + 1 :] for d in cut[j]}
        known = {
            **{d: v[:, None] for d, v in known.items() if d in again},
            **{d: v[None] for d, v in at.items() if d in again},
        }
        known = {d: np.broadcast_to(v, agree.shape)[pairs].ravel() for d, v in known.items()}
    return _Runs(part, element, length)
