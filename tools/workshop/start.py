"""Cold and warm starts: the time of commands before and after the cache has their program.

python -m abele.tools.workshop.start [--networks resnet50,squeezenet] [--target mk2]

Each command runs in a process of its own: once with an empty cache, and then some times with a full
one, of which the fastest counts. CPU time is measured, of all threads, because other processes may
interrupt a command. A row with `to the run` ends when the program is loaded.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from time import perf_counter
from typing import Annotated

import onnx
import typer

from ...backends.target import resolve_target
from ...ir.support.errors import InputError
from ..bench.named import names_in
from ..driver.arrays import write_npz
from ..importers.light_networks import light_input, light_names, seeded
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

WARM = 3
"""Warm starts of each command, of which the fastest counts."""

COMMANDS: Mapping[str, tuple[str, ...]] = {
    "run": ("run", "MODEL"),
    "run --inputs": ("run", "MODEL", "--inputs", "x.npz", "--outputs", "y.npz"),
    "run --at nn": ("run", "MODEL", "--at", "nn"),
    "compile": ("compile", "MODEL", "-o", "p.abele"),
    "memory": ("memory", "MODEL"),
    "graph": ("graph", "MODEL"),
    "cache explain": ("cache", "explain", "MODEL"),
    "plan": ("plan", "MODEL"),
    "report": ("report", "MODEL", "-o", "report"),
    "--version": ("--version",),
}
"""The commands, with MODEL for the network's file."""

TO_THE_RUN = """
import sys
from abele.tools.driver.compile import compile_model
exe = compile_model(sys.argv[1], sys.argv[2])
exe.runners.prepared()
"""
"""A program that stops when it is ready to run."""


@dataclass(frozen=True)
class Start:
    """The seconds of a process: CPU time of all its threads, and wall-clock time."""

    cpu: float
    wall: float


def measured(words: Sequence[str], folder: Path, cache: Path) -> Start:
    """The time of a process. Raises InputError if it fails."""
    environment = os.environ | {"ABELE_CACHE": str(cache), "ABELE_CACHE_BYTES": str(1 << 33)}
    before, start = getrusage(RUSAGE_CHILDREN), perf_counter()
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True
    )
    wall, after = perf_counter() - start, getrusage(RUSAGE_CHILDREN)
    if done.returncode:
        raise InputError(f"{' '.join(words)}: {done.stderr.strip() or done.returncode}")
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Start(used, wall)


def cold_and_warm(words: Sequence[str], folder: Path) -> tuple[Start, Start]:
    """A start with an empty cache, and the fastest of some with a full one."""
    with tempfile.TemporaryDirectory() as cache:
        cold = measured(words, folder, Path(cache))
        warm = [measured(words, folder, Path(cache)) for _ in range(WARM)]
    return cold, min(warm, key=lambda each: each.cpu)


def lines(model: str, target: str) -> dict[str, list[str]]:
    """The arguments of Python for each row."""
    own = ["-c", TO_THE_RUN, model, target]
    found = {"to the run": own}
    for name, words in COMMANDS.items():
        given = [model if each == "MODEL" else each for each in words]
        more = ["--target", target] if "MODEL" in words else []
        found[name] = ["-c", "from abele.tools.cli import main; main()", *given, *more]
    return found


def start(
    networks: Annotated[str, typer.Option(help="Light networks.")] = "resnet50,squeezenet",
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print the seconds of cold and warm starts, by command."""
    resolve_target(target)
    text = ("network", "command")
    columns = (*text, "cold CPU", "warm CPU", "cold", "warm")
    table = figure_table(f"seconds of a start, {target}", columns, text)
    for name in names_in("--networks", networks, light_names()):
        with tempfile.TemporaryDirectory() as made:
            folder = Path(made)
            onnx.save(seeded(name), folder / f"{name}.onnx")
            write_npz(folder / "x.npz", light_input(name))
            for command, words in lines(f"{name}.onnx", target).items():
                cold, warm = cold_and_warm(words, folder)
                times = (cold.cpu, warm.cpu, cold.wall, warm.wall)
                table.add_row(name, command, *(f"{each:.2f}" for each in times))
    console().print(table)


if __name__ == "__main__":
    run_script(start)
