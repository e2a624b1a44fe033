"""The cycles of each kind of work that a tile does in a superstep, except contractions.

`contractions` has the prices of those. Sizes are those of the busiest tile, as integers or as NumPy
arrays of candidates, which are broadcast together; most prices are arrays of that shape. The
constants are facts of the target. The formulas come from poplibs (commit 7eac0f26) unless a
docstring gives another source. Dtypes are named as NumPy and ml_dtypes name them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...ir.support.arrays import Integers, integers
from ..codelets.loops import ASSUMED_LOOP, Loop
from ..codelets.scalar import loops_of
from ..fabrics.traffic import Traffic
from ..target import Target
from ..target.dtype_kinds import kind_of, vector_elements
from ..timetable.link_lanes import LinkLanes
from ..timetable.timetable import exchange_ends
from .whole_numbers import divided_up, together

Cycles = NDArray[np.int64]


def exchange_cycles(traffic: Traffic, target: Target) -> Cycles:
    """Cycles of an exchange on each tile, without the sync: (tiles,).

    The fabric prices what happens on each chip. A tile that sends to another chip, or receives from
    one, also waits for the links between them. A timetable knows both.
    """
    if target.exchange.timetables:
        return timetable_cycles(traffic, target)
    own = target.exchange.exchange_cycles(traffic)
    if target.chips == 1:
        return own
    return np.maximum(own, target.links.waiting_cycles(traffic, target.tiles, target.clock_hz))


def timetable_cycles(traffic: Traffic, target: Target) -> Cycles:
    """Cycles until the exchange of each tile ends by the timetable of all messages: (tiles,).

    On the way from the sync to the first message, and from the last one on, a tile takes what
    `phase_cycles` has more than a sync. Raises InputError for an exchange with too many messages
    to list, which names the move.
    """
    fabric = target.exchange
    ends = exchange_ends(traffic.moves, fabric, traffic.tiles, LinkLanes.of(target))
    around = max(fabric.phase_cycles - fabric.sync_cycles, 0)
    return np.where(ends > 0, ends + around, 0)


def least_exchange_cycles(
    received_bytes: ArrayLike, sent_bytes: ArrayLike, target: Target, control: ArrayLike = 0
) -> Cycles:
    """A lower bound of exchange_cycles, from what each tile receives and sends.

    On a crossbar, this is the price.

    Args:
        control: cycles of the supervisor, as control_cycles counts them; 0 leaves them out.
    """
    return target.exchange.least_cycles(received_bytes, sent_bytes, control)


def least_exchange_cycles_of_one(
    received_bytes: float, sent_bytes: float, target: Target, control: int = 0
) -> int:
    """As least_exchange_cycles, for one tile; ten times as fast as with arrays of one number."""
    return target.exchange.least_cycles_of_one(received_bytes, sent_bytes, control)


def control_cycles(
    sends: ArrayLike, receives: ArrayLike, places: ArrayLike, target: Target
) -> Cycles:
    """Cycles in which a tile's supervisor starts sends and receives.

    Args:
        places: receives that do not follow the one before in memory, so that a write pointer moves.
    """
    return target.exchange.control_cycles(sends, receives, places)


def sync_cycles(target: Target, zone: str = "internal", chips: Sequence[int] = ()) -> int:
    """Cycles for the tiles of a zone to meet, once per superstep.

    Args:
        zone: one of SYNC_ZONES. The tiles of several chips take longer than those of one.
        chips: that meet, in ascending order; () for all.
    """
    own = target.exchange.meeting_cycles(zone)
    if zone == "internal":
        return own
    return own + ceil(target.links.meeting_seconds(chips) * target.clock_hz)


def host_cycles(moved_bytes: int, target: Target) -> int:
    """Cycles until bytes have come from the host or gone to it, while nothing else happens."""
    return ceil(moved_bytes / target.host.bytes_per_cycle)


def remote_cycles(moved_bytes: Integers, target: Target) -> Integers:
    """Cycles until bytes of a chip have come from remote memory or gone there; 0 for no bytes."""
    remote, clock = target.remote, target.clock_hz
    moving = np.ceil(moved_bytes / (remote.gbytes_per_s * 1e9) * clock).astype(np.int64)
    return np.where(moved_bytes > 0, moving + ceil(remote.latency_ns * 1e-9 * clock), 0)


# Elementwise work.


def elementwise_cycles(
    elements: ArrayLike,
    operands: int,
    function: str | Loop,
    dtype_name: str,
    target: Target,
    *,
    in_place: bool = False,
) -> Cycles:
    """Cycles to apply a function to every element of a block, shared among the workers.

    Source: poplibs lib/popops/PerformanceEstimation.cpp and popopsCycleEstimators.hpp. The price is
    within 2.2 % of a measured float32 addition (abele bench fidelity, family vector).

    Args:
        operands: tensors that it reads; each one after the second costs one more load per loop.
        function: a name that loops_of knows, the loop of a codelet, or any other name, which costs
            ASSUMED_LOOP.
        in_place: whether the result overwrites the first operand.
    """
    vector = target.vector
    kind = kind_of(dtype_name)
    loop, width = _loop(function, dtype_name, target)
    cycles = loop.cycles + max(operands - 2, 0)
    if not loop.counted:
        cycles += _loop_overhead(operands, target)
    start = vector.float16_worker_cycles if kind == "float16" else vector.float32_worker_cycles
    if in_place:
        start = vector.in_place_worker_cycles
    count = integers(elements)
    loops = divided_up(divided_up(count, target.workers), width)
    total = vector.supervisor_cycles + target.workers * (start + loops * cycles)
    return np.where(count > 0, total, 0)


def scaled_add_cycles(elements: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles of a + scale * b over a block of floats, its vectors shared among the workers.

    Integers take the loops of two functions, one after the other in the same codelet.
    Source: poplibs lib/popops/codelets/popopsCycleEstimators, ScaledAddSupervisor. The price is
    within 2.2 % of two measured float32 blocks (abele bench fidelity, family vector).
    """
    vector, workers = target.vector, target.workers
    count = integers(elements)
    if kind_of(dtype_name) == "int":
        first = elementwise_cycles(count, 1, "mul", dtype_name, target)
        return first + following_cycles(count, 2, "add", dtype_name, target)
    width = vector_elements(dtype_name, target)
    loops = np.maximum(divided_up(divided_up(count, width), workers) - 1, 0)
    worker = vector.scaled_add_worker_cycles + loops * vector.scaled_add_loop_cycles
    rest = np.where(count % width > 0, vector.scaled_add_rest_cycles, 0)
    total = vector.scaled_add_supervisor_cycles + rest + workers * worker
    return np.where(count > 0, total, 0)


def streamed_add_cycles(elements: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles of a + scale * b if the operands and the result lie in different memory elements.

    One vector takes one cycle: two loads, a store and the sum are one pair of instructions, which
    moves 24 bytes.
    Source: the instruction ld2xst64pace, and simehaa/IPU STREAMTriad/codelets.cpp.
    """
    vector, workers = target.vector, target.workers
    count = integers(elements)
    loops = divided_up(divided_up(count, workers), vector_elements(dtype_name, target))
    worker = vector.streamed_worker_cycles + loops * vector.streamed_loop_cycles
    return np.where(count > 0, vector.supervisor_cycles + workers * worker, 0)


def compiled_loop(loads: int, arithmetic: int, stores: int, vector: int, target: Target) -> Loop:
    """The inner loop of a codelet that a compiler made from a plain loop.

    Each instruction takes one cycle.

    Args:
        loads, arithmetic, stores: instructions for `vector` elements. Assumed: none are paired.
    """
    cycles = loads + arithmetic + stores + target.vector.compiled_loop_cycles
    return Loop(cycles, vector, counted=True)


def following_cycles(
    elements: ArrayLike, operands: int, function: str, dtype_name: str, target: Target
) -> Cycles:
    """Cycles that one more function adds to the loop of another codelet.

    Assumed, from the loops of elementwise_cycles: the value is in a register, so its load, its
    store, the loop itself and the start of workers are not paid again. Each further operand costs
    one more load per loop. A loop that is published with its loads and stores is charged without
    them, but at least 1 cycle.

    Args:
        operands: as for elementwise_cycles, including the value that the loop already has.
    """
    return all_following_cycles(elements, {(operands, function, dtype_name): 1}, target)


def all_following_cycles(
    elements: ArrayLike, functions: Mapping[tuple[int, str, str], int], target: Target
) -> Cycles:
    """Cycles that several more functions add to the loop of another codelet.

    Args:
        functions: how often each is applied, by its arguments for following_cycles: operands,
            function and dtype.
    """
    share = divided_up(integers(elements), target.workers)
    by_width: dict[int, int] = {}
    for (operands, function, dtype_name), times in functions.items():
        loop, width = _loop(function, dtype_name, target)
        cycles = loop.cycles
        if loop.counted:
            cycles = max(cycles - _loop_overhead(operands, target), 1)
        by_width[width] = by_width.get(width, 0) + times * (cycles + operands - 1)
    total = np.zeros_like(share)
    for width, cycles in by_width.items():
        total = total + divided_up(share, width) * (target.workers * cycles)
    return total


def _loop(function: str | Loop, dtype_name: str, target: Target) -> tuple[Loop, int]:
    """The inner loop of a function, and the elements that one pass of it takes."""
    if isinstance(function, Loop):
        loop = function
    else:
        loops = loops_of(function)
        loop = (loops and loops.of(kind_of(dtype_name))) or ASSUMED_LOOP
    return loop, loop.elements or vector_elements(dtype_name, target)


def _loop_overhead(operands: int, target: Target) -> int:
    """Cycles of a loop for its loads and its store, which most published loops do not include."""
    vector = target.vector
    return vector.unary_loop_cycles if operands < 2 else vector.binary_loop_cycles


def reduce_cycles(outputs: ArrayLike, depth: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles to reduce `depth` elements to each of the outputs: sums, extrema, pooling.

    Workers share the outputs. If it is cheaper, they share the depth, and one more reduction merges
    their results. Depth 1 is free, since nothing is combined.
    Source: poplibs lib/popops/PerformanceEstimation.cpp, single contiguous input. Assumed: the same
    loop is the price of sharing the depth.
    """
    reduction, workers = target.reduction, target.workers
    outputs_, depth_ = together(outputs, depth)
    if kind_of(dtype_name) == "int":
        width, each = 1, reduction.integer_cycles_per_element
    else:
        width = vector_elements(dtype_name, target) * reduction.accumulator_vectors
        each = reduction.cycles_per_element

    def by_outputs(count: Cycles, deep: Cycles) -> Cycles:
        loops = divided_up(divided_up(count, workers), width)
        worker = reduction.worker_cycles + loops * (each * deep + reduction.loop_cycles)
        return reduction.supervisor_cycles + workers * worker

    share = divided_up(divided_up(depth_, workers), width)
    worker = reduction.worker_cycles + outputs_ * (each * share + reduction.loop_cycles)
    by_depth = reduction.supervisor_cycles + workers * worker
    by_depth = by_depth + by_outputs(outputs_, np.full_like(depth_, workers * width))
    total = np.minimum(by_outputs(outputs_, depth_), by_depth)
    return np.where((depth_ > 1) & (outputs_ > 0), total, 0)


def lookup_cycles(
    indices: ArrayLike,
    found: ArrayLike,
    row_elements: ArrayLike,
    merges: bool,
    dtype_name: str,
    target: Target,
) -> Cycles:
    """Cycles to read indices, and to copy or merge the rows that they name, shared among workers.

    Source: poplibs lib/popops/codelets/popopsCycleEstimators, MultiSlice. Assumed: what merging
    adds, and that the workers share the indices evenly.

    Args:
        indices: those that the tile reads.
        found: those of them whose row is on the tile.
        row_elements: of each row.
        merges: whether rows are merged into a table, and not only copied.
    """
    lookup, workers = target.lookup, target.workers
    read = divided_up(integers(indices), workers)
    hits = np.minimum(divided_up(integers(found), workers), read)
    vectors = divided_up(integers(row_elements), vector_elements(dtype_name, target))
    each = lookup.merged_vector_cycles if merges else lookup.copied_vector_cycles
    work = hits * (lookup.found_cycles + each * vectors) + (read - hits) * lookup.missed_cycles
    total = target.vector.supervisor_cycles + workers * (lookup.start_cycles + work)
    return np.where(integers(indices) > 0, total, 0)


def scan_cycles(rows: ArrayLike, length: ArrayLike, target: Target) -> Cycles:
    """Cycles of a running sum, product, maximum or minimum along each row, shared among workers.

    Each worker takes whole rows, one element after another. Assumed, because none is published: a
    compiled loop of a load, an operation and a store.
    """
    vector, workers = target.vector, target.workers
    count, elements = together(rows, length)
    loop = compiled_loop(1, 1, 1, 1, target)
    each = divided_up(count, workers) * elements * loop.cycles
    total = vector.supervisor_cycles + workers * (vector.float32_worker_cycles + each)
    return np.where((count > 0) & (elements > 0), total, 0)


def sort_cycles(rows: ArrayLike, length: ArrayLike, target: Target, *, indices: bool) -> Cycles:
    """Cycles to sort each row, shared among workers.

    Each worker sorts whole rows, by a heap.
    Source: poplibs lib/popops/codelets/popopsCycleEstimators.cpp, HeapSortVertex and
    HeapSortVertexKV, which are worst cases. Assumed: all types of elements take as long.

    Args:
        indices: whether an index moves with each element.
    """
    sorting, workers = target.sorting, target.workers
    count, elements = together(rows, length)
    levels = np.floor(np.log2(np.maximum(elements, 1))).astype(np.int64)
    each = sorting.level_cycles * elements * levels + sorting.element_cycles * elements
    each = (each + sorting.row_cycles) * (sorting.indexed_factor if indices else 1)
    total = target.vector.supervisor_cycles + workers * divided_up(count, workers) * each
    return np.where((count > 0) & (elements > 0), total, 0)


# Bytes that move inside a tile.


def copy_cycles(copied_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to copy contiguous bytes inside a tile, in one call.

    Source: Target::getMemcpyBytesPerCycle and the call measured in ipu-stack.
    """
    count = integers(copied_bytes)
    cycles = target.copy.call_cycles + divided_up(count, target.copy.memcpy_bytes_per_cycle)
    return np.where(count > 0, cycles, 0)


def rearrange_cycles(moved_bytes: ArrayLike, contiguous_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to permute bytes inside a tile, contiguous_bytes at a time.

    There are three rates: for runs of at least 8 bytes, of at least 4, and for shorter ones.
    Source: a regression in poplibs on rearrangements.
    """
    copy = target.copy
    moved, run = together(moved_bytes, contiguous_bytes)
    by_four = np.where(
        run >= 4, copy.rearrange_cycles_per_byte_of_4, copy.rearrange_cycles_per_byte_of_2
    )
    rate = np.where(run >= 8, copy.rearrange_cycles_per_byte_of_8, by_four)
    cycles = copy.rearrange_call_cycles + np.ceil(moved * rate).astype(np.int64)
    return np.where(moved > 0, cycles, 0)


def staging_cycles(
    moved_bytes: ArrayLike, runs: ArrayLike, run_bytes: ArrayLike, target: Target
) -> Cycles:
    """Cycles to gather separate runs of bytes before an exchange, or to scatter them after it.

    Bytes move as exchange words, the smallest part of a message, or in smaller pieces if runs are
    shorter. Source: as rearrange_cycles. Assumed: the cost of a run besides its bytes, and that the
    target's staging workers share all work. The price is within 10 % of four measured phases on Mk1
    (abele bench fidelity, family bsp).

    Args:
        runs: their number.
        run_bytes: of each.
    """
    piece = np.minimum(integers(run_bytes), target.exchange.word_bytes)
    count, copy = integers(runs), target.copy
    moved = np.where(count > 0, integers(moved_bytes), 0)
    work = rearrange_cycles(moved, piece, target) - copy.rearrange_call_cycles
    work = work + count * copy.staged_run_cycles
    return np.where(
        moved > 0, copy.rearrange_call_cycles + divided_up(work, copy.staging_workers), 0
    )


def fill_cycles(filled_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to fill contiguous bytes with one value, shared among the workers.

    Source: poplibs lib/popops/PerformanceEstimation.cpp, fill.
    """
    vector, workers = target.vector, target.workers
    count = integers(filled_bytes)
    worker = vector.fill_worker_cycles + divided_up(divided_up(count, workers), vector.vector_bytes)
    return np.where(count > 0, vector.fill_supervisor_cycles + workers * worker, 0)
