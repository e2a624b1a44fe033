"""Measures what many chips cost the host: to compile a network for them, to price and to run it.

python -m abele.tools.workshop.pods [--networks alexnet:4:float32,resnet50:256:float16]
    [--targets bow-pod64,bow-pod256] [--runs 2]

Each network is compiled for each target, in a process of its own. Seconds are processor time with
one thread. Memory is that of the process at its peak, with the model. The figures of each row are
printed in a line as soon as they are known, and then all in a table. A second table has what sums
of gradients cost by the ways to merge them, by the price of links.
"""

from __future__ import annotations

import resource
from collections.abc import Mapping
from itertools import product
from math import ceil, prod
from time import process_time
from typing import Annotated, Any, get_args

import numpy as np
import typer

from ...backends.target import Target, resolve_target
from ...ir.support.errors import InputError
from ...passes.replicas.rounds import METHODS, load_of
from ..bench.measure import host
from ..bench.named import names_in
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..driver.request import Precision
from ..importers.light_networks import light_names, seeded
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console, counting_bar

NETWORKS = ("alexnet:4:float32", "resnet50:256:float16")
"""Networks, with images and the precision of products."""

TARGETS = ("bow-pod64", "bow-pod256")

PRECISIONS: Mapping[str, Precision | None] = {
    "float32": None,
    **{each: each for each in get_args(Precision)},
}
"""By its name, the precision of products."""

SUMS = ("mk1x4", "mk1x16", "bow-pod16")
"""Machines whose sums of gradients are priced."""


def measured(network: str, images: int, precision: str, target: str, runs: int) -> dict[str, Any]:
    """Figures of compiling, pricing and running a network. Call it in a process of its own.

    Args:
        runs: how often it runs, with normal values.
    """
    model = seeded(network)
    start = process_time()
    exe = compile_model(
        model,
        target,
        batch=images,
        precision=PRECISIONS[precision],
        unbounded=True,
        cache=False,
    )
    compiled = process_time()
    cycles = exe.profile["cycles"]
    priced = process_time()
    draw = np.random.default_rng(0)
    given = {each.name: draw.normal(size=each.shape).astype(each.dtype) for each in exe.inputs}
    for _ in range(runs):
        exe.run(given)
    return {
        "cycles": cycles,
        "compile": compiled - start,
        "price": priced - compiled,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9,
    }


def parsed(text: str) -> tuple[str, int, str]:
    """The network, the images and the precision that NAME:IMAGES:PRECISION names.

    Raises InputError.
    """
    name, *rest = text.split(":")
    (name,) = names_in("--networks", name, light_names())
    if len(rest) != 2 or not rest[0].isdecimal() or not int(rest[0]):
        raise InputError(f"--networks {text}; need NAME:IMAGES:PRECISION")
    if rest[1] not in PRECISIONS:
        raise InputError(f"--networks {text}: {rest[1]!r}; need one of {', '.join(PRECISIONS)}")
    return name, int(rest[0]), rest[1]


def sum_loads(elements: int, target: Target) -> dict[str, tuple[int, int]]:
    """The cycles of a sum of float32 gradients over all chips, and the bytes of its busiest link,
    by the way to merge them."""
    part = ceil(elements * 4 / target.chips)
    found = {way: load_of(way, part, target.chips, target) for way in METHODS}
    return {way: (load.cycles, load.link_bytes) for way, load in found.items()}


def weights_of(network: str) -> int:
    """The number of elements of a network's weights."""
    return sum(prod(each.dims) for each in seeded(network).graph.initializer)


def pods(
    networks: Annotated[str, typer.Option(help="NAME:IMAGES:PRECISION, with commas.")] = ",".join(
        NETWORKS
    ),
    targets: Annotated[str, typer.Option(help="Machines, with commas.")] = ",".join(TARGETS),
    runs: Annotated[int, typer.Option(help="Runs of each program, before memory is read.")] = 0,
    sums: Annotated[str, typer.Option(help="A network whose gradients are summed.")] = "alexnet",
) -> None:
    """Print what networks on many chips cost the host, and what sums of gradients cost."""
    wanted = [parsed(each) for each in networks.split(",") if each]
    machines = [resolve_target(each).spelling() for each in targets.split(",")]
    table = figure_table(
        f"networks on many chips, {host()['processor']}",
        ("network", "images", "precision", "target", "cycles", "compile s", "price s", "GB"),
        ("network",),
    )
    with counting_bar(len(wanted) * len(machines)) as bar:
        for (name, images, precision), target in product(wanted, machines):
            bar.advance(table.row_count, f"{name} on {target}")
            found = in_own_process(measured, name, images, precision, target, runs)
            figures = (
                f"{found['cycles']:,}",
                f"{found['compile']:.1f}",
                f"{found['price']:.1f}",
                f"{found['gigabytes']:.1f}",
            )
            table.add_row(name, f"{images}", precision, target, *figures)
            cycles, compiled, priced, gigabytes = figures
            bar.line(
                f"{name}:{images}:{precision} on {target}: {cycles} cycles; compiled in {compiled} "
                f"s, priced in {priced} s; {gigabytes} GB"
            )
    if wanted:
        console().print(table)
    (summed,) = names_in("--sums", sums, light_names())
    elements = weights_of(summed)
    table = figure_table(
        f"sums of gradients, {summed}, {elements * 4 / 1e6:,.1f} MB: cycles; MB of a link",
        ("way", *SUMS),
        ("way",),
    )
    loads = [sum_loads(elements, resolve_target(each)) for each in SUMS]
    for way in METHODS:
        cells = (each[way] for each in loads)
        table.add_row(way, *(f"{cycles:,}; {moved / 1e6:,.1f}" for cycles, moved in cells))
    console().print(table)


if __name__ == "__main__":
    run_script(pods)
