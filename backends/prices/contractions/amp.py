"""Cycles of a contraction in the conv units, which hold weights while a field streams past."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ....ir.support.arrays import Integers, integers
from ...target import ConvUnits, Target
from ...target.dtype_kinds import element_bytes
from ..whole_numbers import divided_up
from .contraction import Contraction

FloatCycles = NDArray[np.float64]

HEIGHTS = (1, 2, 4)
"""Kernel rows whose weights the nx1 vertex can hold in the units at once.

The target has the cycles of each: height_1_cycles, height_2_cycles, height_4_cycles.
"""


def amp_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of a contraction in the conv units; infinite if the machine has none for its dtypes.

    Channels are padded to the grains of the units. A kernel of one element takes the 1x1 vertex; a
    larger kernel takes the nx1 vertex, and is assumed to be square.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getConvPartial1x1 and nx1. The 1x1 price
    is within 0.8 % of five measurements on Bow.
    """
    units = target.conv_units(contraction.dtype_name, contraction.partials_name)
    if units is None:
        return np.full(contraction.shape, np.inf)
    flat = contraction.kernel_elements == 1
    one = many = np.zeros_like(contraction.field)
    if flat.any():
        one = _1x1_cycles(contraction, units, target)
    if not flat.all():
        many = _nx1_cycles(contraction, units, target)
    return np.where(flat, one, many).astype(np.float64) + target.amp.return_cycles


def swapped_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of a product in the conv units that hold its first operand and stream the second.

    Infinite for a kernel of more than one element, whose operands cannot change places.
    """
    flat = contraction.kernel_elements == 1
    if not flat.any():
        return np.full(contraction.shape, np.inf)
    return np.where(flat, amp_cycles(contraction.swapped(), target), np.inf)


def _1x1_cycles(contraction: Contraction, units: ConvUnits, target: Target) -> Integers:
    amp, field, groups = target.amp, contraction.field, contraction.conv_groups
    in_groups = divided_up(contraction.in_channels, units.in_grain)
    out_groups = divided_up(contraction.out_channels, units.units)
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


def amp_pass_cycles(field: ArrayLike, units: ConvUnits, target: Target) -> Integers:
    """Cycles of one pass of the 1x1 vertex.

    A pass puts weights into the units, streams a field past them and adds to partials.
    """
    amp = target.amp
    start = amp.out_group_cycles + amp.pass_cycles + _coefficient_load_cycles(units, target)
    return start + _amp_workers_cycles(integers(field), units, target, zeroing=0)


def _coefficient_load_cycles(units: ConvUnits, target: Target) -> int:
    """Cycles to fill the units with weights, once per pass."""
    held = units.units * units.weight_bytes_per_unit
    return -(-held // target.amp.coefficient_load_bytes_per_cycle)


def _amp_workers_cycles(
    field: Integers, units: ConvUnits, target: Target, *, zeroing: int
) -> Integers:
    """Supervisor cycles until the last worker has finished its share of the field.

    Args:
        zeroing: 1 if partials start here, 0 if they are added to.
    """

    def worker_cycles(elements: Integers) -> Integers:
        table = np.array(
            [units.worker_cycles_for_0, units.worker_cycles_for_1, units.worker_cycles_for_2]
        )
        line = units.worker_cycles_for_3 + (elements - 3) * units.worker_cycles_per_element
        base = np.where(elements < 3, table[np.minimum(elements, 2)], line)
        if zeroing:
            base = base + (units.zero_cycles + units.zero_cycles_per_element * elements)
        else:
            base = base + units.accumulate_cycles
        return base - units.retained_cycles

    most = target.workers * worker_cycles(divided_up(field, target.workers))
    least = np.where(
        field < target.workers, 0, target.workers * worker_cycles(field // target.workers)
    )
    return np.maximum(most, least + target.amp.tag_cycles)


def _nx1_cycles(contraction: Contraction, units: ConvUnits, target: Target) -> Integers:
    amp, workers = target.amp, target.workers
    field, kernel, rows = contraction.field, contraction.kernel_elements, contraction.field_rows
    out_groups = divided_up(contraction.out_channels, units.units)
    kernel_rows = np.ceil(np.sqrt(kernel)).astype(np.int64)
    kernel_columns = divided_up(kernel, np.maximum(kernel_rows, 1))
    load = _coefficient_load_cycles(units, target)

    def share_cycles(elements: Integers) -> Integers:
        """Cycles of one worker; its elements lie in as many runs as its share of the rows."""
        runs = np.maximum(divided_up(rows, workers), 1)
        streamed = np.maximum(divided_up(elements, runs) - 3, 0) * units.worker_cycles_per_element
        return amp.kernel_worker_cycles + runs * (units.kernel_row_cycles + streamed)

    most = workers * share_cycles(divided_up(field, workers))
    least = np.where(field < workers, 0, workers * share_cycles(field // workers))
    inner = np.maximum(most, least + amp.kernel_tag_cycles)
    # Zeroing writes an output group's partials a vector at a time.
    partial_bytes = field * units.units * element_bytes(contraction.partials_name)
    zero = amp.kernel_zero_cycles + divided_up(partial_bytes, target.vector.vector_bytes)
    best = np.full(field.shape, np.iinfo(np.int64).max)
    for height, weights_cycles in zip(
        HEIGHTS, (amp.height_1_cycles, amp.height_2_cycles, amp.height_4_cycles), strict=True
    ):
        in_groups = divided_up(contraction.in_channels, max(units.in_grain // height, 1))
        element = amp.kernel_inner_cycles + (
            load + weights_cycles + amp.kernel_pass_cycles + workers + inner
        )
        row = amp.kernel_outer_cycles + kernel_columns * element
        kernel_cycles = divided_up(kernel_rows, height) * row
        group = amp.kernel_group_cycles + in_groups * (
            amp.kernel_in_group_cycles + out_groups * (amp.kernel_out_group_cycles + kernel_cycles)
        )
        total = (
            amp.kernel_supervisor_cycles
            + workers * amp.kernel_start_workers_cycles
            + contraction.conv_groups * (out_groups * zero + group)
        )
        best = np.minimum(best, total)
    return best
