"""What a pass of the way down owes the others, beside the meaning of programs.

It takes every program of its level, and the passes behind it take what it leaves. A pass that
refuses, or that leaves its work undone, computes nothing wrong: results alone do not show it.

    check_pass(takes_all(Allocate()), "placed", relation=goes_on(Allocate))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....dialects.levels import LEVELS, NN
from ....ir.errors import InputError
from ....ir.level import Level
from ....ir.pass_levels import declared_levels
from ....ir.pass_manager import parse_pipeline
from ....ir.upstream import Context, ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify
from ....passes.pipelines import DOWN, PASSES, STAGE
from ..generators.program import Program
from ..oracle.relations import Compiled, NotApplicable, Relation, expected_of
from .failures import PassFailed
from .judge import disagreement, invalid
from .run import Refused, apply
from .settings import LIMIT


class Refuses(Exception):
    """A pass does not take a program that it has to take. It says why."""


def takes_all(tested: ModulePass) -> ModulePass:
    """The same pass, at fault where it refuses a program, but for one that does not fit."""

    def insist(ctx: Context, op: ModuleOp) -> None:
        try:
            tested.apply(ctx, op)
        except InputError as error:
            raise Refuses(str(error)) from error

    return acting_as(tested, insist)


def acting_as(tested: ModulePass, apply: Callable[[Context, ModuleOp], None]) -> ModulePass:
    """A pass of the same name and options, which does something else."""

    def method(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(ctx, op)

    return with_methods(tested, {"apply": method})


def with_methods(tested: ModulePass, methods: Mapping[str, object]) -> ModulePass:
    """A pass of the same name and options, some of whose methods are others."""
    cls = type(tested)
    body = {**methods, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    made = object.__new__(type(cls.__name__, (cls,), body))
    vars(made).update(vars(tested))
    return made


def followed_by(passes: str) -> Relation:
    """A relation: further passes take what the tested ones have made, and it computes the same.

    passes: as abele opt -p takes them; TARGET stands for the program's own machine. Says nothing of
    programs that do not fit.
    """
    return _followed_by(passes, lambda before, after: before)


def followed_as_left_by(passes: str) -> Relation:
    """The same of what the tested ones have made, which need not be as exact as it was before."""
    return _followed_by(passes, lambda before, after: after)


def _followed_by(passes: str, meant: Callable[[Program, Program], Program]) -> Relation:
    def taken_on(before: Program, after: Program, compiled: Compiled) -> str | None:
        further = after.clone()
        spelling = f'"{before.target.spelling()}"'
        for each in parse_pipeline(passes.replace("TARGET", spelling), PASSES):
            try:
                apply(takes_all(each), further, after, LIMIT)
            except Refused as error:
                raise NotApplicable(str(error)) from None
            except PassFailed as failed:
                return f"{each.name} behind it {failed.problem}"
        wrong = invalid(further.module) or disagreement(expected_of(meant(before, after)), further)
        return None if wrong is None else f"then {passes}: {wrong.text}"

    return taken_on


def ends_on(level: Level) -> Relation:
    """A relation: what the passes have made has operations of that level alone."""

    def left(before: Program, after: Program, compiled: Compiled) -> str | None:
        try:
            verify(after.module, level.legal)
        except VerifyException as error:
            return f"not all of it is of {level}: {error}"
        return None

    return left


def goes_on(tested: type[ModulePass]) -> tuple[Relation, ...]:
    """The relations of a pass to the level that it leaves and to the passes behind it, if any.

    A pass that declares the level it leaves must leave no operation of another level. Behind one
    of abele's own stand the rest of its part of the default pipeline and the next part. Programs
    must be as far decided as the pass declares, except that composites are allowed, which decompose
    takes.
    """
    declared = declared_levels(tested)
    ends = (ends_on(declared.leaves),) if declared and declared.leaves else ()
    return (*ends, *_behind(tested))


def _behind(tested: type[ModulePass]) -> tuple[Relation, ...]:
    behind = passes_behind(tested, 1)
    declared = declared_levels(tested)
    relation = followed_as_left_by if declared and declared.rounds else followed_by
    return (relation(",".join(behind)),) if behind else ()


def passes_behind(tested: type[ModulePass], levels: int | None = None) -> list[str]:
    """The passes behind one of abele's own in the default pipeline, as `abele opt -p` takes them.

    They are the rest of its own part of the pipeline, and this many further parts, all if None;
    TARGET stands for a machine. For a pass of nn, the first pass of all is among them. A pass that
    is not in the default pipeline stands before the part of the level that it needs. Returns
    nothing for a pass that accepts every level, and for a user's.
    """
    name, declared = tested.name, declared_levels(tested)
    if name not in PASSES:
        return []
    stage = STAGE.get(name, declared.needs if declared else None)
    if stage is None:
        return []
    own = [each.partition("{")[0] for each in DOWN[stage]]
    first = DOWN[stage][:1] if stage == NN and name in own else ()
    behind = [*first, *DOWN[stage][own.index(name) + 1 if name in own else 0 :]]
    for level in LEVELS[LEVELS.index(stage) + 1 :][:levels]:
        behind += DOWN[level]
    return behind
