"""Compares two elements at any index, at any sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import permutations
from time import process_time

from .bodies import Undecided, is_float
from .facts import Facts
from .indices import Poly
from .outcomes import Outcome, worst
from .sums import Sums, free_condition, has_place
from .terms import Apply, Const, Term, Var
from .trees import Call, Case, Element, Place, Reduce, Tree, at, below, shown

MOST_ORDERS = 120
"""The most orders of the dimensions of a sum that are tried."""
DEPTH = 12
"""The most choices that are split one after another."""

Decide = Callable[[Term, Term], Outcome]
"""How equal two terms are. A variable is named as an element, such as "x[i, 0]"."""


@dataclass
class Comparison:
    """Compares trees.

    Attributes:
        decide: compares terms.
        end: when the comparison gives up, in seconds of processor time.
    """

    facts: Facts
    decide: Decide
    end: float
    _sums: Sums = field(init=False)

    def __post_init__(self) -> None:
        self._sums = Sums(self.facts)

    def outcome(self, left: Tree, right: Tree) -> Outcome:
        """How equal two trees are, wherever the facts hold."""
        try:
            return self._compared(left, right, self.facts, 0)
        except RecursionError:
            return Outcome("undecided", reason="its expressions are nested too deeply")

    def _compared(self, left: Tree, right: Tree, facts: Facts, depth: int) -> Outcome:
        if process_time() > self.end:
            raise Undecided("the time was up")
        same = left == right
        left, right = self._sums.normal(left, facts), self._sums.normal(right, facts)
        if left == right:
            return _of_merges(left, same_order=same)
        condition = free_condition(left)
        if condition is None:
            condition = free_condition(right)
        if condition is not None:
            if depth == DEPTH:
                return Outcome("undecided", reason="more choices than are split")
            sides = (facts.also([condition]), facts.also([-condition - 1]))
            return worst(
                self._compared(left, right, each, depth + 1) for each in sides if each.possible()
            )
        reading = _Reading(self, facts, depth)
        one, other = reading.term(left), reading.term(right)
        found = self.decide(one, other)
        if found.verdict == "different" and (reading.sums or has_place(left) or has_place(right)):
            found = Outcome(
                "undecided", reason=f"{shown(left)} and {shown(right)} were not found equal"
            )
        if reading.sums and found.special == "differ":
            # The sums may not have the values for which special values differ.
            found = replace(found, special="open", special_model={})
        return worst([found, *reading.used]) if found.proved else found

    def same_sum(self, one: Reduce, other: Reduce, facts: Facts, depth: int) -> Outcome | None:
        """How equal two sums are; None if they were not found equal."""
        if (one.combiner, one.dtype, len(one.dims)) != (
            other.combiner,
            other.dtype,
            len(other.dims),
        ):
            return None
        tried = 0
        for renamed in _bijections(one, other, facts):
            tried += 1
            if tried > MOST_ORDERS or depth == DEPTH:
                break
            found = self._compared(one.body, renamed, facts, depth + 1)
            if found.proved:
                return worst([found, _of_merges(one, same_order=False)])
        return None


def _of_merges(tree: Tree, *, same_order: bool) -> Outcome:
    """How equal a tree is to itself, if what it merges has no order.

    Sums and products of floats are rounded as the order is. Of two zeros of different signs, an
    extreme is one or the other.

    Args:
        same_order: whether extremes have the same order.
    """
    combiners = set(_merges(tree))
    found = Outcome() if same_order or combiners.isdisjoint(("max", "min")) else _ZEROS
    return found if combiners.isdisjoint(("sum", "prod")) else found.rounded()


_ZEROS = Outcome(special="zeros")


def _merges(tree: Tree) -> Iterator[str]:
    """The combiners of the floats that a tree merges."""
    if isinstance(tree, Reduce) and is_float(tree.dtype):
        yield tree.combiner
    for each in below(tree):
        yield from _merges(each)


def _bijections(one: Reduce, other: Reduce, facts: Facts) -> Iterator[Tree]:
    """The body of the second sum over the dimensions of the first one, in every order of them.

    Each is also tried backwards.
    """
    fitting: list[dict[str, Poly]] = []
    for order in permutations(one.dims):
        pairs = list(zip(order, other.dims, strict=True))
        if all(facts.is_zero(a - b) for (_, a), (_, b) in pairs):
            fitting.append({theirs: Poly.of(own) for (own, _), (theirs, _) in pairs})
    for values in fitting:
        yield at(other.body, values)
    for values in fitting:
        for theirs, size in other.dims:
            backwards = {**values, theirs: size - 1 - values[theirs]}
            yield at(other.body, backwards)


@dataclass
class _Reading:
    """Reads trees without choices as terms. Equal sums and equal elements become one variable.

    Attributes:
        sums: those that have a variable.
        used: how equal the sums are that share a variable.
    """

    comparison: Comparison
    facts: Facts
    depth: int
    sums: list[tuple[Reduce, Var]] = field(default_factory=list[tuple[Reduce, Var]])
    elements: list[tuple[Element, Var]] = field(default_factory=list[tuple[Element, Var]])
    used: list[Outcome] = field(default_factory=list[Outcome])

    def term(self, tree: Tree) -> Term:
        """The tree as a term."""
        if isinstance(tree, Element):
            return self._element(tree)
        if isinstance(tree, Reduce):
            return self._sum(tree)
        if isinstance(tree, Place):
            whole = tree.value.constant
            return Var(f"({tree.value})", tree.dtype) if whole is None else Const(whole, tree.dtype)
        if isinstance(tree, Call):
            args = tuple(map(self.term, tree.args))
            return Apply(tree.function, args, tree.dtype, tree.parameters)
        if isinstance(tree, Case):
            raise Undecided(f"the choice {shown(tree)} depends on a point of a sum")
        return tree

    def _element(self, tree: Element) -> Term:
        for known, variable in self.elements:
            if (known.leaf, known.dtype) == (tree.leaf, tree.dtype) and all(
                self.facts.is_zero(a - b) for a, b in zip(known.index, tree.index, strict=True)
            ):
                return variable
        made = Var(tree.name, tree.dtype)
        self.elements.append((tree, made))
        return made

    def _sum(self, tree: Reduce) -> Term:
        for known, variable in self.sums:
            found = self.comparison.same_sum(known, tree, self.facts, self.depth)
            if found is not None:
                self.used.append(found)
                return variable
        made = Var(f"{tree.combiner} {len(self.sums)}", tree.dtype)
        self.sums.append((tree, made))
        self.used.append(_of_merges(tree, same_order=True))
        return made
