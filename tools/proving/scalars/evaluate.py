"""Values of terms at many points at once, by the scalar functions that codelets compute."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

import numpy as np
from numpy.typing import NDArray

from ....backends.codelets.conversion import Array, convert_into, converted, is_floating
from ....backends.codelets.scalar import scalar_function
from ....ir.element_types import dtype_named
from ..terms import Apply, Const, Merge, Term, Var, subterms
from .types import DOUBLE, is_float

Points = Mapping[Var, Array]
"""The values of each variable: one element for each point, in the variable's type."""

MERGES = {"sum": np.add, "prod": np.multiply, "max": np.maximum, "min": np.minimum}
ACCUMULATE = {"f16": "f32", "bf16": "f32"}
"""The types that narrow floats are merged in."""


def values_of(term: Term, points: Points, count: int) -> Array:
    """The values of a term at `count` points, in its type."""
    return all_values(term, points, count)[term]


def all_values(term: Term, points: Points, count: int) -> dict[Term, Array]:
    """The values of every subterm of a term at `count` points."""
    made: dict[Term, Array] = {}
    for each in subterms(term):
        out = np.empty(count, dtype_named(each.dtype))
        match each:
            case Var():
                out = points[each]
            case Const(value=value):
                out[:] = np.array(value).astype(out.dtype)
            case Apply(function=name, args=args, parameters=parameters):
                operands = tuple(made[arg] for arg in args)
                _ = scalar_function(name).apply(parameters, *operands, out=out)
            case Merge():
                _merge(each, made, out)
        made[each] = out
    return made


def _merge(term: Merge, made: Mapping[Term, Array], out: Array) -> None:
    wide = dtype_named(ACCUMULATE.get(term.dtype, term.dtype))
    merge = MERGES[term.combiner]
    identity = np.zeros(out.shape, wide)
    if term.combiner == "prod":
        identity[:] = 1
    with np.errstate(all="ignore"):
        if not term.args:
            if term.combiner in ("max", "min"):
                _fill_extreme(identity, term.combiner)
            convert_into(identity, out)
            return
        total = converted(made[term.args[0]], wide)
        for arg in term.args[1:]:
            total = merge(total, converted(made[arg], wide))
        convert_into(total, out)


def _fill_extreme(array: Array, combiner: str) -> None:
    low = combiner == "max"
    if is_floating(array.dtype):
        array[:] = -np.inf if low else np.inf
    elif array.dtype.kind != "b":
        limits = np.iinfo(array.dtype)
        array[:] = limits.min if low else limits.max


def in_doubles(term: Term) -> Term:
    """The term with float64 in the place of every float type, so that little is rounded."""
    made: dict[Term, Term] = {}
    for each in subterms(term):
        dtype = DOUBLE if is_float(each.dtype) else each.dtype
        match each:
            case Var():
                made[each] = _double(each)
            case Const(value=value):
                made[each] = Const(value, dtype)
            case Apply():
                below = tuple(made[arg] for arg in each.args)
                made[each] = Apply(each.function, below, dtype, each.parameters)
            case Merge():
                made[each] = Merge(each.combiner, tuple(made[arg] for arg in each.args), dtype)
    return made[term]


def _double(variable: Var) -> Var:
    """The variable of in_doubles. Variables of one name and several types stay apart."""
    dtype = variable.dtype
    narrow = is_float(dtype) and dtype != DOUBLE
    return Var(f"{variable.name}:{dtype}", DOUBLE) if narrow else variable


def double_points(points: Points) -> dict[Var, Array]:
    """The same points for the terms of in_doubles."""
    return {
        _double(each): values.astype(np.float64) if is_float(each.dtype) else values
        for each, values in points.items()
    }


@cache
def special_values(dtype: str) -> NDArray[np.float64]:
    """Numbers of a float type at which functions are special."""
    near = [0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 2.0, -2.0, 3.0, -3.0, 0.25, 1.5, 6.0, -6.0, 7.0]
    return np.array([*near, np.inf, -np.inf, np.nan])
