"""The settings of a check: the number of programs, and the conditions that each must meet."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, TypeAlias, TypedDict

from xdsl.ir import Operation

from ..generators.program import Program
from ..oracle.relations import Relation
from .report import Report

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

Relations: TypeAlias = "Relation | Sequence[Relation] | None"
"""The relations that must hold in addition to the results: see relations.py."""

LIMIT = 20.0
"""CPU seconds that one program may take, compiling and running included."""
SECONDS = 10.0
"""Seconds of a check of passes, if neither the time nor the number of programs is set."""
KERNELS = 16
"""One program of exchange in this many runs with compiled kernels too, which takes half as long
as everything else."""
PARTS = 4
"""One program in this many runs after some of several passes too."""
UNLIMITED = 1_000_000
"""The number of programs if only the time is limited."""


class BudgetOptions(TypedDict, total=False):
    """The keywords that every check takes: the fields of Budget."""

    examples: int | None
    seconds: float | None
    seed: int | None
    limit: float
    reduce_seconds: float | None
    folder: Path | None
    command: str
    replay: Path | None
    tell: Callable[[str], None] | None


class CheckOptions(BudgetOptions, total=False):
    """The keywords of check_pass and check_pipeline: the fields of CheckSettings."""

    programs: SearchStrategy[Program] | None
    operators: Sequence[type[Operation] | str]
    decisions: Sequence[str]
    training: bool
    guided: bool
    relation: Relations
    results: bool
    expect_changes: bool
    rounded_once: bool
    report: Report | None
    kernels: int
    parts: int


@dataclass(frozen=True, kw_only=True)
class Budget:
    """The limits of a check, and the place for saving a failure.

    Attributes:
        examples: number of programs; each kind of check has its own default.
        seconds: time after the first program is ready, after which the check starts no more
            programs.
        seed: seed of the programs. None means any, or 0 where the environment sets CI.
        limit: CPU seconds for one program.
        reduce_seconds: CPU seconds for shrinking a failing program; 60 if None.
        folder: where to save a failing program; a new temporary folder if None.
        command: the command that replays the failure, with FOLDER for the folder; the check makes
            one itself if "".
        replay: a folder with a saved program, which the check runs instead of generated ones.
        tell: is given the first small program that fails, as text, if shrinking takes long; None
            writes it to standard error.
    """

    examples: int | None = None
    seconds: float | None = None
    seed: int | None = None
    limit: float = LIMIT
    reduce_seconds: float | None = None
    folder: Path | None = None
    command: str = ""
    replay: Path | None = None
    tell: Callable[[str], None] | None = None

    def count(self, default: int) -> int:
        """The number of programs; the default if neither a number nor a time is set."""
        return self.examples or (UNLIMITED if self.seconds is not None else default)

    def any_seed(self) -> int:
        """The seed, or a new random seed."""
        if self.seed is not None:
            return self.seed
        return 0 if os.environ.get("CI") else Random().randrange(1 << 32)


@dataclass(frozen=True, kw_only=True)
class CheckSettings(Budget):
    """The budget of a check of passes, and the conditions that each program must meet.

    If neither examples nor seconds is set, the check runs for SECONDS. The n-th program depends on
    the seed and the passes alone, so time only limits how many programs run.

    Attributes:
        programs: a Hypothesis strategy of programs; any programs of the level if None.
        operators: operators of nn, as classes or by name, that half of the programs are made of. If
            none are given, the operators in the code of the passes.
        decisions: the decisions that most plans make, if programs are planned at random or are of a
            lower level: some of split, order, first_tile, method, workers, combine, steps, ring and
            groups. If none are given, the decisions in the code of a user's pass.
        training: whether every program is a step of training; one in eight is, if not. Not with
            programs.
        guided: whether programs that reach new lines of the passes are kept and changed a little.
        relation: one or several relations that must hold in addition to the results.
        results: whether to compare results. False checks the relations alone.
        expect_changes: whether the check fails if the passes change hardly any program, because
            then nothing was tested. False is for passes that are right to change nothing here.
        rounded_once: whether a result of fewer than 32 bits must be as exact as a 32-bit result
            that is rounded once. False lets passes round intermediate values.
        report: the report to fill in, which is also complete if the check raises; a new one if
            None.
        kernels: one program of exchange in this many, and at most as many again that do something
            new, also run with compiled kernels, which must give the bytes that NumPy gives; none if
            0.
        parts: one program in this many also runs after only some of several passes, because a later
            pass may hide the mistake of an earlier one; none if 0.
    """

    programs: SearchStrategy[Program] | None = None
    operators: Sequence[type[Operation] | str] = ()
    decisions: Sequence[str] = ()
    training: bool = False
    guided: bool = True
    relation: Relations = None
    results: bool = True
    expect_changes: bool = True
    rounded_once: bool = True
    report: Report | None = None
    kernels: int = KERNELS
    parts: int = PARTS

    @property
    def time(self) -> float | None:
        """Seconds after which no more programs start; None if only their number is limited."""
        return SECONDS if self.seconds is None and self.examples is None else self.seconds

    @property
    def relations(self) -> tuple[Relation, ...]:
        """The relations as a tuple."""
        if self.relation is None:
            return ()
        return (self.relation,) if callable(self.relation) else tuple(self.relation)
