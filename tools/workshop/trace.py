"""Measures traceability: how many operations of each level are traced to nodes, and the reverse."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

import onnx
import typer
from rich.table import Table
from xdsl.ir import Operation

from ...dialects import nn, partition
from ...ir.provenance import origin_names
from ..bench.named import names_in
from ..driver.compile import compile_model
from ..driver.dump.nodes import nodes_of
from ..driver.executable import Executable
from ..importers.light_networks import light_names, seeded
from ..views.script import run_script
from ..views.terminal import console

GRAPH = "main"
"""The origin of operations that belong to the whole graph: the function and its return."""

SHAPES = (nn.ReshapeOp, partition.ReshapeOp)
"""Operations that do nothing on a tile, because they only change the shape of a tensor."""


@dataclass(frozen=True)
class Trace:
    """The traceability of one level.

    Attributes:
        operations: number of operations.
        traced: how many of them came from a node, a weight or an input of the model.
        untraced: the others.
        nodes: number of the model's nodes with an operation at the level above that does something.
        found: how many of them have an operation at this level.
        lost: the others.
    """

    level: str
    operations: int
    traced: int
    untraced: tuple[str, ...]
    nodes: int
    found: int
    lost: tuple[str, ...]


def traceability(exe: Executable, model: onnx.ModelProto) -> tuple[Trace, ...]:
    """The traceability of each level of a compiled model."""
    nodes = {each.name or next(filter(None, each.output), "") for each in model.graph.node}
    values = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    known = nodes | values | {GRAPH}
    expected, traces = nodes, list[Trace]()
    for level in exe.levels:
        ops = [op for op in exe.module_at(level).walk() if op is not exe.module_at(level)]
        made = _made(ops, known)
        # At the first level, a node without an operation was folded by the importer.
        expected = expected & made.keys() if not traces else expected
        traces.append(_trace(level, ops, known, expected, expected & made.keys()))
        expected = {
            node
            for node in expected & made.keys()
            if not all(isinstance(op, SHAPES) for op in made[node])
        }
    return tuple(traces)


def _trace(
    level: str,
    ops: Sequence[Operation],
    known: Collection[str],
    expected: set[str],
    found: set[str],
) -> Trace:
    untraced = tuple(
        f"{op.name} {'+'.join(origin_names(op))}".strip()
        for op in ops
        if not nodes_of(op.location, known)
    )
    lost = tuple(sorted(expected - found))
    return Trace(
        level, len(ops), len(ops) - len(untraced), untraced, len(expected), len(found), lost
    )


def _made(ops: Iterable[Operation], known: Collection[str]) -> dict[str, list[Operation]]:
    """The operations that came from each node, by the node's name."""
    made: dict[str, list[Operation]] = {}
    for op in ops:
        for node in nodes_of(op.location, known):
            made.setdefault(node, []).append(op)
    return made


def trace(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(
        light_names()
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print how many operations of the light networks are traced to nodes, and the reverse."""
    table = Table()
    for name in ("network", "level", "operations", "traced", "nodes", "found", "lost"):
        table.add_column(name, justify="left" if name in ("network", "lost") else "right")
    for network in names_in("--networks", networks, light_names()):
        model = seeded(network)
        for each in traceability(compile_model(model, target, cache=False), model):
            table.add_row(
                network,
                each.level,
                f"{each.operations:,}",
                f"{each.traced / each.operations:.1%}",
                f"{each.nodes:,}",
                f"{each.found / each.nodes:.1%}",
                " ".join(each.lost),
            )
    console().print(table)


if __name__ == "__main__":
    run_script(trace)
