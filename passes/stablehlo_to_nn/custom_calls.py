"""Calls of functions that a program only names, as far as abele knows these functions."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, SymbolRefAttr, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects import nn, stablehlo
from ...dialects.model_calls import loaded_like, model_call
from .conversion import Lower, ToNn
from .matrices import CALLS as OF_MATRICES
from .matrices import CONFIG
from .ordering import sorted_by
from .users_calls import results_of_call

Call = Callable[[stablehlo.CustomCallOp, ToNn], Sequence[SSAValue]]


def _custom_call(op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    name = op.call_target_name.data
    call = CALLS.get(name)
    if call is not None:
        return call(op, new)
    of_users = model_call(name)
    if of_users is not None:
        return results_of_call(of_users, op, new)
    known = ", ".join(f"@{each}" for each in CALLS)
    raise new.unsupported(
        f"a call of @{name}",
        f"{known} are, and operations of --load by their names{loaded_like(name)}",
    )


def _sharding(op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    """The operand: where devices hold it is left to abele."""
    return new.operands(op)


def _approximate_top_k(op: stablehlo.CustomCallOp, new: ToNn) -> Sequence[SSAValue]:
    """The first elements along an axis in the order of a comparison, and the elements of other
    operands beside them.

    The call allows that some are missing. None is.
    """
    config = op.attributes.get(CONFIG)
    axis = config.data.get("reduction_dim") if isinstance(config, DictionaryAttr) else None
    (name,) = _called(op.called_computations) or (None,)
    operands = new.operands(op)
    count = len(op.made)
    if not isinstance(axis, IntegerAttr) or name is None or len(operands) != 2 * count:
        raise new.bad("need a reduction_dim, a comparison, and a first value for each operand")
    along = axis.value.data
    shape, made = (nn.shape_of(values[0]) for values in (operands, op.made))
    kept = tuple(n if i == along else m for i, (n, m) in enumerate(zip(made, shape, strict=True)))
    if not 0 <= along < len(shape) or made != kept or made[along] > shape[along]:
        raise new.bad(f"elements of {list(made)} along axis {along} of {list(shape)}")
    pairs = [nn.tensor((), nn.element_of(each)) for each in op.inputs[:count] for _ in range(2)]
    with new.called(name) as comparison:
        type_ = comparison.function_type
        if [*type_.inputs, *type_.outputs] != [*pairs, nn.tensor((), i1)]:
            raise new.bad(f"@{name} is {type_}, which compares no two elements of each operand")
        found = sorted_by(new, operands[:count], along, comparison.body)
    return [new.box(each, [0] * len(made), made) for each in found]


def _called(names: Attribute | None) -> list[str]:
    """The names of functions in a list."""
    if not isinstance(names, ArrayAttr):
        return []
    listed = cast("ArrayAttr[Attribute]", names)
    return [each.string_value() for each in listed if isinstance(each, SymbolRefAttr)]


CALLS: Mapping[str, Call] = {
    "ApproxTopK": _approximate_top_k,
    "Sharding": _sharding,
    **OF_MATRICES,
}
"""What lowers a call, by the name of what is called."""

TABLE: Mapping[str, Lower] = {"stablehlo.custom_call": _custom_call}
"""What lowers each operation, by name."""
