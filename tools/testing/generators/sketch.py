"""A program in a few numbers: what is drawn, printed and shrunk in place of its operations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from random import Random
from typing import Literal, TypeAlias

from ....backends.target import Target, resolve_target

Data: TypeAlias = Literal["integers", "normal", "special"]
"""What values inputs and states have: small whole numbers, of which sums of products are exact;
normal ones of several magnitudes; or also infinities, NaN, -0, subnormal and the largest ones."""

Shape: TypeAlias = Literal["", "repeat", "if", "while"]
"""What control flow a step stands in."""

VECTOR = (2, 4)
"""Elements of a vector on the machine: of float32 and of float16."""

GRAIN = (8, 16)
"""Channels that a convolution unit takes at once: of float32 and of float16."""

PRIMES = (3, 5, 7)


@dataclass(frozen=True)
class Step:
    """One operation. kind: its class, by number, modulo the classes there are. operand: the value
    it begins with, counted from the latest, modulo those there are. seed: of all else about it.
    within: what control flow it stands in.
    """

    kind: int
    operand: int = 0
    seed: int = 0
    within: Shape = ""


@dataclass(frozen=True)
class Sketch:
    """All that a generated program follows from, beside the operators there are.

    sizes: of axes. element: of the first operand, by number. seed: of leaves, and below nn of the
    decisions that lead there. target: as text. kinds: of the operations that bodies of control flow
    have beside the steps; any if there are none.
    """

    steps: tuple[Step, ...]
    sizes: tuple[int, ...] = (2,)
    element: int = 0
    data: Data = "integers"
    seed: int = 0
    target: str = "tiny:1"
    kinds: tuple[int, ...] = ()

    @property
    def machine(self) -> Target:
        """The target."""
        return machine_of(self.target)


@lru_cache(maxsize=256)
def machine_of(spelling: str) -> Target:
    """The target of a spelling: there are few, and reading one takes as long as a program."""
    return resolve_target(spelling)


def edges(tiles: int) -> Sequence[int]:
    """Sizes of axes where compilers err: about the lengths of vectors and grains, and about the
    number of tiles; the simplest first."""
    around = [n + d for n in (*VECTOR, GRAIN[0], tiles) for d in (-1, 0, 1)]
    found = (1, 2, *PRIMES, *around, 2 * tiles + 1)
    return tuple(dict.fromkeys(n for n in found if n > 0))


DATA: tuple[Data, ...] = ("integers", "normal", "normal", "special")
"""Kinds of values, as often as they are drawn."""

MACHINES = ("", "", "", "workers=1", "workers=2", "memory.bytes_per_tile=24576")
"""What is unlike the preset, as often as it is drawn."""

WITHIN: tuple[Shape, ...] = ("repeat", "if", "while")

OFTEN = 0.5
CONTROLLED = (0.0, 0.0, 0.0, 0.1, 0.1, OFTEN)
"""How often a step of a program stands in control flow, as often as it is drawn: in some programs
many do, so that two loops or branches meet, and what decides on one is not what decides on all."""

MEETING: tuple[tuple[Shape, ...], ...] = (WITHIN, ("if",))
"""Where many do: in which control flow. Two branches side by side ask for two values."""

MOST_TILES = 16
MOST_KINDS = 1 << 10


def random_sketch(random: Random, max_ops: int = 5) -> Sketch:
    """A sketch of a program of up to max_ops operations, every operator as likely as another."""
    tiles = random.randint(1, MOST_TILES)
    spelling = ",".join(filter(None, (f"tiny:{tiles}", random.choice(MACHINES))))
    some = edges(tiles)
    sizes = tuple(random.choice(some) for _ in range(random.choice((1, 2, 2, 3, 4))))
    if random.random() < 0.03:
        sizes += (0,)
    controlled = random.choice(CONTROLLED)
    shapes = random.choice(MEETING) if controlled == OFTEN else WITHIN
    steps = tuple(
        Step(
            random.randrange(MOST_KINDS),
            random.choice((0, 0, 0, 1, 2, 3, 5)),
            random.randrange(1 << 16),
            random.choice(shapes) if random.random() < controlled else "",
        )
        for _ in range(random.randint(1, max_ops))
    )
    element = random.choice((0, 0, 0, 0, 1, 1, 2, 3))
    return Sketch(steps, sizes, element, random.choice(DATA), random.randrange(1 << 16), spelling)
