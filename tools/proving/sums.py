"""Normal forms of sums and extremes over dimensions of any size.

    sum(sum(x for i) for j)           ->  sum(x for i, j)
    sum(x[i] * c for i)               ->  sum(x[i] for i) * c
    sum(x + y for i)                  ->  sum(x for i) + sum(y for i)
    sum(x if i >= k else y for i<n)   ->  sum(y for i<k) + sum(x[i := k + i] for i<n - k)
    max(x for i)                      ->  x, if i does not occur in it and has a value

Only laws of the combiners are used. Sums of floats are equal up to rounding then.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from .bodies import identity_of
from .facts import Facts
from .indices import Poly
from .terms import Const
from .trees import Call, Case, Place, Reduce, Tree, at, below, names_in, rebuilt

JOINS = {"sum": "add", "prod": "mul", "max": "max", "min": "min"}
"""The scalar function that merges two results of a combiner."""

ADDED = ("add", "sub")
"""The functions whose sum is the function of the sums."""


class Sums:
    """Makes normal forms. Names new dimensions.

    Attributes:
        facts: what is known of sizes and dimensions.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self._count = 0

    def _fresh(self, size: Poly) -> str:
        self._count += 1
        name = f"k{self._count}"
        while name in self.facts.ranges:
            self._count += 1
            name = f"k{self._count}"
        self.facts.ranges[name] = size
        return name

    def normal(self, tree: Tree, facts: Facts) -> Tree:
        """A tree without choices that the facts decide, and with its sums in normal form."""
        if isinstance(tree, Case):
            if any(map(facts.fails, tree.conditions)):
                return self.normal(tree.other, facts)
            left = tuple(each for each in tree.conditions if not facts.holds(each))
            if not left:
                return self.normal(tree.then, facts)
            then = self.normal(tree.then, facts.also(left))
            other = self.normal(tree.other, facts)
            return Case(left, then, other) if then != other else then
        inner = rebuilt(tree, lambda each: self.normal(each, facts))
        return self._reduced(inner, facts) if isinstance(inner, Reduce) else inner

    def _reduced(self, tree: Reduce, facts: Facts) -> Tree:
        if any(size.constant == 0 for _, size in tree.dims):
            return identity_of(tree.combiner, tree.dtype)
        if not tree.dims:
            return tree.body
        body = tree.body
        if isinstance(body, Reduce) and (body.combiner, body.dtype) == (tree.combiner, tree.dtype):
            return self._reduced(replace(body, dims=(*tree.dims, *body.dims)), facts)
        found = self._cut(tree, facts) or self._without_a_dim(tree, facts)
        if found is not None:
            return found
        return (self._of_a_sum(tree, facts) if tree.combiner == "sum" else None) or tree

    def _cut(self, tree: Reduce, facts: Facts) -> Tree | None:
        """The reduction in two parts, if a condition on one of its dimensions cuts it."""
        names = {name for name, _ in tree.dims}
        for condition in dict.fromkeys(_conditions(tree.body)):
            for name, size in tree.dims:
                slope = condition.slope(name)
                if slope not in (1, -1) or condition.names & names != frozenset((name,)):
                    continue
                # From `edge` on, the condition changes.
                rest = condition - Poly.of(name) * slope
                edge = -rest if slope == 1 else rest + 1
                if not (facts.holds(edge) and facts.holds(size - edge)):
                    continue
                parts = [
                    self._part(tree, name, edge, Poly(), facts),
                    self._part(tree, name, size - edge, edge, facts),
                ]
                nothing = identity_of(tree.combiner, tree.dtype)
                kept = [each for each in parts if each != nothing]
                if len(kept) < 2:
                    return kept[0] if kept else nothing
                return Call(JOINS[tree.combiner], tuple(kept), tree.dtype)
        return None

    def _part(self, tree: Reduce, name: str, size: Poly, begin: Poly, facts: Facts) -> Tree:
        """The points of a reduction along one dimension from `begin` on."""
        if size.constant == 1:
            body, dims = at(tree.body, {name: begin}), tree.dims
            dims = tuple(each for each in dims if each[0] != name)
        else:
            new = self._fresh(size)
            body = at(tree.body, {name: begin + Poly.of(new)})
            dims = tuple((new, size) if each == name else (each, n) for each, n in tree.dims)
        body = self.normal(body, facts)
        # The identity adds nothing, however often it is merged.
        if isinstance(body, Const) and body == identity_of(tree.combiner, body.dtype):
            return identity_of(tree.combiner, tree.dtype)
        return self._reduced(replace(tree, body=body, dims=dims), facts)

    def _without_a_dim(self, tree: Reduce, facts: Facts) -> Tree | None:
        """The extreme without a dimension that its body does not depend on."""
        if tree.combiner not in ("max", "min"):
            return None
        used = names_in(tree.body)
        kept = tuple(
            (name, size) for name, size in tree.dims if name in used or not facts.holds(size - 1)
        )
        if len(kept) == len(tree.dims):
            return None
        return self._reduced(replace(tree, dims=kept), facts)

    def _of_a_sum(self, tree: Reduce, facts: Facts) -> Tree | None:
        """The sum with sums, signs and factors taken out of it."""
        body, dtype = tree.body, tree.dtype
        if not isinstance(body, Call) or body.dtype != dtype:
            return None
        if body.function in ADDED and all(each.dtype == dtype for each in body.args):
            parts = [self._reduced(replace(tree, body=each), facts) for each in body.args]
            return Call(body.function, tuple(parts), dtype)
        if body.function == "neg":
            inner = self._reduced(replace(tree, body=body.args[0]), facts)
            return Call("neg", (inner,), dtype)
        own = {name for name, _ in tree.dims}
        factors = list(_factors(body, dtype))
        outer = [each for each in factors if own.isdisjoint(names_in(each))]
        rest = [each for each in factors if each not in outer]
        if not outer or not rest:
            return None
        inner = self._reduced(replace(tree, body=_product(rest, dtype)), facts)
        return _product([inner, *outer], dtype)


def _factors(tree: Tree, dtype: str) -> Iterator[Tree]:
    """The factors of a product; the tree itself if it is none."""
    if isinstance(tree, Call) and tree.dtype == dtype:
        if tree.function == "mul":
            for each in tree.args:
                yield from _factors(each, dtype)
            return
        if tree.function == "scale":
            yield from _factors(tree.args[0], dtype)
            yield Const(tree.parameters[0], dtype)
            return
        if tree.function == "div":
            yield from _factors(tree.args[0], dtype)
            yield Call("reciprocal", (tree.args[1],), dtype)
            return
    yield tree


def _product(factors: Sequence[Tree], dtype: str) -> Tree:
    made = factors[0]
    for each in factors[1:]:
        made = Call("mul", (made, each), dtype)
    return made


def _conditions(tree: Tree) -> Iterator[Poly]:
    """The conditions in a tree, those of inner sums left out."""
    if isinstance(tree, Case):
        yield from tree.conditions
    if not isinstance(tree, Reduce):
        for each in below(tree):
            yield from _conditions(each)


def free_condition(tree: Tree, bound: frozenset[str] = frozenset()) -> Poly | None:
    """The first condition that depends on no dimension of a sum around it; None without one."""
    if isinstance(tree, Reduce):
        bound = bound | {name for name, _ in tree.dims}
    if isinstance(tree, Case):
        for each in tree.conditions:
            if bound.isdisjoint(each.names):
                return each
    for each in below(tree):
        found = free_condition(each, bound)
        if found is not None:
            return found
    return None


def has_sum(tree: Tree) -> bool:
    """Whether a tree has a sum or an extreme."""
    return isinstance(tree, Reduce) or any(map(has_sum, below(tree)))


def has_place(tree: Tree) -> bool:
    """Whether a tree reads the place of a point."""
    return isinstance(tree, Place) or any(map(has_place, below(tree)))
