"""`make bench`: the light networks on abele's machine, compared with onnxruntime."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from ...backends.target import resolve_target
from ...dialects.levels import LEVELS
from ...ir.support.errors import DoesNotFit, InputError
from ...ir.support.whole_file import whole_file
from ..driver.files import check_files
from ..importers.light_networks import light_names
from ..views.script import run_script
from ..views.terminal import console
from .measure import (
    GROWTH_NETWORK,
    GROWTH_TILES,
    MANY_THREADS,
    THREADS,
    growth,
    host,
    measure,
    scaling,
    write_network,
)
from .named import names_in
from .own_process import in_own_process


def bench(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = ",".join(
        light_names()
    ),
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
    report: Annotated[
        Path | None, typer.Option("--json", metavar="FILE", help="Write all figures to this file.")
    ] = None,
) -> None:
    """Compile and run the light networks, and onnxruntime in the same process, in one thread and in
    two."""
    resolve_target(target)
    names = names_in("--networks", networks, light_names())
    check_files({}, {"--json": report})
    found: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in dict.fromkeys([*names, GROWTH_NETWORK]):
            in_own_process(write_network, name, Path(folder, f"{name}.onnx"))
        for name in names:
            try:
                found.append(in_own_process(measure, name, Path(folder, f"{name}.onnx"), target))
            except (InputError, DoesNotFit) as error:
                found.append({"network": name, "problem": str(error)})
        grown = in_own_process(growth, Path(folder, f"{GROWTH_NETWORK}.onnx"), target)
        scaled = in_own_process(scaling, target)
    here = in_own_process(host)
    out = console()
    out.print(
        f"{target}, batch 1; {here['processor']}, {here['kernels']} kernels; "
        f"onnxruntime {here['onnxruntime']}"
    )
    out.print(time_table(found))
    out.print(threads_table(found))
    out.print(program_table(found))
    seconds = ", ".join(
        f"{tiles} tiles {each['run_seconds']:.3f} s" for tiles, each in grown["tiles"].items()
    )
    out.print(f"a run of {GROWTH_NETWORK}: {seconds}")
    out.print(
        f"operations of {GROWTH_NETWORK}, {GROWTH_TILES[1]} tiles over {GROWTH_TILES[0]}: "
        + ", ".join(f"{level} {ratio:.2f}" for level, ratio in grown["ratio"].items())
    )
    out.print(
        "a convolution of one image per tile: "
        + ", ".join(
            f"{row['tiles']} tiles {row['picoseconds_per_mac']:.0f} ps per MAC and "
            f"{row['picoseconds_per_byte']:.0f} ps per byte"
            for row in scaled
        )
    )
    if report is not None:
        figures = {"host": here, "networks": found, "growth": grown, "scaling": scaled}
        with whole_file(report) as stream:
            stream.write(json.dumps(figures, indent=2).encode())


def time_table(found: Iterable[dict[str, Any]]) -> Table:
    """A table of errors, seconds and memory, with a row per network."""
    table = Table(title="time", title_justify="left")
    table.add_column("network")
    for name in ("error", "compile s", "first run s", *RUN_COLUMNS, "peak GB"):
        table.add_column(name, justify="right")
    for each in found:
        if "problem" in each:
            table.add_row(each["network"], each["problem"])
            continue
        table.add_row(
            each["network"],
            f"{each['error']:.1e}",
            *(f"{each[f'{key}_seconds']:.2f}" for key in ("compile", "first_run")),
            *(
                figure
                for n in THREADS
                for figure in (
                    f"{each[f'run_{n}_seconds']:.3f}",
                    f"{each[f'onnxruntime_{n}_seconds']:.3f}",
                    f"{each[f'ratio_{n}']:.2f}",
                )
            ),
            f"{each['peak_gigabytes']:.2f}",
        )
    return table


RUN_COLUMNS = [
    f"{what}, {n} thread{'s'[: n - 1]}"
    for n in THREADS
    for what in ("run s", "onnxruntime s", "ratio")
]

PLACES = ("shared", "uneven", "small", "between", "sharing")
"""Where the time of a run with more threads goes."""


def threads_table(found: Iterable[dict[str, Any]]) -> Table:
    """A table of what threads gain, measured and simulated, and what is left with many."""
    table = Table(title="threads", title_justify="left")
    table.add_column("network", no_wrap=True)
    most = MANY_THREADS[-1]
    for name in (
        f"gain, {THREADS[-1]} threads",
        "onnxruntime's",
        "of it",
        "same bits",
        *(f"simulated {n}" for n in MANY_THREADS),
        *(f"of {most}: {place} %" for place in PLACES),
    ):
        table.add_column(name, justify="right")
    for each in found:
        if "problem" in each:
            continue
        simulated = each["simulated"]
        seconds = {n: sum(parts.values()) for n, parts in simulated.items()}
        table.add_row(
            each["network"],
            f"{each['gain']:.2f}",
            f"{each['onnxruntime_gain']:.2f}",
            f"{each['gain'] / each['onnxruntime_gain']:.2f}",
            "yes" if each["same_bits"] else "no",
            *(f"{each['best_seconds'] / seconds[n]:.2f}" for n in MANY_THREADS),
            *(f"{100 * simulated[most][place] / seconds[most]:.0f}" for place in PLACES),
        )
    return table


def program_table(found: Iterable[dict[str, Any]]) -> Table:
    """A table of sizes of the compiled programs and their cycles, with a row per network."""
    table = Table(title="program", title_justify="left")
    table.add_column("network", no_wrap=True)
    kinds = ("compute", "exchange", "sync")
    for name in (
        f"ops {'/'.join(map(str, LEVELS))}",
        "vertices",
        "edges",
        "supersteps",
        f"cycles {'/'.join(kinds)}",
        "fullest tile",
    ):
        table.add_column(name, justify="right", overflow="fold")
    for each in found:
        if "problem" in each:
            continue
        table.add_row(
            each["network"],
            "/".join(str(each["ops"].get(level, "-")) for level in map(str, LEVELS)),
            f"{each['vertices']:,}",
            f"{each['edges']:,}",
            f"{each['supersteps']:,}",
            "/".join(f"{each[f'{kind}_cycles']:,}" for kind in kinds),
            f"{each['max_tile_bytes']:,}",
        )
    return table


if __name__ == "__main__":
    run_script(bench)
