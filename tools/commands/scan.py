"""abele scan."""

from __future__ import annotations

from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer
from rich.table import Table

from ...ir.support.errors import InputError
from ..driver.compile import compiled
from ..driver.files import check_files
from ..views.layer_names import names_in, source_lines
from ..views.scan.drawable import Drawable
from ..views.scan.formats import COLOURS, check_color, check_format, check_size
from ..views.scan.needs import needs_libraries
from ..views.terminal import console
from ..views.user_errors import text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn


@compiles
def scan_command(
    model: ModelFile,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="SCAN.png", help="The picture: .png, .jpg, .webp."),
    ] = None,
    size: Annotated[int, typer.Option(metavar="PIXELS", help="Width and height.")] = 4096,
    color: Annotated[
        str,
        typer.Option(
            metavar="|".join(COLOURS),
            help="What colours show: the layer, the direction of communication, when a vertex "
            "runs, how many cycles it takes, the phase of a step of training, or the chip.",
        ),
    ] = COLOURS[0],
    zoom: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Write a page to zoom into. Open its index.html in a browser."
        ),
    ] = None,
    sample: Annotated[
        str,
        typer.Option(metavar="1/N", help="Draw only one vertex in N. The legend says so."),
    ] = "",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed for the layout. The same seed, the same picture.")
    ] = 0,
    title: Annotated[str, typer.Option(help="The network's name in the legend.")] = "",
    *,
    how: Compilation,
) -> None:
    """Draw all vertices and edges of the compiled program.

    Each layer forms a lobe, and layers that communicate much lie close together. The legend shows
    the number of vertices and edges, and how many of them were drawn. "Layer purity" divides the
    picture into 512 x 512 cells: it is the share of non-empty cells whose vertices all belong to
    one layer.
    """
    with user_errors(text_in(model), model) as context:
        needs_libraries()
        extensions = context.load(how.load)
        _check(output, zoom, size, color)
        share = _share(sample)
        check_files(
            {
                "the model": Path(model),
                **how.files,
            },
            {"--output": output},
        )
        # Only drawing needs these libraries.
        from ..views.scan.compiled import graph_of_program, subject_of  # noqa: PLC0415
        from ..views.scan.scan import laid_out, scan, write_picture  # noqa: PLC0415
        from ..views.scan.zoom import check_zoom, write_zoom  # noqa: PLC0415

        if output is not None:
            check_format(output)
        if zoom is not None:
            check_zoom(zoom)
        start = perf_counter()
        with how.progress(extensions) as on_step:
            exe = compiled(how.request(model, extensions, on_step))
            graph = graph_of_program(exe, names_in(model))
            subject = subject_of(exe, title or Path(model).stem, source_lines(model))
            ready = perf_counter()
            laid = laid_out(graph, subject, size, seed, share, on_step)
            placed = perf_counter()
            if output is not None:
                found = scan(laid, color, size, on_step)
                on_step("write")
                write_picture(found.image, output)
            if zoom is not None:
                write_zoom(laid, zoom, size, on_step)
            done = perf_counter()
        warn(exe.relaxed)
        table = Table(title=f"{subject.network} -> {output or zoom}", show_header=False)
        table.title_justify = "left"
        table.add_column(style="bold")
        table.add_column(justify="right")
        rows = {
            "target": f"{graph.target}, {graph.tiles:,} tiles, {subject.batch}",
            "vertices": _of(laid.graph.vertex_count, graph.vertex_count),
            "edges": _of(laid.graph.edge_count, graph.edge_count),
            **_between(laid.graph),
            "layers": f"{len(laid.layout.layers):,}",
            "layer purity": f"{laid.measures.purity:.1%} of cells",
            "median edge": f"{laid.measures.edge:.1%} of a random pair's distance",
            "seconds": f"compile {ready - start:.1f}, lay out {placed - ready:.1f}, "
            f"draw {done - placed:.1f}",
        }
        for row in rows.items():
            table.add_row(*row)
        console().print(table, highlight=False)


def _between(graph: Drawable) -> dict[str, str]:
    """The row for edges between chips, if there are several."""
    if graph.chips == 1:
        return {}
    share = graph.crossing_count / max(graph.edge_count, 1)
    return {"edges between chips": f"{graph.crossing_count:,} ({share:.2%})"}


def _of(drawn: int, counted: int) -> str:
    """The number drawn and the number counted; both are equal unless a sample was drawn."""
    return (
        f"{drawn:,} drawn = {counted:,} counted"
        if drawn == counted
        else (f"a sample: {drawn:,} of {counted:,}")
    )


def _check(output: Path | None, zoom: Path | None, size: int, color: str) -> None:
    if output is None and zoom is None:
        raise InputError("nothing to draw; need -o SCAN.png or --zoom DIR")
    check_size(size)
    check_color(color)


def _share(text: str) -> int:
    """N of "1/N"; 1 for "". Raises InputError."""
    if not text:
        return 1
    one, _, many = text.partition("/")
    if one != "1" or not (many.isascii() and many.isdigit()) or not 1 <= int(many[:9]) < 10**8:
        raise InputError(f"--sample {text}: need 1/N, such as 1/4")
    return int(many[:9])
