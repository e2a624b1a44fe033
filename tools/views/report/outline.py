"""The report of a program that was not planned: its operations, tensors and graph."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import SymbolRefAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue

from ....backends.reference import tensor_kind
from ....backends.target import Target
from ....dialects import nn
from ....dialects.levels import LEVELS
from ....ir.support.errors import DoesNotFit
from ...driver.executable import Executable
from ...driver.program import ReadProgram
from ...driver.shown_text import shown
from .collect import Report, notes_of, provenance_table, target_facts
from .columns import empty, rows_table
from .execution import group_size
from .made_by import made_by
from .nodes import Nodes, origin_text
from .schema import SCHEMA, TABLES

BLANK = {"int": 0, "float": np.nan, "text": "", "bool": False}
"""The value, by kind of column, of figures that only a plan decides."""

STORED = (nn.LoadOp, nn.ConstantOp)
"""Operations whose results stay on the tiles."""

KINDS: Mapping[type[Operation], str] = {nn.LoadOp: "state", nn.ConstantOp: "constant"}
"""The kind of variable for the results of these operations; "value" for all others."""

UNKNOWN = (
    *("cycles", "compute_cycles", "exchange_cycles", "sync_cycles", "exchange_bytes"),
    "crossing_bytes",
    *("supersteps", "vertices", "edges", "tiles_used", "max_tile_bytes", "over_bytes", "macs"),
    *("utilisation", "seconds_of_a_run", "fullest_tile"),
    *("items", "items_per_s", "bound_by", "rates"),
)
"""Facts that need plans. They are None in report.json."""


def unplanned(program: ReadProgram, target: Target) -> Executable:
    """An executable, with the first level only, of a program that was read and not planned."""
    return Executable(target, {LEVELS[0].name: lambda: program.module}, program.path)


def outline(
    exe: Executable,
    names: Mapping[str, str],
    why: DoesNotFit,
    sources: Mapping[str, str] | None = None,
) -> Report:
    """The report of a program that stops at nn: operations, tensors, and the links between them.

    Args:
        names: telling names for some nodes (see layer_names).
        why: the error that prevented a plan.
        sources: what lines of the user's files say, by file and line.
    """
    module = exe.module_at(LEVELS[0].name)
    nodes = Nodes.in_modules([module], names)
    ops = [op for op in module.walk() if op.results and not op.regions]
    numbers = [-1 if isinstance(op, STORED) else nodes.operation(op) for op in ops]
    tensors = list(_tensors(module, nodes))
    links = _links(ops, numbers, tensors)
    made = made_by(ops, nodes)
    rows: list[dict[str, Any]] = [
        {c.name: BLANK[c.kind] for c in TABLES["operations"].columns}
        | {"operation": k, "name": name, "layer": layer, "nodes": text, "phase": phase}
        | {"line": nodes.line(k), "first_superstep": -1}
        | dict(made.get(k, {}))
        for k, (name, layer, text, phase) in enumerate(
            zip(nodes.names(), nodes.layers(), nodes.texts(), nodes.phase_names(), strict=True)
        )
    ]
    for op, number in zip(reversed(ops), reversed(numbers), strict=True):
        if number >= 0:
            rows[number]["kind"] = op.name
    for tensor in tensors:
        if tensor["operation"] >= 0:
            column = "value_bytes" if tensor["kind"] == "value" else "resident_bytes"
            rows[tensor["operation"]][column] += tensor["bytes"]
    tables = {each.name: empty(each.name) for each in SCHEMA}
    tables |= {
        "operations": rows_table("operations", rows),
        "variables": rows_table("variables", tensors),
        "links": rows_table("links", links),
        "provenance": provenance_table(nodes, {LEVELS[0].name: module}),
    }
    text = shown(str(why).partition("\n")[0])
    return Report(
        program=_facts(exe, text, sum(1 for _ in module.walk())),
        tables=tables,
        absent={"plans": f"not planned: {text}"},
        nodes=nodes,
        sources=sources or {},
    )


def _tensors(module: Operation, nodes: Nodes) -> Iterator[dict[str, Any]]:
    """The tensors of a program, as rows of variables without a place. "value" is the SSA value."""
    number = 0
    for op in module.walk():
        values: list[SSAValue] = [*op.results]
        if isinstance(op, FuncOp):
            values += op.body.block.args
        for value in values:
            if not isinstance(value.type, TensorType):
                continue
            shape, dtype = tensor_kind(cast(Attribute, value.type))
            stored = isinstance(op, STORED)
            reader = next((use.operation for use in value.uses), None)
            owner = nodes.operation(op) if not stored and not isinstance(op, FuncOp) else -1
            if owner < 0 and reader is not None:
                owner = nodes.operation(reader)
            yield {
                **{c.name: BLANK[c.kind] for c in TABLES["variables"].columns},
                "variable": number,
                "name": shown(_name(op, value)),
                "operation": owner,
                "origin": origin_text(op),
                "kind": KINDS.get(type(op), "value"),
                "dtype": dtype.name,
                "shape": "x".join(map(str, shape)) or "scalar",
                "first_tile": -1,
                "ranges": 1,
                "address": -1,
                "bytes": prod(shape) * dtype.itemsize,
                "value": value,
            }
            number += 1


def _name(op: Operation, value: SSAValue) -> str:
    state = op.properties.get("state")
    if isinstance(state, SymbolRefAttr):
        return state.string_value()
    return value.name_hint or origin_text(op) or op.name


def _links(
    ops: list[Operation], numbers: list[int], tensors: list[dict[str, Any]]
) -> list[dict[str, int]]:
    """The links of a program: source operation, tensor, and reading operation."""
    place = {tensor.pop("value"): k for k, tensor in enumerate(tensors)}
    of = dict(zip(ops, numbers, strict=True))
    found: dict[tuple[int, int, int], None] = {}
    for op, number in of.items():
        for value in op.operands:
            maker = of.get(value.owner, -1) if isinstance(value.owner, Operation) else -1
            if min(maker, number) >= 0 and maker != number and value in place:
                found[maker, number, place[value]] = None
    return [
        {"source": a, "destination": b, "variable": v, "bytes": tensors[v]["bytes"]}
        for a, b, v in found
    ]


def _facts(exe: Executable, why: str, operations: int) -> dict[str, Any]:
    target = exe.target
    return {
        "name": shown(os.path.basename(exe.path)),
        "target": target_facts(target),
        "levels": list(exe.levels),
        "fits": False,
        "shortage": why,
        "planned": False,
        **dict.fromkeys(UNKNOWN),
        "tiles": target.tiles,
        "bytes_per_tile": target.bytes_per_tile,
        "reserved_bytes": target.memory.reserved_bytes,
        "worst_superstep": "",
        "group_tiles": group_size(target.tiles),
        "operations_by_level": {LEVELS[0].name: operations},
        "seconds_by_stage": dict(exe.stages.seconds),
        "relaxed_limits": [],
        "notes": notes_of(exe),
    }
