"""What work costs on one tile, in cycles of its clock.

Every price takes integers or NumPy arrays of candidates, broadcast together, and returns an
array. Sizes are those of the busiest tile. The constants are the target's; the formulas are those
of poplibs (commit 7eac0f26), as each docstring says. Data types are named as NumPy and ml_dtypes
name them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import ceil

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .target import ConvUnits, Target

Cycles = NDArray[np.int64]
FloatCycles = NDArray[np.float64]

METHODS = ("amp", "slic", "mac", "vmac", "outer", "swapped")
"""The ways to contract. swapped: amp with its operands in each other's place."""

SUPERVISED = frozenset(("amp", "slic", "swapped"))
"""Methods whose codelet is one vertex a tile and starts the workers itself."""

# Kernel rows whose weights the nx1 vertex can hold in the units at once.
AMP_HEIGHTS = (1, 2, 4)


def exchange_cycles(received_bytes: ArrayLike, sent_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles for the tile that receives or sends most in an exchange, its sync not counted.

    Sending and receiving overlap. An exchange of anything waits for the farthest sender; beyond
    that there is no distance, congestion or message overhead.
    Source: poplibs lib/poplin/ExchangeEstimator.hpp, slowed to the rate that T10 measured; the
    routes are those of ipu-stack.
    """
    receiving, sending = _exchange_rates(target)
    most = np.maximum(_array(received_bytes) / receiving, _array(sent_bytes) / sending)
    most = np.ceil(most).astype(np.int64)
    return np.where(most > 0, most + target.exchange.route_cycles, 0)


def exchange_cycles_of_one(received_bytes: float, sent_bytes: float, target: Target) -> int:
    """As exchange_cycles, of one tile alone: a tenth of the time of arrays of one number."""
    receiving, sending = _exchange_rates(target)
    most = ceil(max(int(received_bytes) / receiving, int(sent_bytes) / sending))
    return most + target.exchange.route_cycles if most > 0 else 0


def _exchange_rates(target: Target) -> tuple[float, float]:
    """Bytes a cycle that a tile receives, and that it sends."""
    exchange = target.exchange
    receiving = exchange.receive_bytes_per_cycle * exchange.efficiency
    return receiving, exchange.send_bytes_per_cycle * exchange.efficiency


def sync_cycles(target: Target) -> int:
    """Cycles for all tiles to meet, once a superstep."""
    return target.exchange.sync_cycles


# Contractions: field elements x input channels x output channels x kernel elements, by group.


def amp_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
    field_rows: ArrayLike = 1,
) -> FloatCycles:
    """Cycles of a contraction in the conv units; infinite where the machine has none for it.

    field: output elements of a channel, batch included. in_channels, out_channels: of one group,
    padded to the units' grains. kernel_elements: 1 takes the 1x1 vertex, more the nx1 vertex over
    a kernel taken as square. field_rows: runs that the field is stored in, for nx1.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getConvPartial1x1 and nx1. The 1x1 price
    is within 0.8 % of five measurements on Bow.
    """
    sizes = _together(field, in_channels, out_channels, kernel_elements, conv_groups, field_rows)
    units = target.conv_units(dtype_name, partials_name)
    if units is None:
        return np.full(sizes[0].shape, np.inf)
    field_, in_, out, kernel, groups, rows = sizes
    flat = kernel == 1
    one = many = np.zeros_like(kernel)
    if flat.any():
        one = _amp_1x1_cycles(field_, in_, out, groups, units, target)
    if not flat.all():
        many = _amp_nx1_cycles(field_, in_, out, kernel, groups, rows, units, partials_name, target)
    return np.where(flat, one, many).astype(np.float64) + target.amp.return_cycles


def swapped_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
) -> FloatCycles:
    """Cycles of a product in the conv units that keep its first operand and stream the second.

    Sizes as in `amp_cycles`. A contraction with a kernel cannot be turned round: infinite.
    """
    flat = _array(kernel_elements) == 1
    if not flat.any():
        every = _together(field, in_channels, out_channels, kernel_elements, conv_groups)
        return np.full(every[0].shape, np.inf)
    turned = amp_cycles(
        out_channels,
        in_channels,
        field,
        kernel_elements,
        conv_groups,
        dtype_name,
        partials_name,
        target,
    )
    return np.where(flat, turned, np.inf)


def _amp_1x1_cycles(
    field: Cycles, in_: Cycles, out: Cycles, groups: Cycles, units: ConvUnits, target: Target
) -> Cycles:
    amp = target.amp
    in_groups, out_groups = _ceil(in_, units.in_grain), _ceil(out, units.units)
    load = _coefficient_load_cycles(units, target)
    adding = _amp_workers_cycles(field, units, target, zeroing=0)
    zeroing = _amp_workers_cycles(field, units, target, zeroing=1)
    restore = target.workers * (
        units.retained_cycles + units.restore_cycles * (in_groups * groups - 1)
    )
    later = amp.in_group_cycles + out_groups * (
        amp.out_group_cycles + amp.pass_cycles + load + adding
    )
    first = amp.first_in_group_cycles + out_groups * (
        amp.out_group_cycles + amp.pass_cycles + load + zeroing
    )
    return (
        amp.supervisor_cycles
        + restore
        + groups * (amp.group_cycles + (in_groups - 1) * later + first)
    )


def amp_pass_cycles(field: ArrayLike, units: ConvUnits, target: Target) -> Cycles:
    """Cycles of one pass of the 1x1 vertex: weights are put into the units, a field streamed past
    them, and added to partials."""
    amp = target.amp
    start = amp.out_group_cycles + amp.pass_cycles + _coefficient_load_cycles(units, target)
    return start + _amp_workers_cycles(_array(field), units, target, zeroing=0)


def _coefficient_load_cycles(units: ConvUnits, target: Target) -> int:
    """Cycles to fill the units with weights, once a pass."""
    held = units.units * units.weight_bytes_per_unit
    return -(-held // target.amp.coefficient_load_bytes_per_cycle)


def _amp_workers_cycles(field: Cycles, units: ConvUnits, target: Target, *, zeroing: int) -> Cycles:
    """Supervisor cycles until the last worker is through its share of the field.

    zeroing: 1 where partials start here, 0 where they are added to.
    """

    def worker_cycles(elements: Cycles) -> Cycles:
        table = np.array(
            [units.worker_cycles_for_0, units.worker_cycles_for_1, units.worker_cycles_for_2]
        )
        line = units.worker_cycles_for_3 + (elements - 3) * units.worker_cycles_per_element
        base = np.where(elements < 3, table[np.minimum(elements, 2)], line)
        started = units.zero_cycles + units.zero_cycles_per_element * elements
        return base + np.where(zeroing, started, units.accumulate_cycles) - units.retained_cycles

    most = target.workers * worker_cycles(_ceil(field, target.workers))
    least = np.where(
        field < target.workers, 0, target.workers * worker_cycles(field // target.workers)
    )
    return np.maximum(most, least + target.amp.tag_cycles)


def _amp_nx1_cycles(
    field: Cycles,
    in_: Cycles,
    out: Cycles,
    kernel: Cycles,
    groups: Cycles,
    rows: Cycles,
    units: ConvUnits,
    partials_name: str,
    target: Target,
) -> Cycles:
    amp = target.amp
    workers = target.workers
    out_groups = _ceil(out, units.units)
    kernel_rows = np.ceil(np.sqrt(kernel)).astype(np.int64)
    kernel_columns = _ceil(kernel, np.maximum(kernel_rows, 1))
    load = _coefficient_load_cycles(units, target)

    def share_cycles(elements: Cycles) -> Cycles:
        """One worker's cycles: its elements lie in so many runs."""
        runs = np.maximum(_ceil(rows, workers), 1)
        streamed = np.maximum(_ceil(elements, runs) - 3, 0) * units.worker_cycles_per_element
        return amp.kernel_worker_cycles + runs * (units.kernel_row_cycles + streamed)

    most = workers * share_cycles(_ceil(field, workers))
    least = np.where(field < workers, 0, workers * share_cycles(field // workers))
    inner = np.maximum(most, least + amp.kernel_tag_cycles)
    # Zeroing writes an output group's partials a vector at a time.
    partial_bytes = field * units.units * _element_bytes(partials_name)
    zero = amp.kernel_zero_cycles + _ceil(partial_bytes, target.vector.vector_bytes)
    best = np.full(field.shape, np.iinfo(np.int64).max)
    for height, weights_cycles in zip(
        AMP_HEIGHTS, (amp.height_1_cycles, amp.height_2_cycles, amp.height_4_cycles), strict=True
    ):
        in_groups = _ceil(in_, max(units.in_grain // height, 1))
        element = amp.kernel_inner_cycles + (
            load + weights_cycles + amp.kernel_pass_cycles + workers + inner
        )
        row = amp.kernel_outer_cycles + kernel_columns * element
        kernel_cycles = _ceil(kernel_rows, height) * row
        group = amp.kernel_group_cycles + in_groups * (
            amp.kernel_in_group_cycles + out_groups * (amp.kernel_out_group_cycles + kernel_cycles)
        )
        total = (
            amp.kernel_supervisor_cycles
            + workers * amp.kernel_start_workers_cycles
            + groups * (out_groups * zero + group)
        )
        best = np.minimum(best, total)
    return best


def slic_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
    field_rows: ArrayLike = 1,
    stride: int = 1,
) -> FloatCycles:
    """Cycles of a contraction in the conv units, a window of kernel elements at once.

    Sizes as in `amp_cycles`. Four channels of a group, or of as many groups as make four, are done
    together: more of them are assumed to be further passes. stride: of the window along a row.
    Infinite for any type but 16-bit floats, which the units alone have such a mode for, and for
    strides but 1 and 2.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, SLIC 1x4.
    """
    field_, in_, out, kernel, groups, rows = _together(
        field, in_channels, out_channels, kernel_elements, conv_groups, field_rows
    )
    units = target.conv_units(dtype_name, partials_name)
    unfit = _kind(dtype_name) != "float16" or _is_float8(dtype_name) or stride not in (1, 2)
    if units is None or unfit:
        return np.full(field_.shape, np.inf)
    slic, workers = target.slic, target.workers
    narrow = _kind(partials_name) == "float16"
    # Half the units with narrow partials have a codelet of their own.
    small = narrow and units.units < 16
    passes = 1 if units.units >= 16 else 2
    # As many groups as have four channels together, in powers of two.
    widest = np.maximum(in_, out)
    together = np.where(widest == 1, 4, np.where(widest == 2, 2, 1))
    blocks = _ceil(groups, together) * _ceil(out, slic.channels)
    kernel_rows = np.ceil(np.sqrt(kernel)).astype(np.int64)
    windows = kernel_rows * _ceil(_ceil(kernel, np.maximum(kernel_rows, 1)), slic.window)
    windows = windows * _ceil(in_, slic.channels)

    runs = np.maximum(_ceil(rows, workers), 1)
    length = _ceil(_ceil(field_, workers), runs)

    def row_cycles(*, zeroing: bool) -> Cycles:
        if stride == 2:
            few = np.where(length == 1, slic.single_row_cycles, slic.strided_pair_cycles)
            many = slic.row_cycles + 2 * (length - slic.strided_pipelined_elements)
            shortest = slic.strided_pipelined_elements
        else:
            first = slic.zeroing_row_cycles + np.where(length > 1, length, 0)
            later = np.where(length == 1, slic.single_row_cycles, slic.few_row_cycles + length)
            few = first if zeroing else later
            many = slic.row_cycles + (length - slic.pipelined_elements)
            many = many + (slic.small_row_cycles if small and not zeroing else 0)
            shortest = slic.pipelined_elements + small
        cycles = np.where(length < shortest, few, many)
        cycles = cycles if narrow else cycles - 1
        start = slic.small_run_cycles if small else slic.run_cycles
        return start + zeroing + (0 if narrow else slic.wide_run_cycles) + passes * cycles

    def inner(*, zeroing: bool) -> Cycles:
        worker = slic.worker_cycles + runs * row_cycles(zeroing=zeroing) + (2 if small else 0)
        merging = slic.merge_cycles + 2 * field_ if small and zeroing else 0
        return workers * worker + merging

    aligned = slic.aligned_weights_cycles
    each = np.where(together == 2, slic.pair_weights_cycles, slic.single_weights_cycles)
    arranged = slic.arranged_weights_cycles + workers * each
    weights = slic.weights_cycles + np.where(together == 1, aligned, arranged)
    body = weights + (slic.small_window_cycles if small else slic.window_cycles)
    block = slic.small_block_cycles if small else slic.block_cycles
    repeat = block + windows * body + _branches(windows, target)
    repeat = repeat + inner(zeroing=True) + (windows - 1) * inner(zeroing=False)
    start = slic.small_supervisor_cycles if small else slic.supervisor_cycles
    total = start + blocks * repeat + _branches(blocks, target) + target.amp.return_cycles
    return total.astype(np.float64)


def _branches(turns: Cycles, target: Target) -> Cycles:
    """Cycles of the branches of a supervisor's loop: all but the last one are taken."""
    return target.slic.taken_branch_cycles * (turns - 1) + 1


def mac_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
) -> FloatCycles:
    """Cycles of a contraction as dot products over the input channels, on the workers.

    Sizes as in `amp_cycles`; input channels are padded to a vector. 16-bit partials are made two
    output channels at a time. Integers go one product at a time, at an assumed rate. Infinite for
    8-bit floats on a machine that has no units for them.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getConvPartialHorizontalMac.
    """
    mac, workers = target.mac, target.workers
    field_, in_, out, kernel, groups = _together(
        field, in_channels, out_channels, kernel_elements, conv_groups
    )
    if _lacks(dtype_name, target):
        return np.full(field_.shape, np.inf)
    kind = _kind(dtype_name)
    if kind == "int":
        dots = out * in_ * mac.integer_cycles_per_mac
    else:
        vectors = _ceil(in_, _vector_elements(dtype_name, target))
        narrow = _kind(partials_name) == "float16"
        start = mac.narrow_dot_cycles if narrow else mac.wide_dot_cycles
        dots = _ceil(out, 2 if narrow else 1) * (start + vectors * (2 if narrow else 1))
    elements = _ceil(field_, workers)
    flat = kernel == 1
    call = np.where(flat, mac.flat_kernel_cycles, mac.kernel_cycles)
    worker = mac.worker_cycles + kernel * (call + elements * (mac.element_cycles + dots))
    supervisor = (
        mac.float16_supervisor_cycles if kind == "float16" else mac.float32_supervisor_cycles
    )
    group = mac.group_cycles + mac.in_group_cycles + mac.out_group_cycles + workers * worker
    total = supervisor - np.where(flat, mac.flat_saved_cycles, 0) + groups * group
    return total.astype(np.float64)


def vmac_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
) -> FloatCycles:
    """Cycles of a depth-wise contraction, vectors running across its groups.

    Infinite unless each group has one channel in and out and the type is a 16-bit float. Each
    worker has partials of its own, which are set to zero before and added up after.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, vertical MAC.
    """
    mac, workers = target.mac, target.workers
    field_, in_, out, kernel, groups = _together(
        field, in_channels, out_channels, kernel_elements, conv_groups
    )
    if _kind(dtype_name) != "float16" or _lacks(dtype_name, target):
        return np.full(field_.shape, np.inf)
    narrow = _kind(partials_name) == "float16"
    if narrow:
        across, start = mac.across_groups, mac.across_worker_cycles
        element = mac.across_element_cycles + mac.across_cycles * (kernel - 1)
    else:
        across, start = mac.across_groups // 2, mac.wide_across_worker_cycles
        element = mac.wide_across_element_cycles + mac.wide_across_cycles * (kernel - 1)
    blocks, share = _ceil(groups, across), _ceil(field_, workers)
    inner = workers * (start + share * element)
    vector = target.vector.vector_bytes // _element_bytes(partials_name)
    zeroing = mac.across_zero_cycles + _ceil(field_ * across, vector)
    merged = mac.across_merge_element_cycles + (workers - 1)
    adding = mac.across_merge_cycles + share * merged
    if not narrow:
        # Two loads where one does, and two cycles more to store: 9 + 2 for each other worker.
        adding = adding + share * (2 + workers - 1) - 1
    block = mac.across_block_cycles + zeroing + inner + adding
    cycles = mac.across_supervisor_cycles + blocks * block
    return np.where((in_ == 1) & (out == 1), cycles, np.inf)


def outer_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
) -> FloatCycles:
    """Cycles of an outer product: a contraction over one element, shared among the workers.

    Sizes as in `amp_cycles`. Infinite where more than one element is added up, and for integers.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getOuterProductCycleEstimate.
    """
    del partials_name
    outer, workers = target.outer, target.workers
    field_, in_, out, kernel, groups = _together(
        field, in_channels, out_channels, kernel_elements, conv_groups
    )
    kind = _kind(dtype_name)
    if kind == "int" or _lacks(dtype_name, target):
        return np.full(field_.shape, np.inf)
    width = _vector_elements(dtype_name, target)
    # The fast loop is three vectors deep, and works on whole vectors alone.
    fast = (out >= 3 * width) & (out % width == 0)
    narrow = kind == "float16"
    slow = outer.float16_slow_half_cycles if narrow else outer.float32_slow_half_cycles
    row = np.where(
        fast, outer.fast_row_cycles + out // width - 3, outer.slow_row_cycles + out * slow // 2
    )
    group = (outer.float16_group_cycles if narrow else outer.float32_group_cycles) + (
        _ceil(field_, workers) * row
    )
    cycles = workers * (outer.worker_cycles + groups * group)
    return np.where((in_ == 1) & (kernel == 1), cycles, np.inf)


def contraction_cycles(
    field: ArrayLike,
    in_channels: ArrayLike,
    out_channels: ArrayLike,
    kernel_elements: ArrayLike,
    conv_groups: ArrayLike,
    dtype_name: str,
    partials_name: str,
    target: Target,
    field_rows: ArrayLike = 1,
    stride: int = 1,
    methods: Sequence[str] = METHODS,
) -> FloatCycles:
    """Cycles of a contraction by some methods, in their order: (methods, ...).

    Sizes as in `amp_cycles`, stride as in `slic_cycles`; infinite for methods that are not for this
    contraction. methods: some of METHODS.
    """
    sizes = field, in_channels, out_channels, kernel_elements, conv_groups
    types = dtype_name, partials_name, target
    price: dict[str, Callable[..., FloatCycles]] = {
        "amp": partial(amp_cycles, field_rows=field_rows),
        "slic": partial(slic_cycles, field_rows=field_rows, stride=stride),
        "mac": mac_cycles,
        "vmac": vmac_cycles,
        "outer": outer_cycles,
        "swapped": swapped_cycles,
    }
    return np.stack(np.broadcast_arrays(*(price[each](*sizes, *types) for each in methods)))


# Element-wise work.


@dataclass(frozen=True)
class Loop:
    """The inner loop of an element-wise codelet: cycles a pass, elements a pass.

    elements: 0 for a full vector. counted: whether loads and stores are in the cycles.
    """

    cycles: int
    elements: int = 0
    counted: bool = False


def _vector(cycles: int) -> Loop:
    return Loop(cycles)


def _single(cycles: int) -> Loop:
    return Loop(cycles, elements=1)


def _unrolled(cycles: int, elements: int) -> Loop:
    return Loop(cycles, elements, counted=True)


# Cycles of a function nobody published for: a short library routine, an element at a time.
ASSUMED_LOOP = _single(20)

# Source: poplibs lib/popops/codelets/popopsCycleEstimators.hpp; relu, gelu, logaddexp from its
# non-linearity codelets. By function, the loops for 32-bit floats, 16-bit floats and integers;
# None: not published. sin, cos and tan are published for a whole turn and depend on the data.
LOOPS: dict[str, tuple[Loop | None, Loop | None, Loop | None]] = {
    "identity": (_vector(1), _vector(1), _vector(1)),
    "cast": (_vector(1), _vector(1), _single(1)),
    "abs": (_single(1), _single(1), _single(2)),
    "acos": (_single(102), _single(102), None),
    "add": (_vector(1), _vector(1), _unrolled(7, 1)),
    "and": (None, None, _unrolled(49, 4)),
    "asin": (_single(102), _single(102), None),
    "atan2": (_unrolled(272, 2), _unrolled(578, 4), None),
    "bitwise_and": (None, None, _unrolled(7, 1)),
    "bitwise_not": (None, None, _vector(1)),
    "bitwise_or": (None, None, _unrolled(7, 1)),
    "bitwise_xor": (None, None, _unrolled(7, 1)),
    "ceil": (_vector(2), _vector(2), None),
    "cos": (_single(2300), _single(2300), None),
    "div": (_unrolled(10, 2), _unrolled(21, 4), _unrolled(277, 1)),
    "equal": (_unrolled(14, 4), _unrolled(9, 4), _unrolled(29, 2)),
    "exp": (_vector(2), _vector(2), None),
    "expm1": (_single(4), _vector(5), None),
    "floor": (_vector(2), _vector(2), None),
    "gelu": (_vector(10), _vector(5), None),
    "greater": (_unrolled(14, 4), _unrolled(9, 4), _unrolled(30, 2)),
    "greater_equal": (_unrolled(14, 4), _unrolled(9, 4), _unrolled(31, 2)),
    "is_inf": (_vector(3), _vector(5), None),
    "is_nan": (_vector(3), _vector(3), None),
    "less": (_unrolled(14, 4), _unrolled(9, 4), _unrolled(30, 2)),
    "less_equal": (_unrolled(14, 4), _unrolled(9, 4), _unrolled(31, 2)),
    "log": (_vector(60), _vector(15), None),
    "log1p": (_vector(180), _vector(180), None),
    "logaddexp": (_vector(23), _vector(13), None),
    "max": (_unrolled(4, 2), _unrolled(4, 4), _unrolled(7, 1)),
    "min": (_unrolled(4, 2), _unrolled(4, 4), _unrolled(7, 1)),
    "mod": (_unrolled(133, 2), _unrolled(300, 4), _unrolled(292, 1)),
    "mul": (_vector(1), _vector(1), _unrolled(7, 1)),
    "neg": (_vector(1), _vector(1), _single(2)),
    "not": (None, None, _single(17)),
    "not_equal": (_unrolled(20, 4), _unrolled(11, 4), _unrolled(29, 2)),
    "or": (None, None, _unrolled(23, 4)),
    "pow": (_unrolled(312, 1), _unrolled(325, 1), None),
    "reciprocal": (_vector(5), _vector(15), None),
    "relu": (_vector(1), _vector(1), None),
    "round": (_vector(2), _vector(2), None),
    "rsqrt": (_single(1), _vector(3), None),
    "shift_left": (None, None, _unrolled(7, 1)),
    "shift_right": (None, None, _unrolled(7, 1)),
    "sigmoid": (_vector(5), _vector(2), None),
    "sign": (_vector(5), _vector(5), _single(5)),
    "sin": (_single(2300), _single(2300), None),
    "sqrt": (_single(23), _single(23), _single(110)),
    "square": (_vector(1), _vector(1), _vector(1)),
    "sub": (_vector(1), _vector(1), _unrolled(7, 1)),
    "tan": (_single(3900), _single(3900), None),
    "tanh": (_vector(5), _vector(1), None),
}


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

    operands: how many tensors it reads; each past the second costs one more load a loop.
    function: a key of LOOPS, any other being charged as ASSUMED_LOOP; or the loop of a codelet.
    in_place: whether the result takes the place of the first operand.
    Source: poplibs lib/popops/PerformanceEstimation.cpp and popopsCycleEstimators.hpp. A measured
    float32 addition is met to 2.2 % (abele bench fidelity, family vector).
    """
    vector = target.vector
    kind = _kind(dtype_name)
    loop, width = _loop(function, dtype_name, target)
    cycles = loop.cycles + max(operands - 2, 0)
    if not loop.counted:
        cycles += _loop_overhead(operands, target)
    start = vector.float16_worker_cycles if kind == "float16" else vector.float32_worker_cycles
    if in_place:
        start = vector.in_place_worker_cycles
    count = _array(elements)
    loops = _ceil(_ceil(count, target.workers), width)
    total = vector.supervisor_cycles + target.workers * (start + loops * cycles)
    return np.where(count > 0, total, 0)


def scaled_add_cycles(elements: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles of a + scale * b over a block of floats, its vectors shared among the workers.

    Integers go through the loops of two functions, one after the other in the same codelet.
    Source: poplibs lib/popops/codelets/popopsCycleEstimators, ScaledAddSupervisor. Two measured
    float32 blocks are met to 2.2 % (abele bench fidelity, family vector).
    """
    vector, workers = target.vector, target.workers
    count = _array(elements)
    if _kind(dtype_name) == "int":
        first = elementwise_cycles(count, 1, "mul", dtype_name, target)
        return first + following_cycles(count, 2, "add", dtype_name, target)
    width = _vector_elements(dtype_name, target)
    loops = np.maximum(_ceil(_ceil(count, width), workers) - 1, 0)
    worker = vector.scaled_add_worker_cycles + loops * vector.scaled_add_loop_cycles
    rest = np.where(count % width > 0, vector.scaled_add_rest_cycles, 0)
    total = vector.scaled_add_supervisor_cycles + rest + workers * worker
    return np.where(count > 0, total, 0)


def streamed_add_cycles(elements: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles of a + scale * b where all three stream through memory elements of their own.

    A vector a cycle: two loads, a store and the sum are one instruction pair, 24 bytes a cycle.
    Source: the instruction ld2xst64pace, and simehaa/IPU STREAMTriad/codelets.cpp.
    """
    vector, workers = target.vector, target.workers
    count = _array(elements)
    loops = _ceil(_ceil(count, workers), _vector_elements(dtype_name, target))
    worker = vector.streamed_worker_cycles + loops * vector.streamed_loop_cycles
    return np.where(count > 0, vector.supervisor_cycles + workers * worker, 0)


def compiled_loop(loads: int, arithmetic: int, stores: int, vector: int, target: Target) -> Loop:
    """The inner loop of a codelet that a compiler made of a plain loop, one instruction a cycle.

    loads, arithmetic, stores: instructions for `vector` elements. Assumed: none are paired.
    """
    cycles = loads + arithmetic + stores + target.vector.compiled_loop_cycles
    return Loop(cycles, vector, counted=True)


def following_cycles(
    elements: ArrayLike, operands: int, function: str, dtype_name: str, target: Target
) -> Cycles:
    """Cycles that one more function adds to the loop of another codelet, for every element.

    operands: as for elementwise_cycles, the value that the loop has already among them.
    Assumed, from the loops of elementwise_cycles: the value is in a register, so that its load,
    its store and the loop itself are not paid again, nor the start of workers; each further
    operand is one more load a loop. Loops published with loads and stores are charged without
    what other loops pay for those, but 1 cycle at least.
    """
    loop, width = _loop(function, dtype_name, target)
    cycles = loop.cycles
    if loop.counted:
        cycles = max(cycles - _loop_overhead(operands, target), 1)
    cycles += operands - 1
    loops = _ceil(_ceil(_array(elements), target.workers), width)
    return target.workers * loops * cycles


def _loop(function: str | Loop, dtype_name: str, target: Target) -> tuple[Loop, int]:
    """The inner loop of a function, and the elements that it passes at once."""
    if isinstance(function, Loop):
        loop = function
    else:
        column = ("float32", "float16", "int").index(_kind(dtype_name))
        loop = LOOPS.get(function, (None, None, None))[column] or ASSUMED_LOOP
    return loop, loop.elements or _vector_elements(dtype_name, target)


def _loop_overhead(operands: int, target: Target) -> int:
    """Cycles of a loop for its loads and its store, where the function's do not count them."""
    vector = target.vector
    return vector.unary_loop_cycles if operands < 2 else vector.binary_loop_cycles


def reduce_cycles(outputs: ArrayLike, depth: ArrayLike, dtype_name: str, target: Target) -> Cycles:
    """Cycles to reduce depth elements to each of the outputs: sums, extrema, pooling.

    Workers share the outputs, or the depth where that is cheaper, with one more reduction of the
    workers' results. Depth 1 is free: nothing is combined.
    Source: poplibs lib/popops/PerformanceEstimation.cpp, single contiguous input. Sharing the
    depth is priced by the same loop: assumed.
    """
    reduction, workers = target.reduction, target.workers
    outputs_, depth_ = _together(outputs, depth)
    if _kind(dtype_name) == "int":
        width, each = 1, reduction.integer_cycles_per_element
    else:
        width = _vector_elements(dtype_name, target) * reduction.accumulator_vectors
        each = reduction.cycles_per_element

    def by_outputs(count: Cycles, deep: Cycles) -> Cycles:
        loops = _ceil(_ceil(count, workers), width)
        worker = reduction.worker_cycles + loops * (each * deep + reduction.loop_cycles)
        return reduction.supervisor_cycles + workers * worker

    share = _ceil(_ceil(depth_, workers), width)
    worker = reduction.worker_cycles + outputs_ * (each * share + reduction.loop_cycles)
    by_depth = reduction.supervisor_cycles + workers * worker
    by_depth = by_depth + by_outputs(outputs_, np.full_like(depth_, workers * width))
    total = np.minimum(by_outputs(outputs_, depth_), by_depth)
    return np.where((depth_ > 1) & (outputs_ > 0), total, 0)


# Moving bytes inside a tile.


def copy_cycles(copied_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to copy contiguous bytes inside a tile, in one call.

    Source: Target::getMemcpyBytesPerCycle and the call measured in ipu-stack.
    """
    count = _array(copied_bytes)
    cycles = target.copy.call_cycles + _ceil(count, target.copy.memcpy_bytes_per_cycle)
    return np.where(count > 0, cycles, 0)


def rearrange_cycles(moved_bytes: ArrayLike, contiguous_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to permute bytes inside a tile, contiguous_bytes at a time.

    Runs of 8 bytes and more, of 4, and shorter ones move at three rates.
    Source: a regression in poplibs on rearrangements.
    """
    copy = target.copy
    moved, run = _together(moved_bytes, contiguous_bytes)
    by_four = np.where(
        run >= 4, copy.rearrange_cycles_per_byte_of_4, copy.rearrange_cycles_per_byte_of_2
    )
    rate = np.where(run >= 8, copy.rearrange_cycles_per_byte_of_8, by_four)
    cycles = copy.rearrange_call_cycles + np.ceil(moved * rate).astype(np.int64)
    return np.where(moved > 0, cycles, 0)


def staging_cycles(
    moved_bytes: ArrayLike, runs: ArrayLike, run_bytes: ArrayLike, target: Target
) -> Cycles:
    """Cycles to gather runs that do not lie together before an exchange, or scatter them after it.

    runs: how many; run_bytes: of each. Bytes move as exchange words, the smallest thing that a
    message is made of, or in smaller pieces where runs are shorter.
    Source: as rearrange_cycles; what a run costs beside its bytes is assumed, and that the target's
    staging workers share all of it. Four measured phases on Mk1 are met to 10 % (abele bench
    fidelity, family bsp).
    """
    piece = np.minimum(_array(run_bytes), target.exchange.word_bytes)
    count, copy = _array(runs), target.copy
    moved = np.where(count > 0, _array(moved_bytes), 0)
    work = rearrange_cycles(moved, piece, target) - copy.rearrange_call_cycles
    work = work + count * copy.staged_run_cycles
    return np.where(moved > 0, copy.rearrange_call_cycles + _ceil(work, copy.staging_workers), 0)


def fill_cycles(filled_bytes: ArrayLike, target: Target) -> Cycles:
    """Cycles to fill contiguous bytes with one value, shared among the workers.

    Source: poplibs lib/popops/PerformanceEstimation.cpp, fill.
    """
    vector, workers = target.vector, target.workers
    count = _array(filled_bytes)
    worker = vector.fill_worker_cycles + _ceil(_ceil(count, workers), vector.vector_bytes)
    return np.where(count > 0, vector.fill_supervisor_cycles + workers * worker, 0)


# Names of data types.


def _kind(dtype_name: str) -> str:
    """Which constants a type uses: "float32", "float16" or "int". float64 is charged twofold."""
    if dtype_name.startswith(("bfloat16", "float16", "float8")):
        return "float16"
    return "float32" if dtype_name.startswith("float") else "int"


def _is_float8(dtype_name: str) -> bool:
    return dtype_name.startswith("float8")


def _lacks(dtype_name: str, target: Target) -> bool:
    """Whether a machine has no instructions for a type: 8-bit floats without units for them."""
    return _is_float8(dtype_name) and target.conv_units(dtype_name, "float16") is None


def _element_bytes(dtype_name: str) -> int:
    return {"float32": 4, "float16": 2, "int": 4}[_kind(dtype_name)]


def _vector_elements(dtype_name: str, target: Target) -> int:
    """Elements of one vector. Eight-bit floats are widened to 16 bits: assumed."""
    width = target.vector.vector_bytes // _element_bytes(dtype_name)
    return max(width // 2 if dtype_name == "float64" else width, 1)


def _array(value: ArrayLike) -> Cycles:
    return np.asarray(value, dtype=np.int64)


def _together(*values: ArrayLike) -> tuple[Cycles, ...]:
    """Values as whole numbers, of one shape."""
    return np.broadcast_arrays(*map(_array, values))


def _ceil(value: Cycles, divisor: ArrayLike) -> Cycles:
    return -(-value // _array(divisor))
