"""The programs for testing a rule.

For a rule of nn, or a rule that lowers an operation of a user's dialect, samples of the left side
are put into programs. For a rule of a lower level or on operations with regions, samples cannot be
made, so generated programs are searched for matches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from random import Random
from time import monotonic
from typing import TypeAlias

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import Operation

from .....dialects.levels import LEVELS, NN
from .....ir.level import Level
from .....ir.pass_manager import parse_pipeline
from .....ir.rules.bound_rule import BoundRule
from .....ir.rules.evaluate import CallFailed
from .....ir.rules.samples import Sampler
from .....ir.rules.vocabulary import Vocabulary
from .....ir.support.errors import DoesNotFit, InputError
from .....ir.upstream import ModulePass
from .....passes.pipelines import PASSES, passes_to, users_passes, with_target
from ...limits import TooLong, at_most
from ..build import Operators, build
from ..levels import at_level
from ..program import Program, invalidity
from ..sketch import Data, edges, machine_of, random_sketch
from .embed import Flow, Instance, Style, Unsuited, embedded
from .misses import MISSES, missed, retyped
from .reading import Fit, places_of, unmet

ROUNDS = 80
"""The most rounds in which samples of a rule are made, each with other sizes."""
FRUITLESS = 5
"""The number of rounds without a sample after which no more rounds run."""
SAMPLES = 4
"""The most samples of a round."""
FEW = 2
"""A round with at most this many samples shows that samples are hard to make."""
EMBEDDED, EMBEDDED_OFTEN = 4, 12
"""How many programs a sample is put into; the second number if samples are hard to make."""
RETYPED = 0.3
"""How often a sample gets other types, if the rule still matches it then."""
CHANGED = 2
"""The most near-misses made from one program or one sample."""
VAIN = 24
"""The number of samples without a matching program after which no more are tried."""

BARREN = 10
"""The number of programs in a row without near-misses after which the search ends."""
SEARCHED = 200
"""How many generated programs are searched for matches of a rule without samples."""
TARGETS = ("tiny:1", "tiny:4", "tiny:7")

Fits: TypeAlias = "Callable[[Operation, Program], Fit | None]"
"""Returns the match of the rule with an operation of a program; None if there is none."""


@dataclass(frozen=True)
class _Sample:
    """A sample of a rule's left side.

    Attributes:
        root: its root operation.
        sizes: sizes of its axes.
        times: number of programs that contain it.
    """

    root: Operation
    sizes: Sequence[int]
    times: int


def _is_floating(root: Operation) -> bool:
    return any(isinstance(getattr(r.type, "element_type", None), AnyFloat) for r in root.results)


@dataclass
class Sources:
    """The programs for one rule.

    Attributes:
        fits: the matcher of the rule.
        limit: CPU seconds for evaluating its guards once.
        end: the time, as of monotonic(), at which the search of generated programs ends.
    """

    rule: BoundRule
    vocabulary: Vocabulary
    operators: Operators
    seed: int
    data: Sequence[Data]
    fits: Fits
    limit: float
    end: float
    _made: list[_Sample] = field(default_factory=list[_Sample])
    _near_misses: list[_Sample] = field(default_factory=list[_Sample])
    _rounds: int = 0
    _fruitless: int = 0

    def __post_init__(self) -> None:
        self.level = level_of_rule(self.rule, self.vocabulary)
        # abele's own lowering rules read what the passes before them write.
        users = all(not cls.name.startswith("nn.") for cls in self.rule.roots)
        self.sampled = self.level == NN and (self.rule.kind == "rule" or users)
        self._sampler = Sampler(self.vocabulary)

    def _random(self, what: str) -> Random:
        return Random(f"{self.seed} {self.rule.name} {what}")

    # Programs that the rule fits

    def fitting(self) -> Iterator[Program]:
        """Programs that the rule matches, made from samples or found by searching."""
        for each in self._instances("fitting"):
            yield each.program

    def _instances(self, what: str) -> Iterator[Instance]:
        random, some, vain = self._random(what), False, 0
        for sample in self._samples():
            for _ in range(sample.times):
                instance = self._embedded(sample, random)
                if instance is not None:
                    some = True
                    yield instance
            vain += not some
            if vain == VAIN:
                # Its guards hold for samples alone, but in no program.
                break
        if not some:
            yield from self._searched(random)

    def _samples(self) -> Iterator[_Sample]:
        """The samples. Each is made once and kept for the next call."""
        number = 0
        while True:
            while number < len(self._made):
                yield self._made[number]
                number += 1
            if not self.sampled or self._rounds == ROUNDS or self._fruitless == FRUITLESS:
                return
            self._more()

    def _more(self) -> None:
        """Make the samples of one more round, and near-misses in which one guard is false."""
        random = self._random(f"round {self._rounds}")
        self._rounds += 1
        self._sampler.seed, self._sampler.sizes = random.randrange(1 << 30), _sizes(random)
        rule, found = self.rule, list[Operation]()
        failing: Counter[str] = Counter()
        for root in self._sampler.programs(rule.name, rule.variants, rule.guards):
            failed = self._unmet(root)
            if failed == []:
                self._sampler.remember(rule.name)
            if not failed:
                found.append(root)
            elif len(failed) == 1 and failing[failed[0]] < CHANGED:
                failing[failed[0]] += 1
                self._near_misses.append(_Sample(root, self._sampler.sizes, 1))
            if len(found) == SAMPLES:
                break
        times = EMBEDDED if len(found) > FEW else EMBEDDED_OFTEN
        # Samples with floats come first: wrong rules on booleans often give right results.
        found.sort(key=lambda root: not _is_floating(root))
        self._made += [_Sample(root, self._sampler.sizes, times) for root in found]
        self._fruitless = 0 if found else self._fruitless + 1

    def _unmet(self, root: Operation) -> list[str] | None:
        """The places of the false guards; None if a guard raises or does not end.

        Such a guard may work in a whole program. If it does not, the check reports it.
        """
        try:
            with at_most(self.limit):
                failed = unmet(self.rule, root, self.vocabulary)
        except (CallFailed, TooLong):
            return None
        return [str(each.place) for each in failed or ()]

    def _embedded(self, sample: _Sample, random: Random) -> Instance | None:
        """A program around a sample that the rule still matches; None if none is found."""
        flow: Flow = random.choice(("", "", "", "", "repeat", "if"))
        data = random.choice(self.data)
        if random.random() < RETYPED:
            other = retyped(sample.root, random)
            found = other and self._put(other, Style(flow, data=data), sample.sizes, random)
            if found is not None and self.fits(found.root, found.program) is not None:
                return found
        styles = (
            Style(flow, shared=random.random() < 0.7, data=data),
            Style(flow, data=data),
            Style(plain=True, data=data),
        )
        for style in styles:
            found = self._put(sample.root, style, sample.sizes, random)
            if found is not None and self.fits(found.root, found.program) is not None:
                return found
        return None

    def _put(
        self, root: Operation, style: Style, sizes: Sequence[int], random: Random
    ) -> Instance | None:
        target = machine_of(random.choice(TARGETS))
        try:
            return embedded(root, style, self.operators, sizes, target, random)
        except Unsuited:
            return None

    def _searched(self, random: Random) -> Iterator[Instance]:
        """Generated programs of the rule's level that contain a match."""
        for program in _pool(
            self.operators, self.level, self.rule.kind == "lower", self.seed
        ).all():
            if monotonic() > self.end:
                return
            roots = [op for op in program.module.walk() if type(op) in self.rule.roots]
            there = [op for op in roots if self.fits(op, program) is not None]
            if there:
                yield Instance(program, random.choice(there))

    # Near-misses

    def near_misses(self) -> Iterator[tuple[str, Program]]:
        """Programs that the rule nearly matches, each with the change in words.

        If one program gives several near-misses, the rarest kind so far is kept. Two near-misses
        are of one kind if the same guard is false in both, or, without a false guard, if the same
        thing was changed.
        """
        random = self._random("near")
        others = self._anew(random)
        seen: Counter[str] = Counter()
        barren = 0
        for instance in self._instances("near"):
            made = list(self._changed(instance, random))
            made = sorted(made, key=lambda each: seen[each[0]])[:CHANGED]
            seen.update(likeness for likeness, _, _ in made)
            some = [(name, program) for _, name, program in made]
            some += islice(others, CHANGED)
            yield from some
            barren = 0 if some else barren + 1
            if barren == BARREN:
                return

    def _changed(self, instance: Instance, random: Random) -> Iterator[tuple[str, str, Program]]:
        """Copies of a matching program, with one change of each possible kind.

        Yields the kind of near-miss (as `near_misses` counts them), the change and the program.
        """
        found = self.fits(instance.root, instance.program)
        assert found is not None
        for name in random.sample(list(MISSES), len(MISSES)):
            made = missed(name, instance, found, self.rule, self.vocabulary, random)
            if made is not None and invalidity(made.program.module) is None:
                failed = self._unmet(made.root)
                yield failed[0] if failed else name, name, made.program

    def _anew(self, random: Random) -> Iterator[tuple[str, Program]]:
        """New near-misses, each with its change: a false guard, or a different type or block."""
        inner = list(places_of(self.rule.variants[0]))[1:]
        used = 0
        for sample in self._samples():
            other = retyped(sample.root, random)
            alternatives = [("another type", other, Style())]
            if any(each.operands for each in inner):
                alternatives.append(("another block", sample.root, Style("split", plain=True)))
            some = self._near_misses[used : used + CHANGED]
            used += len(some)
            alternatives += [("a guard does not hold", each.root, Style()) for each in some]
            for name, root, style in alternatives:
                found = root and self._put(root, style, sample.sizes, random)
                if found is not None:
                    yield name, found.program


def _sizes(random: Random) -> Sequence[int]:
    """A few axis sizes at which compilers make mistakes. Size 0 is rare."""
    some = edges(machine_of(random.choice(TARGETS)).tiles)
    sizes = [random.choice(some) for _ in range(random.choice((2, 3, 5, 8)))]
    return (*sizes, 0) if random.random() < 0.04 else sizes


@dataclass(eq=False)
class _Pool:
    """Generated programs of a level, each made once and shared by all rules.

    Attributes:
        lower: whether they are ready for the conversion to the next level.
    """

    operators: Operators
    level: Level
    lower: bool
    seed: int
    made: list[Program | None] = field(default_factory=list["Program | None"])

    def all(self) -> Iterator[Program]:
        """The programs; the same ones in every call."""
        for number in range(SEARCHED):
            if number == len(self.made):
                self.made.append(self._program(Random(f"{self.seed} {number}")))
            found = self.made[number]
            if found is not None:
                yield found

    def _program(self, random: Random) -> Program | None:
        program = at_level(build(random_sketch(random), self.operators), self.level.name)
        if program is None or not self.lower:
            return program
        for each in way_down(self.level, program)[:-1]:
            try:
                each.apply(program.context, program.module)
            except (InputError, DoesNotFit):
                return None
        return program


@lru_cache(maxsize=2)
def _pool(operators: Operators, level: Level, lower: bool, seed: int) -> _Pool:
    return _Pool(operators, level, lower, seed)


def way_down(level: Level, program: Program) -> tuple[ModulePass, ...]:
    """The passes of the default pipeline from one level to the next, for a program's target."""
    below = LEVELS[LEVELS.index(level) + 1]
    passes = with_target(passes_to(below, level), program.target.spelling())
    return parse_pipeline(",".join(passes), {**PASSES, **users_passes()})


def level_of_rule(rule: BoundRule, vocabulary: Vocabulary) -> Level:
    """The lowest level of the operations in a rule's pattern; nn if they belong to no level."""
    classes = [cls for part in places_of(rule.variants[0]) for cls in part.classes]
    levels = {vocabulary.level_of(cls.name) for cls in classes}
    return next((level for level in reversed(LEVELS) if level in levels), NN)
