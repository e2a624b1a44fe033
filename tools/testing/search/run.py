"""Runs the passes under test on one program."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from typing import TypeAlias

from xdsl.ir import Attribute

from ....backends.target import DEFAULT_TARGET
from ....dialects.levels import NN
from ....ir.equal import same_program
from ....ir.level import Level
from ....ir.pass_manager import UnknownPass, load_pass, parse_pipeline
from ....ir.rewriting import limited
from ....ir.support.errors import DoesNotFit, InputError, one_line_with_notes
from ....ir.upstream import ModuleOp, ModulePass
from ....ir.xdsl.walk import operations
from ....passes.names import pipeline_passes
from ....passes.pipelines import (
    DOWN,
    PASSES,
    USERS_WAYS,
    Way,
    expand,
    last_level,
    users_passes,
)
from ....passes.plan_splits import PlanSplits
from ...driver.frames import place_of, trimmed
from ..generators.decisions import PlanAtRandom
from ..generators.program import Program
from ..limits import TooLong, at_most
from .failures import PassFailed
from .watch import Counts, watching_rules

Passes: TypeAlias = "ModulePass | str | Sequence[ModulePass | str]"
"""A pass, a pipeline as abele opt -p takes it, or several of them: ("nn", MyPass(), "tile")."""


LEFT_OUT = 0.5
"""How often the pipeline of a program with random plans leaves some passes out."""

OPTIONAL = tuple(name.partition("{")[0] for name in DOWN[NN][1:])
"""The passes that a pipeline may leave out: those of nn after decompose, which improve programs."""

Watching: TypeAlias = "Callable[[ModulePass], AbstractContextManager[None]]"
"""Makes a context manager around a pass that runs."""


def unwatched(_: ModulePass) -> AbstractContextManager[None]:
    """A context manager that watches nothing."""
    return nullcontext()


class Refused(Exception):
    """Raised if a pass refuses a program, with the pass's reason, so there is nothing to compare.

    Attributes:
        fits: False if the reason is that the program does not fit its machine.
        at: the position of the pass among those that ran, or None.
    """

    def __init__(self, message: str, fits: bool = True, at: int | None = None) -> None:
        super().__init__(message)
        self.fits = fits
        self.at = at


@dataclass(frozen=True)
class PassList:
    """The passes under test, as pass objects and pipeline texts.

    Attributes:
        first: run only this many of the passes; all if None.
        rewrites: stop each pass after this many rewrites; never if None.
        at_random: give random plans, in place of plan-splits, to programs with a seed for plans,
            and leave out some dispensable passes.
    """

    tested: tuple[ModulePass | str, ...]
    first: int | None = None
    rewrites: int | None = None
    at_random: bool = False

    @staticmethod
    def of(tested: Passes) -> PassList:
        """The list of passes. Raises InputError for a text that is not a pipeline."""
        given = (tested,) if isinstance(tested, ModulePass | str) else tuple(tested)
        passes = PassList(given)
        _ = passes.on()
        return passes

    def on(self, target: str = DEFAULT_TARGET) -> tuple[ModulePass, ...]:
        """The passes for a target.

        Args:
            target: its spelling, as abele compile takes it.
        """
        found: list[ModulePass] = []
        before: Level | None = None
        for each in self.tested:
            if isinstance(each, ModulePass):
                found.append(each)
            else:
                found += _parsed(each, target, before)
                before = last_level(each) or before
        return tuple(found)[: self.first]

    def for_program(self, program: Program) -> tuple[ModulePass, ...]:
        """The passes for the target of a program."""
        if not self.at_random or program.plans is None:
            return self.on(program.target.spelling())
        passes = replace(self, first=None).on(program.target.spelling())
        planned = PlanAtRandom(program.target.spelling(), program.plans)
        without = _left_out(program.plans)
        found = [
            planned if isinstance(each, PlanSplits) else each
            for each in passes
            if each.name not in without or not is_abeles(each)
        ]
        return tuple(found)[: self.first]

    def compiled(
        self,
        program: Program,
        limit: float,
        counts: Counts,
        changed_by: Counter[str] | None = None,
        watching: Watching = unwatched,
        seen: Callable[[int, Program], None] | None = None,
    ) -> Program:
        """A copy of the program after all passes.

        Raises Refused and PassFailed.

        Args:
            limit: CPU seconds, as for `apply`.
            counts: counts the rule applications.
            changed_by: counts the programs that each user's pass changes.
            watching: a context manager around each pass.
            seen: called after each pass with the number of passes that have run, and the program,
                which the next pass changes.
        """
        after = program.clone()
        for at, each in enumerate(self.for_program(program)):
            watched = changed_by is not None and not is_abeles(each)
            before = after.module.clone() if watched else None
            with watching(each), nullcontext() if self.rewrites is None else limited(self.rewrites):
                try:
                    apply(each, after, program, limit, counts)
                except Refused as refused:
                    raise Refused(str(refused), refused.fits, at) from None
            if changed_by is not None and before is not None:
                changed_by[each.name] += not same_program(before, after.module)
            if seen is not None:
                seen(at + 1, after)
        return after


def _left_out(seed: int) -> set[str]:
    """The passes that the pipeline leaves out for a program with this seed, often none.

    A pass that only improves a program may hide the mistake of a later one.
    """
    random = Random(f"{seed} left out")
    if random.random() >= LEFT_OUT:
        return set()
    return {name for name in OPTIONAL if random.random() < 0.5}


def is_abeles(each: ModulePass) -> bool:
    """Whether a pass is one of abele's own, or a replacement of one."""
    return isinstance(each, PlanAtRandom) or _is_abeles(type(each))


@lru_cache(maxsize=256)
def _is_abeles(cls: type[ModulePass]) -> bool:
    return cls.name in PASSES and load_pass(cls.name, PASSES) is cls


def _parsed(text: str, target: str, before: Level | None) -> tuple[ModulePass, ...]:
    """The passes of a text.

    Args:
        before: the level that the texts before it have named last.
    """
    return _parsed_with(text, target, before, tuple(USERS_WAYS.items()))


@lru_cache(maxsize=256)
def _parsed_with(
    text: str, target: str, before: Level | None, ways: Sequence[tuple[str, Way]]
) -> tuple[ModulePass, ...]:
    """The passes of a text, for these ways of users' levels."""
    known = pipeline_passes({**PASSES, **users_passes()})
    try:
        return parse_pipeline(expand(text, target, known, start=before), known)
    except UnknownPass as error:
        raise UnknownPass(
            f"{error}, or in Python give the pass itself in a list, as in "
            'check_pipeline(["nn", MyPass(), "partition"])',
            error.name,
        ) from None


def apply(
    each: ModulePass, after: Program, before: Program, limit: float, counts: Counts | None = None
) -> None:
    """Run a pass on a program in place.

    Raises Refused if the pass refuses the program, and PassFailed.

    Args:
        before: the program to show in an error.
        limit: CPU seconds for one program; the pass may take half of them.
        counts: counts the rule applications of the pass.
    """
    try:
        with at_most(limit / 2), nullcontext() if counts is None else watching_rules(counts):
            each.apply(after.context, after.module)
    except (InputError, DoesNotFit) as error:
        fits = not isinstance(error, DoesNotFit)
        raise Refused(f"{each.name}: {error}", fits) from None
    except TooLong as late:
        raise PassFailed(before, each.name, f"is not done after {limit / 2:g} s") from late
    except MemoryError:
        raise
    except Exception as error:
        problem = f"raised {one_line_with_notes(error)}{place_of(error)}"
        raise PassFailed(before, each.name, problem) from trimmed(error)
    left = None if is_abeles(each) else _not_an_attribute(after.module)
    if left is not None:
        raise PassFailed(before, each.name, f"left {left}")


def _not_an_attribute(module: ModuleOp) -> str | None:
    """A message about a property or attribute that is not an Attribute; None if there is none."""
    for op in operations(module):
        for what, table in (("property", op.properties), ("attribute", op.attributes)):
            for name, value in table.items():
                # The types exclude it, but xDSL does not check what a pass writes.
                if not isinstance(value, Attribute):  # pyright: ignore[reportUnnecessaryIsInstance]
                    return f"{what} '{name}' of {op.name} as {value!r}; need an attribute"
    return None
