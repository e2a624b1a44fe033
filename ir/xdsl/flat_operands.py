"""A faster way to flatten the operands of a new operation into one list.

For every operation that it builds, xDSL's constructor finds out which fields of the class are
variadic and whether the operation stores their sizes. That takes as long as the rest of building
the operation.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.irdl import IRDLOperation, OptionalDef, VariadicDef

_VALUES = (OpResult, BlockArgument)


def flat_operands(
    op_class: type[IRDLOperation], given: Sequence[SSAValue | Sequence[SSAValue]]
) -> list[SSAValue] | None:
    """The operands of a new operation as one list; None if xDSL's constructor has to make it.

    The constructor has to handle whatever it might refuse or build differently.

    Args:
        given: for each field, a value or a list of values.
    """
    most = _most(op_class)
    if most is None or len(most) != len(given):
        return None
    found: list[SSAValue] = []
    for limit, each in zip(most, given, strict=True):
        if isinstance(each, _VALUES):
            found.append(each)
        elif (
            limit is not None
            and isinstance(each, list | tuple)
            and len(each) <= limit
            and all(isinstance(value, _VALUES) for value in each)
        ):
            found += each
        else:
            return None
    return found


@cache
def _most(op_class: type[IRDLOperation]) -> tuple[float | None, ...] | None:
    """The greatest number of operands per field, None for a field of exactly one.

    None in all if the operation has options, regions, successors, or other than one result.
    """
    definition = op_class.get_irdl_definition()
    if definition.options or definition.regions or definition.successors:
        return None
    if len(definition.results) != 1:
        return None
    return tuple(
        None
        if not isinstance(each, VariadicDef)
        else 1
        if isinstance(each, OptionalDef)
        else float("inf")
        for _, each in definition.operands
    )
