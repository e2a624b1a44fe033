"""Scalar functions as mathematics: one record for each function that a body or a chain may name.

Passes, planner, prices, oracle and generators read these records; none of them has a table of its
own that is keyed by function names. How a function is computed, how exactly, and what it costs is
in backends/codelets/scalar.py, which has one record for the same names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from math import isinf, pi, sqrt

from ..ir.support.user_entries import add_entry
from .slopes import (
    ZERO,
    Slope,
    call,
    of_base,
    of_clip,
    of_exponent,
    of_largest,
    of_largest_second,
    of_leaky,
    of_packed_number,
    of_packed_scale,
    of_power,
    one_minus,
    over_root,
    plus,
    squared,
    where_not_zero,
    where_positive,
    zero,
)

COMBINERS: dict[str, float] = {
    "sum": 0.0,
    "max": float("-inf"),
    "min": float("inf"),
    "prod": 1.0,
    "pick": 0.0,
    "last": 0.0,
}
"""Merge functions over reduction dimensions, with their identities.

pick takes the only value whose bits are not all zero. It merges the points of a lookup, of which at
most one has a value, and keeps the bits of that value. last replaces an element of an operand by
the last value in row-major order. It needs no identity, because its body begins with that operand
(`resumes`).
"""

ARITHMETIC = ("sum", "max", "min", "prod")
"""The combiners of values of any body, not only of lookups and updates."""

UPDATES = ("last", *ARITHMETIC)
"""The combiners that may begin with the elements of an operand."""

Parameters = tuple[float, ...]

Degree = Fraction | None
"""The degree d of a value: scaling by a factor multiplies the value by factor**d. None: no such
rule.
"""

DegreeRule = Callable[[Parameters, Sequence[Fraction]], Degree]
"""The degree of a result, from the parameters and the degrees of the operands."""


@dataclass(frozen=True, eq=False)
class Mathematics:
    """The mathematical properties of one scalar function, independent of how it is computed.

    Raises ValueError if the facts contradict each other.

    Attributes:
        name: what bodies, chains and the text of the IR call it.
        arity: the number of operands.
        parameters: the number of constants that it takes.
        boolean: whether the result is a truth value, whatever the operands are.
        keeps_truth: whether the result is 0 or 1 where all operands are. Only such results may be
            merged as truth values: a reduction in parts holds the result of each part in that type.
        values: the index of the first operand that is a number; the operands before it are truth
            values.
        commutative: whether the two operands may be swapped.
        ends_decide: whether interval arithmetic may look at end points only. In each operand, the
            others fixed, the function is monotone, convex or concave, so that within an interval it
            deviates most from its middle at one of the ends. Poles and meets are exceptions.
        steepest: the largest slope in any operand, of a function whose ends do not decide; None if
            it has none, or is not known.
        chain: the operands that may be the value of an earlier stage if the function is a stage.
            Needs ends_decide or steepest, because error bounds rest on them. An operand listed in
            `positive` has no bound there unless its interval is positive.
        poles: the operands for which an interval that contains 0 makes the result unbounded.
        positive: the operands that must be positive for ends_decide to hold.
        by_bits: the operands whose bits are read: with an error in one, nothing is known.
        meets: whether the result jumps where two operands are equal, which no end point shows.
        selects: whether the first operand only chooses which of the others is the result.
        carries_identity_of: the combiners whose identity the function maps to itself. Of several
            operands, one that is the identity is enough. The parts of a reduction may then be
            padded.
        degree: how the result scales if operands are multiplied by a power of two; None for a
            function that follows no such rule.
        rescales: whether the result is a product, quotient or power of operands. Two such functions
            in a chain may leave the range of a type in between.
        far: whether the result may be far larger or smaller than the operands, or may have lost
            their digits to cancellation. If a sum is the only reader of such a value, it reads it
            in float32.
        whole: whether whole operands and whole parameters give a whole result.
        saturating: the parameters that may themselves be results, such as a limit. In a type whose
            range they exceed, they become its largest finite number. A factor is not one of them: a
            large factor may give a small result.
        keeps: whether each result is an operand, its magnitude, or a whole number that every type
            holds, so that no rounding to the operands' type changes it.
        rounds: whether the function rounds to the numbers of a narrower type, as a store of such
            elements does. Arithmetic without rounding leaves it out, and it costs no cycles.
        stored: whether the function takes elements of every type, including the types that are only
            stored (see dialects/dtypes.py).
        samples: parameters that test programs use; () for any.
        slopes: for each operand, the gradient that the function passes back to it; () if the
            function has no gradient. A result that is a truth value passes nothing back.
    """

    name: str
    arity: int
    _: KW_ONLY
    parameters: int = 0
    boolean: bool = False
    keeps_truth: bool = False
    values: int = 0
    commutative: bool = False
    ends_decide: bool = False
    steepest: float | None = None
    chain: tuple[int, ...] = ()
    poles: tuple[int, ...] = ()
    positive: tuple[int, ...] = ()
    by_bits: tuple[int, ...] = ()
    meets: bool = False
    selects: bool = False
    carries_identity_of: tuple[str, ...] = ()
    degree: DegreeRule | None = None
    rescales: bool = False
    far: bool = False
    whole: bool = False
    saturating: tuple[int, ...] = ()
    keeps: bool = False
    rounds: bool = False
    stored: bool = False
    samples: tuple[Parameters, ...] = ()
    slopes: tuple[Slope, ...] = ()

    def __post_init__(self) -> None:
        for what, operands in (
            ("chain", self.chain),
            ("poles", self.poles),
            ("positive", self.positive),
            ("by_bits", self.by_bits),
        ):
            if not set(operands) <= set(range(self.arity)):
                raise ValueError(
                    f"scalar function {self.name!r}: {what} {list(operands)}; need operands of "
                    f"0 to {self.arity - 1}"
                )
        if not set(self.saturating) <= set(range(self.parameters)):
            raise ValueError(
                f"scalar function {self.name!r}: saturating {list(self.saturating)}; need "
                f"parameters of 0 to {self.parameters - 1}"
            )
        if len(self.slopes) not in (0, self.arity):
            raise ValueError(
                f"scalar function {self.name!r}: {len(self.slopes)} slopes; need one for each of "
                f"{self.arity} operands, or none"
            )
        unknown = sorted(set(self.carries_identity_of) - set(COMBINERS))
        if unknown:
            raise ValueError(
                f"scalar function {self.name!r}: identity of {unknown[0]!r}; need combiners of "
                f"{', '.join(COMBINERS)}"
            )
        if self.chain and not self.bounds_intervals:
            raise ValueError(f"scalar function {self.name!r} in chains; need ends_decide")

    @property
    def bounds_intervals(self) -> bool:
        """Whether results can be bounded from intervals of the operands."""
        return self.ends_decide or self.steepest is not None


# Degrees


def _alike(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    return degrees[0] if len(set(degrees)) == 1 else None


def _of_sign(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    # Functions of sign only: the signs of the operands, or of their difference, decide the result.
    return Fraction(0) if len(set(degrees)) == 1 else None


def _product(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    return degrees[0] + degrees[1]


def _quotient(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    return degrees[0] - degrees[1]


def _to_the(power: Fraction | int) -> DegreeRule:
    return lambda parameters, degrees: degrees[0] * power


def _chosen(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    condition, *rest = degrees
    return _alike(parameters, rest) if condition == 0 else None


def _limited(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    scaled = all(limit == 0 or isinf(limit) for limit in parameters)
    return degrees[0] if scaled else None


def _to_parameter(parameters: Parameters, degrees: Sequence[Fraction]) -> Degree:
    # The other powers are computed by logarithms, whose rounding depends on the magnitude.
    (p,) = parameters
    return degrees[0] * int(p) if p in (1.0, 2.0, -1.0) else None


# The functions

TWO_OVER_ROOT_PI = 2 / sqrt(pi)
"""The slope of the error function at 0."""


def _table(*functions: Mathematics) -> dict[str, Mathematics]:
    return {function.name: function for function in functions}


def _logical(name: str, arity: int) -> Mathematics:
    chain = tuple(range(arity))
    return Mathematics(
        name, arity, boolean=True, commutative=arity == 2, ends_decide=True, chain=chain
    )


def _comparison(name: str) -> Mathematics:
    return Mathematics(name, 2, boolean=True, ends_decide=True, chain=(0, 1), degree=_of_sign)


def _rising(name: str, slope: Slope, *, far: bool = False) -> Mathematics:
    """An odd function that rises wherever it is defined."""
    return Mathematics(
        name,
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        far=far,
        slopes=(slope,),
    )


def _step(name: str) -> Mathematics:
    """A function that rounds to whole numbers. It never falls, so the ends of an interval show its
    jumps.
    """
    return Mathematics(
        name,
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "max", "min", "prod"),
        whole=True,
        slopes=(zero,),
    )


FUNCTIONS: dict[str, Mathematics] = _table(
    Mathematics(
        "identity",
        1,
        keeps_truth=True,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "max", "min", "prod", "pick", "last"),
        degree=_alike,
        whole=True,
        stored=True,
        keeps=True,
        slopes=(lambda s: s.g,),
    ),
    # The bits of the operand as another type: nothing is known of the number.
    Mathematics("bitcast", 1, stored=True),
    Mathematics(
        "add",
        2,
        commutative=True,
        ends_decide=True,
        chain=(0, 1),
        degree=_alike,
        whole=True,
        slopes=(lambda s: s.g, lambda s: s.g),
    ),
    # A difference loses the digits that both operands have.
    Mathematics(
        "sub",
        2,
        ends_decide=True,
        chain=(0, 1),
        degree=_alike,
        far=True,
        whole=True,
        slopes=(lambda s: s.g, lambda s: -s.g),
    ),
    Mathematics(
        "mul",
        2,
        keeps_truth=True,
        commutative=True,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        degree=_product,
        rescales=True,
        far=True,
        whole=True,
        slopes=(lambda s: s.g * s.b, lambda s: s.g * s.a),
    ),
    # The products of two tensors whose elements stand for numbers times powers of two.
    Mathematics(
        "scaled_mul",
        2,
        parameters=1,
        commutative=True,
        ends_decide=True,
        carries_identity_of=("sum",),
        degree=_product,
        rescales=True,
        far=True,
        samples=((1.0,), (0.125,), (16.0,)),
        slopes=(lambda s: s.g * s.b * s.parameters[0], lambda s: s.g * s.a * s.parameters[0]),
    ),
    Mathematics(
        "div",
        2,
        ends_decide=True,
        chain=(0, 1),
        poles=(1,),
        degree=_quotient,
        rescales=True,
        slopes=(lambda s: s.g / s.b, lambda s: -(s.g * (s.y / s.b))),
    ),
    Mathematics(
        "max",
        2,
        keeps_truth=True,
        commutative=True,
        ends_decide=True,
        chain=(0, 1),
        degree=_alike,
        whole=True,
        keeps=True,
        slopes=(of_largest, of_largest_second),
    ),
    Mathematics(
        "min",
        2,
        keeps_truth=True,
        commutative=True,
        ends_decide=True,
        chain=(0, 1),
        degree=_alike,
        whole=True,
        keeps=True,
        slopes=(of_largest_second, of_largest),
    ),
    Mathematics(
        "pow",
        2,
        ends_decide=True,
        chain=(0, 1),
        positive=(0,),
        far=True,
        slopes=(of_base, of_exponent),
    ),
    Mathematics(
        "relu",
        1,
        keeps_truth=True,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        degree=_alike,
        whole=True,
        keeps=True,
        slopes=(lambda s: where_positive(s.y, s.g),),
    ),
    Mathematics("exp", 1, ends_decide=True, chain=(0,), far=True, slopes=(lambda s: s.g * s.y,)),
    Mathematics(
        "log", 1, ends_decide=True, chain=(0,), slopes=(lambda s: where_not_zero(s.g, s.g / s.a),)
    ),
    Mathematics(
        "sqrt",
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "prod"),
        degree=_to_the(Fraction(1, 2)),
        slopes=(lambda s: where_not_zero(s.g, (s.g * 0.5) / s.y),),
    ),
    Mathematics(
        "reciprocal",
        1,
        ends_decide=True,
        chain=(0,),
        poles=(0,),
        carries_identity_of=("prod",),
        degree=_to_the(-1),
        rescales=True,
        slopes=(lambda s: where_not_zero(s.g, -(s.g * squared(s.y))),),
    ),
    Mathematics(
        "tanh",
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        slopes=(lambda s: s.g * one_minus(squared(s.y)),),
    ),
    Mathematics(
        "sigmoid", 1, ends_decide=True, chain=(0,), slopes=(lambda s: s.g * (s.y * one_minus(s.y)),)
    ),
    Mathematics(
        "neg",
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        degree=_alike,
        whole=True,
        keeps=True,
        slopes=(lambda s: -s.g,),
    ),
    Mathematics(
        "abs",
        1,
        keeps_truth=True,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "prod"),
        degree=_alike,
        whole=True,
        keeps=True,
        slopes=(lambda s: s.g * call("sign", s.a),),
    ),
    Mathematics(
        "square",
        1,
        keeps_truth=True,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "prod"),
        degree=_to_the(2),
        rescales=True,
        far=True,
        whole=True,
        slopes=(lambda s: s.g * (s.a * 2.0),),
    ),
    _comparison("less"),
    _comparison("less_equal"),
    _comparison("greater"),
    _comparison("greater_equal"),
    Mathematics(
        "equal",
        2,
        boolean=True,
        commutative=True,
        ends_decide=True,
        chain=(0, 1),
        meets=True,
        degree=_of_sign,
    ),
    _logical("logical_and", 2),
    _logical("logical_or", 2),
    _logical("logical_not", 1),
    Mathematics(
        "select",
        3,
        keeps_truth=True,
        values=1,
        ends_decide=True,
        chain=(0, 1, 2),
        selects=True,
        degree=_chosen,
        whole=True,
        stored=True,
        keeps=True,
        slopes=(
            zero,
            lambda s: call("select", s.a, s.g, ZERO),
            lambda s: call("select", s.a, ZERO, s.g),
        ),
    ),
    # Monotone if the slope is not negative, convex otherwise.
    Mathematics(
        "leaky_relu",
        1,
        parameters=1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        degree=_alike,
        whole=True,
        samples=((0.5,), (-2.0,)),
        slopes=(of_leaky,),
    ),
    Mathematics(
        "clip",
        1,
        parameters=2,
        ends_decide=True,
        chain=(0,),
        degree=_limited,
        whole=True,
        saturating=(0, 1),
        samples=((-5.0, 40.0), (0.0, 6.0)),
        slopes=(of_clip,),
    ),
    Mathematics(
        "scale",
        1,
        parameters=1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        degree=_alike,
        whole=True,
        slopes=(lambda s: s.g * s.parameters[0],),
    ),
    Mathematics(
        "shift",
        1,
        parameters=1,
        ends_decide=True,
        chain=(0,),
        whole=True,
        saturating=(0,),
        slopes=(lambda s: s.g,),
    ),
    Mathematics(
        "power",
        1,
        parameters=1,
        ends_decide=True,
        chain=(0,),
        positive=(0,),
        degree=_to_parameter,
        rescales=True,
        far=True,
        slopes=(of_power,),
    ),
    Mathematics(
        "softplus", 1, ends_decide=True, chain=(0,), slopes=(lambda s: s.g * call("sigmoid", s.a),)
    ),
    _step("floor"),
    Mathematics(
        "sign",
        1,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum", "prod"),
        degree=_of_sign,
        whole=True,
        slopes=(zero,),
    ),
    _step("ceil"),
    _step("round"),
    _rising("erf", lambda s: s.g * (call("exp", -squared(s.a)) * TWO_OVER_ROOT_PI)),
    # These functions turn back inside an interval, so its end points do not bound the result.
    Mathematics(
        "sin",
        1,
        steepest=1.0,
        chain=(0,),
        carries_identity_of=("sum",),
        slopes=(lambda s: s.g * call("cos", s.a),),
    ),
    Mathematics("cos", 1, steepest=1.0, chain=(0,), slopes=(lambda s: -(s.g * call("sin", s.a)),)),
    Mathematics(
        "tan",
        1,
        carries_identity_of=("sum",),
        far=True,
        slopes=(lambda s: s.g * plus(squared(s.y), 1.0),),
    ),
    _rising("asin", over_root(1.0, lambda s: one_minus(squared(s.a)))),
    Mathematics(
        "acos",
        1,
        ends_decide=True,
        chain=(0,),
        slopes=(over_root(-1.0, lambda s: one_minus(squared(s.a))),),
    ),
    _rising("atan", lambda s: s.g / plus(squared(s.a), 1.0)),
    _rising("sinh", lambda s: s.g * call("cosh", s.a), far=True),
    Mathematics(
        "cosh",
        1,
        ends_decide=True,
        chain=(0,),
        far=True,
        slopes=(lambda s: s.g * call("sinh", s.a),),
    ),
    _rising("asinh", over_root(1.0, lambda s: plus(squared(s.a), 1.0))),
    Mathematics(
        "acosh",
        1,
        ends_decide=True,
        chain=(0,),
        slopes=(over_root(1.0, lambda s: plus(squared(s.a), -1.0)),),
    ),
    _rising("atanh", lambda s: where_not_zero(s.g, s.g / one_minus(squared(s.a)))),
    # Remainders jump at every multiple of the divisor, and lose digits as differences do.
    Mathematics(
        "mod",
        2,
        degree=_alike,
        far=True,
        whole=True,
        slopes=(lambda s: s.g, lambda s: -(s.g * call("floor", s.a / s.b))),
    ),
    Mathematics(
        "fmod",
        2,
        degree=_alike,
        far=True,
        whole=True,
        slopes=(lambda s: s.g, lambda s: (s.g * (s.y - s.a)) / s.b),
    ),
    # Constant wherever both ends of an interval are finite.
    Mathematics("is_nan", 1, boolean=True, ends_decide=True, chain=(0,)),
    Mathematics("is_inf", 1, boolean=True, ends_decide=True, chain=(0,)),
    Mathematics("bitwise_and", 2, commutative=True, carries_identity_of=("sum",), whole=True),
    Mathematics("bitwise_or", 2, commutative=True, whole=True),
    Mathematics("bitwise_xor", 2, commutative=True, whole=True),
    Mathematics("bitwise_not", 1, whole=True),
    Mathematics("shift_left", 2, whole=True),
    Mathematics("shift_right", 2, whole=True),
    # Gradients: a value that passes where a condition holds; elsewhere 0, whatever the value is.
    Mathematics(
        "gate",
        2,
        ends_decide=True,
        chain=(0, 1),
        whole=True,
        keeps=True,
        slopes=(zero, lambda s: where_positive(s.a, s.g)),
    ),
    Mathematics(
        "match",
        3,
        values=0,
        ends_decide=True,
        meets=True,
        whole=True,
        keeps=True,
        slopes=(zero, zero, lambda s: call("match", s.a, s.b, s.g)),
    ),
    # Bits without any order, which depend on all bits of the operands.
    Mathematics("random_bits", 3, parameters=1, whole=True, samples=((0.0,), (3.0,))),
    # Roundings to the numbers of a narrower type: parameters are its digits, its least exponent,
    # its largest number and the rule of overflow. The gradient passes as it is.
    Mathematics(
        "to_nearest",
        1,
        parameters=4,
        ends_decide=True,
        chain=(0,),
        carries_identity_of=("sum",),
        rounds=True,
        samples=((11.0, -14.0, 65504.0, 0.0), (11.0, -14.0, 65504.0, 1.0), (4.0, -7.0, 240.0, 2.0)),
        slopes=(lambda s: s.g,),
    ),
    # One of the two numbers around a value. Machines choose by the generators of their workers;
    # wherever there are none, it is the nearest.
    Mathematics(
        "drawn",
        1,
        parameters=4,
        steepest=1.0,
        chain=(0,),
        carries_identity_of=("sum",),
        rounds=True,
        samples=((11.0, -14.0, 65504.0, 0.0), (11.0, -14.0, 65504.0, 1.0)),
        slopes=(lambda s: s.g,),
    ),
    # The same with a random word: what a machine computes of it.
    Mathematics(
        "by_word",
        2,
        parameters=4,
        steepest=1.0,
        chain=(0,),
        rounds=True,
        samples=((11.0, -14.0, 65504.0, 0.0), (11.0, -14.0, 65504.0, 1.0)),
        slopes=(lambda s: s.g, zero),
    ),
    # First a key; further operands are the place of an element and two words of the step. Two
    # values that are close differ by one step at most, because they get the same word.
    Mathematics(
        "stochastic",
        5,
        parameters=5,
        steepest=1.0,
        chain=(0,),
        rounds=True,
        samples=((0.0, 11.0, -14.0, 65504.0, 0.0), (7.0, 11.0, -14.0, 65504.0, 1.0)),
        slopes=(lambda s: s.g, zero, zero, zero, zero),
    ),
    # Floats of a format numbered in their order, and back: parameters are its digits and its least
    # exponent. Both are straight lines between the numbers of the format, and never fall.
    *(
        Mathematics(
            name,
            1,
            parameters=2,
            ends_decide=True,
            chain=(0,),
            carries_identity_of=("sum",),
            far=True,
            samples=((5.0, 1.0), (4.0, -7.0)),
        )
        for name in ("to_code", "from_code")
    ),
    # A number times an integer of a byte: the bits of the second operand from the fifth one on, as
    # many as the parameter says, minus the fourth operand, times the third.
    Mathematics(
        "packed_mul",
        5,
        parameters=1,
        ends_decide=True,
        by_bits=(1, 4),
        whole=True,
        samples=((4.0,), (8.0,), (2.0,)),
        slopes=(of_packed_number, zero, of_packed_scale, lambda s: -(s.g * s.a * s.c), zero),
    ),
)
"""The functions that a body may name, users' included, by name."""


PRODUCTS = ("mul", "scaled_mul")
"""The functions whose sums are sums of products, which the multiplying units compute."""

SCALED = "scaled_mul"
"""The function of products of 8-bit floats: a * b times a constant power of two."""

PACKED = "packed_mul"
"""The function of products with integers that share a byte."""

TO_NEAREST = "to_nearest"
"""The function that rounds to nearest."""

STOCHASTIC = "stochastic"
"""The function that rounds stochastically, by words that no plan changes."""

DRAWN = "drawn"
"""The function that rounds stochastically, by words of the generators of the workers."""

BY_WORD = "by_word"
"""The function that rounds as a word says. A machine computes DRAWN by it."""

TO_CODE = "to_code"
"""The function from the numbers of a format to their places in order."""

CODES = (TO_CODE, "from_code")
"""The functions between the numbers of a format and their places in order."""


def register_function(function: Mathematics, owner: str) -> None:
    """Let bodies and chains name a user's scalar function.

    Raises InputError if the name is taken.
    """
    add_entry(FUNCTIONS, "scalar function", function.name, function, owner)


def chain_operands(name: str) -> tuple[int, ...]:
    """The operands of a function that may be the value of an earlier stage.

    Empty for an unknown function, and for one that cannot be a stage.
    """
    function = FUNCTIONS.get(name)
    return () if function is None else function.chain


def chainable() -> dict[str, tuple[int, ...]]:
    """The functions that may be stages, each with its chain_operands."""
    return {name: function.chain for name, function in FUNCTIONS.items() if function.chain}
