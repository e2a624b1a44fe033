"""Calls of sums of products, bound to memory: their tables, and operands that stay packed.

A kept run makes these calls without the operations they came from, so this file knows no program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...ir.well_known import MOST_TERMS
from ..codelets.calls import Array, Call, Scratch, address
from ..codelets.stamps import Stamp, Table
from .calls import KernelCall, elements, even_cuts, table_address, unit_cuts
from .kernels.tables import (
    BATCH,
    BLOCK_COUNT,
    BLOCK_PANELS,
    CHAIN_TERMS,
    COLUMN_COUNT,
    COLUMN_OFFSETS,
    COLUMNS_KEPT,
    COLUMNS_PACKED,
    GROUPS,
    KNOWN,
    LANES,
    LEFT,
    LEFT_BYTES,
    LEFT_TERMS,
    MULTIPLY_CODE,
    PACK_COLUMNS_CODE,
    PACK_ROWS_CODE,
    PACKED_COLUMNS,
    PACKED_ROWS,
    PANEL_COUNT,
    PRODUCT_FIELDS,
    RESULT,
    RESULT_BYTES,
    RESULT_COLUMNS,
    RESULT_ROWS,
    RESULT_RUNS,
    RESULT_SPANS,
    RIGHT,
    RIGHT_BYTES,
    RIGHT_TERMS,
    ROUNDING,
    ROW_COUNT,
    ROW_OFFSETS,
    ROWS_KEPT,
    ROWS_PACKED,
    RUNS_OF_COLUMNS,
    SPANS,
    STORE_TILE_CODE,
    TERM_COUNT,
)
from .load import kernels

ALIGNMENT = 64

MACS_PER_NANOSECOND = 50.0
"""Multiplications with additions per nanosecond of one thread: a rough estimate."""

NANOSECONDS_PER_PACKED = 0.3
"""Nanoseconds to pack one element: a rough estimate."""

LEAST_PANELS, FEW_UNITS, ROOM_BYTES = 6, 40, 1 << 25
"""If there are fewer units than FEW_UNITS, or the packed rows of one take more than ROOM_BYTES,
their rows are cut into blocks of at least LEAST_PANELS panels. Each of them packs the columns,
which takes about as long as to multiply them by one panel. Chosen by trial: docs/speed.md has what
4 and 64 take."""

SHORTEST_RUN = 4
"""Elements of the shortest contiguous run that is copied as a run."""


@dataclass(frozen=True)
class Groups:
    """The axes of a batch of products by group, slowest first. Each axis is (size, stride of each
    array).

    Attributes:
        chain_terms: the terms of one chain of additions.
        rounding: how a sum is rounded after each chain, one of ROUNDINGS; 0 if it is not.
    """

    batch: Sequence[int]
    left: Sequence[int]
    right: Sequence[int]
    inner: Sequence[int]
    chain_terms: int = MOST_TERMS
    rounding: int = 0


View = tuple[Groups, Sequence[Array]]
"""A batch of products: its axes, and the left operand, the right operand and the result."""


@dataclass(frozen=True)
class Partials:
    """The places of blocks of partial sums, each on a tile of its own.

    Attributes:
        begin: the address of the first block.
        tile: bytes from one cell to the next.
        dims: the dimensions along which there are several blocks of the same elements, in the order
            of addition: the distance in cells from one block to the next, and the number of blocks.
    """

    begin: int
    tile: int
    dims: tuple[tuple[int, int], ...]

    def places(self, addresses: Table) -> tuple[Table, Table]:
        """For addresses in blocks: the number of the partial, and the distance from the first
        partial.
        """
        cells = (addresses - self.begin) // self.tile
        rank, on = np.zeros_like(cells), np.zeros_like(cells)
        for weight, count in self.dims:
            at = cells // weight % count
            rank, on = rank * count + at, on + at * weight * self.tile
        return rank, on


class Products:
    """Computes a batch of products. Products with equal operands are computed once while they are
    equal.

    An operand stays packed until it is written.

    Attributes:
        each: groups of axes and arrays (left operand, right operand, result), where each tile reads
            its own.
        once: the same with stride 0 along the tiles on which an operand is equal.
        stamps: of the left and the right operand.
    """

    def __init__(
        self,
        each: View,
        once: View | None,
        stamps: Sequence[Stamp | None],
        scratch: Scratch,
    ) -> None:
        self._separate = [each]
        self._stamps = [stamp for stamp in stamps if stamp is not None]
        self._scratch = scratch
        self._seen: list[int | None] = [None] * len(self._stamps)
        # Replicas are known to be equal only if both operands have a stamp.
        known = once if len(self._stamps) == len(stamps) else None
        self._once = None if known is None else BoundProducts(Offsets.of(*known))
        self._each: list[BoundProducts] | None = None
        self._partials: Partials | None = None

    @classmethod
    def kept(
        cls,
        separate: Sequence[View],
        once: BoundProducts | None,
        each: Sequence[BoundProducts] | None,
        stamps: Sequence[Stamp],
        partials: Partials | None,
        scratch: Scratch,
    ) -> Products:
        """A call from parts that were bound before.

        Args:
            stamps: of the operands; () for unknown ones.
        """
        call = cls.__new__(cls)
        call._separate, call._scratch = list(separate), scratch
        call._stamps = list(stamps)
        call._seen = cast("list[int | None]", [None] * len(stamps))
        call._once, call._partials = once, partials
        call._each = None if each is None else list(each)
        return call

    def join(self, other: Products) -> bool:
        """Take over the products of another call, if both can be one call; else return False.

        Neither call has been made yet, and no other call is between them.
        """
        if self._once is None or other._once is None or self._stamps != other._stamps:
            return False
        offsets = self._once.offsets.joined(other._once.offsets)
        if offsets is None:
            return False
        self._once = BoundProducts(offsets)
        self._separate += other._separate
        return True

    def bind_next(self) -> None:
        """Do now the binding that the next call would do, if the stamps do not change until
        then."""
        if self._once is None or None in [stamp.whole for stamp in self._stamps]:
            _ = self._bound_each()

    def can_add_up(self, partials: Partials) -> bool:
        """Whether the partials can be computed one after another, into the block of the first
        one."""
        return self._once is not None and self._once.can_add_up(partials)

    def add_up(self, partials: Partials) -> None:
        """From now on, add each block of partial sums to the first block."""
        assert self._once is not None
        self._partials = partials
        self._once.add_up(partials)

    def __call__(self) -> None:
        """Compute the products."""
        once = self._once
        wholes = [stamp.whole for stamp in self._stamps]
        if once is None or None in wholes:
            for each in self._bound_each():
                each(0)
            return
        known = 0
        for side, whole in enumerate(wholes):
            if whole == self._seen[side]:
                known |= once.keep(side, self._scratch)
            else:
                once.forget(side)
        self._seen = wholes
        once(known)

    def _bound_each(self) -> Sequence[BoundProducts]:
        """The calls in which each tile reads its own operands."""
        if self._each is None:
            self._each = [BoundProducts(Offsets.of(*view)) for view in self._separate]
            if self._partials is not None:
                for each in self._each:
                    each.add_up(self._partials)
        return self._each

    @property
    def state(
        self,
    ) -> tuple[
        Sequence[View],
        BoundProducts | None,
        Sequence[BoundProducts] | None,
        Sequence[Stamp],
        Partials | None,
    ]:
        """The arguments of `kept`, without the scratch."""
        return self._separate, self._once, self._each, self._stamps, self._partials


@dataclass(frozen=True)
class Offsets:
    """The places at which a batch of products reads its operands and writes its results.

    Attributes:
        arrays: the arrays behind the addresses.
        begin, sizes: the addresses of the left operand, the right operand and the result, and the
            bytes of an element of each.
        batch: the offsets of each product in the three, (products, 3).
        rows: the offsets of rows in the left operand and in the result.
        columns: those of columns in the right operand and in the result.
        terms: those of terms in both operands.
        sums: the terms of one chain, and how a sum is rounded after each, as in Groups.
    """

    arrays: Sequence[Array]
    begin: Table
    sizes: tuple[int, ...]
    batch: Table
    rows: tuple[Table, Table]
    columns: tuple[Table, Table]
    terms: tuple[Table, Table]
    sums: tuple[int, int] = (MOST_TERMS, 0)

    @classmethod
    def of(cls, groups: Groups, arrays: Sequence[Array]) -> Offsets:
        """The offsets of a batch.

        Args:
            arrays: the left operand, the right operand and the result.
        """
        left, right, result = arrays
        return cls(
            arrays,
            np.array([address(a) for a in arrays], np.int64),
            tuple(a.itemsize for a in arrays),
            np.stack([_offsets(a, groups.batch) for a in arrays], axis=1),
            (_offsets(left, groups.left), _offsets(result, groups.left)),
            (_offsets(right, groups.right), _offsets(result, groups.right)),
            (_offsets(left, groups.inner), _offsets(right, groups.inner)),
            (groups.chain_terms, groups.rounding),
        )

    def joined(self, other: Offsets) -> Offsets | None:
        """The products of both as one batch; None if they cannot be one.

        If their left operands are the same, the batch has the columns of both; if their right
        operands are, the rows of both. The joined operands must have the same distance in all
        products of the batch.
        """
        if (self.sizes, self.sums) != (other.sizes, other.sums) or len(self.batch) != len(
            other.batch
        ):
            return None
        if not _are_same(self.terms, other.terms):
            return None
        apart = other.begin + other.batch - self.begin - self.batch
        if (apart != apart[:1]).any():
            return None
        left, right, result = apart[0]
        arrays = [*self.arrays, *other.arrays]
        if left == 0 and _are_same(self.rows, other.rows):
            columns = _one_after_other(self.columns, other.columns, (right, result))
            return replace(self, arrays=arrays, columns=columns)
        if right == 0 and _are_same(self.columns, other.columns):
            rows = _one_after_other(self.rows, other.rows, (left, result))
            return replace(self, arrays=arrays, rows=rows)
        return None


CODES = MULTIPLY_CODE, PACK_ROWS_CODE, PACK_COLUMNS_CODE, STORE_TILE_CODE
"""The fields of a head that are addresses of code."""

TABLES = (
    *(ROW_OFFSETS, RESULT_ROWS, RUNS_OF_COLUMNS, SPANS, COLUMN_OFFSETS),
    *(RESULT_RUNS, RESULT_SPANS, RESULT_COLUMNS, LEFT_TERMS, RIGHT_TERMS),
)
"""The fields of a head that are addresses of tables of rows, columns and terms."""

ADDRESSES = (*CODES, *TABLES, LEFT, RIGHT, RESULT, BATCH, GROUPS, PACKED_ROWS, PACKED_COLUMNS)
"""All fields of a head that are addresses."""

FLAGS = (ROWS_KEPT, ROWS_PACKED), (COLUMNS_KEPT, COLUMNS_PACKED)
"""The flags of the left and the right operand."""


class BoundProducts:
    """A call of products: its tables, and the memory for packed operands.

    Each product of the batch overwrites the packed operands of the one before, unless they are
    kept.
    """

    def __init__(self, offsets: Offsets) -> None:
        compiled = kernels("products")
        self._width, self._height = int(compiled.COLUMNS), int(compiled.ROWS)
        self.offsets = offsets
        self._batch = offsets.batch
        (rows, _), (columns, _), (depth, _) = offsets.rows, offsets.columns, offsets.terms
        self._panels, self._across = -(-len(rows) // self._height), -(-len(columns) // self._width)
        widths = self._panels * self._height, self._across * self._width
        self._sizes = [len(self._batch) * n * len(depth) for n in widths]
        self._head = np.zeros(PRODUCT_FIELDS, np.int64)
        each = np.arange(len(self._batch))
        self._groups = np.stack([each, each + 1], axis=1)
        self._rooms: list[Array | None] = [None, None]
        self._is_kept = [False, False]
        self._calls: tuple[KernelCall, KernelCall, KernelCall] | None = None

    @classmethod
    def kept(
        cls, head: Table, sizes: Sequence[int], calls: tuple[KernelCall, KernelCall, KernelCall]
    ) -> BoundProducts:
        """A call from the parts of an earlier one, whose addresses are valid in this process.

        It cannot be changed to add up partials any more.
        """
        call = cls.__new__(cls)
        call._head, call._sizes, call._calls = head, list(sizes), calls
        call._rooms = cast("list[Array | None]", [None, None])
        call._is_kept = [False, False]
        return call

    @property
    def parts(self) -> tuple[Table, Sequence[int], tuple[KernelCall, KernelCall, KernelCall]]:
        """The arguments of `kept`."""
        if self._calls is None:
            self._calls = self._bound()
        return self._head, self._sizes, self._calls

    def can_add_up(self, partials: Partials) -> bool:
        """Whether each product of the batch belongs to a single partial, and each has a first
        partial.
        """
        begin = self.offsets.begin[2] + self._batch[:, 2]
        which, on = partials.places(begin)
        firsts = np.isin(begin - on, begin[which == 0]).all()
        (own,) = which[:1]
        results = self.offsets.rows[1], self.offsets.columns[1]
        alone = (partials.places(begin[:1] + each)[0] == own for each in results)
        return bool(firsts) and all(each.all() for each in alone)

    def add_up(self, partials: Partials) -> None:
        """Add the products of each partial, one after another, to those of the first."""
        which, on = partials.places(self.offsets.begin[2] + self._batch[:, 2])
        batch = self._batch - on[:, None] * [0, 0, 1]
        self._batch = batch[np.lexsort((which, batch[:, 2]))]
        edges = np.flatnonzero(np.r_[True, np.diff(self._batch[:, 2]) != 0, True])
        self._groups = np.stack([edges[:-1], edges[1:]], axis=1)
        self._calls = None

    def __call__(self, known: int) -> None:
        """Multiply.

        Args:
            known: flags of the operands that stay packed or are already packed.
        """
        if self._calls is None:
            self._calls = self._bound()
        *packing, multiply = self._calls
        for pack, (kept, packed) in zip(packing, FLAGS, strict=True):
            # Several threads use each packed panel.
            if known & kept and not known & packed:
                pack()
        self._head[KNOWN] = known
        multiply()

    def _bound(self) -> tuple[KernelCall, KernelCall, KernelCall]:
        """The calls that pack all rows, pack all columns, and multiply."""
        compiled, head, tables = kernels("products"), self._head, self._tables()
        deep = int(head[TERM_COUNT])
        longest = int(np.diff(self._groups).max(initial=0))
        per_block = block_panels(
            self._panels, len(self._groups) * self._across, 4 * longest * self._height * deep
        )
        blocks = -(-self._panels // per_block)
        batch, groups = np.ascontiguousarray(self._batch), np.ascontiguousarray(self._groups)
        head[[BATCH, GROUPS]] = table_address(batch), table_address(groups)
        head[[BLOCK_COUNT, BLOCK_PANELS]] = blocks, per_block
        kept = self.offsets.arrays, tables, head, batch, groups
        pointers = elements(head, *ADDRESSES)
        each = deep * NANOSECONDS_PER_PACKED
        packing = [
            KernelCall(code, head, even_cuts(count, count * width * each), kept, pointers=pointers)
            for code, count, width in (
                (compiled.PACK_ALL_ROWS, len(batch) * self._panels, self._height),
                (compiled.PACK_ALL_COLUMNS, len(batch) * self._across, self._width),
            )
        ]
        macs = np.diff(self._groups)[:, 0] * (self._height * self._width * deep)
        panels = np.minimum(per_block, self._panels - np.arange(blocks) * per_block)
        cost = np.repeat(np.outer(macs, panels).ravel() / MACS_PER_NANOSECOND, self._across)
        room = 4 * (longest * per_block * self._height * deep + self._width * deep + 2 * LANES)
        room += (per_block + 1) * int(compiled.TILE_BYTES)
        rows, columns = packing
        multiply = KernelCall(compiled.PRODUCTS, head, unit_cuts(cost), kept, room, pointers)
        return rows, columns, multiply

    def _tables(self) -> list[Table]:
        """The tables of rows, columns and terms. Their addresses are written into the head."""
        compiled, head, found = kernels("products"), self._head, self.offsets
        (rows, row_results), (columns, column_results) = found.rows, found.columns
        depth, depths = found.terms
        runs, spans = _runs(columns, found.sizes[1], self._width)
        result_runs, result_spans = _runs(column_results, found.sizes[2], self._width)
        head[[LEFT, RIGHT, RESULT]] = found.begin
        head[[LEFT_BYTES, RIGHT_BYTES, RESULT_BYTES]] = found.sizes
        head[[CHAIN_TERMS, ROUNDING]] = found.sums
        head[[*CODES]] = compiled.CODES
        head[[ROW_COUNT, COLUMN_COUNT, TERM_COUNT]] = len(rows), len(columns), len(depth)
        head[PANEL_COUNT] = self._across
        columns, column_results = (np.pad(a, (0, LANES)) for a in (columns, column_results))
        results = result_runs, result_spans, column_results
        tables = [rows, row_results, runs, spans, columns, *results, depth, depths]
        head[[*TABLES]] = [table_address(each) for each in tables]
        return tables

    def keep(self, side: int, scratch: Scratch) -> int:
        """Keep an operand packed, if there is memory for it; returns its flags."""
        kept, packed = FLAGS[side]
        if self._is_kept[side]:
            return kept | packed
        room = self._rooms[side]
        if room is None:
            room = self._rooms[side] = scratch.keep(self._sizes[side] * 4 + ALIGNMENT)
        if room is None:
            return 0
        self._is_kept[side] = True
        self._head[PACKED_ROWS + side] = -(-address(room) // ALIGNMENT) * ALIGNMENT
        return kept

    def forget(self, side: int) -> None:
        """Stop keeping an operand packed."""
        self._is_kept[side] = False


def block_panels(panels: int, across: int, panel_bytes: int) -> int:
    """The number of panels of rows in a block.

    Args:
        panels: the number of panels of all rows.
        across: the number of panels of columns of all groups.
        panel_bytes: the bytes of a packed panel of rows.
    """
    found = panels
    while found >= 2 * LEAST_PANELS and (
        across * -(-panels // found) < FEW_UNITS or found * panel_bytes > ROOM_BYTES
    ):
        found = -(-found // 2)
    return found


def join_products(calls: Sequence[Call]) -> list[Call]:
    """Calls in which neighbouring sums of products are joined where possible.

    Such neighbours come from the shape classes of a vertex set: with the same weights for another
    part of an image, or with the same image for other channels.
    """
    found: list[Call] = []
    for call in calls:
        found.append(call)
        while len(found) > 1:
            (one, _), (next_, _) = found[-2:]
            if not isinstance(one, Products) or not isinstance(next_, Products):
                break
            if not one.join(next_):
                break
            found.pop()
    return found


def _are_same(some: tuple[Table, Table], others: tuple[Table, Table]) -> bool:
    """Whether two pairs of tables are equal."""
    return all(np.array_equal(a, b) for a, b in zip(some, others, strict=True))


def _one_after_other(
    some: tuple[Table, Table], others: tuple[Table, Table], apart: tuple[int, int]
) -> tuple[Table, Table]:
    """Two tables, each followed by the corresponding other table shifted by a distance."""
    first, second = (
        np.concatenate([a, b + d]) for a, b, d in zip(some, others, apart, strict=True)
    )
    return first, second


def _offsets(array: Array, axes: Sequence[int]) -> Table:
    """The offsets of all elements along some axes, slowest axis first."""
    found = np.zeros(1, np.int64)
    for d in axes:
        steps = np.arange(array.shape[d], dtype=np.int64) * array.strides[d]
        found = (found[:, None] + steps).reshape(-1)
    return found


def _runs(offsets: Table, itemsize: int, width: int) -> tuple[Table, Table]:
    """The runs of columns in which panels are read or written: contiguous runs and scattered runs.

    Returns a table of runs, and the first run of each panel of `width` columns, followed by the
    end.
    """
    at = np.arange(len(offsets))
    begins = at % width == 0
    begins[1:] |= np.diff(offsets) != itemsize
    within = at - np.flatnonzero(begins)[np.cumsum(begins) - 1]
    begins |= within % LANES == 0
    # A vector made of short runs is copied element by element.
    vector = at // LANES
    scattered = (np.bincount(vector[begins], minlength=vector[-1] + 1) > LANES // SHORTEST_RUN)[
        vector
    ]
    edges = at % LANES == 0
    edges[1:] &= scattered[1:] | scattered[:-1]
    starts: NDArray[np.bool_] = edges | (begins & ~scattered)
    first = np.flatnonzero(starts)
    count = np.diff(np.r_[first, len(offsets)])
    where = np.where(scattered[first], 0, offsets[first])
    runs = np.stack([first % width, count, where, first, ~scattered[first]], axis=1, dtype=np.int64)
    panels = np.arange(0, len(offsets) + width, width)
    return runs, np.searchsorted(first, panels).astype(np.int64)
