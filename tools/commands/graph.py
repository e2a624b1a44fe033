"""abele graph."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...backends.graph import graph_of
from ...ir.support.errors import InputError
from ..driver.compile import compiled
from ..driver.executable import MACHINE
from ..driver.files import check_files
from ..views.graph.folder import check_graph_folder, write_graph
from ..views.graph.graphml import check_small, needs_networkx, write_graphml
from ..views.graph.listing import graph_summary
from ..views.graph.parquet import needs_pyarrow
from ..views.terminal import console
from ..views.user_errors import text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn


@compiles
def graph_command(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="DIR", help="Write the tables and queries into this folder."
        ),
    ] = None,
    graphml: Annotated[
        Path | None,
        typer.Option("--graphml", metavar="FILE", help="Write a small graph as GraphML."),
    ] = None,
    loops: Annotated[
        bool,
        typer.Option("--loops", help="Include edges between iterations of a loop."),
    ] = False,
    *,
    how: Compilation,
) -> None:
    """Write all vertices of the compiled program, and all edges between them, as tables.

    Without -o or --graphml, prints only the sizes, which needs no list of edges.
    """
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        check_files(
            {
                "the model": Path(model),
                **how.files,
            },
            {"--graphml": graphml},
        )
        if output is not None:
            needs_pyarrow()
            check_graph_folder(output)
        if graphml is not None:
            needs_networkx()
        with how.progress(extensions) as on_step:
            exe = compiled(how.request(model, extensions, on_step))
            if MACHINE not in exe.levels:
                raise InputError(f"{model}: stops above {MACHINE}; need a complete program")
            on_step("count")
            graph = graph_of(exe.module_at(MACHINE), exe.target)
            if graphml is not None:
                check_small(graph, loops)
            if output is not None:
                on_step(f"write {graph.vertex_count:,} vertices and {graph.edge_count:,} edges")
                write_graph(graph, exe, output, loops=loops)
            if graphml is not None:
                on_step("write GraphML")
                write_graphml(graph, graphml, loops=loops)
        warn(exe.relaxed)
        terminal = console()
        terminal.print(
            f"{model} on {exe.target.label()}, {graph.tiles:,} tiles",
            highlight=False,
            soft_wrap=True,
        )
        terminal.print(graph_summary(graph))
