"""Programs of any size: the numbers of spaces and maps as formulas of the sizes of a match.

An operator computes its space from the sizes of its types, and nothing but the operator knows how.
So a match is made again at other sizes, and the numbers that its spaces have there give a formula
each: linear in the sizes, linear and then rounded down after a division, or a product of sizes.
Every formula is checked at sizes that it was not made from, of other remainders too, and at
small sizes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from random import Random

from .bodies import Undecided
from .indices import Poly, Quotient
from .instances import Instance
from .steps import Steps

LEAST = 7
"""Smaller numbers of a match stay as they are: axes, strides, windows, and sizes of 1 to 6."""
PERIOD = 12
"""Sizes that differ by this much have the same remainders by 2, 3, 4, 6 and 12."""
REMAINDERS = (1, 2, 3, 5, 8, 11)
"""How much larger than those of the match the sizes of checks are, one at a time."""
JOINT = 4
"""The checks at which all sizes differ."""

Sizes = dict[str, int]
"""A size for each name."""


@dataclass(frozen=True)
class Family:
    """Both sides of a rule at every size.

    Attributes:
        steps: numbers are polynomials of the names in `lows`.
        lows: the smallest value of each size for which the formulas were found to hold.
        checked: how many programs the formulas were checked with.
    """

    steps: Steps
    lows: Mapping[str, int]
    checked: int


def family_of(base: Instance, seed: int = 0) -> Family:
    """The family of a match. Raises Undecided if the spaces follow no formula.

    Numbers of attributes that are sizes, or products of sizes, change with them if there is such a
    family, as the shape of a reshape does. Else they stay, as a stride does.
    """
    random = Random(f"{seed} {base.rule.name}")
    try:
        return _Fit(base, random, moves=True).family()
    except Undecided as reason:
        try:
            return _Fit(base, random, moves=False).family()
        except Undecided:
            raise reason from None


class _Fit:
    def __init__(self, base: Instance, random: Random, *, moves: bool) -> None:
        self.base, self.random, self.moves = base, random, moves
        self.steps = base.steps()
        self.skeleton = self.steps.skeleton()
        self.numbers = _numbers(self.steps)
        self.checked = 0
        self.names = {f"n{n}": n for n in sorted(self._leaf_sizes()) if n >= LEAST}

    def _leaf_sizes(self) -> set[int]:
        leaves = [step for step in self.steps.steps if step.kind in ("leaf", "constant")]
        return {n for step in leaves for n in _constants(step.shape)}

    def at(self, sizes: Sizes) -> Steps | None:
        """The steps at sizes; None if the rule does not match there."""
        changed = {old: sizes[name] for name, old in self.names.items() if name in sizes}
        made = self.base.resized(changed, attributes=self.moves)
        if made is None:
            return None
        self.checked += 1
        return made.steps()

    def numbers_at(self, sizes: Sizes) -> list[int] | None:
        """The numbers at sizes; None if the rule does not match, or the steps are others."""
        found = self.at(sizes)
        if found is None or found.skeleton() != self.skeleton:
            return None
        return _numbers(found)

    def family(self) -> Family:
        base = dict(self.names)
        moved: dict[str, list[int]] = {}
        for name, size in base.items():
            found = self.numbers_at({**base, name: size + PERIOD})
            if found is not None:
                moved[name] = found
        self.names = {name: size for name, size in base.items() if name in moved}
        if not self.names:
            if set(base.values()) <= {1} and not any(n > 1 for n in self._leaf_sizes()):
                return Family(self.steps, {}, 1)
            raise Undecided("no size of the match is free")
        probes = list(self._probes())
        formulas = [
            self._formula(i, {name: found[i] for name, found in moved.items()}, probes)
            for i in range(len(self.numbers))
        ]
        made = self.steps.with_numbers(formulas)
        return Family(made, self._lows(made), self.checked)

    def _probes(self) -> Iterator[tuple[Sizes, list[int]]]:
        """Sizes for checks, with the numbers there."""
        base = dict(self.names)
        yield base, self.numbers
        wanted = [
            {n: s + PERIOD * self.random.randrange(1, 5) for n, s in base.items()}
            for _ in range(JOINT)
        ]
        for name, size in base.items():
            wanted += [{**base, name: size + r} for r in REMAINDERS]
        for sizes in wanted:
            found = self.at(sizes)
            if found is None:
                continue
            if found.skeleton() != self.skeleton:
                raise Undecided(f"its spaces have another form at sizes {list(sizes.values())}")
            yield sizes, _numbers(found)

    def _formula(
        self, at: int, moved: Mapping[str, int], probes: Sequence[tuple[Sizes, list[int]]]
    ) -> Poly:
        known = [(sizes, numbers[at]) for sizes, numbers in probes]
        base = self.numbers[at]
        for made in (*_linear(base, moved, self.names), *_product(base, moved, self.names)):
            if all(made.value(sizes) == number for sizes, number in known):
                return made
        shown = ", ".join(f"{number}" for _, number in known[:4])
        raise Undecided(f"a number of its spaces follows no formula of the sizes: {shown}, ...")

    def _lows(self, made: Steps) -> dict[str, int]:
        lows: dict[str, int] = {}
        for name in self.names:
            low = 1
            for size in range(1, LEAST + 1):
                sizes = {**self.names, name: size}
                found = self.at(sizes)
                if found is None:
                    continue
                expected = made.mapped(lambda poly, sizes=sizes: Poly.of(poly.value(sizes)))
                if expected.normal() != found.normal():
                    low = size + 1
            lows[name] = low
        return lows


def _numbers(steps: Steps) -> list[int]:
    return _constants(steps.numbers())


def _constants(numbers: Sequence[Poly]) -> list[int]:
    found: list[int] = []
    for each in numbers:
        assert each.constant is not None
        found.append(each.constant)
    return found


def _linear(base: int, moved: Mapping[str, int], sizes: Sizes) -> Iterator[Poly]:
    """Linear formulas that are `base` at sizes, and that grow as they do when a size moves."""
    slopes = {name: Fraction(each - base, PERIOD) for name, each in moved.items()}
    divisor = lcm(*(slope.denominator for slope in slopes.values()))
    linear = Poly.of(0)
    for name, slope in slopes.items():
        linear = linear + Poly.of(name) * int(slope * divisor)
    start = base * divisor - linear.value(sizes)
    for offset in range(start, start + divisor):
        made = linear + offset
        yield made if divisor == 1 else Poly.of(Quotient(made, Poly.of(divisor)))


def _product(base: int, moved: Mapping[str, int], sizes: Sizes) -> Iterator[Poly]:
    """The formula that is `base` at sizes and a multiple of each size that changes it."""
    made, left = Poly.of(1), base
    for name, size in sizes.items():
        if moved[name] != base:
            if left % size:
                return
            made, left = made * Poly.of(name), left // size
    yield made * left
