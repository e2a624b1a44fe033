"""Matches patterns of commutative operations without trying all orders of their operands.

A pattern of n commutative operations has 2**n orders. The search goes through the pattern from its
leaves, and remembers for each part and each operation the ways in which they fit together. Two ways
differ only if the rest of the rule can tell them apart: by the value of a name that occurs again,
or that a condition above this part reads. If each name occurs once, and each condition reads one
part, the number of steps grows with the size of the pattern times the number of operations.

Other patterns can take exponentially many steps (matching with repeated names is NP-complete), and
end at MATCH_STEPS.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from weakref import WeakKeyDictionary

from xdsl.ir import Operation, OpResult, SSAValue

from ..provenance import place
from ..support.errors import InputError
from ..support.limits import MATCH_STEPS
from .bound_rule import BoundNested, BoundPattern, Env
from .bounded import TooLarge
from .evaluate import CallFailed, NoValue, evaluate
from .matcher import ANY, Matcher, leaves
from .orders import Orders
from .syntax import Expression, Name, Property, Rest, Shaped, Size, TypeName, TypePattern, Variable
from .vocabulary import Vocabulary

Ways = dict[tuple[object, ...], int]
"""The ways in which a part fits an operation: the values of the names that matter elsewhere, and
the smallest number of an order of the part's operands that leads to them."""


@dataclass(frozen=True, eq=False)
class _Part:
    """A part of a pattern.

    Attributes:
        inner: the parts of its operands; None for an operand that is not nested.
        flat: the part with any value for nested operands, as written and, if its operands commute,
            swapped.
        kept: the names that matter elsewhere.
        guards: the conditions that are decided here.
    """

    orders: Orders
    inner: tuple[_Part | None, ...]
    flat: tuple[BoundPattern, ...]
    kept: tuple[str, ...]
    guards: tuple[Expression, ...]


class _Undecided(Exception):
    """A condition raised an error before the conditions ahead of it were decided."""

    def __init__(self, guard: Expression) -> None:
        super().__init__()
        self.guard = guard


@dataclass
class _Search:
    """The search for the ways in which a pattern fits one operation."""

    vocabulary: Vocabulary
    root: Operation
    most: int = field(default_factory=lambda: MATCH_STEPS.most)
    steps: int = 0
    known: dict[tuple[_Part, Operation], Ways] = field(
        default_factory=dict[tuple[_Part, Operation], Ways]
    )

    def ways(self, part: _Part, op: Operation) -> Ways:
        """The ways in which a part fits an operation. Raises _Undecided."""
        key = part, op
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self._ways(part, op)
        return found

    def _ways(self, part: _Part, op: Operation) -> Ways:
        found: Ways = {}
        for turn, flat in enumerate(part.flat):
            outer = [] if op is self.root else [self.root]
            matcher = Matcher(self.vocabulary, matched=outer)
            if not matcher.op(flat, op):
                continue
            for number, env in self._together(part, flat, op, bool(turn), matcher.env):
                if not self._hold(part.guards, env):
                    continue
                number = number * len(part.flat) + turn
                key = tuple(env.get(name, _NOTHING) for name in part.kept)
                found[key] = min(found.get(key, number), number)
        return found

    def _together(
        self, part: _Part, flat: BoundPattern, op: Operation, swapped: bool, local: Env
    ) -> Iterator[tuple[int, Env]]:
        """The ways in which all operands fit together: an order's number, and the names' values."""
        places = _places(flat, len(op.operands))
        if swapped:
            places.reverse()
        found = [(0, local)]
        for inner, at, operand in zip(
            part.inner, places, part.orders.pattern.operands, strict=True
        ):
            if inner is None:
                continue
            assert isinstance(operand, BoundNested)
            value: SSAValue = op.operands[at]
            if not isinstance(value, OpResult) or value.index != operand.index:
                return
            ways = self.ways(inner, value.op)
            count = inner.orders.total
            more: list[tuple[int, Env]] = []
            for number, env in found:
                for key, own in ways.items():
                    self.step()
                    both = _agreed(env, inner.kept, key)
                    if both is not None:
                        more.append((number * count + own, both))
            found = more
        yield from found

    def step(self) -> None:
        """Count a step. Raises InputError if there are too many."""
        self.steps += 1
        if self.steps > self.most:
            raise InputError(
                MATCH_STEPS.refusal(
                    f"matching {self.root.name} at {place(self.root)} in all orders of operands"
                )
            )

    def _hold(self, guards: Sequence[Expression], env: Env) -> bool:
        for guard in guards:
            try:
                if not evaluate(guard, env, self.vocabulary):
                    return False
            except NoValue:
                return False
            except (CallFailed, TooLarge):
                raise _Undecided(guard) from None
        return True


_NOTHING = object()


def _agreed(env: Env, names: Sequence[str], values: Sequence[object]) -> Env | None:
    """The values of names, with a part's values added; None if the two disagree on a name."""
    both = dict(env)
    for name, value in zip(names, values, strict=True):
        if value is _NOTHING:
            continue
        known = both.setdefault(name, value)
        if known is not value and not known == value:
            return None
    return both


def _places(pattern: BoundPattern, given: int) -> list[int]:
    """The position of each operand of a pattern among the operands that are given."""
    places: list[int] = []
    at, spare = 0, given - pattern.fixed
    for each in pattern.operands:
        places.append(at)
        at += spare if isinstance(each, Rest) else 1
    return places


# The parts of a pattern


_Guards = tuple[Expression, ...]

_parts: WeakKeyDictionary[Orders, dict[tuple[_Guards, _Guards], _Part]] = WeakKeyDictionary()
"""The parts of patterns, by the conditions that are decided early, and those that are not."""


def _part_of(orders: Orders, early: _Guards, late: _Guards) -> _Part:
    known = _parts.setdefault(orders, {})
    found = known.get((early, late))
    if found is None:
        guards = [(each, _names_in(each)) for each in early]
        above = frozenset[str]().union(*map(_names_in, late))
        found = _divided(orders, _names_below(orders), guards, above)
        known[early, late] = found
    return found


def _divided(
    orders: Orders,
    total: Counter[str],
    guards: Sequence[tuple[Expression, frozenset[str]]],
    above: frozenset[str],
) -> _Part:
    """A part and its inner parts.

    Args:
        total: how often each name occurs in the whole pattern.
        guards: the conditions whose names all occur in this part.
        above: the names of conditions that are decided outside it.
    """
    names = _names_below(orders)
    below = [None if each is None else _names_below(each) for each in orders.operands]
    own: list[tuple[Expression, frozenset[str]]] = []
    lower: list[list[tuple[Expression, frozenset[str]]]] = [[] for _ in below]
    for guard in guards:
        read = guard[1]
        inside = (i for i, each in enumerate(below) if each is not None and read <= set(each))
        at = next(inside, None) if read else None
        (own if at is None else lower[at]).append(guard)
    needed = above.union(*(each for _, each in own))
    inner = tuple(
        None
        if each is None
        else _divided(
            each,
            total,
            lower[i],
            needed.union(*(read for j, some in enumerate(lower) if j != i for _, read in some)),
        )
        for i, each in enumerate(orders.operands)
    )
    kept = tuple(sorted(n for n in names if n in above or total[n] > names[n]))
    return _Part(orders, inner, _flat(orders), kept, tuple(guard for guard, _ in own))


def _flat(orders: Orders) -> tuple[BoundPattern, ...]:
    pattern = orders.pattern
    operands = tuple(
        Variable(each.place, ANY, None) if isinstance(each, BoundNested) else each
        for each in pattern.operands
    )
    turns = (operands, operands[::-1]) if orders.swaps else (operands,)
    return tuple(replace(pattern, operands=each) for each in turns)


def _names_below(orders: Orders) -> Counter[str]:
    """The number of times that each name occurs in a pattern."""
    found = Counter(_own_names(orders.pattern))
    for each in orders.operands:
        if each is not None:
            found += _names_below(each)
    return found


def _own_names(pattern: BoundPattern) -> Iterator[str]:
    """The names that a pattern binds, without those of nested patterns."""
    names = [pattern.name]
    names += [each.value.name for each in pattern.fields if isinstance(each.value, Name)]
    for each in pattern.types:
        names += _names_of_type(each)
    for operand in pattern.operands:
        if not isinstance(operand, BoundNested):
            names.append(operand.name)
        if isinstance(operand, Variable) and operand.type is not None:
            names += _names_of_type(operand.type)
    return (name for name in names if name and name != ANY)


def _names_of_type(pattern: TypePattern) -> list[str]:
    if isinstance(pattern, TypeName):
        return [pattern.name]
    assert isinstance(pattern, Shaped)
    sizes = [
        each.value if isinstance(each, Size) else each.name
        for each in pattern.sizes
        if not (isinstance(each, Size) and isinstance(each.value, int))
    ]
    return [pattern.element, *map(str, sizes)]


def _names_in(guard: Expression) -> frozenset[str]:
    return frozenset(
        each.op if isinstance(each, Property) else each.name
        for each in leaves(guard)
        if isinstance(each, Name | Property)
    )


# The result


def matching_orders(
    orders: Orders,
    guards: Sequence[Expression],
    op: Operation,
    vocabulary: Vocabulary,
    *,
    early: bool = True,
) -> Iterator[BoundPattern]:
    """The orders of operands in which a pattern fits an operation, the first order first.

    Of several orders that the conditions cannot tell apart, only the first is returned. Raises
    InputError if the search takes too many steps.

    Args:
        early: leave out orders for which a condition does not hold; the caller evaluates a
            condition that raises an error.
    """
    decided: _Guards = tuple(guards) if early else ()
    while True:
        late = tuple(guard for guard in guards if not any(guard is each for each in decided))
        search = _Search(vocabulary, op)
        try:
            ways = search.ways(_part_of(orders, decided, late), op)
            break
        except _Undecided as failed:
            decided = tuple(each for each in decided if each is not failed.guard)
    for number in sorted(ways.values()):
        search.step()
        yield orders.numbered(number)
