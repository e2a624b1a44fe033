"""Measures the time, memory and disk space that the graph tables of whole networks need.

python -m abele.tools.workshop.graphs [--networks alexnet,alexnet:14:2048,...] [--target mk2]

A network is a name, optionally with a batch size and a number of vertices per tile:
alexnet:14:2048. Each is measured in processes of its own. Seconds are CPU time of all threads: of
compiling, of counting the graph, of listing it with all columns in memory, and of writing its
folder. Memory is the peak of resident memory, compiler and program included.
"""

from __future__ import annotations

import resource
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import numpy as np
import onnx
import typer
from onnx import numpy_helper

from ...backends.graph import Graph, graph_of
from ...ir.support.errors import InputError
from ..bench.measure import host
from ..bench.named import name_and_numbers
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.executable import MACHINE, Executable
from ..driver.files import PROGRAM_FILE
from ..importers.light_networks import light_names, seeded
from ..views.graph.folder import write_graph
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

NETWORKS = ("alexnet", "resnet50", "alexnet:14:2048")


def parsed(spec: str, known: Collection[str]) -> tuple[str, int, int | None]:
    """The name, batch size and vertices per tile of NAME[:BATCH[:VERTICES]].

    Raises InputError for another name, and for numbers that are none.

    Args:
        known: names of networks.
    """
    form = "NAME[:BATCH[:VERTICES]], such as alexnet:4:336"
    name, sizes = name_and_numbers(spec, known, range(3), form)
    return name, sizes[0] if sizes else 1, sizes[1] if len(sizes) > 1 else None


def with_batch(model: onnx.ModelProto, batch: int) -> onnx.ModelProto:
    """A light network with another batch size, given one with batch size 1.

    Sets the first axis of inputs and outputs, and of the shapes of Reshape. Raises InputError for a
    network with another batch size than 1.
    """
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    shapes = {node.input[1] for node in graph.node if node.op_type == "Reshape"}
    for value in (*graph.input, *graph.output):
        size = value.type.tensor_type.shape.dim[0]
        if size.dim_value != 1:
            raise InputError(f"{value.name}: its batch size is {size.dim_value}; need 1")
        size.dim_value = batch
    for tensor in graph.initializer:
        if tensor.name in shapes:
            shape = numpy_helper.to_array(tensor).copy()
            shape[0] = batch
            tensor.CopyFrom(numpy_helper.from_array(shape, tensor.name))
    del graph.value_info[:]
    return copy


def compiled(path: Path, name: str, batch: int, vertices: int | None, target: str) -> float:
    """Compile a network and write its program. Returns the seconds of compiling."""
    model = with_batch(seeded(name), batch)
    start = process_time()
    exe = compile_model(model, target, vertices_per_tile=vertices, cache=False)
    seconds = process_time() - start
    exe.save(path)
    return seconds


def _measured(path: Path, work: Callable[[Graph, Executable], None]) -> dict[str, Any]:
    exe = compile_model(path)
    module = exe.module_at(MACHINE)
    start = process_time()
    graph = graph_of(module, exe.target)
    counted = process_time()
    work(graph, exe)
    return {
        "vertices": graph.vertex_count,
        "edges": graph.edge_count,
        "count": counted - start,
        "seconds": process_time() - counted,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def listed(path: Path) -> dict[str, Any]:
    """Figures of listing all columns in memory. Call it in a process of its own."""
    return _measured(path, _all_columns)


def _all_columns(graph: Graph, exe: Executable) -> None:
    del exe
    vertices = graph.vertices()
    names = ("producer", "consumer", "bytes")
    edges = {name: np.empty(graph.edge_count, np.int32) for name in names}
    at = 0
    for block in graph.edges():
        here = slice(at, at := at + len(block.producer))
        for name, column in edges.items():
            column[here] = getattr(block, name)
    assert len(vertices["id"]) == graph.vertex_count
    assert at == graph.edge_count


def written(path: Path, folder: Path) -> dict[str, Any]:
    """Figures of writing the folder. Call it in a process of its own."""
    found = _measured(path, lambda graph, exe: write_graph(graph, exe, folder))
    return found | {"disk": sum(file.stat().st_size for file in folder.iterdir())}


def graphs(
    networks: Annotated[str, typer.Option(help="NAME[:BATCH[:VERTICES]], with commas.")] = ",".join(
        NETWORKS
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print the cost of counting, listing and writing the graph of each network."""
    columns = ("batch", "vertices per tile", "vertices", "edges", "compile", "count")
    table = figure_table(
        f"graphs, {target}, {host()['processor']}",
        ("network", *columns, "list", "GB", "write", "GB", "MB on disk"),
        ("network",),
    )
    for name, batch, fine in [parsed(each, light_names()) for each in networks.split(",")]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, f"program{PROGRAM_FILE}")
            seconds = in_own_process(compiled, path, name, batch, fine, target)
            inside, outside = (
                in_own_process(listed, path),
                in_own_process(written, path, Path(folder, "graph")),
            )
        table.add_row(
            name,
            f"{batch}",
            f"{fine or '-'}",
            f"{inside['vertices']:,}",
            f"{inside['edges']:,}",
            f"{seconds:.2f}",
            f"{inside['count']:.2f}",
            f"{inside['seconds']:.2f}",
            f"{inside['memory'] / 1e9:.2f}",
            f"{outside['seconds']:.2f}",
            f"{outside['memory'] / 1e9:.2f}",
            f"{outside['disk'] / 1e6:.1f}",
        )
    console().print(table)


if __name__ == "__main__":
    run_script(graphs)
