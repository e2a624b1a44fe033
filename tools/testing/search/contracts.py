"""Contracts between a pass and the rest of the pipeline, beyond the results of programs.

A pass must accept every program of its level, and the passes after it must accept its output.
Comparing results does not expose a pass that refuses a program or leaves work undone.

    check_pass(must_accept_all(Allocate()), "placed", relation=contracts_of(Allocate))
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ....dialects.levels import NN, OWN_LEVELS
from ....ir.level import Level
from ....ir.pass_levels import declared_levels
from ....ir.pass_manager import parse_pipeline
from ....ir.support.errors import InputError
from ....ir.upstream import Context, ModuleOp, ModulePass, VerifyException
from ....ir.verify import verify
from ....passes.pipelines import DOWN, FROM_SOURCES, PASSES, STAGE
from ..generators.program import Program
from ..oracle.relations import Compiled, NotApplicable, Relation, expected_of
from .failures import PassFailed
from .judge import disagreement, invalid
from .run import Refused, apply
from .settings import LIMIT


class WronglyRefused(Exception):
    """Raised if a pass refuses a program that it must accept. The message is the pass's own."""


def must_accept_all(tested: ModulePass) -> ModulePass:
    """A copy of a pass that may refuse only programs that do not fit.

    It raises WronglyRefused for any other refused program, so that the check fails.
    """

    def insist(ctx: Context, op: ModuleOp) -> None:
        try:
            tested.apply(ctx, op)
        except InputError as error:
            raise WronglyRefused(str(error)) from error

    return with_apply(tested, insist)


def with_apply(tested: ModulePass, apply: Callable[[Context, ModuleOp], None]) -> ModulePass:
    """A pass with the name and options of another pass that runs a function instead."""

    def method(self: ModulePass, ctx: Context, op: ModuleOp) -> None:
        apply(ctx, op)

    return with_methods(tested, {"apply": method})


def with_methods(tested: ModulePass, methods: Mapping[str, object]) -> ModulePass:
    """A pass with the name and options of another pass and some replaced methods."""
    cls = type(tested)
    body = {**methods, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    made = object.__new__(type(cls.__name__, (cls,), body))
    vars(made).update(vars(tested))
    return made


def followed_by(passes: str) -> Relation:
    """A relation: further passes accept the output of the tested passes, and results stay right.

    Results are compared with those of the program before the tested passes.

    Does not apply to programs that do not fit.

    Args:
        passes: as `abele opt -p` takes them; TARGET stands for the program's own machine.
    """
    return _followed_by(passes, lambda before, after: before)


def followed_as_rounded_by(passes: str) -> Relation:
    """The relation of `followed_by`, with the output of the tested passes as the reference.

    For passes that round, whose output may be less exact than their input.
    """
    return _followed_by(passes, lambda before, after: after)


def _followed_by(passes: str, meant: Callable[[Program, Program], Program]) -> Relation:
    def accepted_by_later_passes(before: Program, after: Program, compiled: Compiled) -> str | None:
        further = after.clone()
        spelling = f'"{before.target.spelling()}"'
        for each in parse_pipeline(passes.replace("TARGET", spelling), PASSES):
            try:
                apply(must_accept_all(each), further, after, LIMIT)
            except Refused as error:
                raise NotApplicable(str(error)) from None
            except PassFailed as failed:
                return f"{each.name}, which runs after it, {failed.problem}"
        wrong = invalid(further.module) or disagreement(expected_of(meant(before, after)), further)
        return None if wrong is None else f"then {passes}: {wrong.text}"

    return accepted_by_later_passes


def leaves_only(level: Level) -> Relation:
    """A relation: the output of the passes contains operations of one level only."""

    def has_only_its_level(before: Program, after: Program, compiled: Compiled) -> str | None:
        try:
            verify(after.module, level)
        except VerifyException as error:
            return f"its output is not all of {level}: {error}"
        return None

    return has_only_its_level


def contracts_of(tested: type[ModulePass]) -> tuple[Relation, ...]:
    """The relations of a pass with its declared level and with the passes that run after it.

    A pass that declares the level it leaves must leave no operation of another level. After a pass
    of abele run the rest of its part of the default pipeline and the next part. Programs must be
    decided as far as the pass declares, but may have composites, because decompose is among the
    passes that run after it.
    """
    declared = declared_levels(tested)
    ends = (leaves_only(declared.leaves),) if declared and declared.leaves else ()
    return (*ends, *_followed(tested))


def _followed(tested: type[ModulePass]) -> tuple[Relation, ...]:
    later = passes_after(tested, 1)
    declared = declared_levels(tested)
    relation = followed_as_rounded_by if declared and declared.rounds else followed_by
    return (relation(",".join(later)),) if later else ()


def passes_after(tested: type[ModulePass], levels: int | None = None) -> list[str]:
    """The passes that the default pipeline runs after a pass, as `abele opt -p` takes them.

    These are the rest of its own part of the pipeline and this many further parts, or all if None.
    TARGET stands for a machine. For a pass of nn, decompose is the first of them. A pass that is
    not in the default pipeline counts as running before the part of nn, if it needs nn, and
    otherwise behind the part that ends at the level that it needs.
    Returns nothing for a pass that accepts every level, or for a user's pass.
    """
    name, declared = tested.name, declared_levels(tested)
    if name not in PASSES:
        return []
    stage = STAGE.get(name, declared.needs if declared else None)
    if stage is None:
        return []
    if stage in FROM_SOURCES:
        lead = FROM_SOURCES[stage]
        later = [*lead[lead.index(name) + 1 if name in lead else 0 :]]
        return [*later, *(each for level in OWN_LEVELS[:levels] for each in DOWN[level])]
    own = [each.partition("{")[0] for each in DOWN[stage]]
    first = DOWN[stage][:1] if stage == NN and name in own else ()
    begin = own.index(name) + 1 if name in own else 0 if stage == NN else len(own)
    later = [*first, *DOWN[stage][begin:]]
    for level in OWN_LEVELS[OWN_LEVELS.index(stage) + 1 :][:levels]:
        later += DOWN[level]
    return later
