"""The operands of an operation that is built, in one list, where no more is to be found out.

xDSL's constructor asks the same of every operation of a class: which fields are several operands,
and whether sizes of them are kept. That takes as long as making the operation.
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
    """The operands of a new operation, given as a value, or several, a field.

    None where only xDSL's own constructor can tell whether they are right: what it would refuse,
    or build otherwise, is left to it.
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
    """How many operands each field may be, None for just one; None where there is more to build."""
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
