"""Calls of functions, which are inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import Operation, SSAValue

from ...dialects import stablehlo
from ...dialects.model_calls import model_call
from .conversion import Lower, ToNn
from .users_calls import results_in_place


def _call(op: func.CallOp, new: ToNn) -> Sequence[SSAValue]:
    return inlined(new, op.callee.string_value(), op)


def _composite(op: stablehlo.CompositeOp, new: ToNn) -> Sequence[SSAValue]:
    """The results of a user's operation of the name, else of the function that defines it."""
    of_users = model_call(op.called_name.data)
    if of_users is not None:
        return results_in_place(of_users, op, new)
    return inlined(new, op.decomposition.string_value(), op)


def inlined(new: ToNn, name: str, op: Operation) -> list[SSAValue]:
    """The results of a function, whose operations are lowered into the present block.

    Args:
        op: what calls it.
    """
    with new.called(name) as function:
        type_ = function.function_type
        for does, values, types in (
            ("takes", op.operands, type_.inputs),
            ("returns", op.results, type_.outputs),
        ):
            if [each.type for each in values] != list(types):
                raise new.bad(f"@{name} {does} ({', '.join(map(str, types))})")
        return new.lower_block(function.body.block, new.operands(op))


TABLE: Mapping[str, Lower] = {
    "func.call": _call,
    "stablehlo.composite": _composite,
}
"""What lowers each call, by name."""
