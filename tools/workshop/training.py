"""Counts the graphs of steps of training, by phase and by layer, and draws them.

python -m abele.tools.workshop.training [--networks alexnet:16,resnet34:4,...] [--target mk2]

A network is the name of one, or an ONNX file that leaves its batch size open, then a batch size,
and optionally a number of vertices per tile: alexnet:4:336. Seconds are processor time. Memory is
the peak of resident memory. The optimiser is sgd with momentum, as for AlexNet in 2012. A step that
does not fit its target is compiled without its limits: then counts are those of the tile level, and
cycles what it would take.
"""

from __future__ import annotations

import resource
from collections.abc import Sequence
from pathlib import Path
from time import process_time
from typing import Annotated, Any

import onnx
import typer
from rich.table import Table

from ...ir.phases import PHASES
from ...ir.support.errors import InputError
from ..bench.measure import host
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.files import check_files
from ..driver.training import Training
from ..importers.front_ends import front_end_at
from ..importers.light_networks import light_names, seeded
from ..importers.residual_network import resnet34
from ..views.layer_names import names_in
from ..views.scan.compiled import graph_of_program, subject_of
from ..views.scan.scan import laid_out, scan, write_picture
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console
from .graphs import parsed, with_batch

NETWORKS = ("alexnet:1", "alexnet:16", "alexnet:4:336", "resnet34:1", "resnet50:1")

TRAINING = Training(momentum=0.9)

TITLES = {"alexnet": "AlexNet", "resnet34": "ResNet-34", "resnet50": "ResNet-50", "ligo": "LIGO"}

PIXELS, QUALITY = 1400, 82
"""Of the pictures, as of the others in the gallery."""

SIZES = ("vertices", "edges", "connections", "cycles")

COSTS = ("supersteps", "fullest tile", "fits", "compile s", "draw s", "GB")


def model_of(name: str, batch: int) -> onnx.ModelProto:
    """A network with random weights."""
    return resnet34(batch) if name == "resnet34" else with_batch(seeded(name), batch)


def parsed_network(spec: str) -> tuple[str, int, int | None]:
    """The name or file, batch size and vertices per tile of a network. Raises InputError."""
    name = spec.partition(":")[0]
    is_file = front_end_at(name) is not None
    if is_file and not Path(name).is_file():
        raise InputError(f"--networks {spec}: there is no file {name}")
    files = (name,) if is_file else ()
    return parsed(spec, ("resnet34", *light_names(), *files))


def picture_names(wanted: Sequence[tuple[str, int, int | None]]) -> list[str]:
    """The file of each picture: NAME_training.jpg, with the numbers if a name occurs again."""
    stems = [Path(name).stem for name, _, _ in wanted]
    found: list[str] = []
    for stem, (_, *numbers) in zip(stems, wanted, strict=True):
        several = numbers if stems.count(stem) > 1 else ()
        found.append("_".join([stem, *(f"{n}" for n in several if n), "training.jpg"]))
    return found


def measured(
    name: str, batch: int, vertices: int | None, target: str, picture: Path | None = None
) -> dict[str, Any]:
    """The figures of one step, by phase and by layer. Call it in a process of its own.

    Args:
        picture: the file for a scan of the step, if any.
    """
    is_file = front_end_at(name) is not None
    model = name if is_file else model_of(name, batch)
    start = process_time()
    exe = compile_model(
        model,
        target,
        batch=batch if is_file else None,
        vertices_per_tile=vertices,
        train=TRAINING,
        # It is counted, whether it fits its target or not.
        unbounded=True,
        cache=False,
    )
    seconds = process_time() - start
    graph = graph_of_program(exe, names_in(model))
    layers: dict[str, dict[str, list[int]]] = {}
    into = [0] * len(graph.sets)
    for link in graph.links:
        into[link.consumer] += 0 if link.loop else link.count
    for each, edges in zip(graph.sets, into, strict=True):
        own = layers.setdefault(each.layer, {phase: [0, 0, 0] for phase in PHASES})[each.phase]
        for k, count in enumerate((each.count, edges, each.connections)):
            own[k] += count
    start = process_time()
    if picture is not None:
        subject = subject_of(
            exe, f"{TITLES.get(Path(name).stem, Path(name).stem)}, a step of training"
        )
        found = scan(laid_out(graph, subject, PIXELS), "phase", PIXELS)
        write_picture(found.image, picture, QUALITY)
    profile = exe.profile
    parts = {"all": profile, **profile["phases"]}
    return {
        **{name: {size: own[size] for size in SIZES} for name, own in parts.items()},
        "layers": layers,
        "supersteps": profile["supersteps"],
        "bytes": profile["max_tile_bytes"],
        "of": exe.target.bytes_per_tile,
        "seconds": seconds,
        "drawing": process_time() - start,
        "memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }


def layer_table(title: str, layers: dict[str, dict[str, list[int]]]) -> Table:
    """Vertices, edges and connections of each layer, for each phase."""
    counts = [f"{phase} {size}" for phase in PHASES for size in SIZES[:3]]
    table = figure_table(title, ("layer", *counts), ("layer",))
    for layer, phases in layers.items():
        table.add_row(layer, *(f"{n:,}" for phase in PHASES for n in phases[phase]))
    return table


def training(
    networks: Annotated[str, typer.Option(help="NAME[:BATCH[:VERTICES]], with commas.")] = ",".join(
        NETWORKS
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
    layers: Annotated[bool, typer.Option("--layers", help="Print a table by layer, too.")] = False,
    folder: Annotated[Path | None, typer.Option(help="Draw each, as NAME_training.jpg.")] = None,
) -> None:
    """Print vertices, edges, connections and cycles of steps of training, by phase."""
    table = figure_table(
        f"steps of training, {target}, {host()['processor']}",
        ("network", "batch", "vertices per tile", "phase", *SIZES, *COSTS),
        ("network", "phase"),
    )
    tables: list[Table] = []
    wanted = [parsed_network(each) for each in networks.split(",")]
    pictures = picture_names(wanted)
    if folder is not None:
        check_files({}, {f"--folder {each}": folder / each for each in pictures})
    for (name, batch, vertices), own in zip(wanted, pictures, strict=True):
        picture = folder and folder / own
        found = in_own_process(measured, name, batch, vertices, target, picture)
        for phase in ("all", *PHASES):
            first = phase == "all"
            table.add_row(
                *((name, f"{batch}", f"{vertices or '-'}") if first else ("", "", "")),
                phase,
                *(f"{found[phase][size]:,}" for size in SIZES),
                *(
                    (
                        f"{found['supersteps']:,}",
                        f"{found['bytes']:,}",
                        "yes" if found["bytes"] <= found["of"] else f"no, of {found['of']:,}",
                        f"{found['seconds']:.1f}",
                        f"{found['drawing']:.1f}" if folder else "-",
                        f"{found['memory'] / 1e9:.2f}",
                    )
                    if first
                    else ()
                ),
            )
        table.add_section()
        tables.append(layer_table(f"{name}, batch {batch}, {target}", found["layers"]))
    for each in (table, *(tables if layers else ())):
        console().print(each)


if __name__ == "__main__":
    run_script(training)
