"""Cycles of a contraction in the conv units that slide a short window along each row."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ....ir.support.arrays import Integers
from ...target import Target
from ...target.dtype_kinds import is_float8, kind_of
from ..whole_numbers import divided_up
from .contraction import Contraction

FloatCycles = NDArray[np.float64]


def slic_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of a contraction in the conv units, a window of kernel elements at once.

    Four channels of a group, or of as many groups as make four, are computed together. Assumed:
    more of them take further passes. Infinite for strides other than 1 and 2, and for all dtypes
    but 16-bit floats, the only ones for which the units have this mode.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, SLIC 1x4.
    """
    dtype_name, partials_name = contraction.dtype_name, contraction.partials_name
    units = target.conv_units(dtype_name, partials_name)
    stride = contraction.stride
    unfit = kind_of(dtype_name) != "float16" or is_float8(dtype_name) or stride not in (1, 2)
    if units is None or unfit:
        return np.full(contraction.shape, np.inf)
    field, kernel, rows = contraction.field, contraction.kernel_elements, contraction.field_rows
    in_, out, groups = contraction.in_channels, contraction.out_channels, contraction.conv_groups
    slic, workers = target.slic, target.workers
    narrow = kind_of(partials_name) == "float16"
    # With 8 units and narrow partials there is a codelet of its own.
    small = narrow and units.units < 16
    passes = 1 if units.units >= 16 else 2
    # As many groups as have four channels together, in powers of two.
    widest = np.maximum(in_, out)
    together = np.where(widest == 1, 4, np.where(widest == 2, 2, 1))
    blocks = divided_up(groups, together) * divided_up(out, slic.channels)
    kernel_rows = np.ceil(np.sqrt(kernel)).astype(np.int64)
    windows = kernel_rows * divided_up(divided_up(kernel, np.maximum(kernel_rows, 1)), slic.window)
    windows = windows * divided_up(in_, slic.channels)

    runs = np.maximum(divided_up(rows, workers), 1)
    length = divided_up(divided_up(field, workers), runs)

    def row_cycles(*, zeroing: bool) -> Integers:
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

    def inner(*, zeroing: bool) -> Integers:
        worker = slic.worker_cycles + runs * row_cycles(zeroing=zeroing) + (2 if small else 0)
        merging = slic.merge_cycles + 2 * field if small and zeroing else 0
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


def _branches(iterations: Integers, target: Target) -> Integers:
    """Cycles of the branches of a supervisor's loop: all but the last are taken."""
    return target.slic.taken_branch_cycles * (iterations - 1) + 1
