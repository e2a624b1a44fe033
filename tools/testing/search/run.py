"""Running the passes under test on one program."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import TypeAlias

from ....backends.target import DEFAULT_TARGET
from ....ir.errors import DoesNotFit, InputError, one_line_with_notes
from ....ir.pass_manager import parse_pipeline
from ....ir.rewriting import limited
from ....ir.upstream import ModulePass
from ....passes.names import pipeline_passes
from ....passes.pipelines import expand
from ..generators.program import Program
from ..limits import TooLong, at_most
from .failures import PassFailed
from .watch import Counts, watching_rules

Passes: TypeAlias = "ModulePass | str | Sequence[ModulePass | str]"
"""A pass, a pipeline as abele opt -p takes it, or several of them: ("nn", MyPass(), "tile")."""


class Refused(Exception):
    """A pass refuses a program, and says why, so there is nothing to compare."""


@dataclass(frozen=True)
class PassList:
    """The passes under test, as passes and texts of pipelines.

    first: run only this many of the passes; all if None. rewrites: stop each pass after this many
    rewrites; never if None.
    """

    tested: tuple[ModulePass | str, ...]
    first: int | None = None
    rewrites: int | None = None

    @staticmethod
    def of(tested: Passes) -> PassList:
        """The list of passes. Raises InputError for a text that is not a pipeline."""
        given = (tested,) if isinstance(tested, ModulePass | str) else tuple(tested)
        for each in given:
            if isinstance(each, str):
                _parsed(each, DEFAULT_TARGET)
        return PassList(given)

    def on(self, target: str = DEFAULT_TARGET) -> tuple[ModulePass, ...]:
        """The passes for a target, spelled as abele compile takes it."""
        passes = ((e,) if isinstance(e, ModulePass) else _parsed(e, target) for e in self.tested)
        return tuple(chain.from_iterable(passes))[: self.first]

    def for_program(self, program: Program) -> tuple[ModulePass, ...]:
        """The passes for the target of one program."""
        return self.on(program.target.spelling())

    def compiled(self, program: Program, limit: float, counts: Counts) -> Program:
        """A copy of the program after all passes.

        limit: CPU seconds, as for `apply`. counts: counts what rules do. Raises Refused and
        PassFailed.
        """
        after = program.clone()
        for each in self.for_program(program):
            with nullcontext() if self.rewrites is None else limited(self.rewrites):
                apply(each, after, program, limit, counts)
        return after


@lru_cache(maxsize=256)
def _parsed(text: str, target: str) -> tuple[ModulePass, ...]:
    known = pipeline_passes()
    return parse_pipeline(expand(text, target, known), known)


def apply(
    each: ModulePass, after: Program, before: Program, limit: float, counts: Counts | None = None
) -> None:
    """Run a pass on a program in place.

    before: the program that an error shows. limit: CPU seconds for one program; the pass may take
    half of them. counts: counts what the pass's rules do.
    Raises Refused if the pass refuses the program, and PassFailed.
    """
    try:
        with at_most(limit / 2), nullcontext() if counts is None else watching_rules(counts):
            each.apply(after.context, after.module)
    except (InputError, DoesNotFit) as error:
        raise Refused(f"{each.name}: {error}") from None
    except TooLong as late:
        raise PassFailed(before, each.name, f"is not done after {limit / 2:g} s") from late
    except MemoryError:
        raise
    except Exception as error:
        raise PassFailed(before, each.name, f"raised {one_line_with_notes(error)}") from error
