"""A level that a user adds between two others, and its place in abele's tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from xdsl.ir import Dialect, Operation
from xdsl.traits import IsTerminator

from ....backends.evaluate.users_levels import (
    LOWERED,
    Evaluator,
    Meaning,
    register_evaluator,
    register_meaning,
)
from ....backends.reference.run import has_meaning
from ....backends.target import Target
from ....dialects.levels import (
    LEVEL_DIALECTS,
    LEVELS,
    NN,
    OWN_LEVELS,
    PARTITION,
    all_users_dialects,
    register_level,
)
from ....ir.level import Level
from ....ir.pass_levels import declared_levels
from ....ir.pass_manager import PassEntry, parse_pipeline, parse_specs
from ....ir.support.errors import InputError
from ....ir.support.user_entries import add_entry
from ....ir.upstream import ModuleOp, ModulePass
from ....passes.names import pipeline_passes
from ....passes.pipelines import PASSES, USERS_WAYS, Way, register_way, users_passes, with_target
from ..context import new_context

NAME = re.compile(r"[a-z]+")
"""The names that levels may have: files are named after them."""

WITH_VALUES = (NN, PARTITION)
"""The levels of abele's whose operations work on values. Those of the others work on variables."""


@dataclass(frozen=True, eq=False)
class AddedLevel:
    """A level of a user's, and everything that abele has to know of it.

    What runs, dumps, prices, bisects and tests programs goes through the level without another
    line.

    Example:
        WAVE = PARTITION.extended("wave")

        level = AddedLevel(
            WAVE,
            after=PARTITION,
            into="convert-partition-to-wave",
            out="convert-wave-to-tile",
            meanings={TogetherOp: one_by_one},
        )

    Attributes:
        level: its name and what is legal there. A module is known to be of the level by an
            operation of the dialect that is called like it.
        after: the level directly above.
        into: the passes that lead there from the level above, as a pipeline.
        out: the passes that lead from there to the level below, as a pipeline. TARGET stands for
            the target: "plan-splits{target=TARGET}".
        meanings: for each operation of the level's dialects, a function that builds what it means
            in operations of the level that this one is like. It takes the operation and a builder,
            and returns a value per result.
        evaluators: for each operation without such a meaning, a function that computes it: it
            takes the operation and its operands as whole arrays, and returns an array per result.
            No error bound is known of what it computes, so the kit compares programs of the level
            only with what they were made from.
        runs_lowered: whether programs of the level have no evaluator, and run only once they are
            lowered. Bisection then cannot tell the passes apart that lead there and away.
        price: estimates the cycles of an operation of the level's dialects. Reports show it beside
            the cycles of what the operation has become.
        decide: takes random legal decisions in a generated module of the level above, so that it
            becomes one of this level, in place. Without it, the passes of `into` do that.
    """

    level: Level
    after: Level
    into: str
    out: str
    meanings: Mapping[type[Operation], Meaning] = field(default_factory=dict[Any, Meaning])
    evaluators: Mapping[type[Operation], Evaluator] = field(default_factory=dict[Any, Evaluator])
    runs_lowered: bool = False
    price: Callable[[Operation, Target], float] | None = None
    decide: Callable[[ModuleOp, Target, Random], None] | None = None


ADDED: dict[str, AddedLevel] = {}
"""The levels that are registered, by name."""


def dialects_of(levels: Sequence[AddedLevel], dialects: Sequence[Dialect]) -> set[str]:
    """The names of those dialects that belong to levels."""
    legal = {name for each in levels for name in each.level.own}
    return {dialect.name for dialect in dialects} & legal


def register_added_level(added: AddedLevel, owner: str) -> None:
    """Add a level to abele's tables; its dialects are there already.

    Raises InputError for a level that cannot stand there or cannot run.
    """
    what = f"{owner}: level {added.level.name!r}"
    level = added.level
    if not NAME.fullmatch(level.name):
        raise InputError(f"{what}: need a name of lower-case letters, such as 'wave'")
    if level.like not in OWN_LEVELS:
        raise InputError(
            f"{what}: like is {level.like}; need a level of abele's, as PARTITION.extended"
            f"({level.name!r}) gives it"
        )
    for way, spec in (("in", added.into), ("out", added.out)):
        if not parse_specs(spec):
            raise InputError(f"{what}: no conversion {way}; need the passes of a pipeline")
    if level.name not in LEVEL_DIALECTS:
        raise InputError(
            f"{what}: no dialect {level.name!r}, by whose operations a module of the level is "
            f"known; need Dialect({level.name!r}, [...], [])"
        )
    register_level(level, added.after, owner)
    at = OWN_LEVELS.index(added.after.form)
    neighbours = OWN_LEVELS[at : at + 2]
    if level.like not in neighbours:
        named = " or ".join(map(str, neighbours))
        raise InputError(f"{what}: like {level.like}; need {named}, between which it stands")
    own = [op for name in level.own if (d := LEVEL_DIALECTS.get(name)) for op in d.operations]
    _register_runs(added, own, what, owner)
    add_entry(ADDED, "level of an extension", level.name, added, owner)


def _register_runs(
    added: AddedLevel, own: Collection[type[Operation]], what: str, owner: str
) -> None:
    """Register how programs of the level run."""
    level = added.level
    for kind, table in (("meaning", added.meanings), ("evaluator", added.evaluators)):
        others = [op.name for op in table if op not in own]
        if others:
            raise InputError(
                f"{what}: {kind} of {others[0]}, which is no operation of its dialects"
            )
        if table and added.runs_lowered:
            raise InputError(f"{what}: a {kind}, and runs_lowered; need one of them")
    if added.evaluators and level.form not in WITH_VALUES:
        raise InputError(
            f"{what}: evaluators, but operations like those of {level.form} work on variables; "
            "need meanings, or runs_lowered"
        )
    if added.runs_lowered:
        add_entry(LOWERED, "lowering of level", level.name, _lowering(level), owner)
        return
    known = {*added.meanings, *added.evaluators}
    for op in own:
        by_reference = level.form == NN and has_meaning(op)
        if op not in known and not by_reference and not op.has_trait(IsTerminator):
            raise InputError(
                f"{what}: nothing runs {op.name} of class {op.__name__}; need it in meanings or in "
                "evaluators, or runs_lowered=True"
            )
    for op, meaning in added.meanings.items():
        register_meaning(op, meaning, owner)
    for op, evaluator in added.evaluators.items():
        register_evaluator(op, evaluator, owner)


def _lowering(level: Level) -> Callable[[ModuleOp, Target], Level]:
    def lower(module: ModuleOp, target: Target) -> Level:
        run_passes(USERS_WAYS[level.name].out, module, target)
        return _end(USERS_WAYS[level.name].out, level)

    return lower


def run_passes(names: Sequence[str], module: ModuleOp, target: Target) -> None:
    """Run passes of users' ways on a module. Raises what they raise."""
    context = new_context(all_users_dialects())
    for each in _parsed(names, users_passes(), target.spelling()):
        each.apply(context, module)


def wanted_by(added: AddedLevel) -> str:
    """The level from which a user's level is entered, or how far a module there is decided."""
    first = next(iter(_parsed(USERS_WAYS[added.level.name].into, users_passes())))
    declared = declared_levels(type(first))
    return (declared and declared.decided) or added.after.name


def enter(added: AddedLevel, module: ModuleOp, target: Target, random: Random) -> None:
    """Convert a generated module of the level above to a user's level, in place."""
    if added.decide is None:
        run_passes(USERS_WAYS[added.level.name].into, module, target)
    else:
        added.decide(module, target, random)


def _parsed(
    names: Sequence[str], passes: Mapping[str, PassEntry], target: str = ""
) -> tuple[ModulePass, ...]:
    known = pipeline_passes({**PASSES, **passes})
    return parse_pipeline(",".join(with_target(names, target)), known)


def _end(names: Sequence[str], start: Level) -> Level:
    """The level at which passes leave a module that begins at another."""
    level = start
    for each in _parsed(names, users_passes()):
        declared = declared_levels(type(each))
        level = (declared and declared.leaves) or level
    return level


# Ways


def settle_ways(
    levels: Sequence[tuple[AddedLevel, str]],
    passes: Mapping[str, PassEntry],
    used: Sequence[Level],
) -> None:
    """Let the default pipeline go through levels, now that all files are loaded.

    Raises InputError for a conversion that does not lead where it has to.

    Args:
        levels: each with its owner.
        passes: abele's and users'.
        used: all levels that these pipelines go through. Others may be registered, too.
    """
    for added, owner in levels:
        what = f"{owner}: level {added.level.name!r}"
        into, out = _names(added.into), _names(added.out)
        at = used.index(added.level)
        try:
            _check_way(f"{what}: conversion in", into, passes, used[at - 1], [added.level])
            # A user's level directly below has a conversion of its own out of this one.
            own = next(i for i, each in enumerate(used) if i > at and each.like is None)
            _check_way(
                f"{what}: conversion out", out, passes, added.level, used[at + 1 : own + 1], True
            )
        except InputError as error:
            _refuse_one_place(added, levels, error)
            raise
        named = (each.name for way in (added.into, added.out) for each in parse_specs(way))
        users = {name: passes[name] for name in named if name in passes and name not in PASSES}
        register_way(added.level, Way(into, out, tuple(users.items())), owner)


def _refuse_one_place(
    added: AddedLevel, levels: Sequence[tuple[AddedLevel, str]], error: InputError
) -> None:
    """Raise InputError if another level stands after the same level as one whose way is wrong.

    No order of two such levels helps: the way out of the first one leads to the level below both,
    where the second one cannot begin.
    """
    for other, owner in levels:
        if other is not added and other.after == added.after:
            raise InputError(
                f"{error}. Level {other.level.name!r} of {owner} stands after {added.after}, too, "
                "and a pipeline cannot go through both; load one of them, or put one after the "
                "other, with conversions that know both"
            ) from None


def _names(spec: str) -> tuple[str, ...]:
    # TARGET is no value that a pipeline could have.
    return tuple(
        str(each).replace('"TARGET"', "TARGET")
        for each in parse_specs(spec.replace("=TARGET", '="TARGET"'))
    )


def _check_way(
    what: str,
    names: Sequence[str],
    passes: Mapping[str, PassEntry],
    start: Level,
    ends: Sequence[Level],
    leaves: bool = False,
) -> None:
    """Raise InputError unless passes lead from one level to another, by what they declare.

    Args:
        ends: the levels that they may lead to.
        leaves: whether they lead out of the first level. What is left of a level like nn, once its
            own operations are gone, is a module of nn, so passes of nn may take it.
    """
    try:
        found = _parsed(names, passes)
    except InputError as error:
        raise InputError(f"{what}: {error}") from None
    level = start
    for each in found:
        declared = declared_levels(type(each))
        if declared is None:
            continue
        if declared.needs not in (None, level, level.form if leaves else level):
            raise InputError(
                f"{what}: {each.name} takes {declared.needs}, but the module is at {level}"
            )
        if declared.leaves is not None:
            if LEVELS.index(declared.leaves) < LEVELS.index(level):
                raise InputError(
                    f"{what}: {each.name} leads from {level} back up to {declared.leaves}: a cycle"
                )
            level = declared.leaves
    if level not in ends:
        raise InputError(
            f"{what} ends at {level}; need a pass that declares leaves = the level "
            f"{' or '.join(map(str, ends))}"
        )
