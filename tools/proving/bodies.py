"""What a body does with scalar terms: its function, and its stages."""

from __future__ import annotations

from collections.abc import Sequence

from ...dialects.scalar_functions import COMBINERS, FUNCTIONS
from ...dialects.structured import FLOATS, Body
from ...ir.element_types import dtype_named
from ...ir.support.number_kinds import whole_limits
from .terms import Apply, Const, Merge, Term


class Undecided(Exception):
    """Raised where a proof cannot go on. The message says why, and ends no sentence."""


def is_float(dtype: str) -> bool:
    """Whether an element type is a type of floats."""
    return dtype in FLOATS or dtype.startswith(("f", "bf"))


def cast_to(term: Term, dtype: str) -> Term:
    """A term as a number of another type."""
    return term if term.dtype == dtype else Apply("identity", (term,), dtype)


def constant(value: float, dtype: str) -> Const:
    """A number of a type. An infinity becomes the limit of a type of integers."""
    if is_float(dtype):
        return Const(float(value), dtype)
    if dtype == "i1":
        return Const(int(value > 0), dtype)
    limits = whole_limits(dtype_named(dtype))
    return Const(int(min(max(value, int(limits.min)), int(limits.max))), dtype)


def identity_of(combiner: str, dtype: str) -> Const:
    """The number that a combiner ignores."""
    return constant(COMBINERS[combiner], dtype)


def applied(
    function: str, args: Sequence[Term], dtype: str, parameters: tuple[float, ...] = ()
) -> Term:
    """A scalar function of terms, as a number of a type."""
    mathematics = FUNCTIONS[function]
    if function == "identity":
        return cast_to(args[0], dtype)
    if function == "bitcast":
        return Apply(function, tuple(args), dtype)
    if mathematics.boolean:
        return cast_to(Apply(function, tuple(args), "i1", parameters), dtype)
    same = [arg if i < mathematics.values else cast_to(arg, dtype) for i, arg in enumerate(args)]
    return Apply(function, tuple(same), dtype, parameters)


def function_value(body: Body, args: Sequence[Term], dtype: str) -> Term:
    """The function of a body at one point, as a number of a type."""
    if body.function not in FUNCTIONS:
        raise Undecided(f"the function {body.function} has no record")
    return applied(body.function, args, dtype, body.parameters)


def merged(combiner: str, args: Sequence[Term], dtype: str) -> Term:
    """Terms that a combiner merges."""
    if not args:
        return identity_of(combiner, dtype)
    return Merge(combiner, tuple(args), dtype) if len(args) > 1 else cast_to(args[0], dtype)


def stages_value(body: Body, args: Sequence[Term], dtype: str) -> Term:
    """The value of the last stage of a body, as a number of a type.

    Args:
        args: the value that the stages begin with, then their further operands, in order.
    """
    begin, *rest = args
    values = [begin]
    for stage, kind in zip(body.then, body.chained_elements[1:], strict=True):
        own, rest = rest[: stage.extras], rest[stage.extras :]
        arguments = stage.arguments(values, own)
        element = stage.element or (kind if kind not in ("", "?") else begin.dtype)
        if stage.function == "select":
            element = arguments[1].dtype
        values.append(applied(stage.function, arguments, element, stage.parameters))
    return cast_to(values[-1], dtype)


def begin_dtype(body: Body, dtypes: Sequence[str], result: str) -> str:
    """The type of the value that the stages of a body begin with.

    Args:
        dtypes: of the operands.
        result: the type of the result.
    """
    if not body.then:
        return result
    floats = [each for each in (*dtypes, result) if is_float(each)]
    return "f64" if "f64" in floats else "f32"


def keeps_more(body: Body, dtype: str) -> bool:
    """Whether a body keeps floats between two of its functions that it does not round.

    Operations that compute the same in two steps round in between.

    Args:
        dtype: of the value that its stages begin with.
    """
    inner = body.combiner is not None and body.function != "identity"
    return is_float(dtype) and (inner or bool(body.then))
