"""Every pass by name, and the way down as tuples of names."""

from __future__ import annotations

PASSES: dict[str, str] = {
    "decompose": "abele.passes.decompose:Decompose",
    "fold-constants": "abele.passes.fold_constants:FoldConstants",
    "eliminate-dead": "abele.passes.eliminate_dead:EliminateDead",
    "plan-splits": "abele.passes.plan_splits:PlanSplits",
    "convert-nn-to-partition": "abele.passes.convert_nn_to_partition:ConvertNnToPartition",
    "convert-partition-to-tile": "abele.passes.convert_partition_to_tile:ConvertPartitionToTile",
    "schedule-supersteps": "abele.passes.schedule_supersteps:ScheduleSupersteps",
    "allocate": "abele.passes.allocate:Allocate",
    "convert-tile-to-exchange": "abele.passes.convert_tile_to_exchange:ConvertTileToExchange",
}
"""Where each pass is found; loaded when it is asked for."""

LEVELS = ("nn", "partition", "tile", "exchange")
"""The levels, from what to when and where."""

DOWN: dict[str, tuple[str, ...]] = {
    "nn": ("decompose", "fold-constants", "eliminate-dead"),
    "partition": ("plan-splits{target=TARGET}", "convert-nn-to-partition"),
    "tile": ("convert-partition-to-tile",),
    "exchange": ("schedule-supersteps", "allocate", "convert-tile-to-exchange"),
}
"""The passes that end at each level, from the level above."""


def pipeline(start: str, end: str, target: str) -> str:
    """The pipeline from one level down to another, as text that abele opt -p takes.

    start: "nn" includes the passes that stay on nn. target: a spelling of a target.
    Raises ValueError if the way leads up, or a level is unknown.
    """
    for level in (start, end):
        if level not in LEVELS:
            raise ValueError(f"level {level!r}; need one of {', '.join(LEVELS)}")
    first, last = LEVELS.index(start), LEVELS.index(end)
    if first > last:
        raise ValueError(f"from {start} to {end}: the way leads down only")
    levels = LEVELS[first if start == "nn" else first + 1 : last + 1]
    names = [name for level in levels for name in DOWN[level]]
    return ",".join(names).replace("TARGET", f'"{target}"')
