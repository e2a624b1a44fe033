"""Collect all tables of a report from a compiled program."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....backends.memory import MemoryReport
from ....backends.prices.crossings import Crossings, crossings
from ....backends.prices.overheads import overheads
from ....backends.prices.price import totals, variables_of
from ....backends.prices.step_charges import ProgramCharge, StepCharge, step_charges
from ....backends.target import Target
from ....dialects.exchange import VariableOp
from ....dialects.levels import LEVELS, OWN_LEVELS
from ....dialects.scalar_functions import DRAWN, STOCHASTIC
from ....dialects.steps import Vertices
from ....ir.support.errors import InputError
from ....ir.upstream import ModuleOp
from ....passes.pipelines import stages as stages_of
from ....passes.plans.sparse_prices import read_sparse_prices
from ...driver.dump.nodes import without_folders
from ...driver.energy import COLUMNS, UNKNOWN
from ...driver.executable import MACHINE, Executable
from ...driver.shown_text import shown
from .chips import chip_link_table, chip_table, crossing_table, placement_table
from .columns import Table, empty, rows_table
from .execution import (
    exchange_table,
    execution_tables,
    group_size,
    part_table,
    superstep_table,
    superstep_tile_table,
    tiles_of_steps,
)
from .made_by import made_by
from .memory import (
    Lives,
    layout_table,
    life_table,
    moment_table,
    tile_table,
    variable_table,
)
from .nodes import Nodes, counted
from .operations import (
    Planned,
    alternative_table,
    kinds_of,
    operation_table,
    plan_table,
    planned_operators,
    sparse_table,
)
from .schema import SCHEMA
from .timetables import Lanes, timetables_of
from .tree import tree_table
from .vertices import MOST_VERTICES, vertex_tables

_FOLDER = re.compile(r"(?<![^\s('\"])/[^\s:'\"]*/")
"""The folder of a file whose path begins a word."""

MOST_NODES = 20_000
"""The most operations of a level that is written as ONNX. Assumed: more than a viewer can draw."""


@dataclass(frozen=True, eq=False)
class Report:
    """The data of a report.

    Attributes:
        program: facts of the whole program by name, as report.json has them.
        tables: by name, with the columns of the schema.
        absent: for each view that lacks data, the missing data and the reason.
        nodes: the operation of each part of the program; None if the report was read from a folder.
        sources: what lines of the user's files say, by file and line, as far as the model knows.
        lanes: pictures of the longest exchanges; none if the report was read from a folder.
    """

    program: Mapping[str, Any]
    tables: Mapping[str, Table]
    absent: Mapping[str, str]
    nodes: Nodes | None = None
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    lanes: tuple[Lanes, ...] = ()


def collect(
    exe: Executable,
    names: Mapping[str, str] | None = None,
    sources: Mapping[str, str] | None = None,
) -> Report:
    """The report of a compiled program, which need not fit.

    Raises InputError for a program that does not reach the machine.

    Args:
        names: telling names for some nodes (see layer_names).
        sources: what lines of the user's files say, by file and line.
    """
    if MACHINE not in exe.levels:
        raise InputError(f"{exe.path}: stops above {MACHINE}; need a complete program")
    module, target, memory = exe.module_at(MACHINE), exe.target, exe.memory
    modules = {level: exe.module_at(level) for level in exe.levels}
    nodes = Nodes.in_modules(modules.values(), names or {})
    plans = exe.stages.plans
    planned = () if plans is None else planned_operators(plans, target, nodes)
    charged = step_charges(module, target)
    steps = charged.steps
    variables = variables_of(module)
    placed = {name: v for name, v in variables.items() if isinstance(v, VariableOp)}
    of_steps = tiles_of_steps(steps)
    crossed = crossings(steps, target)
    tables: dict[str, Table] = {"parts": part_table(steps, nodes, variables)}
    # All operations have their numbers once every part and variable has been looked up.
    tables |= _memory_tables(memory, module, placed, steps, of_steps, nodes, crossed)
    tables |= _chip_tables(memory, placed, charged, nodes, crossed, tables["variables"])
    tables |= {
        "superstep_tiles": superstep_tile_table(of_steps),
        **execution_tables(module, steps, target),
        "exchanges": exchange_table(steps, memory.tiles),
        "tree": tree_table(module, steps, nodes, target),
        "passes": _pass_table(exe),
        "links": _link_table(steps, nodes, placed),
        "plans": plan_table(planned),
        "alternatives": alternative_table(planned),
        "sparse_products": sparse_table(read_sparse_prices(module)),
    }
    highest = list(modules[exe.levels[0]].walk())
    tables["operations"] = operation_table(
        nodes,
        tables["parts"],
        tables["supersteps"],
        tables["variables"],
        planned,
        _dearest_vertices(steps, nodes),
        kinds_of(highest, nodes),
        made_by(highest, nodes),
    )
    tables["provenance"] = provenance_table(nodes, modules)
    absent = _absent(exe)
    timed = timetables_of(steps, variables, target, memory.tiles)
    tables["timetables"] = timed.table
    if timed.absent:
        absent["timetables"] = timed.absent
    vertices, left_out = vertex_tables(steps, variables, target)
    tables |= vertices
    if left_out:
        absent["vertices"] = (
            f"{left_out:,} compute sets of more than {MOST_VERTICES:,} vertices are not listed"
        )
    return Report(
        program=_program(exe, steps, planned, crossed),
        tables={each.name: tables[each.name] for each in SCHEMA},
        absent=absent,
        nodes=nodes,
        sources=sources or {},
        lanes=timed.lanes,
    )


def _memory_tables(
    memory: MemoryReport,
    module: ModuleOp,
    placed: Mapping[str, VariableOp],
    steps: tuple[StepCharge, ...],
    of_steps: Mapping[str, Any],
    nodes: Nodes,
    crossed: Crossings,
) -> dict[str, Table]:
    lives = Lives.of(memory, {name: k for k, name in enumerate(placed)})
    moments, live = moment_table(
        memory, lives, {each.price.name: k for k, each in enumerate(steps)}
    )
    return {
        "tiles": tile_table(memory, module, placed, steps, of_steps),
        "variables": variable_table(memory, placed, nodes, _readers(steps, nodes)),
        "lives": life_table(lives),
        "moments": moments,
        "layout": layout_table(memory, placed, lives),
        "supersteps": superstep_table(
            steps, nodes, memory.target, live | {"crossing_bytes": crossed.step_bytes}
        ),
    }


def _chip_tables(
    memory: MemoryReport,
    placed: Mapping[str, VariableOp],
    charged: ProgramCharge,
    nodes: Nodes,
    crossed: Crossings,
    variables: Table,
) -> dict[str, Table]:
    steps, prices, target = charged.steps, charged.chips, memory.target
    cycles = totals([each.price for each in steps]).cycles
    owners = np.asarray(variables["operation"]).tolist()
    return {
        "chips": chip_table(memory, placed, prices, crossed, cycles),
        "chip_links": chip_link_table(target, crossed, cycles),
        "crossings": crossing_table(crossed),
        "placements": placement_table(steps, placed, owners, nodes, target),
    }


def _readers(steps: tuple[StepCharge, ...], nodes: Nodes) -> dict[str, int]:
    """The operation of the first part that reads each variable, by the variable's name."""
    found: dict[str, int] = {}
    for step in steps:
        for each in step.operations:
            number = nodes.operation(each.op)
            for name in each.op.sources:
                found.setdefault(name, number)
    return found


def _link_table(
    steps: tuple[StepCharge, ...], nodes: Nodes, placed: Mapping[str, VariableOp]
) -> Table:
    """The values that pass from operation to operation, including values that a loop carries."""
    numbers = {name: k for k, name in enumerate(placed)}
    parts = [(nodes.operation(each.op), each.op) for step in steps for each in step.operations]
    writers: dict[str, dict[int, None]] = {}
    for number, op in parts:
        for name in op.destinations:
            writers.setdefault(name, {})[number] = None
    found: dict[tuple[int, int, str], None] = {}
    for number, op in parts:
        for name in op.sources:
            for writer in writers.get(name, ()):
                if writer != number and min(writer, number) >= 0:
                    found[writer, number, name] = None
    return rows_table(
        "links",
        (
            {
                "source": source,
                "destination": destination,
                "variable": numbers[name],
                "bytes": placed[name].bytes_per_tile * placed[name].placed.cells,
            }
            for source, destination, name in found
        ),
    )


def _dearest_vertices(steps: tuple[StepCharge, ...], nodes: Nodes) -> dict[int, Vertices]:
    """The vertex set with the longest compute of each operation."""
    found: dict[int, tuple[int, Vertices]] = {}
    for step in steps:
        for each in step.operations:
            number = nodes.operation(each.op)
            cycles = int(each.charge.compute.max(initial=0))
            if isinstance(each.op, Vertices) and cycles >= found.get(number, (0, None))[0]:
                found[number] = cycles, each.op
    return {number: op for number, (_, op) in found.items()}


def _pass_table(exe: Executable) -> Table:
    if not exe.stages.timings:
        return empty("passes")
    levels = stages_of([each.name for each in exe.stages.timings])
    return rows_table(
        "passes",
        (
            {
                "pass": k,
                "name": each.name,
                "level": str(level),
                "seconds": each.seconds,
                "operations_before": each.operations_before,
                "operations_after": each.operations_after,
            }
            for k, (each, level) in enumerate(zip(exe.stages.timings, levels, strict=True))
        ),
    )


def provenance_table(nodes: Nodes, modules: Mapping[str, ModuleOp]) -> Table:
    """The number of operations at each of abele's levels that came from each node.

    Args:
        modules: by level.
    """
    counts = counted(nodes, modules)
    order: dict[str, None] = {}
    for level in counts.values():
        order.update(dict.fromkeys(level))
    return rows_table(
        "provenance",
        (
            {
                "node": shown(node),
                "operation": nodes.of(node),
                "line": shown(nodes.lines.get(node, "")),
                **{
                    level.name: counts[level.name].get(node, 0) if level.name in counts else -1
                    for level in OWN_LEVELS
                },
            }
            for node in order
        ),
    )


def _rounding_by(function: str, module: ModuleOp) -> int:
    """How many vertex sets round their results by a function."""
    bodies = [op.body.data for op in module.walk() if isinstance(op, Vertices)]
    return sum(function in (b.function, *(stage.function for stage in b.then)) for b in bodies)


FEEDING = ("items", "items_per_s", "bound_by", "rates")
"""The facts about items a second, as in a profile."""


def _code_shortage(exe: Executable) -> int:
    """The most bytes that a tile lacks for its variables and, by the target's rules, its code,
    vertex state, exchange code and stacks; 0 if it has room for all."""
    module, memory, target = exe.module_at(MACHINE), exe.memory, exe.target
    more = overheads(module, variables_of(module), memory.tiles, target).total
    variables = np.maximum(memory.tile_bytes - target.memory.reserved_bytes, 0)
    return max(int((variables + more).max(initial=0)) - target.bytes_per_tile, 0)


def _program(
    exe: Executable,
    steps: tuple[StepCharge, ...],
    planned: tuple[Planned, ...],
    crossed: Crossings,
) -> dict[str, Any]:
    """The facts of the whole program."""
    profile, target, memory = exe.profile, exe.target, exe.memory
    tile = memory.fullest_tile
    macs = sum(each.macs * each.figures.times for each in planned)
    costs = totals([each.price for each in steps])
    return {
        "name": shown(os.path.basename(exe.path)),
        "target": target_facts(target),
        "levels": list(exe.levels),
        "fits": not memory.shortage,
        "shortage": memory.shortage,
        "planned": True,
        **vars(costs),
        "crossing_bytes": int(crossed.bytes.sum()),
        "seconds_of_a_run": costs.cycles / target.clock_hz,
        **{name: profile[name] for name in FEEDING},
        **{name: profile[name] for name in (*COLUMNS, UNKNOWN) if name in profile},
        "vertices": profile["vertices"],
        "edges": profile["edges"],
        "tiles": memory.tiles,
        "tiles_used": memory.tiles_used,
        "macs": macs if planned else None,
        "utilisation": _utilisation(planned, target, costs.cycles),
        "fullest_tile": tile,
        "max_tile_bytes": memory.max_tile_bytes,
        "bytes_per_tile": target.bytes_per_tile,
        "unpriced": target.unpriced,
        "reserved_bytes": target.memory.reserved_bytes,
        "over_bytes": memory.over_bytes,
        "code_shortage": _code_shortage(exe),
        "stochastic": _rounding_by(STOCHASTIC, exe.module_at(MACHINE)),
        "drawn": _rounding_by(DRAWN, exe.module_at(MACHINE)),
        "worst_superstep": shown(memory.worst_step),
        "group_tiles": group_size(memory.tiles),
        "operations_by_level": dict(profile["ops"]),
        "seconds_by_stage": {k: v for k, v in profile["seconds"].items()},
        "relaxed_limits": [
            {
                name: shown(without_folders(v)) if isinstance(v, str) else v
                for name, v in each.items()
            }
            for each in profile["relaxed_limits"]
        ],
        "notes": notes_of(exe),
    }


def notes_of(exe: Executable) -> list[str]:
    """The lines for the user about a program, without folders of this host."""
    name = os.path.basename(exe.path)
    return [shown(_FOLDER.sub("", each.replace(exe.path, name))) for each in exe.notes]


def target_facts(target: Target) -> dict[str, Any]:
    """The page's figures of the machine, and the peaks of its roofline."""
    units = target.conv_units("float16", "float32") or target.conv_units("float32", "float32")
    return {
        "name": shown(target.label()),
        "spelling": shown(_without_folder(target)),
        "tiles": target.tiles,
        "chips": target.chips,
        "workers": target.workers,
        "clock_hz": target.clock_hz,
        "bytes_per_tile": target.bytes_per_tile,
        "peak_macs_per_cycle": target.tiles * (units.macs_per_cycle if units else 1),
        "receive_bytes_per_cycle": target.tiles * target.exchange.receive_bytes_per_cycle,
        "vector_bytes_per_cycle": target.tiles * target.vector.vector_bytes,
    }


def _without_folder(target: Target) -> str:
    """The name of a target, without the folder of the file that it was read from."""
    if not target.file:
        return target.spelling()
    return target.spelling().replace(os.path.dirname(target.file) + os.sep, "")


def _utilisation(planned: tuple[Planned, ...], target: Target, cycles: int) -> float | None:
    """MACs as a share of the peak of all tiles in the cycles of a run; None if unknown."""
    if not planned or not cycles:
        return None
    needed = sum(
        each.figures.utilisation * each.figures.cycles * each.figures.times
        for each in planned
        if each.figures.peak == "MACs"
    )
    return needed / cycles


def _absent(exe: Executable) -> dict[str, str]:
    """The data that each view lacks, and the reason."""
    found: dict[str, str] = {}
    if exe.stages.plans is None:
        found["plans"] = (
            "utilisation, runner-up plans and what limits an operation are not known: this program "
            "was planned before; report on the model"
        )
    if not exe.stages.timings:
        found["passes"] = "no pass was run: this program was compiled before; report on the model"
    if exe.levels[0] != LEVELS[0].name:
        found["provenance"] = (
            f"the program begins at {exe.levels[0]}: names of nodes are those of its locations"
        )
    counts = exe.profile["ops"]
    large = [f"{level} has {n:,}" for level, n in counts.items() if n > MOST_NODES]
    if large:
        found["levels"] = (
            f"no file for viewers of ONNX shows more than {MOST_NODES:,} operations: "
            f"{', '.join(large)}"
        )
    return found
