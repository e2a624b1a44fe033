"""Decides whether two terms are equal for all values of their variables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from time import thread_time

from ....dialects.scalar_meanings import has_meaning, why_unknown
from ..terms import Apply, Const, Term, Var, replaced, subterms, variables
from . import ieee, reals
from .equality import Equality, Special
from .evaluate import double_points, in_doubles, values_of
from .exact import exact_form
from .interpret import Unreadable
from .polynomial import NormalForms, TooLarge
from .precision import coarser
from .search import Found, arrays_of, differ_at, holds_at, search, stay_different
from .solver import Answer, fulfilled
from .types import is_float
from .unfold import unfolded

PRODUCTS = 3
"""Products and quotients of floats to the bit take long: more than this many are not tried."""
BITS_SHARE = 0.4
"""The part of the time that the solver may spend on bits."""
LARGE = 80
"""Special values of terms of more operations than this are not decided."""


def decide(left: Term, right: Term, assumptions: Sequence[Term], limit_s: float) -> Equality:
    """Whether two terms are equal: see the function of this name in the folder's __init__.py."""
    begin = thread_time()
    if left.dtype != right.dtype:
        raise ValueError(f"terms of {left.dtype} and {right.dtype}; need one type")
    question = _Question(left, right, tuple(assumptions), begin + limit_s)
    try:
        found = question.answer()
    except Unreadable as problem:
        found = Equality("undecided", reason=str(problem))
    except RecursionError:
        found = Equality("undecided", reason="the terms are too deep")
    return replace(found, seconds=thread_time() - begin)


@dataclass
class _Question:
    """One question.

    Attributes:
        end: the end of its processor time, on the clock of this thread.
    """

    left: Term
    right: Term
    assumptions: tuple[Term, ...]
    end: float

    def __post_init__(self) -> None:
        found = dict.fromkeys(
            each for term in (self.left, self.right, *self.assumptions) for each in variables(term)
        )
        self.variables = tuple(found)
        self.of_floats = is_float(self.left.dtype) or any(
            is_float(each.dtype) for term in (self.left, self.right) for each in subterms(term)
        )

    def left_over(self) -> float:
        """The seconds that are left."""
        return self.end - thread_time()

    def answer(self) -> Equality:
        """The verdict. Raises Unreadable."""
        if self.left == self.right:
            return Equality("equal", "bits", "same")
        found = search(self.left, self.right, self.variables, self.assumptions)
        if found.values is not None:
            return Equality("different", example=found.values)
        return self._of_floats(found) if self.of_floats else self._of_integers()

    # Integers

    def _of_integers(self) -> Equality:
        try:
            if NormalForms().equal(self.left, self.right):
                return Equality("equal", "bits", "same")
        except TooLarge:
            pass
        bits = ieee.Bits()
        answer = self._ask(bits, lambda: bits.formula(self._one) != bits.formula(self._other))
        if answer.found == "no":
            return Equality("equal", "bits", "same")
        if answer.found == "yes":
            point: dict[Var, float] = {
                each: reals.whole_in(answer.model, bits.formula(each), each.dtype)
                for each in self.variables
            }
            if not bits.opaque or search_differs(self.left, self.right, point):
                return Equality("different", example=point)
            return Equality("undecided", reason=self._unknown(bits.opaque))
        return Equality("undecided", reason=answer.reason)

    @cached_property
    def _one(self) -> Term:
        return unfolded(self.left)

    @cached_property
    def _other(self) -> Term:
        return unfolded(self.right)

    @cached_property
    def _bits(self) -> tuple[Term, Term]:
        """Both terms, as they are computed to the bit."""
        left, right = (unfolded(each, to_the_bit=True) for each in (self.left, self.right))
        return exact_form(left), exact_form(right)

    def _ask(
        self,
        reading: reals.Reals | ieee.Bits,
        question: Callable[[], object],
        seconds: float | None = None,
    ) -> Answer:
        """Whether the question has an answer under the assumptions."""
        asked = question()
        if asked is False:
            return Answer("no")
        facts = [reading.formula(unfolded(each)) for each in self.assumptions]
        if any(fact is False for fact in facts):
            return Answer("no")
        facts = [fact for fact in facts if fact is not True]
        facts += [] if asked is True else [asked]
        if isinstance(reading, reals.Reals):
            facts += reading.laws()
        left = self.left_over()
        return fulfilled([*facts, *reading.facts], left if seconds is None else min(left, seconds))

    def _unknown(self, names: set[str]) -> str:
        missing = sorted(names)
        first = missing[0].partition("[")[0]
        return f"{first}: {why_unknown(first)}"

    # Floats

    def _of_floats(self, found: Found) -> Equality:
        if self._bits[0] == self._bits[1] and found.bits is None and found.zeros is None:
            return Equality("equal", "bits", "same")
        undecided = self._values(found)
        if undecided is not None:
            return undecided
        special, example, reason = self._special(found)
        if found.bits is None and special in ("same", "zeros") and self._same_bits(special):
            return Equality("equal", "bits", special, special_example=example, reason=reason)
        narrow = coarser(self.left, self.right)
        if narrow:
            return Equality("undecided", reason=f"only the right side rounds to {narrow}")
        return Equality("equal", "rounding", special, special_example=example, reason=reason)

    def _values(self, found: Found) -> Equality | None:
        """The verdict, unless finite results are equal up to rounding; None if they are."""
        try:
            if NormalForms().equal(self.left, self.right):
                return None
        except TooLarge:
            pass
        reading = reals.Reals(finite=True)
        for point in found.maybe:
            if self._differ_exactly(point):
                return Equality("different", example=point)
        answer = self._ask(reading, lambda: self._unequal(reading))
        if answer.found == "no":
            return None
        if answer.found == "unknown":
            return Equality("undecided", reason=answer.reason)
        point = self._point(reading, answer)
        pure = not reading.calls and not reading.opaque
        if pure and self._differ_exactly(point):
            return Equality("different", example=point)
        if not pure and stay_different(self.left, self.right, point) and self._fulfils(point):
            return Equality("different", example=point)
        if reading.opaque:
            return Equality("undecided", reason=self._unknown(reading.opaque))
        if reading.calls:
            named = ", ".join(sorted(reading.calls))
            return Equality("undecided", reason=f"the laws of {named} do not decide it")
        return Equality("undecided", reason="the solver's example is no float, or is a rounded one")

    def _unequal(self, reading: reals.Reals) -> object:
        one, other = reading.formula(self._one), reading.formula(self._other)
        if is_float(self.left.dtype):
            return reals.different_reals(one, other)
        return one != other

    def _point(self, reading: reals.Reals, answer: Answer) -> dict[Var, float]:
        point: dict[Var, float] = {}
        for each in self.variables:
            formula = reading.formula(each)
            if is_float(each.dtype):
                value = reals.value_in(answer.model, formula)
                # The point is a number of the type.
                value = float(arrays_of({each: value})[each][0])
            else:
                value = reals.whole_in(answer.model, formula, each.dtype)
            point[each] = value
        return point

    def _fulfils(self, point: dict[Var, float]) -> bool:
        return all(holds_at(each, point) for each in self.assumptions)

    def _differ_exactly(self, point: dict[Var, float]) -> bool:
        """Whether results differ at a point, computed without rounding, or by far."""
        if not self._fulfils(point):
            return False
        values: dict[Var, Term] = {each: Const(v, each.dtype) for each, v in point.items()}
        reading = reals.Reals(finite=True)
        one, other = (
            reading.formula(unfolded(replaced(each, values))) for each in (self.left, self.right)
        )
        if reading.calls or reading.opaque:
            return stay_different(self.left, self.right, point)
        asked = reals.different_reals(one, other) if is_float(self.left.dtype) else one != other
        if isinstance(asked, bool):
            return asked and differ_at(self.left, self.right, point)
        answer = fulfilled([asked], min(1.0, self.left_over()))
        return answer.found == "yes" and differ_at(self.left, self.right, point)

    def _special(self, found: Found) -> tuple[Special, dict[Var, float], str]:
        """Whether special values are the same, values where they differ, and why it is open."""
        if found.special is not None:
            return "differ", found.special, ""
        size = sum(1 for term in (self._one, self._other) for _ in subterms(term))
        if size > LARGE:
            return "open", {}, f"special values of {size} operations are too many"
        try:
            if found.zeros is None:
                answer = self._specially(zeros=True)
                if answer is not None and answer.found == "no":
                    return "same", {}, ""
            answer = self._specially(zeros=False)
        except Unreadable as problem:
            return "open", {}, str(problem)
        if answer is not None and answer.found == "no":
            return "zeros", dict(found.zeros or {}), ""
        if answer is None or answer.found == "yes":
            reading, example = self._last
            if example is not None:
                return "differ", example, ""
            return (
                "open",
                {},
                self._unknown(reading.opaque)
                if reading.opaque
                else ("the laws do not decide what is special"),
            )
        return "open", {}, answer.reason

    def _specially(self, *, zeros: bool) -> Answer | None:
        reading = reals.Reals(finite=False)

        def question() -> object:
            one, other = reading.formula(self._one), reading.formula(self._other)
            if is_float(self.left.dtype):
                return reals.different(one, other, zeros=zeros)
            return one != other

        answer = self._ask(reading, question, self.left_over() * 0.6)
        self._last: tuple[reals.Reals, dict[Var, float] | None] = (reading, None)
        if answer.found == "yes":
            point = self._point(reading, answer)
            again = search_special(self.left, self.right, point, zeros=zeros)
            if again and self._fulfils(point):
                self._last = (reading, point)
        return answer

    def _same_bits(self, special: Special) -> bool:
        """Whether the bits are proved to be the same, or all but signs of zeros."""
        one, other = self._bits
        if _products(one) + _products(other) > PRODUCTS:
            return False
        bits = ieee.Bits()
        zeros = special == "same"

        def question() -> object:
            a, b = bits.formula(one), bits.formula(other)
            return ieee.different(a, b, zeros=zeros) if is_float(one.dtype) else a != b

        try:
            answer = self._ask(bits, question, self.left_over() * BITS_SHARE)
        except Unreadable:
            return False
        return answer.found == "no"


def search_differs(left: Term, right: Term, point: dict[Var, float]) -> bool:
    """Whether integer results differ at a point."""
    arrays = arrays_of(point)
    return bool(values_of(left, arrays, 1)[0] != values_of(right, arrays, 1)[0])


def search_special(left: Term, right: Term, point: dict[Var, float], *, zeros: bool) -> bool:
    """Whether what is special differs at a point."""
    arrays = double_points(arrays_of(point))
    a, b = (float(values_of(in_doubles(each), arrays, 1)[0]) for each in (left, right))
    if (a != a) != (b != b):
        return True
    if abs(a) == float("inf") or abs(b) == float("inf"):
        return a != b and a == a
    signs = str(a).startswith("-") != str(b).startswith("-")
    return a != b or (zeros and a == 0 == b and signs)


def _products(term: Term) -> int:
    slow = ("mul", "div", "sqrt")
    return sum(isinstance(each, Apply) and each.function in slow for each in subterms(term))


def missing_meanings(term: Term) -> tuple[str, ...]:
    """The functions of a term of which only congruence is known."""
    found = {
        each.function
        for each in subterms(unfolded(term))
        if isinstance(each, Apply)
        and not has_meaning(each.function, whole=not is_float(each.args[-1].dtype))
    }
    return tuple(sorted(found))
