"""Forms of float terms that have the same bits: signs move outwards, operands get an order.

Rounding to nearest is symmetric, so a sign moves through products, quotients and conversions and
changes no other bit. It does not move through sums, because 1 - 1 is 0.0 either way.

    mul(neg(x), neg(y))   ->  mul(x, y)
    sub(x, neg(y))        ->  add(x, y)
    abs(mul(x, y))        ->  mul(abs(x), abs(y))
"""

from __future__ import annotations

from ..terms import Apply, Const, Merge, Term, Var, subterms
from .types import is_float

MOST = 400
"""Terms of more subterms stay as they are."""
WIDER = {(a, b) for a in ("f16", "bf16") for b in ("f32", "f64")} | {("f32", "f64")}
"""Pairs of float types of which the second holds every number of the first."""


def exact_form(term: Term) -> Term:
    """A term with the same bits, all NaNs being one, for an unfolded term."""
    ordered = list(subterms(term))
    if len(ordered) > MOST:
        return term
    made: dict[Term, Term] = {}
    keys: dict[Term, str] = {}
    for each in ordered:
        made[each] = _form(each, made, keys)
    return made[term]


def _form(term: Term, made: dict[Term, Term], keys: dict[Term, str]) -> Term:
    match term:
        case Var() | Const():
            return term
        case Merge(combiner=combiner, args=args, dtype=dtype):
            below = [made[arg] for arg in args]
            if len(below) == 2 and combiner in ("sum", "prod"):
                below.sort(key=lambda each: _key(each, keys))
            return Merge(combiner, tuple(below), dtype)
        case Apply():
            below = tuple(made[arg] for arg in term.args)
            if not is_float(term.dtype) or not all(is_float(each.dtype) for each in below):
                return Apply(term.function, below, term.dtype, term.parameters)
            return _of_floats(term, below, keys)


def _of_floats(term: Apply, args: tuple[Term, ...], keys: dict[Term, str]) -> Term:
    name = term.function
    if name == "neg":
        return negative(args[0])
    if name == "abs":
        return _magnitude(args[0], keys)
    if name == "sub":
        return _ordered("add", (args[0], negative(args[1])), term, keys)
    if name == "identity":
        inner, minus = _without_sign(args[0])
        made = Apply(name, (inner,), term.dtype)
        if isinstance(inner, Apply) and inner.function == name:
            (first,) = inner.args
            if first.dtype == term.dtype and (term.dtype, inner.dtype) in WIDER:
                made = first
        return negative(made) if minus else made
    if name in ("mul", "div"):
        (a, one), (b, other) = map(_without_sign, args)
        if isinstance(b, Const) and b.value == 1.0:
            made = a
        elif name == "mul" and isinstance(a, Const) and a.value == 1.0:
            made = b
        else:
            made = (
                _ordered(name, (a, b), term, keys)
                if name == "mul"
                else Apply(name, (a, b), term.dtype)
            )
        return negative(made) if one != other else made
    if name == "add":
        return _ordered(name, args, term, keys)
    return Apply(name, args, term.dtype, term.parameters)


def negative(term: Term) -> Term:
    """The term with the other sign."""
    if isinstance(term, Apply) and term.function == "neg":
        return term.args[0]
    if isinstance(term, Const):
        return Const(-term.value, term.dtype)
    return Apply("neg", (term,), term.dtype)


def _without_sign(term: Term) -> tuple[Term, bool]:
    """The term without a sign before it, and whether there was one."""
    if isinstance(term, Apply) and term.function == "neg":
        return term.args[0], True
    if isinstance(term, Const) and term.value < 0:
        return Const(-term.value, term.dtype), True
    return term, False


def _magnitude(term: Term, keys: dict[Term, str]) -> Term:
    inner, _ = _without_sign(term)
    if isinstance(inner, Apply) and inner.function == "abs":
        return inner
    if isinstance(inner, Apply) and inner.function == "mul":
        factors = (_magnitude(inner.args[0], keys), _magnitude(inner.args[1], keys))
        return _ordered("mul", factors, inner, keys)
    if isinstance(inner, Apply) and inner.function == "identity":
        return Apply("identity", (_magnitude(inner.args[0], keys),), inner.dtype)
    return Apply("abs", (inner,), inner.dtype)


def _ordered(name: str, args: tuple[Term, ...], term: Apply, keys: dict[Term, str]) -> Term:
    a, b = sorted(args, key=lambda each: _key(each, keys))
    return Apply(name, (a, b), term.dtype, term.parameters)


def _key(term: Term, keys: dict[Term, str]) -> str:
    """A text that orders terms."""
    if term not in keys:
        match term:
            case Var(name=name, dtype=dtype):
                keys[term] = f"{name}:{dtype}"
            case Const(value=value, dtype=dtype):
                keys[term] = f"{value}:{dtype}"
            case Apply(function=function, args=args, dtype=dtype):
                below = ",".join(_key(each, keys) for each in args)
                keys[term] = f"{function}({below};{term.parameters}):{dtype}"
            case Merge(combiner=combiner, args=args, dtype=dtype):
                keys[term] = f"{combiner}({','.join(_key(each, keys) for each in args)}):{dtype}"
    return keys[term]
