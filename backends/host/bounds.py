"""The ratio of errors to error bounds, computed by a kernel.

The kernel does the arithmetic of reference/merged.py, stages.py and compare.py in one pass over the
results, without arrays of bounds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from ...dialects.structured import FURTHER as FROM_OPERANDS
from ...dialects.structured import Stage
from ..codelets.calls import Array, address
from ..codelets.conversion import FLOAT32, FLOAT64, Doubles, float_limits
from ..codelets.scalar import scalar_function
from ..codelets.stamps import Table
from ..reference.merged import Merged, Merging
from ..reference.stages import is_whole_power, stage_factors
from .chains import OPERATIONS
from .kernels.tables import (
    ACTUAL,
    ACTUAL_BYTES,
    ACTUAL_LARGEST,
    BOUND_FACTOR,
    BOUND_FIELDS,
    BOUND_NUMBERS,
    BOUND_STEP_FIELDS,
    BOUND_STEPS,
    BY_CONSTANT,
    BY_ITSELF,
    BY_OPERAND,
    ERRORS,
    FURTHER,
    FURTHER_COUNT,
    FURTHER_OPERAND,
    GROWTH,
    HAS_SEVERAL,
    IS_DOUBLE,
    LARGEST_SUM,
    LINE,
    LOST,
    LOST_PER_SIZE,
    MERGED_BY,
    MORE_ADDRESS,
    MORE_COUNT,
    MORE_FIELDS,
    MORE_REPEATS,
    MULTIPLIED,
    NEVER_BELOW,
    NO_VALUE,
    NUMBERS_OF_BOUND,
    OWN_FACTOR,
    RESULT_LARGEST,
    RESULT_NORMAL,
    RESULT_ROUNDOFF,
    RESULT_SUBNORMAL,
    REVERSED,
    ROUNDOFF,
    ROUNDS_ONCE,
    SELECTED,
    SIZES_OF_TERMS,
    STAGE_COUNT,
    STAGE_FACTOR,
    STAGE_FIELDS,
    STAGE_OPERANDS,
    STAGE_POLES,
    STAGE_POSITIVE,
    STAGE_STEPS,
    STAGE_STEPS_END,
    STAGE_ULPS,
    STAGES,
    STEP_CODE,
    SUMMED,
    TINY,
    TINY_IN_ALL,
    VALUES,
)
from .load import kernels

JUDGED = (FLOAT32, FLOAT64)
"""The dtypes of results whose bounds the kernel computes."""

MERGED: Mapping[str | None, int] = {"sum": SUMMED, "prod": MULTIPLIED}
"""How the kernel treats merged values, by combiner; values of all other combiners are selected."""


BY: Mapping[float | str, int] = {"operand": BY_OPERAND, "itself": BY_ITSELF}
"""The code of a step's other operand, if that is neither a constant nor a parameter."""


def largest_ratio(merged: Merged, actual: Array) -> float | None:
    """The largest ratio of error to bound of actual results; None if the kernel cannot compute it.

    It equals that of worst_of, for the result's value and bound.
    """
    roles, parts = merged.roles, merged.parts
    if parts.size is None or parts.error is None or roles.function.boolean:
        return None
    dtypes = {roles.result_dtype, roles.final_dtype if roles.chain else actual.dtype, actual.dtype}
    if len(dtypes) > 1 or actual.dtype not in JUDGED or roles.along is not None:
        return None
    stages = _stages(roles.chain)
    if stages is None or actual.size == 0:
        return None
    by = MERGED.get(roles.combiner, SELECTED)
    value, size = _flat(parts.value), _flat(parts.size)
    # The errors of products in a sum are in units of their sizes.
    error = size if roles.is_contraction else _flat(parts.error)
    results = np.ascontiguousarray(actual).reshape(-1)
    assert len(results) == len(value)
    merging = Merging.of(roles, parts, merged.accumulator)
    numbers = _numbers(merged, merging, actual.dtype)
    further = [array for _, arrays in merged.stages for array in arrays]
    more, kept = _further(further, parts.value.shape)
    head = np.zeros(BOUND_FIELDS, np.int64)
    head[[VALUES, ACTUAL, ACTUAL_BYTES]] = address(value), address(results), results.itemsize
    head[[SIZES_OF_TERMS, ERRORS]] = address(size), address(error)
    lines, steps = stages
    head[[NUMBERS_OF_BOUND, STAGES, STAGE_COUNT]] = address(numbers), address(lines), len(lines)
    head[[BOUND_STEPS, FURTHER, FURTHER_COUNT]] = address(steps), address(more), len(more)
    head[[MERGED_BY, ROUNDS_ONCE, HAS_SEVERAL]] = by, roles.rounds_once, merging.several
    head[IS_DOUBLE] = actual.dtype == FLOAT64
    head[NEVER_BELOW] = roles.function.sensitivity is None
    kernel = kernels("bounds")
    head[STEP_CODE : STEP_CODE + len(kernel.CODES)] = kernel.CODES
    rows = kernel.ROWS_OF_VALUE * (1 + len(lines)) + kernel.FIRST_ROWS + len(more)
    room = np.empty(LINE + rows * kernel.BLOCK)
    bits = kernel.largest_ratio(address(head), len(results), address(room))
    del kept
    return float(np.int64(bits).view(np.float64))


def _flat(array: Array) -> Doubles:
    """An array of float64 as a contiguous one of one axis."""
    return np.ascontiguousarray(array, np.float64).reshape(-1)


def _numbers(merged: Merged, merging: Merging, dtype: np.dtype[Any]) -> Doubles:
    """The numeric fields of a bound's table.

    Args:
        dtype: of the actual results.
    """
    roles, limits = merged.roles, float_limits(merged.roles.result_dtype)
    numbers = np.zeros(BOUND_NUMBERS)
    numbers[[ROUNDOFF, TINY, GROWTH, LOST]] = merging.u, merging.tiny, merging.growth, merging.lost
    numbers[LARGEST_SUM] = merging.largest
    numbers[LOST_PER_SIZE] = merging.terms * (merging.tiny + merging.lost)
    numbers[TINY_IN_ALL] = merging.terms * merging.tiny
    numbers[[RESULT_ROUNDOFF, RESULT_SUBNORMAL]] = limits.roundoff, limits.smallest_subnormal
    numbers[[RESULT_NORMAL, RESULT_LARGEST]] = limits.smallest_normal, limits.largest
    numbers[BOUND_FACTOR] = roles.bound_factor
    numbers[[OWN_FACTOR, STAGE_FACTOR]] = stage_factors(roles.result_dtype)
    numbers[ACTUAL_LARGEST] = float_limits(dtype).largest
    return numbers


@lru_cache(maxsize=1024)
def _stages(chain: tuple[Stage, ...]) -> tuple[Table, Table] | None:
    """The tables of a chain's stages, and of the steps of their functions.

    None if the kernel lacks one of the functions.
    """
    stages: list[list[int]] = []
    steps: list[tuple[int, int, int]] = []
    further = 0
    for stage in chain:
        function = scalar_function(stage.function)
        is_plain = function.ends_decide and function.sensitivity is None and not function.meets
        if function.compiled is None or stage.element or not is_plain:
            return None
        reads: list[int] = []
        for k in stage.arguments(range(len(stages) + 1), [FROM_OPERANDS] * stage.extras):
            reads.append(FURTHER_OPERAND - further if k == FROM_OPERANDS else k)
            further += k == FROM_OPERANDS
        first, parameters = len(steps), iter(stage.parameters)
        for step in function.compiled:
            kind = BY.get(step.by, BY_CONSTANT)
            by = next(parameters) if step.by == "parameter" else step.by
            constant = _bits(by) if isinstance(by, float) else 0
            steps.append((OPERATIONS[step.opcode] + REVERSED * step.first, kind, constant))
        line = [0] * STAGE_FIELDS
        line[STAGE_OPERANDS : STAGE_OPERANDS + 2] = [*reads, NO_VALUE][:2]
        line[STAGE_STEPS], line[STAGE_STEPS_END] = first, len(steps)
        line[STAGE_ULPS] = _bits(function.ulps)
        line[STAGE_POLES] = sum(1 << k for k in function.poles)
        line[STAGE_POSITIVE] = sum(1 << k for k in function.positive) * (not is_whole_power(stage))
        stages.append(line)
    return (
        np.array(stages, np.int64).reshape(-1, STAGE_FIELDS),
        np.array(steps, np.int64).reshape(-1, BOUND_STEP_FIELDS),
    )


def _bits(number: float) -> int:
    """The bits of a float64 number as a signed integer."""
    return int(np.float64(number).view(np.int64))


def _further(arrays: Sequence[Array], shape: tuple[int, ...]) -> tuple[Table, list[Doubles]]:
    """The table of further operands, which broadcast to a shape, and the arrays of their
    elements."""
    more = np.zeros((len(arrays), MORE_FIELDS), np.int64)
    kept: list[Doubles] = []
    for line, array in zip(more, arrays, strict=True):
        varying = [d for d, n in enumerate(array.shape) if n > 1]
        begin, end = (varying[0], varying[-1] + 1) if varying else (0, 0)
        if array.shape[begin:end] != shape[begin:end]:
            # The operand repeats along an axis between others, so it must be copied.
            array = np.broadcast_to(array, shape)
            begin, end = 0, len(shape)
        elements = _flat(array)
        kept.append(elements)
        line[[MORE_ADDRESS, MORE_COUNT]] = address(elements), len(elements)
        line[MORE_REPEATS] = prod(shape[end:])
    return more, kept
