"""Does everything say where it came from? Operations of every level, and nodes of the framework."""

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
from ..driver.compile import compile_model
from ..driver.dump.nodes import nodes_of
from ..driver.executable import Executable
from ..importers.light_networks import light_names, seeded
from ..views.table import console

GRAPH = "main"
"""What stands for the graph as a whole: the function, and what it returns."""

SHAPES = (nn.ReshapeOp, partition.ReshapeOp)
"""What only calls a tensor's elements another shape leaves nothing on a tile."""


@dataclass(frozen=True)
class Trace:
    """One level. traced: operations that came from a node, a weight or an input of the model.

    nodes: of the model, as far as they have an operation that does something at the level above.
    found: those that an operation of this level came from. lost: the others.
    """

    level: str
    operations: int
    traced: int
    untraced: tuple[str, ...]
    nodes: int
    found: int
    lost: tuple[str, ...]


def traceability(exe: Executable, model: onnx.ModelProto) -> tuple[Trace, ...]:
    """How much of each level of a compiled model is known to come from where."""
    nodes = {each.name or next(filter(None, each.output), "") for each in model.graph.node}
    values = {each.name for each in (*model.graph.input, *model.graph.initializer)}
    known = nodes | values | {GRAPH}
    expected, traces = nodes, list[Trace]()
    for level in exe.levels:
        ops = [op for op in exe.module_at(level).walk() if op is not exe.module_at(level)]
        made = _made(ops, known)
        # Of the model as it came, what has no operation was folded by the importer.
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
    """The operations that came from each node."""
    made: dict[str, list[Operation]] = {}
    for op in ops:
        for node in nodes_of(op.location, known):
            made.setdefault(node, []).append(op)
    return made


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False)


@app.command()
def trace(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(
        light_names()
    ),
    target: Annotated[str, typer.Option(help="A preset.")] = "mk2",
) -> None:
    """Print how much of each level of the light networks traces to a node, and back."""
    table = Table()
    for name in ("network", "level", "operations", "traced", "nodes", "found", "lost"):
        table.add_column(name, justify="left" if name in ("network", "lost") else "right")
    for network in filter(None, networks.split(",")):
        model = seeded(network)
        for each in traceability(compile_model(model, target), model):
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
    app()
