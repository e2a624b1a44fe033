"""Gradients of users' codelets: another codelet, or a function that builds operations of nn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from ...backends.codelets.users import UsersCodelet, users_codelet_of
from ...dialects import nn
from ...ir.support.errors import InputError
from .emit import Emitter
from .errors import NoGradient
from .iteration_rows import narrowed


def of_codelet(
    emit: Emitter, op: nn.CodeletOp, gradients: Sequence[SSAValue | None], wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradients of the wanted operands of a codelet.

    Raises NoGradient if it has none, and InputError if what the user wrote gives none.
    """
    known = users_codelet_of(op.signature.name)
    if known.gradient is None:
        raise NoGradient(f"is a codelet without a gradient ({known.place}: give it `gradient=`)")
    floats = [isinstance(nn.element_of(result), AnyFloat) for result in op.results]
    every = [
        emit.zeros_like(result) if gradient is None else narrowed(emit, gradient, result)
        for result, gradient, is_float in zip(op.results, gradients, floats, strict=True)
        if is_float
    ]
    try:
        if isinstance(known.gradient, UsersCodelet):
            found: Mapping[int, SSAValue] = _by_codelet(emit, op, known.gradient, every)
        else:
            build = cast("Callable[..., Any]", known.gradient)
            found = _checked(known, build(emit, op, every))
    except (NoGradient, InputError):
        raise
    # A user's function may raise anything.
    except Exception as error:
        raise known.error(f"its gradient: {type(error).__name__}: {error}") from error
    for k, value in found.items():
        if not 0 <= k < len(op.operands) or value.type != op.operands[k].type:
            need = op.operands[k].type if 0 <= k < len(op.operands) else "an operand"
            raise known.error(f"its gradient gives {value.type} for operand {k}; need {need}")
    return {k: value for k, value in found.items() if k in wanted}


def _by_codelet(
    emit: Emitter, op: nn.CodeletOp, codelet: UsersCodelet, gradients: Sequence[SSAValue]
) -> dict[int, SSAValue]:
    """Call a codelet that reads what the operation reads and the gradients of its results."""
    signature = op.signature
    values = signature.named(op.parameters)
    given = {name: value for name, value in values.items() if name in codelet.signature.parameters}
    new = emit.insert(codelet(*op.operands, *gradients, **given))
    floats = [i for i, v in enumerate(op.operands) if isinstance(nn.element_of(v), AnyFloat)]
    return dict(zip(floats, new.results, strict=True))


def _checked(known: UsersCodelet, found: Any) -> Mapping[int, SSAValue]:
    given = cast("dict[Any, Any]", found) if isinstance(found, dict) else {None: None}
    if not all(isinstance(k, int) and isinstance(v, SSAValue) for k, v in given.items()):
        kinds = ", ".join(type(v).__name__ for v in given.values())
        what = f"a dict of {kinds}" if isinstance(found, dict) else f"a {type(found).__name__}"
        raise known.error(
            f"its gradient returns {what}; need a dict of values by the index of the operand"
        )
    return cast("dict[int, SSAValue]", found)
