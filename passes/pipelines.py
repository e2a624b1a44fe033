"""Every pass by name, the default pipeline, and the shorthand for its parts.

The default pipeline leads from nn to exchange. In the text of a pipeline, the name of a level
stands for the passes that end there: `nn,partition,tile,exchange` is the default pipeline, without
the passes that a compile adds for programs that need them (see tools/driver/merging.py).

A level that a user adds has two ways of its own: into it from the level above, and out of it to the
level below. Functions that take `levels` know only these; without it, they know all that are
registered.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ..dialects.levels import EXCHANGE, LEVELS, NN, PARTITION, STABLEHLO, TILE, level_of
from ..dialects.mlir import MLIR, has_mlir
from ..ir.level import Level
from ..ir.pass_levels import level_after
from ..ir.pass_manager import PassEntry, parse_specs, unknown_pass
from ..ir.support.errors import InputError
from ..ir.support.user_entries import add_entry
from ..ir.upstream import ModuleOp, ModulePass

PASSES: dict[str, str] = {
    "decompose": "abele.passes.decompose:Decompose",
    "cut-batch": "abele.passes.cut_batch:CutBatch",
    "assign-stages": "abele.passes.assign_stages:AssignStages",
    "pipeline-stages": "abele.passes.pipeline_stages:PipelineStages",
    "sink-loads": "abele.passes.sink_loads:SinkLoads",
    "fold-constants": "abele.passes.fold_constants:FoldConstants",
    "eliminate-dead": "abele.passes.eliminate_dead:EliminateDead",
    "canonicalize": "abele.passes.canonicalize:Canonicalize",
    "bucket-blocks": "abele.passes.bucket_blocks:BucketBlocks",
    "merge-products": "abele.passes.merge_products:MergeProducts",
    "read-through": "abele.passes.read_through:ReadThrough",
    "summarize-softmax": "abele.passes.summarize_softmax:SummarizeSoftmax",
    "read-narrow": "abele.passes.read_narrow:ReadNarrow",
    "take-known-rows": "abele.passes.take_known_rows:TakeKnownRows",
    "multiply-sparse": "abele.passes.multiply_sparse:MultiplySparse",
    "multiply-quantised": "abele.passes.multiply_quantised:MultiplyQuantised",
    "fold-scales": "abele.passes.fold_scales:FoldScales",
    "split-sequences": "abele.passes.split_sequences:SplitSequences",
    "fuse-chains": "abele.passes.fuse_chains:FuseChains",
    "update-early": "abele.passes.update_early:UpdateEarly",
    "unfuse": "abele.passes.unfuse:Unfuse",
    "recompute": "abele.passes.recompute:Recompute",
    "narrow-stashes": "abele.passes.narrow_stashes:NarrowStashes",
    "replicate": "abele.passes.replicate:Replicate",
    "keep-remote": "abele.passes.keep_remote:KeepRemote",
    "plan-splits": "abele.passes.plan_splits:PlanSplits",
    "convert-linalg-to-nn": "abele.passes.convert_linalg_to_nn:ConvertLinalgToNn",
    "convert-nn-to-linalg": "abele.passes.convert_nn_to_linalg:ConvertNnToLinalg",
    "convert-nn-to-stablehlo": "abele.passes.convert_nn_to_stablehlo:ConvertNnToStablehlo",
    "convert-nn-to-partition": "abele.passes.convert_nn_to_partition:ConvertNnToPartition",
    "convert-partition-to-tile": "abele.passes.convert_partition_to_tile:ConvertPartitionToTile",
    "schedule-supersteps": "abele.passes.schedule_supersteps:ScheduleSupersteps",
    "allocate": "abele.passes.allocate:Allocate",
    "group-supersteps": "abele.passes.group_supersteps:GroupSupersteps",
    "order-exchanges": "abele.passes.order_exchanges:OrderExchanges",
    "convert-tile-to-exchange": "abele.passes.convert_tile_to_exchange:ConvertTileToExchange",
    "differentiate": "abele.passes.differentiate:Differentiate",
    "train": "abele.passes.train:Train",
    "narrow-partials": "abele.passes.narrow_partials:NarrowPartials",
    "round-stores": "abele.passes.round_stores:RoundStores",
    "narrow-floats": "abele.passes.narrow_floats:NarrowFloats",
    "narrow-products": "abele.passes.narrow_products:NarrowProducts",
    "convert-stablehlo-to-nn": "abele.passes.convert_stablehlo_to_nn:ConvertStablehloToNn",
}
"""Each of abele's passes as "module:Class", imported on first use."""

DOWN: dict[Level, tuple[str, ...]] = {
    NN: (
        "decompose",
        "sink-loads",
        "multiply-quantised{target=TARGET}",
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
"""The passes of abele's pipeline that end at each of abele's levels, from the level above."""

FROM_SOURCES: dict[Level, tuple[str, ...]] = {
    STABLEHLO: ("convert-stablehlo-to-nn",),
    MLIR: ("convert-linalg-to-nn",),
}
"""The passes that lead from each level above nn to nn. The default pipeline begins with them if a
program is at such a level."""


def source_of(module: ModuleOp) -> Level | None:
    """The level above nn at which a module is; None if it is at nn or below."""
    level = MLIR if has_mlir(module) else level_of(module)
    return level if level in FROM_SOURCES else None


STAGE: dict[str, Level] = {
    name.partition("{")[0]: level for level, passes in DOWN.items() for name in passes
}
"""For each pass of abele's pipeline, the level whose part of the pipeline it belongs to."""


@dataclass(frozen=True)
class Way:
    """The passes around a level that a user has added.

    Attributes:
        into: lead there from the level above, as a pipeline names them.
        out: lead from there to the level below.
        passes: the entry of each of these that is not abele's own, by name.
    """

    into: tuple[str, ...]
    out: tuple[str, ...]
    passes: tuple[tuple[str, PassEntry], ...] = ()


USERS_WAYS: dict[str, Way] = {}
"""The ways of the levels that extensions have added, by the name of the level."""


def register_way(level: Level, way: Way, owner: str) -> None:
    """Let the default pipeline go through a user's level. Replaces an earlier way of the level."""
    if level.name in USERS_WAYS:
        USERS_WAYS[level.name] = way
    else:
        add_entry(USERS_WAYS, "way through level", level.name, way, owner)


def users_passes() -> dict[str, PassEntry]:
    """The passes of users' levels by name."""
    return {name: entry for way in USERS_WAYS.values() for name, entry in way.passes}


def passes_to(level: Level, above: Level) -> tuple[str, ...]:
    """The passes that lead to a level, as a pipeline names them.

    Args:
        above: the level that they lead from. abele's passes to one of its levels begin at the
            level of abele's above it.
    """
    if level.name in USERS_WAYS:
        return USERS_WAYS[level.name].into
    if level != NN and above.name in USERS_WAYS:
        return USERS_WAYS[above.name].out
    return DOWN[level]


def passes_down(levels: Sequence[Level] = LEVELS) -> dict[Level, tuple[str, ...]]:
    """The passes of the default pipeline that end at each level, from the level above."""
    above = (NN, *levels[:-1])
    return {level: passes_to(level, each) for each, level in zip(above, levels, strict=True)}


def stage_of(levels: Sequence[Level] = LEVELS) -> dict[str, Level]:
    """For each pass of the default pipeline, the level whose part of the pipeline it belongs to."""
    down = passes_down(levels)
    return {each.partition("{")[0]: level for level, names in down.items() for each in names}


def levels_below(start: Level, levels: Sequence[Level] = LEVELS) -> tuple[Level, ...]:
    """The levels whose passes lead from a level to exchange. For nn, and for programs of other
    compilers, which a pass leads there first, they include nn's own.

    Args:
        levels: of the pipeline; a level that is not among them is left by its own way out.
    """
    if start == NN or start not in LEVELS:
        return tuple(levels)
    below = LEVELS[LEVELS.index(start) + 1 :]
    return tuple(each for each in levels if each in below)


def shorthand_from(start: Level, levels: Sequence[Level] = LEVELS) -> str:
    """The default pipeline from a level to exchange, in shorthand: "tile,exchange"."""
    return ",".join(map(str, levels_below(start, levels)))


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


def expand(
    spec: str,
    target: str,
    known: Collection[str] = PASSES.keys(),
    levels: Sequence[Level] = LEVELS,
    start: Level | None = None,
) -> str:
    """A pipeline in which each level's name is replaced by the passes that end at that level.

    They lead there from the level that the pipeline has reached before, by its name or by the pass
    that ends there, or else from the level directly above. So a pipeline that leaves out a user's
    level goes past it.

    Raises InputError for bad syntax, for a name that is neither a pass nor a level, and for a level
    with options.

        nn,mine,partition  ->  decompose,...,mine,plan-splits{target="mk2"},convert-nn-to-partition

    Args:
        target: a spelling of a target, for the passes that need one.
        known: names of passes.
        levels: that a pipeline may name.
        start: the level of the module; None if it is not known.
    """
    names: list[str] = []
    named = {level.name: level for level in levels}
    reached = _reached(levels)
    before = start
    for each in parse_specs(spec):
        if each.name not in named:
            if each.name not in known:
                raise unknown_pass(each.name, [*known, *named])
            names.append(str(each))
            before = reached.get(each.name, before)
            continue
        level = named[each.name]
        if before in FROM_SOURCES:
            names += FROM_SOURCES[before]
            before = NN
        passes = passes_to(level, before or levels[max(levels.index(level) - 1, 0)])
        if each.parameters:
            raise InputError(
                f"pipeline '{spec}': {each.name} stands for {', '.join(passes)}, and takes no "
                "options; name those passes instead"
            )
        names += with_target(passes, target)
        before = level
    return ",".join(names)


def with_target(passes: Iterable[str], target: str) -> list[str]:
    """Passes of the default pipeline, as a pipeline names them, for a target.

    Args:
        target: its spelling; "" for the target that the module names.
    """
    own = f'"{target}"'
    return [
        name.replace("TARGET", own) if target else name.replace("{target=TARGET}", "")
        for name in passes
    ]


def last_level(spec: str, levels: Sequence[Level] = LEVELS) -> Level | None:
    """The level that a pipeline reaches last, as far as `expand` knows; None if it is not known."""
    reached = _reached(levels)
    found = [reached[each.name] for each in parse_specs(spec) if each.name in reached]
    return found[-1] if found else None


def _reached(levels: Sequence[Level]) -> dict[str, Level]:
    """The level that a pipeline reaches with each level's name, and with the last pass of each."""
    found = {level.name: level for level in levels}
    found |= {passes[-1]: NN for passes in FROM_SOURCES.values()}
    for table in (DOWN, passes_down(levels)):
        for level, passes in table.items():
            found[passes[-1].partition("{")[0]] = level
    return found


def level_after_all(passes: Iterable[ModulePass], start: Level | None) -> Level | None:
    """The level of a module after these passes; None if it is not known.

    Args:
        start: the level of the module before; None if it is not known.
    """
    level = start
    for each in passes:
        level = level_after(type(each), level)
    return level


def stages(names: Sequence[str], levels: Sequence[Level] = LEVELS) -> tuple[Level, ...]:
    """The level whose part of the pipeline each pass belongs to.

    A pass that is not in the default pipeline belongs to the part of the next pass that is; at the
    end of a pipeline, to the part of the last one that is.
    """
    known = {**STAGE, **stage_of(levels)}
    stage = next((known[name] for name in reversed(names) if name in known), NN)
    found: list[Level] = []
    for name in reversed(names):
        stage = known.get(name, stage)
        found.append(stage)
    return tuple(reversed(found))
