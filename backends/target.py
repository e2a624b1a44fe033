"""The machine as a parameter: its facts as data, with presets and a TOML file of the user's.

Every number says where it was read and how far to trust it, in its field's metadata:

- *measured*: somebody timed a chip, and the source says how;
- *published*: a vendor's document or source, or arithmetic on one;
- *assumed*: a round figure of ours, where nothing is public;
- *fitted*: chosen so that abele's own predictions meet measurements; table `fitted` holds all.

Nothing outside this file knows how many tiles a machine has.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeVar, cast

from ..ir.errors import InputError
from ..ir.hash_once import hash_once
from ..ir.suggestions import suggestion
from ..ir.user_entries import add_entry

Number = TypeVar("Number", int, float)

MOST_TILES = 1_000_000
"""Tiles that a target may have."""

MEASURED, PUBLISHED, ASSUMED, FITTED = "measured", "published", "assumed", "fitted"

POPLIN = "poplibs lib/poplin/PerformanceEstimation.hpp"
POPOPS = "poplibs lib/popops/PerformanceEstimation.cpp"
SCALED_ADD = "poplibs lib/popops/codelets, scaledArithmeticSupervisorCycleEstimate"


def fact(
    default: Number,
    confidence: str,
    source: str,
    allowed: tuple[float, float] = (1, 1e9),
) -> Number:
    """A number of the machine, with its trust, its source and the range a user may set."""
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


@dataclass(frozen=True)
class Code:
    """What a program takes on a tile beside its variables; the rules are `backends/overheads`."""

    instruction_bytes: int = fact(4, PUBLISHED, "poplar::IPUModel, instructionBytes", (1, 64))
    codelet_instructions: int = fact(128, ASSUMED, "of one codelet", (0, 1e6))
    step_instructions: int = fact(
        8, ASSUMED, "of the supervisor in a superstep: sync, exchange, start the workers", (0, 1e6)
    )
    pointer_bytes: int = fact(4, ASSUMED, "in a vertex's state; compressed ones are less", (0, 64))
    count_bytes: int = fact(2, ASSUMED, "in a vertex's state, a dimension", (0, 64))
    words_per_send: int = fact(
        64, PUBLISHED, "ipu-stack EXCHANGE_INSTRUCTION_REFERENCE.md", (1, 1e6)
    )
    receive_instructions: int = fact(
        2, PUBLISHED, "the same: a message's sender and its address are set apart", (0, 1e3)
    )
    stack_bytes: int = fact(256, ASSUMED, "of one worker, and of the supervisor", (0, 2**20))


@dataclass(frozen=True)
class Exchange:
    """What a tile sends and receives, and what it costs to start."""

    send_bytes_per_cycle: float = fact(
        4.0, PUBLISHED, "Target::getExchangeBytesPerCycle in ipu-stack", (1e-3, 1e6)
    )
    receive_bytes_per_cycle: float = fact(
        4.0, PUBLISHED, "Target::getExchangeBytesPerCycle in ipu-stack", (1e-3, 1e6)
    )
    efficiency: float = fact(
        0.8925, MEASURED, "0.56 cycles per 2 bytes, the T10 and Elk fit on Mk2", (1e-3, 1)
    )
    sync_cycles: int = fact(
        118, MEASURED, "the T10 and Elk fit on Mk2, per phase; 64 to 117 on Mk1", (1, 1e7)
    )
    route_cycles: int = fact(
        190,
        PUBLISHED,
        "ipu-stack topology.rs, IPU21: senders are 78 cycles early to 112 cycles late",
        (0, 1e7),
    )
    pair_factor: float = fact(
        2.0,
        PUBLISHED,
        "poplibs tilesPerSharedExchangeBus is 2: where two tiles receive the same",
        (1, 2),
    )
    word_bytes: int = fact(4, PUBLISHED, "poplibs TileMapping.cpp, exchange word", (1, 64))


@dataclass(frozen=True)
class ConvUnits:
    """The accumulating matrix product for one pair of operand and partials types.

    A pass keeps the weights of `units` output channels by `in_grain` input channels in the
    units and streams field elements past them. A worker's cycles for n elements are a table for
    n = 0, 1, 2 and a line from 3 on, plus what it costs to add to partials or to zero them.
    """

    units: int = fact(16, PUBLISHED, "poplibs ConvVertexType.cpp; 0: no such units", (0, 4096))
    in_grain: int = fact(16, PUBLISHED, "poplibs ConvVertexType.cpp", (1, 4096))
    weight_bytes_per_unit: int = fact(32, PUBLISHED, POPLIN)
    worker_cycles_for_0: int = fact(20, PUBLISHED, POPLIN)
    worker_cycles_for_1: int = fact(31, PUBLISHED, POPLIN)
    worker_cycles_for_2: int = fact(
        36,
        ASSUMED,
        "no dearer than three elements; published as 40, and 402 cycles measured on Bow",
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
        """Multiply-accumulates a cycle in the steady state."""
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


@dataclass(frozen=True)
class Amp:
    """The supervisor that feeds the conv units: constants of the 1x1 and nx1 vertices.

    The fields `<operand>_<partials>` are the units for those types.
    """

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
        "a taken branch of a supervisor, for the return, that poplibs leaves out",
        (0, 1e9),
    )
    group_cycles: int = fact(13, PUBLISHED, POPLIN + ", 1x1, a convolution group")
    in_group_cycles: int = fact(15, PUBLISHED, POPLIN + ", 1x1, an input group")
    first_in_group_cycles: int = fact(11, PUBLISHED, POPLIN + ", 1x1, the zeroing group")
    out_group_cycles: int = fact(19, PUBLISHED, POPLIN + ", 1x1, an output group")
    pass_cycles: int = fact(6, PUBLISHED, POPLIN + ", 1x1, a pass")
    tag_cycles: int = fact(14, PUBLISHED, POPLIN + ", 1x1, over the least loaded worker")
    kernel_supervisor_cycles: int = fact(109, PUBLISHED, POPLIN + ", nx1")
    kernel_start_workers_cycles: int = fact(18, PUBLISHED, POPLIN + ", nx1, two run-alls")
    kernel_group_cycles: int = fact(16, PUBLISHED, POPLIN + ", nx1")
    kernel_in_group_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1")
    kernel_out_group_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1")
    kernel_outer_cycles: int = fact(14, PUBLISHED, POPLIN + ", nx1, a kernel row")
    kernel_inner_cycles: int = fact(12, PUBLISHED, POPLIN + ", nx1, a kernel element")
    kernel_pass_cycles: int = fact(3, PUBLISHED, POPLIN + ", nx1, a pass, plus one a worker")
    kernel_worker_cycles: int = fact(12, PUBLISHED, POPLIN + ", nx1, 17 + 1 + 3 less retention 9")
    kernel_tag_cycles: int = fact(9, PUBLISHED, POPLIN + ", nx1, over the least loaded worker")
    kernel_zero_cycles: int = fact(23, PUBLISHED, POPLIN + ", nx1, zeroing an output group")
    height_1_cycles: int = fact(15, PUBLISHED, POPLIN + ", nx1, weights of one kernel row")
    height_2_cycles: int = fact(46, PUBLISHED, POPLIN + ", nx1, of two rows at once")
    height_4_cycles: int = fact(60, PUBLISHED, POPLIN + ", nx1, of four rows at once")


@dataclass(frozen=True)
class Slic:
    """A window of a kernel's row at once, for four channels (SLIC 1x4).

    small: of the codelet for half the units and 16-bit partials, which makes two results and
    merges them.
    """

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
    arranged_weights_cycles: int = fact(21, PUBLISHED, POPLIN + ", SLIC, of several groups")
    pair_weights_cycles: int = fact(12, PUBLISHED, POPLIN + ", SLIC, a worker, of two groups")
    single_weights_cycles: int = fact(10, PUBLISHED, POPLIN + ", SLIC, a worker, of four")
    worker_cycles: int = fact(17, PUBLISHED, POPLIN + ", SLIC, a worker's preamble")
    run_cycles: int = fact(10, PUBLISHED, POPLIN + ", SLIC, a row")
    small_run_cycles: int = fact(9, PUBLISHED, POPLIN + ", SLIC, a row, small")
    wide_run_cycles: int = fact(3, PUBLISHED, POPLIN + ", SLIC, a row, 32-bit partials")
    pipelined_elements: int = fact(5, PUBLISHED, POPLIN + ", SLIC, fewer are done one by one")
    row_cycles: int = fact(15, PUBLISHED, POPLIN + ", SLIC, a row of 5 elements")
    small_row_cycles: int = fact(3, PUBLISHED, POPLIN + ", SLIC, decisions on a row, small")
    strided_pipelined_elements: int = fact(3, PUBLISHED, POPLIN + ", SLIC, stride 2")
    strided_pair_cycles: int = fact(15, PUBLISHED, POPLIN + ", SLIC, stride 2, a row of 2")
    few_row_cycles: int = fact(17, PUBLISHED, POPLIN + ", SLIC, a row of 2 to 4, and 1 each")
    single_row_cycles: int = fact(13, PUBLISHED, POPLIN + ", SLIC, a row of 1")
    zeroing_row_cycles: int = fact(13, PUBLISHED, POPLIN + ", SLIC, a first row of 1 to 4")
    merge_cycles: int = fact(2, PUBLISHED, POPLIN + ", SLIC, merging both results, small")


@dataclass(frozen=True)
class Mac:
    """Dot products on a worker's vector unit (HMAC), and products across groups (VMAC).

    flat: of a kernel of one element. narrow, wide: of 16-bit and of 32-bit partials.
    """

    float32_supervisor_cycles: int = fact(58, PUBLISHED, POPLIN + ", horizontal MAC")
    float16_supervisor_cycles: int = fact(65, PUBLISHED, POPLIN + ", horizontal MAC")
    flat_saved_cycles: int = fact(10, PUBLISHED, POPLIN + ", horizontal MAC 1x1", (0, 50))
    group_cycles: int = fact(23, PUBLISHED, POPLIN + ", horizontal MAC")
    in_group_cycles: int = fact(15, PUBLISHED, POPLIN + ", horizontal MAC")
    out_group_cycles: int = fact(10, PUBLISHED, POPLIN + ", horizontal MAC")
    worker_cycles: int = fact(16, PUBLISHED, POPLIN + ", horizontal MAC")
    kernel_cycles: int = fact(29, PUBLISHED, POPLIN + ", horizontal MAC, 16 - 6 + 19 an element")
    flat_kernel_cycles: int = fact(14, PUBLISHED, POPLIN + ", horizontal MAC 1x1, 16 - 15 + 13")
    element_cycles: int = fact(7, PUBLISHED, POPLIN + ", horizontal MAC, a field element")
    wide_dot_cycles: int = fact(7, PUBLISHED, POPLIN + ", getDenseDotProductCycles, 3 + 3 + 1")
    narrow_dot_cycles: int = fact(
        11, PUBLISHED, POPLIN + ", getDenseDotProductCycles, two outputs, 6 + 1 + 3 + 1"
    )
    integer_cycles_per_mac: int = fact(7, ASSUMED, "an integer product, popopsCycleEstimators.hpp")
    across_supervisor_cycles: int = fact(100, PUBLISHED, POPLIN + ", vertical MAC, 61 + 14 + 25")
    across_groups: int = fact(8, PUBLISHED, POPLIN + ", vertical MAC, half with wide", (2, 4096))
    across_block_cycles: int = fact(56, PUBLISHED, POPLIN + ", vertical MAC, 32 + 24 a block")
    across_worker_cycles: int = fact(13, PUBLISHED, POPLIN + ", vertical MAC, 8 groups")
    across_element_cycles: int = fact(25, PUBLISHED, POPLIN + ", vertical MAC, 7 + 15 + 3")
    across_cycles: int = fact(3, PUBLISHED, POPLIN + ", vertical MAC, a further kernel element")
    wide_across_worker_cycles: int = fact(19, PUBLISHED, POPLIN + ", vertical MAC, 4 groups")
    wide_across_element_cycles: int = fact(15, PUBLISHED, POPLIN + ", vertical MAC, 7 + 5 + 3")
    wide_across_cycles: int = fact(2, PUBLISHED, POPLIN + ", vertical MAC, a further element")
    across_zero_cycles: int = fact(4, PUBLISHED, POPLIN + ", vertical MAC, zeroing")
    across_merge_cycles: int = fact(10, PUBLISHED, POPLIN + ", vertical MAC, reduction")
    across_merge_element_cycles: int = fact(
        7, PUBLISHED, POPLIN + ", vertical MAC, reduction, and one for each other worker"
    )


@dataclass(frozen=True)
class Outer:
    """Outer products, on the workers. Slow rows are priced in half cycles an element."""

    worker_cycles: int = fact(25, PUBLISHED, POPLIN + ", outer product")
    float32_group_cycles: int = fact(11, PUBLISHED, POPLIN + ", outer product")
    float16_group_cycles: int = fact(10, PUBLISHED, POPLIN + ", outer product")
    fast_row_cycles: int = fact(6, PUBLISHED, POPLIN + ", outer product, three vectors")
    slow_row_cycles: int = fact(10, PUBLISHED, POPLIN + ", outer product")
    float32_slow_half_cycles: int = fact(4, PUBLISHED, POPLIN + ", outer product, 2 an element")
    float16_slow_half_cycles: int = fact(5, PUBLISHED, POPLIN + ", outer product, 2.5 an element")


@dataclass(frozen=True)
class Vector:
    """Element-wise codelets: a supervisor call, then vectors shared among the workers."""

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
        "a compiled loop: two pointers, the counter and the branch; 16 of heat's 16 agree",
    )
    fill_supervisor_cycles: int = fact(12, PUBLISHED, POPOPS + ", fill")
    fill_worker_cycles: int = fact(26, PUBLISHED, POPOPS + ", fill")


@dataclass(frozen=True)
class Reduction:
    """Reduction of a contiguous block: loops of one accumulator vector over the depth."""

    supervisor_cycles: int = fact(33, PUBLISHED, POPOPS + ", reduce")
    worker_cycles: int = fact(20, PUBLISHED, POPOPS + ", reduce")
    loop_cycles: int = fact(9, PUBLISHED, POPOPS + ", reduce, 8 to 10")
    cycles_per_element: int = fact(2, PUBLISHED, POPOPS + ", reduce, source not interleaved")
    accumulator_vectors: int = fact(2, PUBLISHED, "4 fp32 or 8 fp16 accumulators", (1, 64))
    integer_cycles_per_element: int = fact(7, ASSUMED, "an integer sum, popopsCycleEstimators.hpp")


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
class Measuring:
    """What reading a tile's cycle counter before and after a codelet adds to what is read."""

    counter_cycles: int = fact(
        45, MEASURED, "tessellate-ipu ipu_cycle_count_overhead, two readings in a row", (0, 1e6)
    )


@dataclass(frozen=True)
class Fitted:
    """The only numbers of a target that were fitted to abele's own calibration rows.

    All others were read somewhere. `Target.uncalibrated` is without them.
    """

    bracket_cycles: int = fact(
        41,
        FITTED,
        "least worst error on three additions: what a vector codelet takes between two readings "
        "of the counter, beside the readings",
        (0, 1e6),
    )


@hash_once
@dataclass(frozen=True)
class Target:
    """A tile machine.

    base: the preset it started from. name: what reports call it (letters, digits, `_.-`).
    Raises InputError when a value is outside what its field allows.
    """

    base: str
    name: str
    tiles: int = fact(1472, PUBLISHED, "Graphcore, Hot Chips 2021", (1, MOST_TILES))
    workers: int = fact(6, PUBLISHED, "8832 threads on 1472 tiles", (1, 64))
    clock_hz: float = fact(1.325e9, MEASURED, "Elk artifact; 1.33e9 also quoted", (1, 1e12))
    memory: Memory = field(default=Memory())
    code: Code = field(default=Code())
    exchange: Exchange = field(default=Exchange())
    amp: Amp = field(default=Amp())
    slic: Slic = field(default=Slic())
    mac: Mac = field(default=Mac())
    outer: Outer = field(default=Outer())
    vector: Vector = field(default=Vector())
    reduction: Reduction = field(default=Reduction())
    copy: Copy = field(default=Copy())
    measuring: Measuring = field(default=Measuring())
    fitted: Fitted = field(default=Fitted())

    def __post_init__(self) -> None:
        for path, value in _flat(self):
            problem = _problem(path, value)
            if problem:
                raise InputError(f"target {self.name!r}: {problem}")
        if self.memory.reserved_bytes >= self.memory.bytes_per_tile:
            raise InputError(
                f"target {self.name!r}: memory.reserved_bytes: {self.memory.reserved_bytes}; "
                f"need less than memory.bytes_per_tile: {self.memory.bytes_per_tile}"
            )

    @property
    def bytes_per_tile(self) -> int:
        """The memory of a tile."""
        return self.memory.bytes_per_tile

    @property
    def usable_bytes_per_tile(self) -> int:
        """What variables may occupy on a tile."""
        return self.memory.bytes_per_tile - self.memory.reserved_bytes

    def conv_units(self, dtype_name: str, partials_name: str) -> ConvUnits | None:
        """The conv units for these types, or None where the machine has none.

        bfloat16 is charged as float16, and any 8-bit float as float8: assumed.
        """
        table = {
            ("float16", "float16"): self.amp.float16_float16,
            ("float16", "float32"): self.amp.float16_float32,
            ("bfloat16", "bfloat16"): self.amp.float16_float16,
            ("bfloat16", "float32"): self.amp.float16_float32,
            ("float32", "float32"): self.amp.float32_float32,
            ("float8", "float16"): self.amp.float8_float16,
        }
        operand = "float8" if dtype_name.startswith("float8") else dtype_name
        units = table.get((operand, partials_name))
        return units if units is not None and units.units else None

    def uncalibrated(self) -> Target:
        """The same machine without its fitted constants."""
        return _with(self, {f"fitted.{each.name}": 0 for each in fields(Fitted)})

    def overrides(self) -> dict[str, object]:
        """What differs from the preset, by dotted key, sorted."""
        preset = dict(_flat(_preset(self.base)))
        return {key: value for key, value in sorted(_flat(self)) if value != preset[key]}

    def spelling(self) -> str:
        """The shortest text that `resolve_target` reads back as an equal target.

        Example: `mk2:64,exchange.sync_cycles=200`
        """
        return self._spelled

    @cached_property
    def _spelled(self) -> str:
        overrides = self.overrides()
        tiles = overrides.pop("tiles", None)
        head = self.base if tiles is None else f"{self.base}:{tiles}"
        return ",".join([head, *(f"{key}={value}" for key, value in overrides.items())])

    def to_dict(self) -> dict[str, Any]:
        """Every value, nested as the fields are."""
        return _nested(self)

    def to_toml(self) -> str:
        """Every value with its confidence and source, as a file that `from_toml` reads."""
        lines: list[str] = []
        sources = {
            key: f"{metadata['confidence']}: {metadata['source']}"
            for key, (_, metadata) in _facts().items()
        }
        sources |= PRESET_SOURCES.get(self.base, {})
        sources |= dict.fromkeys(self.overrides(), f"given, not the preset's of {self.base}")
        _write_toml(self, "", sources, lines)
        return "\n".join(lines) + "\n"

    @staticmethod
    def from_toml(text: str, file: str = "<text>") -> Target:
        """A target from TOML: `base`, a preset's name, and the values that differ from it.

        Raises InputError naming file, line and key, and what is allowed.
        """
        try:
            values = tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise InputError(f"{file}: not TOML: {error}") from error
        base = values.pop("base", None)
        if not isinstance(base, str) or base not in PRESETS:
            line = _line_of(text, "base")
            where = f"{file}:{line}" if line else file
            raise InputError(f"{where}: base: {base!r}; need one of {_preset_names()}")
        overrides: dict[str, object] = {}
        preset = _preset(base)
        known = dict(_flat(preset))
        for key, value in _flat_mapping(values):
            problem = _unknown(key, known) or _problem(key, value)
            if problem:
                raise InputError(f"{file}:{_line_of(text, key)}: {problem}")
            overrides[key] = value
        try:
            return _with(preset, overrides)
        except InputError as error:
            # Values that are each allowed may not go together.
            lines = (_line_of(text, key) for key in overrides if f"{key}:" in str(error))
            where = f"{file}:{line}" if (line := next(lines, 0)) else file
            raise InputError(f"{where}: {error}") from error


# Dotted keys and the nested dataclasses they name.


def _flat(part: object, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Every value under part by dotted key, `base` apart."""
    for each in fields(cast(Any, part)):
        key, value = prefix + each.name, cast(object, getattr(part, each.name))
        if is_dataclass(value):
            yield from _flat(value, key + ".")
        elif key != "base":
            yield key, value


def _flat_mapping(values: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for name, value in values.items():
        if isinstance(value, dict):
            yield from _flat_mapping(cast(dict[str, object], value), f"{prefix}{name}.")
        else:
            yield prefix + name, value


def _nested(part: object) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for each in fields(cast(Any, part)):
        value = cast(object, getattr(part, each.name))
        result[each.name] = _nested(value) if is_dataclass(value) else value
    return result


def _with(target: Target, overrides: Mapping[str, object]) -> Target:
    """The target with other values. overrides: checked values by dotted key."""
    return cast(Target, _replaced(target, "", overrides))


def _replaced(part: object, prefix: str, overrides: Mapping[str, object]) -> object:
    changes: dict[str, object] = {}
    for each in fields(cast(Any, part)):
        key, value = prefix + each.name, cast(object, getattr(part, each.name))
        if is_dataclass(value):
            if any(name.startswith(key + ".") for name in overrides):
                changes[each.name] = _replaced(value, key + ".", overrides)
        elif key in overrides:
            new = overrides[key]
            changes[each.name] = float(cast(float, new)) if isinstance(value, float) else new
    return cast(object, replace(cast(Any, part), **changes)) if changes else part


@lru_cache(maxsize=1)
def _facts() -> dict[str, tuple[type, Mapping[str, Any]]]:
    """The type and metadata of every number, by dotted key."""
    return dict(_facts_of(Target, ""))


def _facts_of(kind: object, prefix: str) -> Iterator[tuple[str, tuple[type, Mapping[str, Any]]]]:
    for each in fields(cast(Any, kind)):
        default = cast(object, each.default)
        if is_dataclass(default):
            yield from _facts_of(default, f"{prefix}{each.name}.")
        elif "allowed" in each.metadata:
            yield prefix + each.name, (type(default), each.metadata)


def _unknown(key: str, known: Mapping[str, object]) -> str:
    """Why key names no value, or ''."""
    if key in known:
        return ""
    if any(name.startswith(key + ".") for name in known):
        return f"{key}: a table, not a value"
    section = key.rpartition(".")[0]
    near = [name for name in known if name.rpartition(".")[0] == section]
    near = near or list(dict.fromkeys(name.partition(".")[0] for name in known))
    return f"{key}: no such key; need one of {', '.join(near)}{suggestion(key, list(known))}"


def _problem(key: str, value: object) -> str:
    """Why value may not stand at key, or ''."""
    if key == "name":
        good = isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w.-]*", value, re.ASCII)
        return "" if good else f"name: {value!r}; need a letter, then letters, digits, '_.-'"
    kind, metadata = _facts()[key]
    low, high = cast(tuple[float, float], metadata["allowed"])
    needed = f"need {'an integer' if kind is int else 'a number'} in {low:g}..{high:g}"
    if isinstance(value, bool) or not isinstance(value, int if kind is int else int | float):
        return f"{key}: {value!r}; {needed}"
    return "" if low <= value <= high else f"{key}: {value!r}; {needed}"


def _line_of(text: str, key: str) -> int:
    """The line of a TOML text that sets key, counted from 1; 0 if none does."""
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        stripped = line.strip()
        if stripped.startswith("["):
            section = _plain(stripped.strip("[]").partition("]")[0]) + "."
            if key == section[:-1]:
                return number
        name = section + _plain(stripped.partition("=")[0])
        if "=" in stripped and (name == key or key.startswith(name + ".")):
            return number
    return 0


def _plain(key: str) -> str:
    """A dotted TOML key without blanks and quotes."""
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _write_toml(part: object, prefix: str, sources: Mapping[str, str], lines: list[str]) -> None:
    nested: list[tuple[str, object]] = []
    for each in fields(cast(Any, part)):
        value = cast(object, getattr(part, each.name))
        if is_dataclass(value):
            nested.append((prefix + each.name, value))
        elif isinstance(value, str):
            lines.append(f'{each.name} = "{value}"')
        else:
            lines.append(f"{each.name} = {value!r}  # {sources[prefix + each.name]}")
    for name, value in nested:
        lines.extend(["", f"[{name}]"])
        _write_toml(value, name + ".", sources, lines)


MK2 = Target(base="mk2", name="mk2")


def _mk1() -> Target:
    """GC2. Clock and MAC rates by arithmetic on the published peaks; 8 conv units."""
    eight = ConvUnits(units=8)
    return Target(
        base="mk1",
        name="mk1",
        tiles=1216,
        clock_hz=1.6e9,
        memory=Memory(bytes_per_tile=262_144, reserved_bytes=16_384),
        exchange=Exchange(pair_factor=1.0),
        copy=Copy(staging_workers=1),
        amp=Amp(
            float16_float16=eight,
            float16_float32=eight,
            float32_float32=replace(FLOAT32_UNITS, units=8),
        ),
    )


def _c600() -> Target:
    """IPU21: Mk2 at 1.5 GHz with 8-bit float units, twice the MACs of float16."""
    return replace(
        MK2,
        base="c600",
        name="c600",
        clock_hz=1.5e9,
        amp=Amp(float8_float16=ConvUnits(in_grain=32)),
    )


PRESETS: Mapping[str, Target] = {
    # A few tiles of Mk1's memory at Mk2's rates: assumed, for tests and for looking closely.
    "tiny": replace(
        MK2,
        base="tiny",
        name="tiny",
        tiles=4,
        memory=Memory(bytes_per_tile=262_144, reserved_bytes=16_384),
    ),
    "mk1": _mk1(),
    "mk2": MK2,
    "bow": replace(MK2, base="bow", name="bow", clock_hz=1.85e9),
    "c600": _c600(),
}


USERS_TARGETS: dict[str, Target] = {}
"""Targets that extensions have named. Each is spelled as what differs from its preset."""


def register_target(target: Target, owner: str) -> None:
    """Let users name a target of theirs. Raises InputError if its name is taken."""
    add_entry(USERS_TARGETS, "target", target.name, target, owner, reserved=PRESETS)


# Where a preset's own values come from, where that is not the field's source.
PRESET_SOURCES: Mapping[str, Mapping[str, str]] = {
    "tiny": {
        "tiles": "assumed: few enough to look at one by one",
        "memory.bytes_per_tile": "assumed: Mk1's",
        "memory.reserved_bytes": "assumed: code, stacks, vertex state, exchange code",
    },
    "mk1": {
        "tiles": "published: WikiChip, Colossus floorplan",
        "clock_hz": "published: arithmetic, 31.1 TFLOP/s of 1216 tiles and 8 MACs",
        "memory.bytes_per_tile": "published: Citadel's study of the chip, 256 KiB",
        "copy.staging_workers": "assumed: one worker copies; four measured phases agree to 10 %",
        "exchange.pair_factor": "assumed: shared buses are described of the second chip alone",
        "memory.reserved_bytes": "assumed: code, stacks, vertex state, exchange code",
        "amp.float16_float16.units": "published: poplibs ConvPartial1x1Out.cpp, 8 on the first IPU",
        "amp.float16_float32.units": "published: poplibs ConvPartial1x1Out.cpp, 8 on the first IPU",
        "amp.float32_float32.units": "published: arithmetic, 31.1 TFLOP/s of 1216 tiles",
    },
    "bow": {"clock_hz": "published: arithmetic, 350 TFLOP/s of 1472 tiles and 64 MACs"},
    "c600": {
        "clock_hz": "published: arithmetic, 280 TFLOP/s of 1472 tiles and 64 MACs",
        "amp.float8_float16.units": "published: arithmetic, 560 TFLOP/s, ByteMLPerf",
        "amp.float8_float16.in_grain": "published: 32 weights a unit, poplibs",
    },
}


DEFAULT_TARGET = "mk2"
"""The target where nobody names one."""


def with_more_memory(target: Target) -> str:
    """The preset with the most memory a tile, if that is more than a target's own; else ""."""
    name = max(PRESETS, key=lambda each: PRESETS[each].usable_bytes_per_tile)
    more = PRESETS[name].usable_bytes_per_tile > target.usable_bytes_per_tile
    return name if more else ""


def resolve_target(text: str) -> Target:
    """The target that a user names.

    text: a preset or a target of an extension (`mk2`), one with another tile count (`mk2:64`),
    either with values (`mk2:64,exchange.sync_cycles=200`, as `Target.spelling` writes), or the
    path of a TOML file.
    Raises InputError.
    """
    if text.endswith(".toml") or (text not in PRESETS and Path(text).is_file()):
        return _from_file(text)
    base = text.partition(",")[0].partition(":")[0]
    start = USERS_TARGETS.get(base) or PRESETS.get(base)
    if start is None:
        raise InputError(
            f"target {text!r}: {base!r} is no preset; need one of "
            f"{', '.join([*PRESETS, *USERS_TARGETS])}, as NAME or NAME:TILES, or the path of a "
            ".toml file"
        )
    return _changed(start, text)


@lru_cache(maxsize=256)
def _changed(start: Target, text: str) -> Target:
    """The target that a text names, which begins with the name of another."""
    head, *settings = text.split(",")
    _, colon, tiles = head.partition(":")
    overrides: dict[str, object] = {}
    if colon:
        if not tiles.isascii() or not tiles.isdigit():
            raise InputError(f"target {text!r}: {_problem('tiles', tiles)}")
        overrides["tiles"] = int(tiles)
    known = dict(_flat(start)) if settings else {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        problem = "" if equals else f"{setting!r}: need KEY=VALUE"
        parsed = _value_of(value)
        problem = problem or _unknown(key, known) or _problem(key, parsed)
        if problem:
            raise InputError(f"target {text!r}: {problem}")
        overrides[key] = parsed
    return _with(start, overrides)


def _from_file(path: str) -> Target:
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"target {path!r}: cannot read the file: {error}") from error
    return Target.from_toml(text, path)


def _preset(base: str) -> Target:
    if base not in PRESETS:
        raise InputError(f"target: base {base!r}; need one of {_preset_names()}")
    return PRESETS[base]


def _preset_names() -> str:
    return ", ".join(PRESETS)


def _value_of(text: str) -> object:
    """A number as TOML writes it, or the text itself."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
