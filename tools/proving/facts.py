"""What is known of sizes and dimensions, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from .indices import Atom, Poly, Quotient, Remainder
from .solver import z3

EFFORT = 1_000_000
"""The steps of the solver for one question, about a second. They are counted, unlike time, so that
the answers do not depend on the host. A question that takes more is answered by no."""


@dataclass(frozen=True)
class Facts:
    """Polynomials that are at least 0.

    Attributes:
        lows: the smallest value of each size, by name.
        ranges: for each dimension by name, its size: the dimension is 0 to size - 1.
        held: further polynomials that are at least 0.
    """

    lows: dict[str, int]
    ranges: dict[str, Poly]
    held: tuple[Poly, ...] = ()
    _answers: dict[Poly, bool] = field(default_factory=dict[Poly, bool], compare=False)

    def also(self, held: Iterable[Poly]) -> Facts:
        """The same facts and further ones."""
        return Facts(self.lows, self.ranges, (*self.held, *held))

    def holds(self, poly: Poly) -> bool:
        """Whether a polynomial is at least 0 wherever the facts hold. False if it is not known."""
        constant = poly.constant
        if constant is not None:
            return constant >= 0
        if poly in self.held:
            return True
        if poly not in self._answers:
            self._answers[poly] = self._quickly(poly) or self._refutes(-poly - 1)
        return self._answers[poly]

    def fails(self, poly: Poly) -> bool:
        """Whether a polynomial is below 0 wherever the facts hold."""
        return self.holds(-poly - 1)

    def is_zero(self, poly: Poly) -> bool:
        """Whether a polynomial is 0 wherever the facts hold."""
        return not poly.terms or (poly.constant is None and self.holds(poly) and self.holds(-poly))

    def possible(self) -> bool:
        """Whether some sizes and dimensions meet the facts, as far as is known."""
        return not self._refutes(None)

    def _quickly(self, poly: Poly) -> bool:
        """Whether the smallest value of each term on its own shows that the sum is not negative."""
        low = 0
        for product, c in poly.terms:
            if c < 0:
                return False
            least = c
            for atom in product:
                if not isinstance(atom, str):
                    if isinstance(atom, Quotient):
                        return False
                    least = 0
                else:
                    least *= self.lows.get(atom, 0)
            low += least
        return low >= 0

    def _refutes(self, poly: Poly | None) -> bool:
        """Whether no sizes and dimensions meet the facts and make a polynomial at least 0."""
        made = _Query(self)
        if poly is not None:
            made.add(poly)
        for each in self.held:
            made.add(each)
        return made.impossible()


class _Query:
    """A question to z3: the facts about all names that occur in it."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.solver: Any = z3().Solver()
        self.solver.set("rlimit", EFFORT)
        self.known: dict[Atom, Any] = {}

    def add(self, poly: Poly) -> None:
        self.solver.add(self.term(poly) >= 0)

    def term(self, poly: Poly) -> Any:
        total: Any = z3().IntVal(0)
        for product, c in poly.terms:
            each: Any = z3().IntVal(c)
            for atom in product:
                each = each * self.atom(atom)
            total = total + each
        return total

    def atom(self, atom: Atom) -> Any:
        if atom not in self.known:
            self.known[atom] = made = z3().Int(str(atom))
            if isinstance(atom, str):
                self._range(atom, made)
            else:
                of, by = self.term(atom.of), self.term(atom.by)
                # Both numbers of one division share their meaning.
                quotient = made if isinstance(atom, Quotient) else self._whole(atom)
                left = of - by * quotient
                self.solver.add(by >= 1, left >= 0, left < by)
                if isinstance(atom, Remainder):
                    self.solver.add(made == left)
        return self.known[atom]

    def _whole(self, atom: Remainder) -> Any:
        return self.atom(Quotient(atom.of, atom.by))

    def _range(self, name: str, made: Any) -> None:
        low = self.facts.lows.get(name)
        self.solver.add(made >= (0 if low is None else low))
        size = self.facts.ranges.get(name)
        if size is not None:
            self.solver.add(made < self.term(size))

    def impossible(self) -> bool:
        return self.solver.check() == z3().unsat
