"""Learning from what passes do: programs that resemble those that they changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from random import Random

from ..generators.sketch import MOST_KINDS, Sketch, Step

AIMED = 30
"""If so many programs of the operators that a pass names are unchanged, the aim is wrong."""
MOST_STEPS = 6
"""A program made from a changed one has at most so many steps."""


@dataclass
class Learned:
    """The sketches of programs that passes changed.

    aimed, hits: how many programs were made of the operators that the passes name, and how many of
    these the passes changed.
    """

    sketches: list[Sketch] = field(default_factory=list[Sketch])
    aimed: int = 0
    hits: int = 0

    @property
    def aim_helps(self) -> bool:
        """Whether programs of the operators that the passes name are worth making."""
        return self.aimed < AIMED or self.hits > 0

    def turns(self, named: bool) -> Sequence[int]:
        """Which of four programs in a row resemble changed ones.

        named: whether passes name operators, so that others are aimed.
        """
        return (0,) if named and self.aim_helps else (1, 3)

    def add(self, sketch: Sketch, aimed: bool, changed: bool) -> None:
        """Record whether passes changed the program of a sketch, and whether it was aimed."""
        self.aimed += aimed
        self.hits += aimed and changed
        if changed:
            self.sketches.append(sketch)

    def like(self, fresh: Sketch, random: Random) -> Sketch:
        """A sketch that resembles those of changed programs. fresh: a random sketch."""
        if random.random() < 0.5:
            return _mixed(fresh, random.choice(self.sketches).steps, random)
        return _varied(random.choice(self.sketches), fresh, random)


def _mixed(fresh: Sketch, steps: Sequence[Step], random: Random) -> Sketch:
    """A sketch with some of the operators of other steps."""
    mixed = (
        replace(random.choice(steps), seed=each.seed) if random.random() < 0.5 else each
        for each in fresh.steps
    )
    return replace(fresh, steps=tuple(mixed))


def _varied(old: Sketch, fresh: Sketch, random: Random) -> Sketch:
    """A sketch with most of the steps of an old one, and with other sizes, values or machine.

    What a pass looks for, say an operator on the result of another, stays most of the time.
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
        seed=fresh.seed,
        target=target.target,
    )
