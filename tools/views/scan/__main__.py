"""Draw light networks: python -m abele.tools.views.scan [NETWORK ...] [--folder DIR] ..."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....ir.support.errors import InputError
from ....ir.support.suggestions import suggestion
from ...driver.compile import compile_model
from ...driver.files import check_files
from ...importers.light_networks import light_names, seeded
from ..layer_names import names_in
from ..script import run_script
from .bound import least_edge
from .compiled import graph_of_program, subject_of
from .formats import COLOURS, check_color, check_size
from .scan import laid_out, scan, write_picture

TITLES = {
    "alexnet": "AlexNet",
    "zfnet512": "ZFNet-512",
    "vgg19": "VGG-19",
    "squeezenet": "SqueezeNet",
    "shufflenet": "ShuffleNet",
    "inception_v1": "Inception v1",
    "inception_v2": "Inception v2",
    "resnet50": "ResNet-50",
    "densenet121": "DenseNet-121",
}


def draw_networks(
    networks: Annotated[
        list[str] | None, typer.Argument(help="Names of light networks; all, if none are given.")
    ] = None,
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("docs/scan"),
    target: Annotated[str, typer.Option(help="A preset, or NAME:TILES.")] = "mk2",
    size: Annotated[int, typer.Option(help="Pixels a side.")] = 1400,
    color: Annotated[
        str, typer.Option(metavar="|".join(COLOURS), help="What colours show.")
    ] = COLOURS[0],
    quality: Annotated[int, typer.Option(min=1, max=100, help="Of the JPEG files.")] = 82,
) -> None:
    """Compile light networks with seeded weights, and draw each as FOLDER/NETWORK.jpg.

    Prints one line per network: vertices, edges, layers, purity, median edge, and a lower bound of
    the median edge for layouts that fill their circle evenly.
    """
    names = networks or light_names()
    for name in names:
        if name not in TITLES:
            raise InputError(
                f"network {name!r}; need one of {', '.join(TITLES)}{suggestion(name, TITLES)}"
            )
    paths = [folder / f"{name}.jpg" for name in names]
    check_files({}, {f"{each}": each for each in paths})
    check_size(size)
    check_color(color)
    for name, path in zip(names, paths, strict=True):
        model = seeded(name)
        exe = compile_model(model, target)
        graph = graph_of_program(exe, names_in(model))
        found = scan(laid_out(graph, subject_of(exe, TITLES[name]), size), color, size)
        write_picture(found.image, path, quality)
        measures = found.laid.measures
        typer.echo(
            f"{name} | {found.vertices:,} | {found.edges:,} | {len(found.laid.layout.layers)} | "
            f"{measures.purity:.1%} | {measures.edge:.1%} | {least_edge(graph):.1%}"
        )


if __name__ == "__main__":
    run_script(draw_networks)
