"""Every pass by name, the default pipeline, and the shorthand for its parts.

The default pipeline leads from nn to exchange. In the text of a pipeline, the name of a level
stands for the passes that end there: `nn,partition,tile,exchange` is the whole default pipeline.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from ..dialects.levels import EXCHANGE, LEVELS, NN, PARTITION, TILE
from ..ir.level import Level
from ..ir.pass_levels import level_after
from ..ir.pass_manager import parse_specs, unknown_pass
from ..ir.support.errors import InputError
from ..ir.upstream import ModulePass

PASSES: dict[str, str] = {
    "decompose": "abele.passes.decompose:Decompose",
    "fold-constants": "abele.passes.fold_constants:FoldConstants",
    "eliminate-dead": "abele.passes.eliminate_dead:EliminateDead",
    "canonicalize": "abele.passes.canonicalize:Canonicalize",
    "fold-scales": "abele.passes.fold_scales:FoldScales",
    "split-sequences": "abele.passes.split_sequences:SplitSequences",
    "fuse-chains": "abele.passes.fuse_chains:FuseChains",
    "update-early": "abele.passes.update_early:UpdateEarly",
    "unfuse": "abele.passes.unfuse:Unfuse",
    "recompute": "abele.passes.recompute:Recompute",
    "plan-splits": "abele.passes.plan_splits:PlanSplits",
    "convert-nn-to-partition": "abele.passes.convert_nn_to_partition:ConvertNnToPartition",
    "convert-partition-to-tile": "abele.passes.convert_partition_to_tile:ConvertPartitionToTile",
    "schedule-supersteps": "abele.passes.schedule_supersteps:ScheduleSupersteps",
    "allocate": "abele.passes.allocate:Allocate",
    "group-supersteps": "abele.passes.group_supersteps:GroupSupersteps",
    "convert-tile-to-exchange": "abele.passes.convert_tile_to_exchange:ConvertTileToExchange",
    "differentiate": "abele.passes.differentiate:Differentiate",
    "train": "abele.passes.train:Train",
    "narrow-floats": "abele.passes.narrow_floats:NarrowFloats",
}
"""Each of abele's passes as "module:Class", imported on first use."""

DOWN: dict[Level, tuple[str, ...]] = {
    NN: (
        "decompose",
        "fold-scales",
        "fold-constants",
        "canonicalize",
        "eliminate-dead",
        "split-sequences{target=TARGET}",
        "fuse-chains",
        "update-early",
    ),
    PARTITION: ("plan-splits{target=TARGET}", "convert-nn-to-partition"),
    TILE: ("convert-partition-to-tile",),
    EXCHANGE: (
        "schedule-supersteps",
        "allocate",
        "group-supersteps",
        "convert-tile-to-exchange",
    ),
}
"""The passes of the default pipeline that end at each level, from the level above."""

SHORTHAND: dict[str, tuple[str, ...]] = {level.name: passes for level, passes in DOWN.items()}
"""The passes that each level's name stands for in a pipeline."""

STAGE: dict[str, Level] = {
    name.partition("{")[0]: level for level, passes in DOWN.items() for name in passes
}
"""For each pass of the default pipeline, the level whose part of the pipeline it belongs to."""


def levels_below(start: Level) -> tuple[Level, ...]:
    """The levels whose passes lead from a level to exchange. For nn they include nn's own."""
    first = LEVELS.index(start)
    return LEVELS[first if start == NN else first + 1 :]


def shorthand_from(start: Level) -> str:
    """The default pipeline from a level to exchange, in shorthand: "tile,exchange"."""
    return ",".join(map(str, levels_below(start)))


def pipeline(start: Level, end: Level, target: str) -> str:
    """The default pipeline from one level down to another, as `abele opt -p` takes it.

    Raises ValueError if end is above start.

    Args:
        start: nn includes the passes that stay on nn.
        target: a spelling of a target.
    """
    if LEVELS.index(start) > LEVELS.index(end):
        raise ValueError(f"from {start} to {end}: a pipeline only leads down")
    below = levels_below(start)
    return expand(",".join(map(str, below[: below.index(end) + 1] if end in below else ())), target)


def expand(spec: str, target: str, known: Collection[str] = PASSES.keys()) -> str:
    """A pipeline in which each level's name is replaced by the passes that end at that level.

    Raises InputError for bad syntax, for a name that is neither a pass nor a level, and for a level
    with options.

        nn,mine,partition  ->  decompose,...,mine,plan-splits{target="mk2"},convert-nn-to-partition

    Args:
        target: a spelling of a target, for the passes that need one.
        known: names of passes.
    """
    names: list[str] = []
    for each in parse_specs(spec):
        if each.name not in SHORTHAND:
            if each.name not in known:
                raise unknown_pass(each.name, [*known, *SHORTHAND])
            names.append(str(each))
            continue
        if each.parameters:
            raise InputError(
                f"pipeline '{spec}': {each.name} stands for {', '.join(SHORTHAND[each.name])}, and "
                "takes no options; name those passes instead"
            )
        own = f'"{target}"'
        names += [
            name.replace("TARGET", own) if target else name.replace("{target=TARGET}", "")
            for name in SHORTHAND[each.name]
        ]
    return ",".join(names)


def level_after_all(passes: Iterable[ModulePass], start: Level | None) -> Level | None:
    """The level of a module after these passes; None if it is not known.

    Args:
        start: the level of the module before; None if it is not known.
    """
    level = start
    for each in passes:
        level = level_after(type(each), level)
    return level


def stages(names: Sequence[str]) -> tuple[Level, ...]:
    """The level whose part of the pipeline each pass belongs to.

    A pass that is not in the default pipeline belongs to the part of the next pass that is; at the
    end of a pipeline, to the part of the last one that is.
    """
    stage = next((STAGE[name] for name in reversed(names) if name in STAGE), NN)
    found: list[Level] = []
    for name in reversed(names):
        stage = STAGE.get(name, stage)
        found.append(stage)
    return tuple(reversed(found))
