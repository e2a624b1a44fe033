"""Read and check the pipeline that a user gives for compiling a model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from itertools import takewhile

from ...dialects.levels import EXCHANGE, LEVELS, NN
from ...ir.level import Level
from ...ir.pass_manager import parse_specs
from ...ir.support.errors import InputError
from ...ir.upstream import ArgSpec, ModulePass, VerifyException
from ...ir.verify import verify
from ...passes.fuse_chains import FuseChains
from ...passes.keep_remote import KeepRemote
from ...passes.narrow_partials import NarrowPartials
from ...passes.narrow_stashes import NarrowStashes
from ...passes.pipelines import STAGE, level_after_all, levels_below, shorthand_from
from ...passes.plan_splits import PlanSplits
from ...passes.planner.fineness import check_vertices
from ...passes.planner.limits import check_proportion
from ...passes.planner.shards import read_shards
from ...passes.recompute import Recompute
from ...passes.replicate import Replicate
from ...passes.round_stores import RoundStores
from ...passes.update_early import UpdateEarly
from .executable import MACHINE
from .extensions.loaded import Extensions
from .program import ReadProgram


def checked_pipeline(
    spec: str, level: Level, target: str, extensions: Extensions
) -> tuple[ModulePass, ...]:
    """The passes of a pipeline from a level to the last level.

    Raises InputError for a bad pipeline, and for one that is known to end above the last level. A
    user's pass may lead to any level.

    Args:
        spec: "" for all of them.
    """
    below = levels_below(level, extensions.levels)
    above = {str(each) for each in LEVELS if each not in levels_below(level)}
    for each in parse_specs(spec):
        if each.name in above:
            raise InputError(
                f"pipeline '{spec}': the program is at {level} already; leave out {each.name}"
            )
    passes = extensions.pipeline(spec or ",".join(map(str, below)), target, level)
    check_end(f"pipeline '{spec}'", level_after_all(passes, level))
    return passes


def limited(
    passes: tuple[ModulePass, ...],
    constraints: str | os.PathLike[str] | None,
    memory_proportion: float | None,
    vertices_per_tile: int | None = None,
    spare: int = 0,
    shards: Sequence[str] = (),
) -> tuple[ModulePass, ...]:
    """Set the constraints, memory proportion, shards, fineness and spare memory of the pass that
    plans, and the constraints of the pass that chooses partial sums.

    Raises InputError if no pass plans.
    """
    more: dict[str, str | float | tuple[str, ...]] = {}
    if constraints is not None:
        more["constraints"] = os.fspath(constraints)
    if memory_proportion is not None:
        check_proportion(memory_proportion)
        more["memory_proportion"] = memory_proportion
    if vertices_per_tile is not None:
        check_vertices(vertices_per_tile)
        more["vertices_per_tile"] = vertices_per_tile
    if spare:
        more["spare"] = spare
    if shards:
        more["shard"] = tuple(map(str, read_shards(shards)))
    if more and not any(isinstance(each, PlanSplits) for each in passes):
        raise InputError(f"{', '.join(more)}: no pass of the pipeline plans; add {PlanSplits.name}")
    passes = tuple(replace(p, **more) if isinstance(p, PlanSplits) else p for p in passes)
    return with_constrained_sums(passes, constraints)


def with_constrained_sums(
    passes: tuple[ModulePass, ...], constraints: str | os.PathLike[str] | None
) -> tuple[ModulePass, ...]:
    """Set the constraints of the passes that choose partial sums."""
    if constraints is None:
        return passes
    path = os.fspath(constraints)
    return tuple(
        replace(p, constraints=path) if isinstance(p, NarrowPartials) else p for p in passes
    )


def with_stages(passes: str, change: Sequence[str]) -> str:
    """A pipeline in which passes that put the network into stages come before its passes at nn.

    Raises InputError for a pipeline that does not name nn.

    Args:
        passes: "" for the default pipeline.
        change: the passes, each with its options.
    """
    specs = parse_specs(passes or shorthand_from(NN))
    at = next((i for i, each in enumerate(specs) if each.name == NN.name), None)
    if at is None:
        raise InputError(
            f"pipeline '{passes}': --pipeline comes before the passes of nn; name {NN.name}"
        )
    return ",".join((*map(str, specs[:at]), *change, *map(str, specs[at:])))


def with_changed_values(passes: str, change: Recompute | NarrowStashes) -> str:
    """A pipeline in which a pass changes what is kept, after its passes at nn.

    Chains and the places of updates are then decided anew, because new operations have readers of
    their own. Raises InputError for a pipeline that does not name nn.

    Args:
        passes: "" for the default pipeline.
    """
    specs = parse_specs(passes or shorthand_from(NN))
    at = _behind_nn(specs, passes, change)
    # Copies are made of roundings, so that they draw the same words, and of choices.
    first = (NarrowPartials.name, RoundStores.name)
    at += sum(1 for _ in takewhile(lambda each: each.name in first, specs[at:]))
    behind = (change.spec(), FuseChains().spec(), UpdateEarly().spec())
    return ",".join(map(str, (*specs[:at], *behind, *specs[at:])))


def with_replicas(passes: str, change: Replicate) -> str:
    """A pipeline that cuts the batch across chips directly behind its passes at nn.

    Chains and the places of updates are then decided anew. Raises InputError for a pipeline that
    does not name nn.

    Args:
        passes: "" for the default pipeline.
    """
    specs = parse_specs(passes or shorthand_from(NN))
    at = _behind_nn(specs, passes, change)
    behind = (change.spec(), FuseChains().spec(), UpdateEarly().spec())
    return ",".join(map(str, (*specs[:at], *behind, *specs[at:])))


def with_remote_states(passes: str, change: KeepRemote) -> str:
    """A pipeline that decides which states are remote right before it leaves nn.

    Where loads and stores stand follows from the order of all other operations. Raises InputError
    for a pipeline that does not name nn.

    Args:
        passes: "" for the default pipeline.
    """
    specs = parse_specs(passes or shorthand_from(NN))
    at = _behind_nn(specs, passes, change)
    below = (*(each.name for each in LEVELS), *(n for n, level in STAGE.items() if level != NN))
    at += sum(1 for _ in takewhile(lambda each: each.name not in below, specs[at:]))
    return ",".join(map(str, (*specs[:at], change.spec(), *specs[at:])))


def _behind_nn(specs: Sequence[ArgSpec], passes: str, change: ModulePass) -> int:
    """The place behind the passes of nn. Raises InputError for a pipeline that does not name nn."""
    at = max((i for i, each in enumerate(specs, 1) if each.name == NN.name), default=0)
    if not at:
        raise InputError(
            f"pipeline '{passes}': {change.name} follows the passes of nn; name {NN.name}"
        )
    return at


def check_end(what: str, level: Level | None) -> None:
    """Raise InputError if a pipeline is known to end above the last level."""
    if level is not None and level != EXCHANGE:
        below = LEVELS[LEVELS.index(level) + 1 :]
        missing = ",".join(str(each) for each in below if each.like is None)
        raise InputError(f"{what} ends at {level}; the machine runs {MACHINE}: add {missing}")


def check_all_down(program: ReadProgram) -> None:
    """Raise InputError for an operation that the machine would ignore."""
    try:
        verify(program.module, EXCHANGE)
    except VerifyException as error:
        raise InputError(f"{program.path}: {error}; no pass of the pipeline lowers it") from None
