"""The element of a step at an index, from its space, its maps and its body."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial

from ...ir.geometry.space import rule_text
from .bodies import Undecided, begin_dtype, constant, function_value, keeps_more, stages_value
from .facts import Facts
from .indices import Poly, Quotient, Remainder, product_of
from .steps import Axis, Points, Step, Steps, View
from .terms import Apply, Const, Merge, Term, Var
from .trees import Call, Case, Element, Place, Reduce, Tree

Index = tuple[Poly, ...]


@dataclass
class Elements:
    """Elements of the steps of both sides of a rule.

    Attributes:
        facts: what is known of sizes, and of the dimensions that have been named so far.
        rounds: whether a body that was read keeps values between its functions unrounded.
    """

    steps: Steps
    facts: Facts
    rounds: bool = False
    _count: int = 0
    _known: dict[tuple[int, Index], Tree] = field(default_factory=dict[tuple[int, Index], "Tree"])

    def fresh(self, size: Poly) -> Poly:
        """A new dimension of a size. The index 0 if the size is 1."""
        if size.constant == 1:
            return Poly()
        self._count += 1
        name = f"i{self._count}"
        self.facts.ranges[name] = size
        return Poly.of(name)

    def of(self, number: int, index: Index) -> Tree:
        """The element of a step at an index of its shape. Raises Undecided."""
        key = number, index
        if key not in self._known:
            step = self.steps.steps[number]
            self._known[key] = _KINDS[step.kind](self, step, index)
        return self._known[key]

    def leaf(self, step: Step, index: Index) -> Tree:
        """An element that nothing computes."""
        return Element(step.name, index, step.dtype)

    def constant(self, step: Step, index: Index) -> Tree:
        """An element of a constant."""
        return Const(step.value, step.dtype)

    def reshaped(self, step: Step, index: Index) -> Tree:
        """An element of a tensor of another shape."""
        (source,) = step.operands
        return self.of(source, self.viewed(index, step.shape, self.steps.steps[source].shape))

    def moved(self, step: Step, index: Index) -> Tree:
        """The element of the last operand that writes it, else 0."""
        made: Tree = constant(0, step.dtype)
        for operand, points in zip(step.operands, step.spaces, strict=True):
            dims, conditions = self._writing(points, index, step.shape)
            read = self._read(operand, points.operands[0], dims)
            made = self._case(conditions, read, made)
        return made

    def _writing(
        self, points: Points, index: Index, shape: Index
    ) -> tuple[dict[int, Poly], list[Poly]]:
        """The point that writes an element, and the conditions under which there is one."""
        dims: dict[int, Poly] = {}
        conditions: list[Poly] = []
        for axis, at in zip(
            points.result.axes, self.viewed(index, shape, points.result.shape), strict=True
        ):
            if len(axis.terms) > 1 or axis.divisor != 1:
                raise Undecided("a result axis is no single dimension")
            place = at - axis.offset
            if not axis.terms:
                conditions += [place, -place]
                continue
            ((d, step),) = axis.terms
            if step < 1:
                raise Undecided("a result axis runs backwards")
            if step > 1:
                left = self.remainder(place, Poly.of(step))
                conditions += [left, -left]
                place = self.quotient(place, Poly.of(step))
            dims[d] = place
            conditions += [place, points.sizes[d] - 1 - place]
        return dims, conditions

    def computed(self, step: Step, index: Index) -> Tree:
        """The body at the points that a result element merges."""
        (points,), body = step.spaces, step.body
        assert body is not None
        dims, conditions = self._writing(points, index, step.shape)
        if not all(map(self.facts.holds, conditions)):
            raise Undecided("a point may be outside its space")
        bound: list[tuple[str, Poly]] = []
        for d, size in enumerate(points.sizes):
            if d not in dims:
                dims[d] = self.fresh(size)
                bound += [(name, size) for name in dims[d].names]
        reads = [
            self._read(operand, view, dims)
            for operand, view in zip(step.operands, points.operands, strict=True)
        ]
        begin = begin_dtype(body, [each.dtype for each in reads], step.dtype)
        self.rounds = self.rounds or keeps_more(body, begin)
        for each in sorted(points.coordinates, key=lambda each: each.operand):
            value = each.start
            for d, c in each.terms:
                value = value + dims[d] * c
            reads.insert(each.operand, Place(value, begin))
        own, further = reads[: body.function_arity], reads[body.function_arity :]
        made = _templated(partial(function_value, body, dtype=begin), own)
        if body.combiner is not None:
            # A size that is 1 merges one point, and one that is 0 none.
            made = Reduce(body.combiner, tuple(bound), made, begin) if bound else made
        elif bound:
            raise Undecided("nothing merges a dimension")
        if body.then:
            made = _templated(partial(stages_value, body, dtype=step.dtype), [made, *further])
        return made

    def _read(self, operand: int, view: View, dims: dict[int, Poly]) -> Tree:
        """What a map reads at a point."""
        step = self.steps.steps[operand]
        index: list[Poly] = []
        conditions: list[Poly] = []
        for axis in view.axes:
            place = axis.offset
            for d, c in axis.terms:
                place = place + dims.get(d, Poly()) * c
            index.append(self._place(axis, place, conditions))
        missing = constant(view.fill, step.dtype)
        wanted = [each for each in conditions if not self.facts.holds(each)]
        if any(map(self.facts.fails, wanted)):
            return missing
        # Conditions that hold here make indices simpler.
        inner = (
            Elements(self.steps, self.facts.also(wanted), _count=self._count) if wanted else self
        )
        read = inner.of(operand, inner.viewed(tuple(index), view.shape, step.shape))
        self._count, self.rounds = inner._count, self.rounds or inner.rounds
        return self._case(wanted, read, missing)

    def _place(self, axis: Axis, numerator: Poly, conditions: list[Poly]) -> Poly:
        """The index that an axis reaches. Adds the conditions under which it has an element."""
        place = numerator
        if axis.divisor > 1:
            by = Poly.of(axis.divisor)
            if axis.division == "exact":
                left = self.remainder(numerator, by)
                conditions += [left, -left]
            place = self.quotient(numerator, by)
        inside = [place, axis.size - 1 - place]
        if axis.outside == "fill":
            conditions += inside
        elif axis.outside != "none" and not all(map(self.facts.holds, inside)):
            raise Undecided(f"it reads beyond an edge by the rule {rule_text(axis.outside)}")
        return place

    def _case(self, conditions: Sequence[Poly], then: Tree, other: Tree) -> Tree:
        if any(map(self.facts.fails, conditions)):
            return other
        left = tuple(each for each in conditions if not self.facts.holds(each))
        return Case(left, then, other) if left and then != other else then

    # Views of one tensor in several shapes

    def viewed(self, index: Index, shape: Index, other: Index) -> Index:
        """The index in another shape of the same elements in row-major order."""
        wide = [(i, n) for i, n in zip(index, shape, strict=True) if n.constant != 1]
        wanted = [n for n in other if n.constant != 1]
        found: list[Poly] = []
        for some, sizes in _groups([n for _, n in wide], wanted):
            place = Poly()
            for i, n in wide[: len(some)]:
                place = place * n + i
            wide = wide[len(some) :]
            found += self._spread(place, sizes)
        rest = iter(found)
        return tuple(Poly() if n.constant == 1 else next(rest) for n in other)

    def _spread(self, place: Poly, sizes: Sequence[Poly]) -> list[Poly]:
        """The index, in a shape, of the element of a row-major number."""
        found: list[Poly] = []
        for i in range(len(sizes)):
            after = product_of(sizes[i + 1 :])
            at = self.quotient(place, after)
            found.append(at if i == 0 else self.remainder(at, sizes[i]))
        return found

    def quotient(self, of: Poly, by: Poly) -> Poly:
        """The quotient, rounded down."""
        if by.constant == 1:
            return of
        whole, left = _divided(of, by)
        if self.facts.holds(left) and self.facts.holds(by - 1 - left):
            return whole
        return whole + Poly.of(Quotient(left, by)) if left.terms else whole

    def remainder(self, of: Poly, by: Poly) -> Poly:
        """The remainder of the quotient that is rounded down."""
        if by.constant == 1:
            return Poly()
        _, left = _divided(of, by)
        if self.facts.holds(left) and self.facts.holds(by - 1 - left):
            return left
        return Poly.of(Remainder(left, by)) if left.terms else left


def _divided(of: Poly, by: Poly) -> tuple[Poly, Poly]:
    """A quotient and what it leaves, which may be negative or larger than the divisor."""
    if len(by.terms) != 1:
        return Poly(), of
    ((factors, scale),) = by.terms
    whole: list[tuple[tuple[object, ...], int]] = []
    left: list[tuple[tuple[object, ...], int]] = []
    for product, c in of.terms:
        rest = list(product)
        for each in factors:
            if each not in rest:
                break
            rest.remove(each)
        else:
            whole.append((tuple(rest), c // scale))
            left.append((product, c % scale))
            continue
        left.append((product, c))
    return Poly.total(whole), Poly.total(left)  # pyright: ignore[reportArgumentType]


def _groups(
    sizes: Sequence[Poly], wanted: Sequence[Poly]
) -> list[tuple[Sequence[Poly], Sequence[Poly]]]:
    """The smallest groups of neighbouring axes whose products agree. Raises Undecided."""
    found: list[tuple[Sequence[Poly], Sequence[Poly]]] = []
    begin = start = 0
    while begin < len(sizes) or start < len(wanted):
        group = next(
            (
                (i, j)
                for total in range(2, len(sizes) - begin + len(wanted) - start + 1)
                for i in range(begin + 1, len(sizes) + 1)
                for j in (start + total - (i - begin),)
                if start < j <= len(wanted)
                and product_of(sizes[begin:i]) == product_of(wanted[start:j])
            ),
            None,
        )
        if group is None:
            raise Undecided("two shapes of a tensor have no common factors for all sizes")
        found.append((sizes[begin : group[0]], wanted[start : group[1]]))
        begin, start = group
    return found


def _templated(make: Callable[[Sequence[Term]], Term], args: Sequence[Tree]) -> Tree:
    """A tree that a function on terms makes of its operands."""
    names = [Var(f"#{i}", each.dtype) for i, each in enumerate(args)]
    return _grown(make(names), dict(zip(names, args, strict=True)))


def _grown(term: Term, values: dict[Var, Tree]) -> Tree:
    if isinstance(term, Var):
        return values[term]
    if isinstance(term, Apply):
        args = tuple(_grown(each, values) for each in term.args)
        return Call(term.function, args, term.dtype, term.parameters)
    assert not isinstance(term, Merge)
    return term


_KINDS = {
    "leaf": Elements.leaf,
    "constant": Elements.constant,
    "computed": Elements.computed,
    "moved": Elements.moved,
    "reshaped": Elements.reshaped,
}
"""How the element of a step is found, by the kind of the step."""
