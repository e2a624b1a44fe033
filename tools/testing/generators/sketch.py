"""Sketches: short records of numbers from which programs are built.

Sketches, not operations, are drawn, printed and shrunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Literal, TypeAlias

from ....backends.target import Target, resolve_target
from ....dialects.dtypes import ELEMENTS
from ....ir.rules.choices import Hints

Data: TypeAlias = Literal["integers", "normal", "zeros", "special"]
"""The values of inputs and states.

integers: small whole numbers, whose sums of products are exact. normal: normally distributed
numbers, of another magnitude in each tensor. In both, two tensors in five have numbers of one sign
only. zeros: as normal, with half of the numbers replaced by 0 or -0. special: normally distributed
numbers, a quarter of them replaced by infinities, NaN, 0, -0, or subnormal or largest numbers.
"""

Shape: TypeAlias = Literal["", "repeat", "if", "while"]
"""The control flow around a step; "" for none."""

VECTOR = (2, 4)
"""Elements in a vector of the machine, of float32 and of float16."""

GRAIN = (8, 16)
"""Channels that a convolution unit takes at once, of float32 and of float16."""

PRIMES = (3, 5, 7)


@dataclass(frozen=True)
class Step:
    """One operation of a sketch.

    Attributes:
        kind: number of its class, modulo the number of classes.
        operand: its first operand, counted back from the latest value, modulo the number of values.
        seed: decides everything else about the operation.
        within: the control flow around it.
    """

    kind: int
    operand: int = 0
    seed: int = 0
    within: Shape = ""


RARE_ELEMENTS = len(ELEMENTS) - 4
"""Number of element types that only few programs have."""


NO_LITERALS = Hints()
"""An empty set of literals."""

ASKED = 0.25
"""How often an attribute, a constant or an axis size is a number from the code of a pass."""


@dataclass(frozen=True)
class Sketch:
    """A generated program, determined by these fields and the list of operators.

    Attributes:
        sizes: candidate sizes of axes.
        element: number of the first value's element type; numbers from 4 on are rare types.
        seed: seed of inputs, states and constants, and of the decisions that lower the program.
        target: the spelling of its machine.
        kinds: numbers of the operator classes of further operations in bodies of control flow; any
            classes if empty.
        training: the seed of the options of the training step that the program becomes, if it has a
            gradient; 0 for none.
        loops: whether a program that stores values may be put into a loop of runs.
        literals: numbers in the code of the passes under test, for some attributes and constants.
    """

    steps: tuple[Step, ...]
    sizes: tuple[int, ...] = (2,)
    element: int = 0
    data: Data = "integers"
    seed: int = 0
    target: str = "tiny:1"
    kinds: tuple[int, ...] = ()
    training: int = 0
    loops: bool = True
    # The same for all programs of a check, so it does not tell one from another.
    literals: Hints = field(default=NO_LITERALS, repr=False)

    @property
    def machine(self) -> Target:
        """The target."""
        return machine_of(self.target)


@lru_cache(maxsize=256)
def machine_of(spelling: str) -> Target:
    """The target with a spelling. Cached, because parsing takes as long as building a program."""
    return resolve_target(spelling)


def edges(tiles: int) -> Sequence[int]:
    """Axis sizes at which compilers make mistakes, the simplest first.

    They are near the lengths of vectors and grains and near the number of tiles.
    """
    around = [n + d for n in (*VECTOR, GRAIN[0], tiles) for d in (-1, 0, 1)]
    found = (1, 2, *PRIMES, *around, 2 * tiles + 1)
    return tuple(dict.fromkeys(n for n in found if n > 0))


DATA: tuple[Data, ...] = ("integers", "normal", "normal", "zeros", "special")
"""Kinds of values; a kind that is listed twice is drawn twice as often."""

MACHINES = ("", "", "", "workers=1", "workers=2", "memory.bytes_per_tile=24576")
"""Changes to the preset machine; one that is listed twice is drawn twice as often."""

CHIPS = (1, 1, 1, 2, 4)
"""The chips of a machine, where they divide its tiles; a number that is listed twice is drawn twice
as often."""

WIDENED = 2
"""One of so many machines gets further tiles where chips do not divide those that it has."""

IO_EVERY = 7
"""One of so many machines of a chip keeps a tile aside for the host."""

WITHIN: tuple[Shape, ...] = ("repeat", "if", "while")

OFTEN = 0.5
CONTROLLED = (0.0, 0.0, 0.0, 0.1, 0.2, OFTEN)
"""The share of a program's steps that are in control flow; one value is drawn per program. In some
programs it is large, so that several loops or branches meet, with different conditions."""

MEETING: tuple[tuple[Shape, ...], ...] = (WITHIN, ("if",))
"""The kinds of control flow to choose from if that share is OFTEN: any, or only branches, which
have a predicate each."""

LENGTHS = (65, 129, 257, 601, 601, 700, 700)
"""Lengths of long axes, each just above a length at which some kernel, codelet or planner
changes its method."""

LONG = 0.1
"""How often a program has a long axis. Its other axes are short, so that it costs little."""

SHORT_BESIDE = 9
"""The largest size of the other axes of such a program."""

FEW_TILES = (1, 1, 1, 2, 3, 5)
"""Tiles of such a program; with more, its parts would be short again."""

MOST_TILES = 16
MOST_KINDS = 1 << 10


def random_sketch(random: Random, max_ops: int = 5) -> Sketch:
    """A sketch of a program with up to max_ops operations. All operators are equally likely."""
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
    rare = 4 + random.randrange(RARE_ELEMENTS)
    element = random.choice((0, 0, 0, 0, 1, 1, 2, 3, rare))
    data = random.choice(DATA)
    found = Sketch(steps, sizes, element, data, random.randrange(1 << 16), spelling)
    found = _with_a_long_axis(found, random) if random.random() < LONG else found
    return _with_io_tiles(_with_chips(found))


def _with_chips(sketch: Sketch) -> Sketch:
    """The sketch for a machine with the same tiles or a few more, on one chip or on several.

    The number of chips follows from the seed of the values, so that programs do not change.
    """
    chips = CHIPS[sketch.seed % len(CHIPS)]
    tiles = machine_of(sketch.target).tiles
    wide = -(-tiles // chips) * chips
    if chips == 1 or (tiles != wide and (sketch.seed % WIDENED or is_long(sketch))):
        return sketch
    _, comma, settings = sketch.target.partition(",")
    links = f"links.topology=ladder,links.chips={chips}"
    return replace(sketch, target=f"tiny:{wide}{comma}{settings},{links}")


def _with_io_tiles(sketch: Sketch) -> Sketch:
    """The sketch for a machine that keeps a tile aside, or for the same one.

    It follows from the seed of the values, so that programs do not change.
    """
    machine = machine_of(sketch.target)
    if sketch.seed % IO_EVERY or machine.tiles_per_chip == 1:
        return sketch
    return replace(sketch, target=f"{sketch.target},io_tiles=1")


def _with_a_long_axis(sketch: Sketch, random: Random) -> Sketch:
    """The sketch with thin tensors: one long axis and short other axes."""
    tiles = random.choice(FEW_TILES)
    short = [n for n in edges(tiles) if n <= SHORT_BESIDE]
    long = random.choice(LENGTHS)
    sizes = (1, random.choice(short), long, long)
    _, comma, settings = sketch.target.partition(",")
    return replace(sketch, sizes=sizes, target=f"tiny:{tiles}{comma}{settings}")


def is_long(sketch: Sketch) -> bool:
    """Whether the program of a sketch may have a long axis."""
    return max(sketch.sizes, default=0) >= LENGTHS[0]


def about_literals(sketch: Sketch, literals: Hints, random: Random) -> Sketch:
    """The sketch, changed to use some numbers from the code of the passes under test.

    Args:
        literals: these numbers.
    """
    if literals in (NO_LITERALS, sketch.literals):
        return sketch
    around = (length for n in literals.ints for length in (n, n + 1, 2 * n, 3 * n + 1))
    lengths = [length for length in around if 1 < length < LENGTHS[0]]
    if lengths and not is_long(sketch) and random.random() < ASKED:
        sketch = replace(sketch, sizes=(*sketch.sizes, random.choice(lengths)))
    return replace(sketch, literals=literals)
