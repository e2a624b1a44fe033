"""The facts of a tile machine, by part, each with its source.

The metadata of each field says where the number comes from and how far to trust it:

- *measured*: someone timed a chip, and the source says how;
- *published*: a vendor's document or source code, or arithmetic on one;
- *assumed*: our own round figure, because nothing is public;
- *fitted*: chosen so that abele's predictions meet measurements; `Fitted` has all of these;
- *given*: a fact of one installation, which only its owner knows. It is 0 until it is given.

The defaults are those of Mk2.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar, TypeVar, cast

from ..ir.support.errors import InputError
from ..ir.support.user_entries import add_entry

Number = TypeVar("Number", int, float)
_Part = TypeVar("_Part")

MEASURED = "measured"
PUBLISHED = "published"
ASSUMED = "assumed"
FITTED = "fitted"
GIVEN = "given"

POPLIN = "poplibs lib/poplin/PerformanceEstimation.hpp"
POPSPARSE = "poplibs lib/popsparse, estimates of static codelets"
POPOPS = "poplibs lib/popops/PerformanceEstimation.cpp"
SCALED_ADD = "poplibs lib/popops/codelets, scaledArithmeticSupervisorCycleEstimate"


def fact(
    default: Number,
    confidence: str,
    source: str,
    allowed: tuple[float, float] = (1, 1e9),
) -> Number:
    """A number of the machine, with its confidence, source and the range that a user may set."""
    metadata = {"confidence": confidence, "source": source, "allowed": allowed}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True)
class Memory:
    """The memory of one tile."""

    bytes_per_tile: int = fact(
        638_976, PUBLISHED, "Poplar SDK guide, out-of-memory page", (1024, 2**32)
    )
    reserved_bytes: int = fact(
        32_768, ASSUMED, "code, stacks, vertex state and exchange code of a tile", (0, 2**32)
    )
    row_alignment_bytes: int = fact(8, PUBLISHED, "64-bit loads; poplibs TileMapping.cpp", (1, 64))
    amp_alignment_bytes: int = fact(32, PUBLISHED, "ipu-stack ARCHITECTURE.md", (1, 1024))
    element_bytes: int = fact(
        0, ASSUMED, "a memory element, which sends and stores share; 0: not known", (0, 2**32)
    )
    wide_element_bytes: int = fact(
        32_768, PUBLISHED, "ipu-stack memory.rs, IPU21: two interleaved elements", (1, 2**32)
    )
    wide_elements_from: int = fact(
        212_992, PUBLISHED, "ipu-stack memory.rs, IPU21: the bytes below are executable", (0, 2**32)
    )


@dataclass(frozen=True)
class Code:
    """What a program needs on a tile besides its variables; `prices/overheads.py` counts it."""

    instruction_bytes: int = fact(4, PUBLISHED, "poplar::IPUModel, instructionBytes", (1, 64))
    codelet_instructions: int = fact(128, ASSUMED, "instructions of one codelet", (0, 1e6))
    step_instructions: int = fact(
        8, ASSUMED, "supervisor code per superstep: sync, exchange, start of the workers", (0, 1e6)
    )
    pointer_bytes: int = fact(4, ASSUMED, "per pointer in a vertex; less if compressed", (0, 64))
    count_bytes: int = fact(2, ASSUMED, "a size in a vertex's state, per dimension", (0, 64))
    send_instructions: int = fact(
        2, PUBLISHED, "ipu-stack EXCHANGE_FOOTPRINT: 8 bytes a send, on the C600", (0, 1e3)
    )
    words_per_send: int = fact(
        64, PUBLISHED, "ipu-stack EXCHANGE_INSTRUCTION_REFERENCE.md: a send's words", (1, 1e6)
    )
    long_send_instructions: int = fact(
        1, PUBLISHED, "EXCHANGE_FOOTPRINT: 4 bytes more for a longer send (sendoff)", (0, 1e3)
    )
    words_per_message: int = fact(
        4148, PUBLISHED, "ipu-stack exchange.rs: the words of a send that goes on", (1, 1e6)
    )
    receive_instructions: int = fact(
        2, PUBLISHED, "EXCHANGE_FOOTPRINT: 8 bytes a receive, on the C600", (0, 1e3)
    )
    place_instructions: int = fact(
        1, PUBLISHED, "EXCHANGE_FOOTPRINT: 4 bytes more where the write pointer moves", (0, 1e3)
    )
    stack_bytes: int = fact(256, ASSUMED, "stack of a worker or of the supervisor", (0, 2**20))


@dataclass(frozen=True)
class Unit:
    """What computes contractions on a tile: a table of facts that prices of methods read.

    Attributes:
        kind: the name of its table, and of the unit in `units`. A subclass sets it.
    """

    kind: ClassVar[str] = ""


@dataclass(frozen=True)
class ConvUnits:
    """The accumulating matrix product for one pair of operand and partials types.

    A pass keeps the weights of `units` output channels by `in_grain` input channels in the units
    and streams field elements past them. A worker's cycles for n elements are listed for n = 0, 1
    and 2, and grow linearly from 3 on. Adding to partials, or zeroing them, costs extra.
    """

    units: int = fact(16, PUBLISHED, "poplibs ConvVertexType.cpp; 0: no such units", (0, 4096))
    in_grain: int = fact(16, PUBLISHED, "poplibs ConvVertexType.cpp", (1, 4096))
    weight_bytes_per_unit: int = fact(32, PUBLISHED, POPLIN)
    worker_cycles_for_0: int = fact(20, PUBLISHED, POPLIN)
    worker_cycles_for_1: int = fact(31, PUBLISHED, POPLIN)
    worker_cycles_for_2: int = fact(
        36,
        ASSUMED,
        "no more than for 3; published as 40, but 402 cycles measured on Bow",
    )
    worker_cycles_for_3: int = fact(36, PUBLISHED, POPLIN)
    worker_cycles_per_element: int = fact(4, PUBLISHED, POPLIN)
    accumulate_cycles: int = fact(2, PUBLISHED, POPLIN, (0, 1e9))
    zero_cycles: int = fact(1, PUBLISHED, POPLIN, (0, 1e9))
    zero_cycles_per_element: int = fact(0, PUBLISHED, POPLIN, (0, 1e9))
    retained_cycles: int = fact(7, PUBLISHED, POPLIN + ", state retention", (0, 20))
    restore_cycles: int = fact(3, PUBLISHED, POPLIN + ", state retention", (0, 1e9))
    kernel_row_cycles: int = fact(34, PUBLISHED, POPLIN + ", nx1 worker, one row")

    @property
    def macs_per_cycle(self) -> float:
        """Multiply-accumulates per cycle in the steady state."""
        return self.units * self.in_grain / self.worker_cycles_per_element


FLOAT32_UNITS = ConvUnits(
    in_grain=8,
    worker_cycles_for_0=24,
    worker_cycles_for_1=47,
    worker_cycles_for_2=46,
    worker_cycles_for_3=54,
    worker_cycles_per_element=8,
    accumulate_cycles=0,
    zero_cycles=2,
    zero_cycles_per_element=8,
    retained_cycles=0,
    restore_cycles=0,
    kernel_row_cycles=45,
)


PAIRS = {
    ("float16", "float16"): "float16_float16",
    ("float16", "float32"): "float16_float32",
    ("bfloat16", "bfloat16"): "float16_float16",
    ("bfloat16", "float32"): "float16_float32",
    ("float32", "float32"): "float32_float32",
    ("float8", "float16"): "float8_float16",
}
"""By dtypes of operands and sums, the name of the facts of their products.

Assumed: bfloat16 costs what float16 costs, and all 8-bit floats cost the same.
"""


def pair_of(dtype_name: str, partials_name: str) -> str | None:
    """The name of the facts of products of a dtype that are added up in another; None if there are
    none."""
    operand = "float8" if dtype_name.startswith("float8") else dtype_name
    return PAIRS.get((operand, partials_name))


@dataclass(frozen=True)
class Amp(Unit):
    """The supervisor that feeds the conv units: constants of the 1x1 and nx1 vertices.

    The fields `<operand>_<partials>` are the units for those dtypes.
    """

    kind: ClassVar[str] = "amp"

    float16_float16: ConvUnits = field(default=ConvUnits())
    float16_float32: ConvUnits = field(default=ConvUnits(units=8))
    float32_float32: ConvUnits = field(default=FLOAT32_UNITS)
    float8_float16: ConvUnits = field(default=ConvUnits(units=0, in_grain=32))
    coefficient_load_bytes_per_cycle: int = fact(
        8, PUBLISHED, "poplibs use128BitConvUnitLoad=false halves 16", (1, 1024)
    )
    supervisor_cycles: int = fact(50, PUBLISHED, POPLIN + ", 1x1")
    return_cycles: int = fact(
        6,
        ASSUMED,
        "a taken branch of the supervisor to return; not in poplibs",
        (0, 1e9),
    )
    group_cycles: int = fact(13, PUBLISHED, POPLIN + ", 1x1, per convolution group")
    in_group_cycles: int = fact(15, PUBLISHED, POPLIN + ", 1x1, per input group")
    first_in_group_cycles: int = fact(11, PUBLISHED, POPLIN + ", 1x1, the input group that zeroes")
    out_group_cycles: int = fact(19, PUBLISHED, POPLIN + ", 1x1, per output group")
    pass_cycles: int = fact(6, PUBLISHED, POPLIN + ", 1x1, per pass")
    tag_cycles: int = fact(14, PUBLISHED, POPLIN + ", 1x1, over the least loaded worker")
    kernel_supervisor_cycles: int = fact(109, PUBLISHED, POPLIN + ", nx1")
    kernel_start_workers_cycles: int = fact(18, PUBLISHED, POPLIN + ", nx1, two run-alls")
    kernel_group_cycles: int = fact(16, PUBLISHED, POPLIN + ", nx1")
    kernel_in_group_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1")
    kernel_out_group_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1")
    kernel_outer_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1, per kernel row")
    kernel_inner_cycles: int = fact(12, PUBLISHED, POPLIN + ", nx1, per kernel element")
    kernel_pass_cycles: int = fact(3, PUBLISHED, POPLIN + ", nx1, per pass, plus 1 per worker")
    kernel_worker_cycles: int = fact(12, PUBLISHED, POPLIN + ", nx1, 17 + 1 + 3 - retention 9")
    kernel_tag_cycles: int = fact(9, PUBLISHED, POPLIN + ", nx1, over the least loaded worker")
    kernel_zero_cycles: int = fact(23, PUBLISHED, POPLIN + ", nx1, zeroing an output group")
    height_1_cycles: int = fact(15, PUBLISHED, POPLIN + ", nx1, weights of one kernel row")
    height_2_cycles: int = fact(46, PUBLISHED, POPLIN + ", nx1, weights of two rows at once")
    height_4_cycles: int = fact(60, PUBLISHED, POPLIN + ", nx1, weights of four rows at once")


@dataclass(frozen=True)
class Slic(Unit):
    """Constants of the codelet that takes a window of a kernel row at once, for four channels.

    poplibs calls it SLIC 1x4. Fields with `small` are of the codelet for half the units and 16-bit
    partials, which computes two results and merges them.
    """

    kind: ClassVar[str] = "slic"

    window: int = fact(4, PUBLISHED, POPLIN + ", SLIC", (1, 64))
    channels: int = fact(4, PUBLISHED, POPLIN + ", SLIC, of all groups done together", (1, 64))
    taken_branch_cycles: int = fact(6, PUBLISHED, POPLIN + ", SLIC, brnzdec")
    supervisor_cycles: int = fact(28, PUBLISHED, POPLIN + ", SLIC, preamble")
    small_supervisor_cycles: int = fact(25, PUBLISHED, POPLIN + ", SLIC, preamble, small")
    block_cycles: int = fact(15, PUBLISHED, POPLIN + ", SLIC, groups done together")
    small_block_cycles: int = fact(12, PUBLISHED, POPLIN + ", SLIC, groups done together, small")
    window_cycles: int = fact(20, PUBLISHED, POPLIN + ", SLIC, 3 + 2 + 1 + 6 + 1 + 6 + 1")
    small_window_cycles: int = fact(16, PUBLISHED, POPLIN + ", SLIC, 2 + 6 + 1 + 6 + 1")
    weights_cycles: int = fact(16, PUBLISHED, POPLIN + ", SLIC, 16 weight loads")
    aligned_weights_cycles: int = fact(18, PUBLISHED, POPLIN + ", SLIC, weights of one group")
    arranged_weights_cycles: int = fact(21, PUBLISHED, POPLIN + ", SLIC, weights of several groups")
    pair_weights_cycles: int = fact(12, PUBLISHED, POPLIN + ", SLIC, per worker, of two groups")
    single_weights_cycles: int = fact(10, PUBLISHED, POPLIN + ", SLIC, per worker, of four groups")
    worker_cycles: int = fact(17, PUBLISHED, POPLIN + ", SLIC, preamble of a worker")
    run_cycles: int = fact(10, PUBLISHED, POPLIN + ", SLIC, per row")
    small_run_cycles: int = fact(9, PUBLISHED, POPLIN + ", SLIC, per row, small")
    wide_run_cycles: int = fact(3, PUBLISHED, POPLIN + ", SLIC, per row, 32-bit partials")
    pipelined_elements: int = fact(5, PUBLISHED, POPLIN + ", SLIC, shorter rows take one at a time")
    row_cycles: int = fact(15, PUBLISHED, POPLIN + ", SLIC, a row of 5 elements")
    small_row_cycles: int = fact(3, PUBLISHED, POPLIN + ", SLIC, branches per row, small")
    strided_pipelined_elements: int = fact(3, PUBLISHED, POPLIN + ", SLIC, stride 2")
    strided_pair_cycles: int = fact(15, PUBLISHED, POPLIN + ", SLIC, stride 2, a row of 2")
    few_row_cycles: int = fact(17, PUBLISHED, POPLIN + ", SLIC, a row of 2 to 4, plus 1 each")
    single_row_cycles: int = fact(13, PUBLISHED, POPLIN + ", SLIC, a row of 1")
    zeroing_row_cycles: int = fact(13, PUBLISHED, POPLIN + ", SLIC, a first row of 1 to 4")
    merge_cycles: int = fact(2, PUBLISHED, POPLIN + ", SLIC, merging both results, small")


@dataclass(frozen=True)
class Mac(Unit):
    """Dot products on a worker's vector unit (HMAC), and products across groups (VMAC).

    Fields with `flat` are for a kernel of one element; `narrow` and `wide` are for 16-bit and
    32-bit partials.
    """

    kind: ClassVar[str] = "mac"

    float32_supervisor_cycles: int = fact(58, PUBLISHED, POPLIN + ", horizontal MAC")
    float16_supervisor_cycles: int = fact(65, PUBLISHED, POPLIN + ", horizontal MAC")
    flat_saved_cycles: int = fact(10, PUBLISHED, POPLIN + ", horizontal MAC 1x1", (0, 50))
    group_cycles: int = fact(23, PUBLISHED, POPLIN + ", horizontal MAC")
    in_group_cycles: int = fact(15, PUBLISHED, POPLIN + ", horizontal MAC")
    out_group_cycles: int = fact(10, PUBLISHED, POPLIN + ", horizontal MAC")
    worker_cycles: int = fact(16, PUBLISHED, POPLIN + ", horizontal MAC")
    kernel_cycles: int = fact(29, PUBLISHED, POPLIN + ", horizontal MAC, 16 - 6 + 19 per element")
    flat_kernel_cycles: int = fact(14, PUBLISHED, POPLIN + ", horizontal MAC 1x1, 16 - 15 + 13")
    element_cycles: int = fact(7, PUBLISHED, POPLIN + ", horizontal MAC, per field element")
    wide_dot_cycles: int = fact(7, PUBLISHED, POPLIN + ", getDenseDotProductCycles, 3 + 3 + 1")
    narrow_dot_cycles: int = fact(
        11, PUBLISHED, POPLIN + ", getDenseDotProductCycles, two outputs, 6 + 1 + 3 + 1"
    )
    integer_cycles_per_mac: int = fact(7, ASSUMED, "an integer product, popopsCycleEstimators.hpp")
    across_supervisor_cycles: int = fact(100, PUBLISHED, POPLIN + ", vertical MAC, 61 + 14 + 25")
    across_groups: int = fact(8, PUBLISHED, POPLIN + ", vertical MAC, half if wide", (2, 4096))
    across_block_cycles: int = fact(56, PUBLISHED, POPLIN + ", vertical MAC, 32 + 24 per block")
    across_worker_cycles: int = fact(13, PUBLISHED, POPLIN + ", vertical MAC, 8 groups")
    across_element_cycles: int = fact(25, PUBLISHED, POPLIN + ", vertical MAC, 7 + 15 + 3")
    across_cycles: int = fact(3, PUBLISHED, POPLIN + ", vertical MAC, per further kernel element")
    wide_across_worker_cycles: int = fact(19, PUBLISHED, POPLIN + ", vertical MAC, 4 groups")
    wide_across_element_cycles: int = fact(15, PUBLISHED, POPLIN + ", vertical MAC, 7 + 5 + 3")
    wide_across_cycles: int = fact(2, PUBLISHED, POPLIN + ", vertical MAC, per further element")
    across_zero_cycles: int = fact(4, PUBLISHED, POPLIN + ", vertical MAC, zeroing")
    across_merge_cycles: int = fact(10, PUBLISHED, POPLIN + ", vertical MAC, reduction")
    across_merge_element_cycles: int = fact(
        7, PUBLISHED, POPLIN + ", vertical MAC, reduction, plus 1 per other worker"
    )


@dataclass(frozen=True)
class Rounding:
    """What the machine does when it stores narrow floats."""

    overflow: int = fact(
        1,
        PUBLISHED,
        "Graphcore, TensorFlow guide: halves clip; 0: infinity, 1: largest number, 2: NaN",
        (0, 2),
    )


@dataclass(frozen=True)
class Outer(Unit):
    """Outer products on the workers. Slow rows are priced in half cycles per element."""

    kind: ClassVar[str] = "outer"

    worker_cycles: int = fact(25, PUBLISHED, POPLIN + ", outer product")
    float32_group_cycles: int = fact(11, PUBLISHED, POPLIN + ", outer product")
    float16_group_cycles: int = fact(10, PUBLISHED, POPLIN + ", outer product")
    fast_row_cycles: int = fact(6, PUBLISHED, POPLIN + ", outer product, three vectors")
    slow_row_cycles: int = fact(10, PUBLISHED, POPLIN + ", outer product")
    float32_slow_half_cycles: int = fact(4, PUBLISHED, POPLIN + ", outer product, 2 per element")
    float16_slow_half_cycles: int = fact(5, PUBLISHED, POPLIN + ", outer product, 2.5 per element")


UNITS: dict[str, type[Unit]] = {each.kind: each for each in (Amp, Slic, Mac, Outer)}
"""The units that `units` may name, by kind. Extensions add theirs."""


@dataclass(frozen=True)
class Vector:
    """Elementwise codelets: a supervisor call, then vectors shared among the workers."""

    vector_bytes: int = fact(8, PUBLISHED, "poplibs Target::getDataPathWidth, 64 bits", (1, 4096))
    supervisor_cycles: int = fact(11, PUBLISHED, POPOPS + ", basicOpSupervisorOverhead")
    float32_worker_cycles: int = fact(29, PUBLISHED, POPOPS + ", binary 1D")
    float16_worker_cycles: int = fact(26, PUBLISHED, POPOPS + ", binary 1D")
    unary_loop_cycles: int = fact(4, PUBLISHED, POPOPS + ", load and store of a loop, one operand")
    binary_loop_cycles: int = fact(2, PUBLISHED, POPOPS + ", load and store, two operands")
    in_place_worker_cycles: int = fact(58, PUBLISHED, POPOPS + ", binary 1D in place")
    scaled_add_supervisor_cycles: int = fact(
        57, PUBLISHED, SCALED_ADD + ", 21 + 11 + 7 + 12, and 6 to load the scale"
    )
    scaled_add_rest_cycles: int = fact(6, PUBLISHED, SCALED_ADD + ", 13 - 7 for a part of a vector")
    scaled_add_worker_cycles: int = fact(25, PUBLISHED, SCALED_ADD + ", 15 + 6 + 2 + 1 + 1")
    scaled_add_loop_cycles: int = fact(
        3, PUBLISHED, SCALED_ADD + ", two loads and a store, operands in any memory element"
    )
    streamed_loop_cycles: int = fact(
        1,
        PUBLISHED,
        "ld2xst64pace: two loads, a store and the sum at once, in elements of their own",
    )
    streamed_worker_cycles: int = fact(
        8, PUBLISHED, "simehaa/IPU STREAMTriad/codelets.cpp: fills and drains the pipeline"
    )
    compiled_loop_cycles: int = fact(
        4,
        ASSUMED,
        "a compiled loop: two pointers, the counter and the branch; agrees with heat's 16",
    )
    fill_supervisor_cycles: int = fact(12, PUBLISHED, POPOPS + ", fill")
    fill_worker_cycles: int = fact(26, PUBLISHED, POPOPS + ", fill")


@dataclass(frozen=True)
class Reduction:
    """The reduction of a contiguous block: loops over the depth, one accumulator vector each."""

    supervisor_cycles: int = fact(33, PUBLISHED, POPOPS + ", reduce")
    worker_cycles: int = fact(20, PUBLISHED, POPOPS + ", reduce")
    loop_cycles: int = fact(9, PUBLISHED, POPOPS + ", reduce, 8 to 10")
    cycles_per_element: int = fact(2, PUBLISHED, POPOPS + ", reduce, source not interleaved")
    accumulator_vectors: int = fact(2, PUBLISHED, "4 fp32 or 8 fp16 accumulators", (1, 64))
    integer_cycles_per_element: int = fact(7, ASSUMED, "an integer sum, popopsCycleEstimators.hpp")


@dataclass(frozen=True)
class Lookup:
    """Rows that indices name, copied from a table or merged into one."""

    start_cycles: int = fact(30, PUBLISHED, POPOPS + ", MultiSlice, 29 or 30")
    found_cycles: int = fact(19, PUBLISHED, POPOPS + ", MultiSlice, per index")
    missed_cycles: int = fact(
        8, PUBLISHED, POPOPS + ", MultiSlice, per index whose row is on another tile"
    )
    copied_vector_cycles: int = fact(2, PUBLISHED, POPOPS + ", MultiSlice, per vector of a row")
    merged_vector_cycles: int = fact(
        4, ASSUMED, "two loads, a merge and a store for each vector of an update"
    )


@dataclass(frozen=True)
class Sorting:
    """Rows that a worker sorts by a heap: 8 (19 n floor(log2 n) + 6 n + 2) cycles of the worker."""

    level_cycles: int = fact(152, PUBLISHED, POPOPS + ", HeapSortVertex, per element and level")
    element_cycles: int = fact(48, PUBLISHED, POPOPS + ", HeapSortVertex, per element")
    row_cycles: int = fact(16, PUBLISHED, POPOPS + ", HeapSortVertex")
    indexed_factor: int = fact(2, PUBLISHED, POPOPS + ", HeapSortVertexKV, 16 instead of 8")


@dataclass(frozen=True)
class Blocks:
    """Blocks of a sparse matrix, multiplied one after another by columns of a dense one.

    A block of 4, 8 or 16 rows is the weights of one pass of the conv units, and the columns stream
    past it. Blocks of one element are multiplied in the vector unit.
    """

    supervisor_cycles: int = fact(30, PUBLISHED, POPSPARSE + ", per vertex")
    worker_cycles: int = fact(13, PUBLISHED, POPSPARSE + ", per worker of a vertex")
    worker_4_cycles: int = fact(17, PUBLISHED, POPSPARSE + ", per worker, blocks of 4")
    row_cycles: int = fact(17, PUBLISHED, POPSPARSE + ", per row of blocks")
    row_worker_cycles: int = fact(1, PUBLISHED, POPSPARSE + ", per row of blocks and worker")
    block_cycles: int = fact(16, PUBLISHED, POPSPARSE + ", per block, without its weights")
    pass_4_cycles: int = fact(13, PUBLISHED, POPSPARSE + ", a worker's pass, blocks of 4")
    pass_8_cycles: int = fact(12, PUBLISHED, POPSPARSE + ", a worker's pass, blocks of 8")
    pass_16_cycles: int = fact(15, PUBLISHED, POPSPARSE + ", a worker's pass, blocks of 16")
    element_worker_cycles: int = fact(33, PUBLISHED, POPSPARSE + ", element-wise, per worker")
    element_row_cycles: int = fact(11, PUBLISHED, POPSPARSE + ", element-wise, per row")
    element_columns_cycles: int = fact(
        11, PUBLISHED, POPSPARSE + ", element-wise, per row and 16 bytes of its columns"
    )
    element_cycles: int = fact(
        3, PUBLISHED, POPSPARSE + ", element-wise, per element and 16 bytes of columns"
    )


PACKED = "counted in instructions, published for no codelet"


@dataclass(frozen=True)
class Packed:
    """Integers of few bits that share bytes, taken apart and multiplied on the vector unit."""

    supervisor_cycles: int = fact(30, ASSUMED, "as for sparse products")
    worker_cycles: int = fact(16, ASSUMED, "as for dot products (horizontal MAC)")
    row_cycles: int = fact(10, ASSUMED, PACKED + ", per row: adds up four sums, stores the result")
    block_cycles: int = fact(6, ASSUMED, PACKED + ", per block: its scale and zero point")
    scale_cycles: int = fact(2, ASSUMED, PACKED + ", per block and vector: its sums, scaled")
    word_cycles: int = fact(2, ASSUMED, PACKED + ", per 8 bytes: moves bytes to places of 16 bits")
    group_cycles: int = fact(2, ASSUMED, PACKED + ", per four integers: an or, a subtraction")
    mask_cycles: int = fact(1, ASSUMED, PACKED + ", per four integers of less than a byte: an and")
    widen_cycles: int = fact(2, ASSUMED, PACKED + ", per four integers: as float32")


@dataclass(frozen=True)
class Copy:
    """Copies inside a tile."""

    memcpy_bytes_per_cycle: int = fact(
        8, PUBLISHED, "Target::getMemcpyBytesPerCycle in ipu-stack", (1, 4096)
    )
    call_cycles: int = fact(288, MEASURED, "ipu-stack, a local copy call on C600")
    staging_workers: int = fact(
        6, PUBLISHED, "ipu-stack: the local copy of IPU21 is a call of six workers", (1, 64)
    )
    staged_run_cycles: int = fact(
        24, ASSUMED, "four instructions of one worker for a run that is gathered or scattered"
    )
    rearrange_call_cycles: int = fact(587, PUBLISHED, "poplibs regression, rearrangement")
    rearrange_cycles_per_byte_of_2: float = fact(
        5.148, PUBLISHED, "poplibs regression, 2-byte atoms", (1e-3, 1e6)
    )
    rearrange_cycles_per_byte_of_4: float = fact(
        3.125, PUBLISHED, "poplibs regression, 4-byte atoms", (1e-3, 1e6)
    )
    rearrange_cycles_per_byte_of_8: float = fact(
        0.440, PUBLISHED, "poplibs regression, 8-byte atoms", (1e-3, 1e6)
    )


@dataclass(frozen=True)
class Host:
    """The host and its link to the chips, whose cycles are reported beside those of a run."""

    bytes_per_cycle: float = fact(
        24.0, ASSUMED, "PCIe Gen4 x16, 32 GB/s one way at 1.325 GHz, one way at a time", (1e-3, 1e6)
    )
    latency_ns: float = fact(
        1000.0, ASSUMED, "a round trip over PCIe; the wait before and after a transfer", (0, 1e12)
    )
    prefetch: int = fact(
        0, ASSUMED, "inputs that the host holds ready, so that no transfer waits for it", (0, 1e6)
    )
    items_per_s: float = fact(
        0.0, GIVEN, "items that the host decodes and prepares in a second", (0, 1e15)
    )
    link_gbytes: float = fact(
        0.0, GIVEN, "GB/s of the network between the host and the machine", (0, 1e9)
    )


@dataclass(frozen=True)
class Storage:
    """What the host reads its data from."""

    gbytes: float = fact(0.0, GIVEN, "GB/s that the host reads", (0, 1e9))


@dataclass(frozen=True)
class Remote:
    """Remote memory: DRAM beside the chips, which they reach through exchanges with the host.

    Graphcore calls it streaming memory. A chip without it has 0 bytes.
    """

    gbytes: float = fact(
        64.0, ASSUMED, "GB of a chip, as on Bow: up to 256 GB for the four of a Bow-2000", (0, 1e9)
    )
    gbytes_per_s: float = fact(
        20.0, ASSUMED, "GB/s of a chip, one way at a time; nothing is published", (1e-6, 1e9)
    )
    latency_ns: float = fact(
        1000.0, ASSUMED, "until the first word, as over PCIe; nothing is published", (0, 1e12)
    )

    @property
    def bytes(self) -> int:
        """The bytes of a chip."""
        return int(self.gbytes * 1e9)


def _picojoules(what: str) -> float:
    """An energy that nobody has published for every machine. 0 means that it is not known."""
    return fact(0.0, GIVEN, f"pJ of {what}; 0: not known", (0, 1e9))


_MAC = "a multiplication and an addition to a sum"


@dataclass(frozen=True)
class Energy:
    """The energy that each kind of work takes. A fact of 0 is not known, and nothing is computed
    from it.

    A figure that includes other work, such as the reads of the operands of a multiplication, leaves
    the fact of that work at 0.
    """

    float16_float16_pj_per_mac: float = _picojoules(f"{_MAC}, 16-bit floats, sums of 16 bits")
    float16_float32_pj_per_mac: float = _picojoules(f"{_MAC}, 16-bit floats, sums of float32")
    float32_float32_pj_per_mac: float = _picojoules(f"{_MAC}, float32")
    float8_float16_pj_per_mac: float = _picojoules(f"{_MAC}, 8-bit floats, sums of float16")
    integer_pj_per_mac: float = _picojoules(f"{_MAC}, integers")
    memory_pj_per_byte: float = _picojoules("a byte that a tile reads from its memory or writes")
    exchange_pj_per_byte: float = _picojoules("a byte that a tile receives from another one")
    link_pj_per_byte: float = _picojoules("a byte on a link between two chips, for each link")
    static_watts_per_chip: float = fact(
        0.0,
        GIVEN,
        "W that a chip takes at all times, also if it does nothing; 0: not known",
        (0, 1e6),
    )


@dataclass(frozen=True)
class Area:
    """The area of a chip. A fact of 0 is not known.

    A die that is known as a whole has the area `die_mm2`, which holds for as many tiles with as
    much memory as the die has. Any other chip has the sum of its parts, if these are known.
    """

    die_mm2: float = fact(0.0, GIVEN, "mm2 of a whole die; 0: not known", (0, 1e9))
    die_tiles: int = fact(0, GIVEN, "tiles of that die", (0, 1e6))
    die_bytes_per_tile: int = fact(0, GIVEN, "bytes of memory of each of its tiles", (0, 2**32))
    tile_mm2: float = fact(0.0, GIVEN, "mm2 of a tile without its memory; 0: not known", (0, 1e9))
    memory_mm2_per_mib: float = fact(
        0.0, GIVEN, "mm2 of a MiB of the memory of a tile; 0: not known", (0, 1e9)
    )
    rest_mm2: float = fact(0.0, GIVEN, "mm2 of a chip beside its tiles", (0, 1e9))


@dataclass(frozen=True)
class Measuring:
    """The cycles that two readings of a tile's cycle counter add to the code between them."""

    counter_cycles: int = fact(
        45, MEASURED, "tessellate-ipu ipu_cycle_count_overhead, two readings in a row", (0, 1e6)
    )


@dataclass(frozen=True)
class Fitted:
    """The numbers that were fitted to abele's own calibration rows.

    No other number of a target is fitted. `Target.uncalibrated` sets these to 0.
    """

    bracket_cycles: int = fact(
        41,
        FITTED,
        "smallest worst error on three additions: cycles of a vector codelet between two readings "
        "of the counter, in addition to the readings",
        (0, 1e6),
    )


# Parts whose class a target names: its fabric and its units.

JOIN = "+"
"""Joins the kinds of several parts, as in `units = "mac+outer"`."""


def register_part(
    table: dict[str, type[_Part]],
    what: str,
    part: type[_Part],
    owner: str,
    reserved: Sequence[str] = (),
) -> None:
    """Let targets name a user's class of parts.

    Raises InputError for a kind that is taken or reserved, and for a class that cannot be a part.

    Args:
        table: the classes by kind.
        what: as for check_part.
    """
    check_part(part, what, owner)
    add_entry(table, what, str(getattr(part, "kind", "")), part, owner, reserved=reserved)


def check_part(part: type, what: str, owner: str) -> None:
    """Raise InputError unless a user's class can be a part of a target: a frozen dataclass with a
    kind, whose fields are facts.

    Args:
        what: the kind of part, for messages, such as "fabric".
    """
    kind = str(getattr(part, "kind", ""))
    where = f"{owner}: {what} {part.__name__}"
    if not re.fullmatch(r"[a-z][a-z0-9_-]*", kind):
        raise InputError(f"{where}: kind {kind!r}; need small letters, digits, '_' and '-'")
    # A class without the decorator inherits the parameters of its base.
    parameters = cast(Any, vars(part).get("__dataclass_params__"))
    if parameters is None or not parameters.frozen:
        raise InputError(f"{where}: no frozen dataclass; need @dataclass(frozen=True) above it")
    for each in fields(cast(Any, part)):
        if "source" not in each.metadata and not is_dataclass(each.default):
            raise InputError(
                f"{where}: field {each.name} is no fact; need {each.name}: int = "
                'fact(DEFAULT, ASSUMED, "SOURCE") or float, with fact of abele.backends.facts'
            )
