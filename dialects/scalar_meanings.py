"""What scalar functions mean: each as an expression of simpler ones, or by its laws.

A function has one of three kinds of meaning.

    BASIC            what a solver knows by itself, such as add, less and select
    DEFINITIONS      an expression of other functions, such as relu(a) = max(a, 0)
    LAWS             facts about a function that no expression gives, such as exp(0) = 1

A user's function without a meaning is an unknown function: all that is known is that equal operands
give equal results. tests/tools/proving/scalars compares every entry with the function that NumPy
computes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from math import ceil, floor, inf, nan, pi
from typing import Literal

from .slopes import Term, Values, call

BASIC = frozenset(
    {
        *("identity", "add", "sub", "mul", "div", "neg", "abs", "sqrt", "floor", "ceil", "round"),
        *("less", "less_equal", "greater", "greater_equal", "equal", "select"),
        *("logical_and", "logical_or", "logical_not"),
        *("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "shift_left", "shift_right"),
    }
)
"""The functions that every interpretation of a term has to know."""

WHOLE_BASIC = frozenset({"mod", "fmod"})
"""The functions that interpretations know for integers only."""

NUMBER = "number"
"""The name of a term that is a constant. Integers wrap."""

LIMIT = "limit"
"""The name of a term that is a constant. An integer type takes its nearest value."""


def number(value: float) -> Term:
    """A constant of the type of the result, which wraps in integers."""
    return Term(NUMBER, parameters=(value,))


def limit(value: float) -> Term:
    """A constant of the type of the result, limited to the range of integers."""
    return Term(LIMIT, parameters=(value,))


Expression = Callable[[Values], Term]
"""An expression of the operands s.a to s.e and the parameters."""


@dataclass(frozen=True)
class Definition:
    """A function as an expression of simpler functions.

    Attributes:
        meaning: the expression.
        whole: the expression for integers; None if it is the same.
        rounds_apart: whether the expression rounds floats more often than the function does. It is
            then equal as a number, but not to the bit.
        in_doubles: the integer operands that become float64 before the function is computed: all,
            none, or all unless the parameters are whole.
    """

    meaning: Expression
    _: KW_ONLY
    whole: Expression | None = None
    rounds_apart: bool = False
    in_doubles: Literal["never", "always", "unless whole"] = "never"


def _larger(s: Values) -> Term:
    # Of two zeros, the second operand is the result.
    return call("select", _comparable(s), call("select", call("greater", s.a, s.b), s.a, s.b), NAN)


def _smaller(s: Values) -> Term:
    return call("select", _comparable(s), call("select", call("less", s.a, s.b), s.a, s.b), NAN)


def _comparable(s: Values) -> Term:
    return call("logical_and", call("equal", s.a, s.a), call("equal", s.b, s.b))


def _sign(s: Values) -> Term:
    below = call("select", call("less", s.a, number(0.0)), number(-1.0), number(0.0))
    ordered = call("select", call("greater", s.a, number(0.0)), number(1.0), below)
    return call("select", call("equal", s.a, s.a), ordered, NAN)


def _whole_sign(s: Values) -> Term:
    below = call("select", call("less", s.a, number(0.0)), number(-1.0), number(0.0))
    return call("select", call("greater", s.a, number(0.0)), number(1.0), below)


def _clip(s: Values) -> Term:
    low, high = s.parameters
    return call("min", call("max", s.a, number(low)), number(high))


def _whole_clip(s: Values) -> Term:
    low, high = s.parameters
    least = low if abs(low) == inf else ceil(low)
    most = high if abs(high) == inf else floor(high)
    return call("min", call("max", s.a, limit(least)), limit(most))


def _unpacked(s: Values) -> Term:
    (bits,) = s.parameters
    mask = float((1 << min(max(int(bits), 0), 8)) - 1)
    whole = call("bitwise_and", call("shift_right", s.b, s.e), number(mask))
    return s.a * ((whole - s.d) * s.c)


NAN = number(nan)
"""No number."""

DEFINITIONS: dict[str, Definition] = {
    "max": Definition(_larger, whole=lambda s: call("select", call("greater", s.a, s.b), s.a, s.b)),
    "min": Definition(_smaller, whole=lambda s: call("select", call("less", s.a, s.b), s.a, s.b)),
    "square": Definition(lambda s: s.a * s.a),
    "scaled_mul": Definition(
        lambda s: call("scale", s.a * s.b, parameters=s.parameters), rounds_apart=True
    ),
    "scale": Definition(
        lambda s: call("mul", s.a, number(s.parameters[0])), in_doubles="unless whole"
    ),
    "shift": Definition(
        lambda s: call("add", s.a, number(s.parameters[0])), in_doubles="unless whole"
    ),
    "reciprocal": Definition(lambda s: number(1.0) / s.a),
    "relu": Definition(lambda s: call("max", s.a, number(0.0))),
    "leaky_relu": Definition(
        lambda s: call(
            "select",
            call("less", s.a, number(0.0)),
            call("scale", s.a, parameters=s.parameters),
            s.a,
        )
    ),
    "clip": Definition(_clip, whole=_whole_clip),
    "sign": Definition(_sign, whole=_whole_sign),
    "gate": Definition(
        lambda s: call("select", call("greater", s.a, number(0.0)), s.b, number(0.0))
    ),
    "match": Definition(lambda s: call("select", call("equal", s.a, s.b), s.c, number(0.0))),
    "is_nan": Definition(lambda s: call("logical_not", call("equal", s.a, s.a))),
    "is_inf": Definition(
        lambda s: call("equal", call("abs", s.a), number(inf)),
        whole=lambda s: call("less", s.a, s.a),
    ),
    "sigmoid": Definition(
        lambda s: number(1.0) / (number(1.0) + call("exp", -s.a)),
        rounds_apart=True,
        in_doubles="always",
    ),
    "softplus": Definition(
        lambda s: call("log", number(1.0) + call("exp", s.a)),
        rounds_apart=True,
        in_doubles="always",
    ),
    "tan": Definition(
        lambda s: call("sin", s.a) / call("cos", s.a), rounds_apart=True, in_doubles="always"
    ),
    "packed_mul": Definition(_unpacked, rounds_apart=True),
}
"""The functions that are expressions of others, by name. Floats are real numbers in them, with
infinities, zeros of both signs, and no number."""


@dataclass(frozen=True, kw_only=True)
class Laws:
    """What is known of a function of one number that no expression gives.

    Attributes:
        at: pairs of an operand and the result. Results at infinities and poles are among them.
        domain: the least and the largest operand; outside, and for NaN, the result is NaN.
        bounds: the least and the largest result.
        attains: whether finite operands reach the bounds.
        direction: 1 if larger operands give larger results, -1 if they give smaller ones, else 0.
        parity: 1 for f(-a) = f(a), -1 for f(-a) = -f(a), else 0. An odd function keeps the sign of
            a zero.
        inverse: the function g for which f(g(a)) = a, wherever g(a) is a number.
        turns_sums: whether f(a + b) = f(a) f(b).
    """

    at: tuple[tuple[float, float], ...]
    domain: tuple[float, float] = (-inf, inf)
    bounds: tuple[float, float] = (-inf, inf)
    attains: bool = False
    direction: Literal[-1, 0, 1] = 0
    parity: Literal[-1, 0, 1] = 0
    inverse: str = ""
    turns_sums: bool = False


LAWS: dict[str, Laws] = {
    "exp": Laws(
        at=((0.0, 1.0), (-inf, 0.0), (inf, inf)),
        bounds=(0.0, inf),
        direction=1,
        inverse="log",
        turns_sums=True,
    ),
    "log": Laws(
        at=((1.0, 0.0), (0.0, -inf), (inf, inf)), domain=(0.0, inf), direction=1, inverse="exp"
    ),
    "tanh": Laws(
        at=((0.0, 0.0), (-inf, -1.0), (inf, 1.0)),
        bounds=(-1.0, 1.0),
        direction=1,
        parity=-1,
        inverse="atanh",
    ),
    "erf": Laws(
        at=((0.0, 0.0), (-inf, -1.0), (inf, 1.0)), bounds=(-1.0, 1.0), direction=1, parity=-1
    ),
    "sin": Laws(
        at=((0.0, 0.0), (-inf, nan), (inf, nan)),
        bounds=(-1.0, 1.0),
        attains=True,
        parity=-1,
        inverse="asin",
    ),
    "cos": Laws(
        at=((0.0, 1.0), (-inf, nan), (inf, nan)),
        bounds=(-1.0, 1.0),
        attains=True,
        parity=1,
        inverse="acos",
    ),
    "asin": Laws(
        at=((0.0, 0.0),),
        domain=(-1.0, 1.0),
        bounds=(-pi / 2, pi / 2),
        attains=True,
        direction=1,
        parity=-1,
    ),
    "acos": Laws(
        at=((1.0, 0.0),), domain=(-1.0, 1.0), bounds=(0.0, pi), attains=True, direction=-1
    ),
    "atan": Laws(
        at=((0.0, 0.0), (-inf, -pi / 2), (inf, pi / 2)),
        bounds=(-pi / 2, pi / 2),
        direction=1,
        parity=-1,
    ),
    "sinh": Laws(
        at=((0.0, 0.0), (-inf, -inf), (inf, inf)), direction=1, parity=-1, inverse="asinh"
    ),
    "cosh": Laws(
        at=((0.0, 1.0), (-inf, inf), (inf, inf)),
        bounds=(1.0, inf),
        attains=True,
        parity=1,
        inverse="acosh",
    ),
    "asinh": Laws(
        at=((0.0, 0.0), (-inf, -inf), (inf, inf)), direction=1, parity=-1, inverse="sinh"
    ),
    "acosh": Laws(
        at=((1.0, 0.0), (inf, inf)),
        domain=(1.0, inf),
        bounds=(0.0, inf),
        attains=True,
        direction=1,
    ),
    "atanh": Laws(
        at=((0.0, 0.0), (-1.0, -inf), (1.0, inf)),
        domain=(-1.0, 1.0),
        direction=1,
        parity=-1,
        inverse="tanh",
    ),
}
"""The laws of functions, by name."""

UNKNOWN: dict[str, str] = {
    "bitcast": "it reads bits",
    "pow": "its exponent is not known",
    "power": "its exponent is not whole",
    "random_bits": "it draws random bits",
    "to_nearest": "it rounds",
    "drawn": "it rounds as random words decide",
    "by_word": "it rounds as random words decide",
    "stochastic": "it rounds as random words decide",
    "to_code": "it numbers the floats of a format",
    "from_code": "it numbers the floats of a format",
}
"""The functions that are unknown functions on purpose, and why. Equal operands give equal
results."""


def has_meaning(name: str, *, whole: bool) -> bool:
    """Whether a function has a definition or laws, or is basic.

    Args:
        whole: whether its operands are integers.
    """
    basic = name in BASIC or (whole and name in WHOLE_BASIC)
    return basic or name in DEFINITIONS or (name in LAWS and not whole)


def why_unknown(name: str) -> str:
    """Why a function has no meaning, for a message."""
    return UNKNOWN.get(name, "it has no stated meaning")
