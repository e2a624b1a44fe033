"""The value of a structured operation in float64, and its error bound for a correct machine.

Integers and booleans are exact. The bound is that of one operation on the operands given, whatever
the order of its sums: the bound of merging its points (`merged.py`), plus that of its stages
(`stages.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...dialects.structured import Structure
from ...ir.support.number_kinds import is_floating
from ..codelets.conversion import Doubles
from .combiners import evaluate_combined
from .evaluation import Evaluation
from .gather import Array
from .merged import Merged
from .rounding import as_kind_of
from .stages import stage_value, stages_at

HALF = np.dtype(np.float16)
"""The dtype in which units add up products of 8-bit floats."""


def evaluate_structure(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    accumulator: np.dtype[Any] | None = None,
    result: int = 0,
) -> tuple[Array, Doubles]:
    """A result and its error bound, both of the result's shape.

    Raises ValueError if the operands do not fit the space, or the result is not covered.

    The result is float64, not rounded; int64, uint64 or bool if result_dtype is of that kind.

    Args:
        result: the index of the result.
        accumulator: the dtype in which sums and products are kept; by default the computing dtype,
            or that of the first operand if the body has narrow sums.
    """
    evaluation = _merging_evaluation(structure, operands, result_dtype, result)
    if evaluation is None:
        return _evaluated_otherwise(structure, operands, result_dtype, result_shape, result)
    with np.errstate(all="ignore"):
        parts = evaluation.in_sequence(evaluation.evaluate(bounded=True))
        stages = list(evaluation.stages())
    accumulator = accumulator or _accumulator(evaluation, structure, operands)
    merged = Merged(evaluation.roles, parts, accumulator, stages)
    value, bound = merged.bounded()
    return _shaped(value, result_shape), _shaped(bound, result_shape)


def merged_regions(
    structure: Structure, operands: Sequence[Array], result: Array
) -> Iterator[tuple[Array, Merged]] | None:
    """Regions of a result, each with the merged values there, before stages and rounding.

    Returns None where bounds do not follow from merged values: for operations with several results,
    and for bits seen as another type. Raises ValueError as evaluate_structure does.

    A result without elements has no region.

    Args:
        result: an actual result, in the viewed shape of its map.
    """
    if not result.size:
        # A map may have an empty axis that does not depend on any dimension.
        return iter(())
    if len(structure.space.results) > 1:
        return None
    evaluation = _merging_evaluation(structure, operands, result.dtype)
    if evaluation is None:
        return None
    accumulator = _accumulator(evaluation, structure, operands)
    return _merged(evaluation, accumulator, result)


def _accumulator(
    evaluation: Evaluation, structure: Structure, operands: Sequence[Array]
) -> np.dtype[Any]:
    """The narrowest dtype in which a correct machine may keep the sums."""
    body = structure.body
    if body.is_scaled_product:
        return HALF
    return evaluation.roles.computing if body.narrow is None else operands[0].dtype


def _merged(
    evaluation: Evaluation, accumulator: np.dtype[Any], result: Array
) -> Iterator[tuple[Array, Merged]]:
    """The regions of merged_regions."""
    roles = evaluation.roles
    actual = _shaped(result, roles.shape)
    with np.errstate(all="ignore"):
        stages = list(evaluation.stages())
        for region in evaluation.regions():
            place = roles.place(region)[:-1]
            parts = evaluation.in_sequence(evaluation.evaluate(bounded=True, region=region))
            merged = Merged(roles, parts, accumulator, stages_at(stages, place))
            yield actual[(*place, ...)], merged


def _merging_evaluation(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    number: int = 0,
) -> Evaluation | None:
    """The evaluation of a result whose bound follows from merged values; None for any other."""
    if structure.body.member_kinds or structure.body.function == "bitcast":
        return None
    return Evaluation.of(structure, operands, np.dtype(result_dtype), number)


def _evaluated_otherwise(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    result: int,
) -> tuple[Array, Doubles]:
    """A result and its bound, for results whose bound does not follow from merged values."""
    if structure.body.member_kinds:
        return evaluate_combined(structure, operands, result_dtype, result_shape, result)
    return _seen_bits(Evaluation.of(structure, operands, np.dtype(result_dtype)), result_shape)


def structure_value(
    structure: Structure,
    operands: Sequence[Array],
    result_dtype: np.dtype[Any],
    result_shape: Sequence[int],
    result: int = 0,
) -> Array:
    """The result of evaluate_structure without its bound, in half the time."""
    if structure.body.member_kinds:
        return evaluate_combined(structure, operands, result_dtype, result_shape, result)[0]
    evaluation = Evaluation.of(structure, operands, np.dtype(result_dtype), result)
    if structure.body.function == "bitcast":
        return _seen_bits(evaluation, result_shape)[0]
    with np.errstate(all="ignore"):
        parts = evaluation.in_sequence(evaluation.evaluate(bounded=False))
        value = as_kind_of(parts.value, evaluation.roles.result_dtype)
        values = [value]
        for stage, further in evaluation.stages():
            values.append(stage_value(stage, stage.arguments(values, further)))
        made = values[-1]
        if evaluation.roles.chain:
            made = as_kind_of(made, evaluation.roles.final_dtype)
    return _shaped(made, result_shape)


def _seen_bits(evaluation: Evaluation, shape: Sequence[int]) -> tuple[Array, Doubles]:
    """The bits of the only operand as numbers of the result's dtype, and the error bound.

    A NaN has many bit patterns, each of which is right.
    """
    roles = evaluation.roles
    read = evaluation.once(evaluation.operands[0], roles.space.operands[0])
    read = np.ascontiguousarray(np.broadcast_to(read, roles.shape))
    # The bits may be those of a signalling NaN, at which a conversion warns.
    with np.errstate(invalid="ignore"):
        value = as_kind_of(read.view(roles.result_dtype), roles.result_dtype)
    bound = np.zeros(read.shape)
    if is_floating(read.dtype) and not is_floating(roles.result_dtype):
        bound[np.isnan(read)] = np.inf
    return _shaped(value, shape), _shaped(bound, shape)


def _shaped(array: Array, shape: Sequence[int]) -> Array:
    """An array in the result's shape. Empty axes need no dimension."""
    return np.zeros(shape, array.dtype) if 0 in shape else array.reshape(shape)
