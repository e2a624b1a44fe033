"""Calls of functions, which are inlined."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func
from xdsl.ir import SSAValue

from ...dialects import stablehlo
from .conversion import Lower, ToNn


def _call(op: func.CallOp, new: ToNn) -> Sequence[SSAValue]:
    return inlined(new, op.callee.string_value(), new.operands(op))


def _composite(op: stablehlo.CompositeOp, new: ToNn) -> Sequence[SSAValue]:
    return inlined(new, op.decomposition.string_value(), new.operands(op))


def inlined(new: ToNn, name: str, arguments: Sequence[SSAValue]) -> list[SSAValue]:
    """The results of a function, whose operations are lowered into the present block."""
    with new.called(name) as function:
        block = function.body.block
        given, taken = [each.type for each in arguments], [each.type for each in block.args]
        if given != taken:
            raise new.bad(f"@{name} takes ({', '.join(map(str, taken))})")
        return new.lower_block(block, arguments)


TABLE: Mapping[str, Lower] = {
    "func.call": _call,
    "stablehlo.composite": _composite,
}
"""What lowers each call, by name."""
