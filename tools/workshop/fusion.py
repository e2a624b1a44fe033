"""Measures the gain of the passes that rewrite and group, added one at a time, on light networks.

python -m abele.tools.workshop.fusion [--networks resnet50,...] [--target mk2]
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ...backends.target import resolve_target
from ...dialects.levels import LEVELS
from ...passes.pipelines import DOWN
from ..bench.measure import write_network
from ..bench.named import names_in
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..importers.light_networks import light_names
from ..views.script import run_script
from ..views.terminal import console

EARNING = ("canonicalize", "fold-scales", "fuse-chains")
"""The passes to measure, in the order in which they are added."""

FIGURES = ("supersteps", "cycles", "compute_cycles", "exchange_bytes", "max_tile_bytes", "vertices")


def without(passes: Sequence[str]) -> str:
    """The default pipeline without some passes."""
    first, *rest = LEVELS
    kept = (name for name in DOWN[first] if name not in passes)
    return ",".join([*kept, *map(str, rest)])


def figures(path: Path, target: str, passes: str) -> dict[str, Any]:
    """The FIGURES of a network that is compiled with a pipeline."""
    profile = compile_model(path, target, passes=passes, cache=False).profile
    return {name: profile[name] for name in FIGURES}


def fusion(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(
        light_names()
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print the figures of each network without the passes, adding one pass at a time."""
    table = Table(title=f"gain of passes, {target}, batch 1", title_justify="left")
    table.add_column("network", no_wrap=True)
    table.add_column("passes", no_wrap=True)
    for name in FIGURES:
        table.add_column(name.replace("_", " "), justify="right")
    resolve_target(target)
    names = names_in("--networks", networks, light_names())
    with tempfile.TemporaryDirectory() as folder:
        for network in names:
            path = Path(folder, f"{network}.onnx")
            in_own_process(write_network, network, path)
            for count in range(len(EARNING) + 1):
                found = in_own_process(figures, path, target, without(EARNING[count:]))
                label = f"+ {EARNING[count - 1]}" if count else "none"
                table.add_row(
                    "" if count else network, label, *(f"{found[name]:,}" for name in FIGURES)
                )
    console().print(table)


if __name__ == "__main__":
    run_script(fusion)
