"""Every pass by name, the way down as tuples of names, and the shorthand for its stretches."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from ..ir.errors import InputError
from ..ir.pass_manager import parse_specs
from ..ir.suggestions import suggestion

PASSES: dict[str, str] = {
    "decompose": "abele.passes.decompose:Decompose",
    "fold-constants": "abele.passes.fold_constants:FoldConstants",
    "eliminate-dead": "abele.passes.eliminate_dead:EliminateDead",
    "canonicalize": "abele.passes.canonicalize:Canonicalize",
    "fold-scales": "abele.passes.fold_scales:FoldScales",
    "fuse-chains": "abele.passes.fuse_chains:FuseChains",
    "recompute": "abele.passes.recompute:Recompute",
    "plan-splits": "abele.passes.plan_splits:PlanSplits",
    "convert-nn-to-partition": "abele.passes.convert_nn_to_partition:ConvertNnToPartition",
    "convert-partition-to-tile": "abele.passes.convert_partition_to_tile:ConvertPartitionToTile",
    "schedule-supersteps": "abele.passes.schedule_supersteps:ScheduleSupersteps",
    "allocate": "abele.passes.allocate:Allocate",
    "group-supersteps": "abele.passes.group_supersteps:GroupSupersteps",
    "convert-tile-to-exchange": "abele.passes.convert_tile_to_exchange:ConvertTileToExchange",
    "narrow-floats": "abele.passes.narrow_floats:NarrowFloats",
}
"""Where each pass is found; loaded when it is asked for."""

LEVELS = ("nn", "partition", "tile", "exchange")
"""The levels, from what to when and where."""

DOWN: dict[str, tuple[str, ...]] = {
    "nn": (
        "decompose",
        "fold-scales",
        "fold-constants",
        "canonicalize",
        "eliminate-dead",
        "fuse-chains",
    ),
    "partition": ("plan-splits{target=TARGET}", "convert-nn-to-partition"),
    "tile": ("convert-partition-to-tile",),
    "exchange": (
        "schedule-supersteps",
        "allocate",
        "group-supersteps",
        "convert-tile-to-exchange",
    ),
}
"""The passes that end at each level, from the level above."""

LEADS_TO: dict[str, str] = {
    name: level for level, names in DOWN.items() for name in names if name.endswith(f"-to-{level}")
}
"""The passes that leave a module on another level than they found it on, with that level."""

TAKES: dict[str, str] = {
    name: LEVELS[LEVELS.index(level) - 1] for name, level in LEADS_TO.items()
} | {
    "narrow-floats": "nn",
    **dict.fromkeys(("schedule-supersteps", "allocate", "group-supersteps"), "tile"),
}
"""The level that a pass takes a module on, where it would make nothing of another's."""

ROUNDS = frozenset(("narrow-floats",))
"""The passes that give up precision, each loss a cast in what they leave. All others keep results
within the errors of the program they are given."""

STAGE: dict[str, str] = {
    name.partition("{")[0]: level for level, names in DOWN.items() for name in names
}
"""The level at whose stretch of the way down each pass stands."""


def way(start: str, end: str = LEVELS[-1]) -> tuple[str, ...]:
    """The levels whose passes lead from one level to another; from nn, nn's own too."""
    first, last = LEVELS.index(start), LEVELS.index(end)
    return LEVELS[first if start == "nn" else first + 1 : last + 1]


def pipeline(start: str, end: str, target: str) -> str:
    """The pipeline from one level down to another, as text that abele opt -p takes.

    start: "nn" includes the passes that stay on nn. target: a spelling of a target.
    Raises ValueError if the way leads up, or a level is unknown.
    """
    for level in (start, end):
        if level not in LEVELS:
            raise ValueError(f"level {level!r}; need one of {', '.join(LEVELS)}")
    if LEVELS.index(start) > LEVELS.index(end):
        raise ValueError(f"from {start} to {end}: the way leads down only")
    return expand(",".join(way(start, end)), target)


def expand(spec: str, target: str, known: Collection[str] = PASSES.keys()) -> str:
    """A pipeline with each level's name replaced by the passes that end at that level.

    target: a spelling of a target, for the passes that want one. known: names of passes.
    Raises InputError for bad syntax, a name that is neither, and a level with options.

        nn,mine,partition  ->  decompose,...,mine,plan-splits{target="mk2"},convert-nn-to-partition
    """
    names: list[str] = []
    for each in parse_specs(spec):
        if each.name not in DOWN:
            if each.name not in known:
                raise InputError(f"no pass '{each.name}'{suggestion(each.name, [*known, *DOWN])}")
            names.append(str(each))
            continue
        if each.parameters:
            raise InputError(
                f"pipeline '{spec}': {each.name} stands for {', '.join(DOWN[each.name])}, and "
                "takes no options; name those passes instead"
            )
        own = f'"{target}"'
        names += [
            name.replace("TARGET", own) if target else name.replace("{target=TARGET}", "")
            for name in DOWN[each.name]
        ]
    return ",".join(names)


def level_after(names: Sequence[str], start: str | None) -> str | None:
    """The level that passes leave a module on; None if that is not known.

    start: its level before, or None. A pass that is not abele's own may lead anywhere.
    """
    level = start
    for name in names:
        level = LEADS_TO.get(name, level if name in PASSES else None)
    return level


def stages(names: Sequence[str]) -> tuple[str, ...]:
    """The stage of each pass of a pipeline: another pass belongs to the next one's of the way down.

    After the last of those, it belongs to that one's.
    """
    stage = next((STAGE[name] for name in reversed(names) if name in STAGE), LEVELS[0])
    found: list[str] = []
    for name in reversed(names):
        stage = STAGE.get(name, stage)
        found.append(stage)
    return tuple(reversed(found))
