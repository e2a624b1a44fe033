"""Learns from the effects of passes: makes programs like the ones that they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ..generators.sketch import MOST_KINDS, Sketch, Step

AIMED = 30
"""The number of unchanged programs of the named operators after which fewer are made of them."""
MOST_STEPS = 6
"""A program made from another one has at most so many steps."""
LATEST = 8
"""Half of the programs that resemble promising ones use one of this many latest sketches."""


@dataclass
class Learned:
    """The sketches of programs that passes changed, and of those that reached new code in them.

    Attributes:
        named: whether the passes or the caller name operators.
        given: whether the caller names them.
        aimed, hits: number of programs made of these operators, and number of those that the passes
            changed.
        sketches: sketches of changed programs.
        promising: sketches of programs that reached code of the passes for the first time.
    """

    named: bool = False
    given: bool = False
    sketches: list[Sketch] = field(default_factory=list[Sketch])
    promising: list[Sketch] = field(default_factory=list[Sketch])
    aimed: int = 0
    hits: int = 0

    @property
    def aim_helps(self) -> bool:
        """Whether programs of the named operators are changed often enough to be worth making."""
        return self.given or self.aimed < AIMED or self.hits > 0

    def is_aimed(self, number: int) -> bool:
        """Whether the program with this number is made of the named operators alone.

        The aim is never given up: a pattern of several operators may match one program in a
        thousand.
        """
        if not self.named:
            return False
        return number % 2 == 1 if self.aim_helps else number % 4 == 1

    def resembles(self, number: int) -> Sequence[Sketch]:
        """The sketches that the program with this number may resemble; () for none."""
        if number % 8 in (2, 6) and self.promising:
            return self.promising
        turns = (0,) if self.named and self.aim_helps else (0, 3) if self.named else (1, 3)
        return self.sketches if number % 4 in turns else ()

    def add(self, sketch: Sketch, aimed: bool, changed: bool, news: bool = False) -> None:
        """Record the sketch of a program.

        Args:
            aimed: whether the program is made of the named operators.
            changed: whether the passes changed it.
            news: whether it reached code for the first time.
        """
        self.aimed += aimed
        self.hits += aimed and changed
        if changed:
            self.sketches.append(sketch)
        if news:
            self.promising.append(sketch)

    def like(self, sketches: Sequence[Sketch], fresh: Sketch, random: Random) -> Sketch:
        """A sketch that resembles a random one of some sketches.

        Args:
            fresh: a random sketch.
        """
        if sketches is self.promising:
            latest = sketches[-LATEST:] if random.random() < 0.5 else sketches
            return _varied(random.choice(latest), fresh, random, keep=0.6)
        old = random.choice(sketches)
        if random.random() < 0.5:
            return _mixed(fresh, old.steps, random)
        return _varied(old, fresh, random, keep=0.0)


def _mixed(fresh: Sketch, steps: Sequence[Step], random: Random) -> Sketch:
    """A sketch in which random steps take operators of other steps."""
    mixed = (
        replace(random.choice(steps), seed=each.seed) if random.random() < 0.5 else each
        for each in fresh.steps
    )
    return replace(fresh, steps=tuple(mixed))


def _varied(old: Sketch, fresh: Sketch, random: Random, keep: float) -> Sketch:
    """A sketch with most of the steps of an old sketch, and other sizes, values or machine.

    A pattern that a pass matches, such as an operator on the result of another, mostly stays.

    Args:
        keep: the probability that the seed stays, so that leaves are the same.
    """
    steps = list(old.steps)
    at = random.randrange(len(steps))
    change = random.choice(("nothing", "seed", "kind", "more", "less"))
    if change == "seed":
        steps[at] = replace(steps[at], seed=random.randrange(1 << 16))
    elif change == "kind":
        steps[at] = replace(steps[at], kind=random.randrange(MOST_KINDS))
    elif change == "more" and len(steps) < MOST_STEPS:
        steps.insert(random.randint(0, len(steps)), random.choice(fresh.steps))
    elif change == "less" and len(steps) > 1:
        del steps[at]
    sizes, data, target = (random.choice((old, fresh)) for _ in range(3))
    return replace(
        old,
        steps=tuple(steps),
        sizes=sizes.sizes,
        data=data.data,
        seed=old.seed if random.random() < keep else fresh.seed,
        target=target.target,
    )
