"""Cycles of a contraction that the workers compute with vector instructions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...target import Target
from ...target.dtype_kinds import element_bytes, kind_of, lacks, vector_elements
from ..whole_numbers import divided_up
from .contraction import Contraction

FloatCycles = NDArray[np.float64]


def mac_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of a contraction as dot products over the input channels, on the workers.

    Input channels are padded to a vector. 16-bit partials are computed two output channels at a
    time. Integers are multiplied one at a time, at an assumed rate. Infinite for 8-bit floats on a
    machine that has no units for them.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getConvPartialHorizontalMac.
    """
    mac, workers = target.mac, target.workers
    field, kernel, groups = contraction.field, contraction.kernel_elements, contraction.conv_groups
    in_, out = contraction.in_channels, contraction.out_channels
    if lacks(contraction.dtype_name, target):
        return np.full(contraction.shape, np.inf)
    kind = kind_of(contraction.dtype_name)
    if kind == "int":
        dots = out * in_ * mac.integer_cycles_per_mac
    else:
        vectors = divided_up(in_, vector_elements(contraction.dtype_name, target))
        narrow = kind_of(contraction.partials_name) == "float16"
        start = mac.narrow_dot_cycles if narrow else mac.wide_dot_cycles
        dots = divided_up(out, 2 if narrow else 1) * (start + vectors * (2 if narrow else 1))
    elements = divided_up(field, workers)
    flat = kernel == 1
    call = np.where(flat, mac.flat_kernel_cycles, mac.kernel_cycles)
    worker = mac.worker_cycles + kernel * (call + elements * (mac.element_cycles + dots))
    supervisor = (
        mac.float16_supervisor_cycles if kind == "float16" else mac.float32_supervisor_cycles
    )
    group = mac.group_cycles + mac.in_group_cycles + mac.out_group_cycles + workers * worker
    total = supervisor - np.where(flat, mac.flat_saved_cycles, 0) + groups * group
    return total.astype(np.float64)


def vmac_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of a depth-wise contraction, whose vectors run across its groups.

    Each worker has partials of its own, which are set to zero before and added up afterwards.
    Infinite unless each group has one channel in and out and the dtype is a 16-bit float.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, vertical MAC.
    """
    mac, workers = target.mac, target.workers
    field, kernel, groups = contraction.field, contraction.kernel_elements, contraction.conv_groups
    in_, out = contraction.in_channels, contraction.out_channels
    if kind_of(contraction.dtype_name) != "float16" or lacks(contraction.dtype_name, target):
        return np.full(contraction.shape, np.inf)
    narrow = kind_of(contraction.partials_name) == "float16"
    if narrow:
        across, start = mac.across_groups, mac.across_worker_cycles
        element = mac.across_element_cycles + mac.across_cycles * (kernel - 1)
    else:
        across, start = mac.across_groups // 2, mac.wide_across_worker_cycles
        element = mac.wide_across_element_cycles + mac.wide_across_cycles * (kernel - 1)
    blocks, share = divided_up(groups, across), divided_up(field, workers)
    inner = workers * (start + share * element)
    vector = target.vector.vector_bytes // element_bytes(contraction.partials_name)
    zeroing = mac.across_zero_cycles + divided_up(field * across, vector)
    merged = mac.across_merge_element_cycles + (workers - 1)
    adding = mac.across_merge_cycles + share * merged
    if not narrow:
        # Wide partials take two loads instead of one, and two cycles more to store: 9 + 2 cycles
        # for each other worker.
        adding = adding + share * (2 + workers - 1) - 1
    block = mac.across_block_cycles + zeroing + inner + adding
    cycles = mac.across_supervisor_cycles + blocks * block
    return np.where((in_ == 1) & (out == 1), cycles, np.inf)


def outer_cycles(contraction: Contraction, target: Target) -> FloatCycles:
    """Cycles of an outer product: a contraction over one element, shared among the workers.

    Infinite if more than one element is summed, and for integers.
    Source: poplibs lib/poplin/PerformanceEstimation.hpp, getOuterProductCycleEstimate.
    """
    outer, workers = target.outer, target.workers
    field, kernel, groups = contraction.field, contraction.kernel_elements, contraction.conv_groups
    in_, out = contraction.in_channels, contraction.out_channels
    kind = kind_of(contraction.dtype_name)
    if kind == "int" or lacks(contraction.dtype_name, target):
        return np.full(contraction.shape, np.inf)
    width = vector_elements(contraction.dtype_name, target)
    # The fast loop is three vectors deep, and takes whole vectors only.
    fast = (out >= 3 * width) & (out % width == 0)
    narrow = kind == "float16"
    slow = outer.float16_slow_half_cycles if narrow else outer.float32_slow_half_cycles
    row = np.where(
        fast, outer.fast_row_cycles + out // width - 3, outer.slow_row_cycles + out * slow // 2
    )
    group = (outer.float16_group_cycles if narrow else outer.float32_group_cycles) + (
        divided_up(field, workers) * row
    )
    cycles = workers * (outer.worker_cycles + groups * group)
    return np.where((in_ == 1) & (kernel == 1), cycles, np.inf)
