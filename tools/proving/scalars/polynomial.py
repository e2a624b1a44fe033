"""Normal forms: quotients of polynomials whose unknowns are variables and other functions.

Two terms with one normal form are equal wherever everything in them is a number. Floats are real
numbers; integers are counted modulo their width, without quotients.

    sum_k (x[k] * w[k]) * s   and   sum_k x[k] * (w[k] * s)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import isfinite

from ....dialects.scalar_meanings import LAWS
from ..terms import Apply, Const, Merge, Term, Var, subterms
from .types import TRUTH, is_float, width
from .unfold import unfolded

Monomial = tuple[tuple[int, int], ...]
"""Unknowns, by number, with their exponents, in order."""
Polynomial = dict[Monomial, Fraction]
"""The coefficient of each monomial; none is 0."""

ONE: Polynomial = {(): Fraction(1)}
MOST = 20_000
"""Products of polynomials have at most this many terms."""
ALIKE = Fraction(1, 2**44)
"""Coefficients are rounded numbers: two that differ by less than this part are the same."""
KEPT = frozenset({"max", "min", "relu", "clip", "leaky_relu", "sign", "gate", "match"})
"""Functions that stay whole in normal forms, because nothing is gained from their choices."""


class TooLarge(Exception):
    """Raised if a normal form has too many terms."""


@dataclass(frozen=True)
class Quotient:
    """A quotient of polynomials.

    Attributes:
        above, below: numerator and denominator.
        modulus: what coefficients of integers are counted by; 0 for floats.
    """

    above: Polynomial
    below: Polynomial
    modulus: int = 0


@dataclass
class _Unknown:
    """A function whose operands are normal forms, or a variable.

    Attributes:
        number: counts the unknowns.
    """

    name: str
    args: tuple[Quotient, ...]
    number: int


@dataclass
class NormalForms:
    """The normal forms of terms that share their unknowns.

    Attributes:
        rounded: whether two coefficients were the same only up to rounding.
    """

    rounded: bool = False
    _unknowns: dict[str, list[_Unknown]] = field(default_factory=dict[str, list[_Unknown]])
    _count: int = 0
    _squares: dict[int, Quotient] = field(default_factory=dict[int, Quotient])
    _made: dict[Term, Quotient] = field(default_factory=dict[Term, Quotient])

    def equal(self, left: Term, right: Term) -> bool:
        """Whether two terms have one normal form. Raises TooLarge."""
        a, b = (self.of(unfolded(each, basic=KEPT)) for each in (left, right))
        return self._same(a, b)

    def of(self, term: Term) -> Quotient:
        """The normal form of an unfolded term. Raises TooLarge."""
        for each in subterms(term):
            if each not in self._made:
                self._made[each] = self._read(each)
        return self._made[term]

    def _read(self, term: Term) -> Quotient:
        modulus = 0 if is_float(term.dtype) else 1 << width(term.dtype)
        match term:
            case Const(value=value):
                if not isfinite(value):
                    return self._unknown(f"{value}:{term.dtype}", (), modulus)
                return _constant(Fraction(value), modulus)
            case Var(name=name, dtype=dtype):
                return self._unknown(f"{name}:{dtype}", (), modulus)
            case Merge(combiner=combiner, args=args):
                return self._merge(term, combiner, [self._made[arg] for arg in args], modulus)
            case Apply():
                return self._apply(term, [self._made[arg] for arg in term.args], modulus)

    def _merge(self, term: Merge, combiner: str, args: list[Quotient], modulus: int) -> Quotient:
        if term.dtype == TRUTH or combiner not in ("sum", "prod"):
            kept = self._distinct(args)
            if len(kept) == 1:
                return kept[0]
            name = combiner if combiner in ("max", "min") else f"merge {combiner}"
            return self._extreme(name, kept, modulus)
        if combiner == "sum" and all(arg.below == ONE for arg in args):
            total: Polynomial = {}
            for arg in args:
                _add_into(total, arg.above, modulus)
            return Quotient(total, ONE, modulus)
        made = _constant(Fraction(combiner == "prod"), modulus)
        for arg in args:
            made = self._times(made, arg) if combiner == "prod" else self._plus(made, arg)
        return made

    def _apply(self, term: Apply, args: list[Quotient], modulus: int) -> Quotient:
        name, kinds = term.function, [arg.dtype for arg in term.args]
        whole_ring = modulus and term.dtype != TRUTH
        if all(kind == term.dtype for kind in kinds) and (whole_ring or not modulus):
            match name:
                case "add":
                    return self._plus(args[0], args[1])
                case "sub":
                    return self._plus(args[0], _scaled(args[1], -1))
                case "neg":
                    return _scaled(args[0], -1)
                case "mul":
                    return self._times(args[0], args[1])
                case "div" if not modulus:
                    return self._over(args[0], args[1])
                case _:
                    pass
        if name == "identity":
            if is_float(kinds[0]) and not modulus:
                return args[0]
            known = _known(args[0])
            if known is not None and known.denominator == 1 and kinds[0] != TRUTH and not modulus:
                return _constant(known, modulus)
        if not modulus:
            return self._of_floats(term, args)
        return self._unknown(_key(term), tuple(args), modulus)

    def _of_floats(self, term: Apply, args: list[Quotient]) -> Quotient:
        name = term.function
        if name in ("max", "min"):
            return self._extreme(name, self._distinct(args), 0)
        if name == "sqrt":
            known = self._unknown(name, tuple(args), 0)
            ((monomial, _),) = known.above.items()
            self._squares[monomial[0][0]] = args[0]
            return known
        laws = LAWS.get(name)
        if laws is None or len(args) != 1:
            return self._unknown(_key(term), tuple(args), 0)
        known = _known(args[0])
        for at, value in laws.at:
            if known is not None and isfinite(at) and isfinite(value) and known == Fraction(at):
                return _constant(Fraction(value), 0)
        inner = self._inverse_of(args[0], laws.inverse)
        if inner is not None:
            return inner
        if laws.turns_sums:
            return self._exponential(name, args[0])
        return self._with_parity(name, args[0], laws.parity)

    def _inverse_of(self, arg: Quotient, inverse: str) -> Quotient | None:
        """The operand of an inverse function, if that is what a normal form is."""
        if not inverse:
            return None
        for each in self._unknowns.get(inverse, ()):
            if self._same(arg, _single(each.number)):
                return each.args[0]
        return None

    def _exponential(self, name: str, arg: Quotient) -> Quotient:
        """exp(c1 m1 + c2 m2) as a product of exp(m)^c for whole c, so that products add up."""
        if arg.below != ONE:
            return self._unknown(name, (arg,), 0)
        made = _constant(Fraction(1), 0)
        for monomial, factor in arg.above.items():
            whole = factor.denominator == 1 and abs(factor) <= 16 and monomial != ()
            unit = Fraction(1) if whole else factor
            part = self._unknown(name, (Quotient({monomial: unit}, ONE),), 0)
            count = int(factor) if whole else 1
            for _ in range(abs(count)):
                made = self._times(made, part) if count > 0 else self._over(made, part)
        return made

    def _with_parity(self, name: str, arg: Quotient, parity: int) -> Quotient:
        if parity:
            turned = _scaled(arg, -1)
            for each in self._unknowns.get(name, ()):
                if self._same(each.args[0], turned):
                    found = _single(each.number)
                    return found if parity > 0 else _scaled(found, -1)
        return self._unknown(name, (arg,), 0)

    def _distinct(self, args: list[Quotient]) -> list[Quotient]:
        """The operands of an extreme, each once."""
        kept: list[Quotient] = []
        for arg in args:
            if not any(self._same(arg, other) for other in kept):
                kept.append(arg)
        return kept

    def _extreme(self, name: str, args: list[Quotient], modulus: int) -> Quotient:
        """An extreme of several normal forms, in any order; extremes of extremes are one."""
        flat: list[Quotient] = []
        for arg in args:
            inner = next(
                (
                    e
                    for e in self._unknowns.get(name, ())
                    if self._same(arg, _single(e.number, modulus))
                ),
                None,
            )
            flat += inner.args if inner is not None else (arg,)
        flat = self._distinct(flat)
        if len(flat) == 1:
            return flat[0]
        for each in self._unknowns.setdefault(name, []):
            if len(each.args) == len(flat) and all(
                any(self._same(arg, other) for other in each.args) for arg in flat
            ):
                return _single(each.number, modulus)
        return self._new(name, tuple(flat), modulus)

    def _unknown(self, name: str, args: tuple[Quotient, ...], modulus: int) -> Quotient:
        for each in self._unknowns.setdefault(name, []):
            if all(map(self._same, each.args, args)):
                return _single(each.number, modulus)
        return self._new(name, args, modulus)

    def _new(self, name: str, args: tuple[Quotient, ...], modulus: int) -> Quotient:
        made = _Unknown(name, args, self._count)
        self._count += 1
        self._unknowns.setdefault(name, []).append(made)
        return _single(made.number, modulus)

    # Arithmetic

    def _plus(self, a: Quotient, b: Quotient) -> Quotient:
        if a.below == b.below:
            total = dict(a.above)
            _add_into(total, b.above, a.modulus)
            return Quotient(total, a.below, a.modulus)
        total = self._product(a.above, b.below, a.modulus)
        _add_into(total, self._product(b.above, a.below, a.modulus), a.modulus)
        return Quotient(total, self._product(a.below, b.below, a.modulus), a.modulus)

    def _times(self, a: Quotient, b: Quotient) -> Quotient:
        return Quotient(
            self._product(a.above, b.above, a.modulus),
            self._product(a.below, b.below, a.modulus),
            a.modulus,
        )

    def _over(self, a: Quotient, b: Quotient) -> Quotient:
        above = self._product(a.above, b.below, 0)
        below = self._product(a.below, b.above, 0)
        if not below:
            # Division by a term that is always 0: nothing is known.
            return self._unknown("div", (a, b), 0)
        if len(below) == 1:
            # A quotient by a monomial is plainer with whatever cancels.
            above, below = _cancelled(above, below)
        return Quotient(above, below)

    def _product(self, a: Polynomial, b: Polynomial, modulus: int) -> Polynomial:
        if a is ONE:
            return b
        if b is ONE:
            return a
        if len(a) * len(b) > MOST:
            raise TooLarge
        made: Polynomial = {}
        for one, factor in a.items():
            for other, more in b.items():
                _count(made, _joined(one, other), factor * more, modulus)
        return self._without_squares(made, modulus) if self._squares else made

    def _without_squares(self, polynomial: Polynomial, modulus: int) -> Polynomial:
        """The polynomial with the operands of square roots in the place of their squares."""
        made: Polynomial = {}
        for monomial, factor in polynomial.items():
            root = next((n for n, power in monomial if power > 1 and n in self._squares), None)
            if root is None or self._squares[root].below != ONE:
                _count(made, monomial, factor, modulus)
                continue
            rest = tuple(
                (n, power - 2 * (n == root)) for n, power in monomial if n != root or power > 2
            )
            _add_into(
                made, self._product({rest: factor}, self._squares[root].above, modulus), modulus
            )
        return made

    def _same(self, a: Quotient, b: Quotient) -> bool:
        if a.modulus != b.modulus:
            return False
        if a.below == b.below:
            return self._alike(a.above, b.above, a.modulus)
        return self._alike(
            self._product(a.above, b.below, 0), self._product(b.above, a.below, 0), 0
        )

    def _alike(self, a: Polynomial, b: Polynomial, modulus: int) -> bool:
        if a == b:
            return True
        if modulus or a.keys() != b.keys():
            return False
        if not all(abs(value - b[key]) <= ALIKE * abs(value) for key, value in a.items()):
            return False
        self.rounded = True
        return True


def _constant(value: Fraction, modulus: int) -> Quotient:
    value = value % modulus if modulus else value
    return Quotient({(): value} if value else {}, ONE, modulus)


def _single(number: int, modulus: int = 0) -> Quotient:
    return Quotient({((number, 1),): Fraction(1)}, ONE, modulus)


def _known(a: Quotient) -> Fraction | None:
    """The value of a constant normal form."""
    if a.below != ONE or any(monomial for monomial in a.above):
        return None
    return a.above.get((), Fraction(0))


def _scaled(a: Quotient, factor: int) -> Quotient:
    made: Polynomial = {}
    for monomial, value in a.above.items():
        _count(made, monomial, value * factor, a.modulus)
    return Quotient(made, a.below, a.modulus)


def _count(made: Polynomial, monomial: Monomial, value: Fraction, modulus: int) -> None:
    total = made.get(monomial, Fraction(0)) + value
    total = total % modulus if modulus else total
    if total:
        made[monomial] = total
    else:
        made.pop(monomial, None)


def _add_into(total: Polynomial, more: Mapping[Monomial, Fraction], modulus: int) -> None:
    for monomial, value in more.items():
        _count(total, monomial, value, modulus)


def _joined(a: Monomial, b: Monomial) -> Monomial:
    if not a or not b:
        return a or b
    powers = dict(a)
    for number, power in b:
        powers[number] = powers.get(number, 0) + power
    return tuple(sorted(powers.items()))


def _cancelled(above: Polynomial, below: Polynomial) -> tuple[Polynomial, Polynomial]:
    """Both without the powers that every term has, and with 1 as the factor below."""
    ((divisor, factor),) = below.items()
    shared = dict(divisor)
    for monomial in above:
        powers = dict(monomial)
        shared = {n: min(power, powers.get(n, 0)) for n, power in shared.items()}
    plain = {_less(monomial, shared): value / factor for monomial, value in above.items()}
    rest = _less(divisor, shared)
    return plain, ONE if not rest else {rest: Fraction(1)}


def _less(monomial: Monomial, shared: Mapping[int, int]) -> Monomial:
    return tuple((n, p - shared.get(n, 0)) for n, p in monomial if p > shared.get(n, 0))


def _key(term: Apply) -> str:
    constants = ",".join(map(repr, term.parameters))
    kinds = ",".join("float" if is_float(arg.dtype) else arg.dtype for arg in term.args)
    kind = "float" if is_float(term.dtype) else term.dtype
    return f"{term.function}[{constants}]({kinds})->{kind}"
