"""What a pass of the way down owes the others, beside the meaning of programs.

It takes every program of its level, and the passes behind it take what it leaves. A pass that
refuses, or that leaves its work undone, computes nothing wrong: results alone do not show it.

    check_pass(takes_all(Allocate()), "placed", relation=goes_on("allocate"))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....dialects.levels import legal_ops
from ....ir.errors import InputError
from ....ir.pass_manager import parse_pipeline
from ....ir.upstream import Context, ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify
from ....passes.pipelines import DOWN, LEADS_TO, LEVELS, PASSES, ROUNDS, STAGE, TAKES
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


def ends_on(level: str) -> Relation:
    """A relation: what the passes have made has operations of that level alone."""

    def left(before: Program, after: Program, compiled: Compiled) -> str | None:
        try:
            verify(after.module, legal_ops(level))
        except VerifyException as error:
            return f"not all of it is of {level}: {error}"
        return None

    return left


def goes_on(name: str) -> tuple[Relation, ...]:
    """The relations of one of abele's passes to its level and to those behind it, if there are any.

    A conversion leaves nothing of the level above. Behind it are those of its own stretch of the
    way, and of the next one. Programs must be decided as far as they are where the pass stands (see
    levels.NEEDS), but for composites, which decompose takes.
    """
    ends = (ends_on(LEADS_TO[name]),) if name in LEADS_TO else ()
    return (*ends, *_behind(name))


def _behind(name: str) -> tuple[Relation, ...]:
    behind = passes_behind(name, 1)
    relation = followed_as_left_by if name in ROUNDS else followed_by
    return (relation(",".join(behind)),) if behind else ()


def passes_behind(name: str, levels: int | None = None) -> list[str]:
    """The passes behind one of abele's own on the way down, as abele opt -p takes them.

    Those of its own stretch, and of so many further ones, all if None; TARGET stands for a machine.
    From nn on the first one of all is among them. A pass that is not on the way stands before those
    of the level that it takes; nothing if that is not known.
    """
    stage = STAGE.get(name, TAKES.get(name))
    if stage is None:
        return []
    own = [each.partition("{")[0] for each in DOWN[stage]]
    first = DOWN[stage][:1] if stage == LEVELS[0] and name in own else ()
    behind = [*first, *DOWN[stage][own.index(name) + 1 if name in own else 0 :]]
    for level in LEVELS[LEVELS.index(stage) + 1 :][:levels]:
        behind += DOWN[level]
    return behind
