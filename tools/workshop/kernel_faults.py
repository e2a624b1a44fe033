"""Whether the batteries of kernels find faults that are planted in them.

python -m abele.tools.workshop.kernel_faults [--forms wide,narrow] [--faults NAME,...]

Each fault is a change of one line of a kernel, in a copy of the sources. Another process compiles
the kernels of the task there, as a user's first run does, and proves them. A fault is found if the
task gets no kernels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ...backends.host.kernel_sources import KERNELS
from ...backends.host.switch import FORMS
from ...backends.host.switch import VARIABLE as FORM_VARIABLE
from ...ir.support.errors import InputError
from ..bench.named import names_in
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console

ROOMS = ("ir", "dialects", "backends")
"""The folders that kernels and their batteries need."""


@dataclass(frozen=True)
class Fault:
    """A fault of a kernel.

    Attributes:
        file: in the folder of kernels.
        old, new: a part of its text that is there once, and what replaces it.
        forms: in which the fault changes anything.
    """

    task: str
    what: str
    file: str
    old: str
    new: str
    forms: Sequence[str] = tuple(FORMS)


FAULTS = {
    "panel": Fault(
        "products",
        "a last panel of two thirds and one row is multiplied as two thirds",
        "products.py",
        "        elif height > 2 * THIRD:\n",
        "        elif height > 2 * THIRD + 1:\n",
    ),
    "tile": Fault(
        "products",
        "a tile of results ends in the middle of a vector, and adding to it changes the next tile",
        "products.py",
        "TILE_BYTES = TILE_VECTORS * LANES * 4\n",
        "TILE_BYTES = (ROWS * COLUMNS + TAILS[-1] * ROW_LANES) * 4\n",
        ("narrow",),
    ),
    "tail": Fault(
        "chains",
        "a tail of one element after whole vectors is skipped",
        "chains.py",
        "        if last > whole * LANES:\n",
        "        if last > whole * LANES + 1:\n",
    ),
    "pairs": Fault(
        "chains",
        "of every second float, those of the upper half of a vector are the ones before",
        "chains.py",
        "2 * i if 2 * i < LANES else 2 * i + 1 for i",
        "2 * i for i",
    ),
    "comparison": Fault(
        "functions",
        "NaN is below every number",
        "functions.py",
        'builder.fcmp_ordered("<", a, b),\n    "is equal"',
        'builder.fcmp_unordered("<", a, b),\n    "is equal"',
    ),
    "dimensions": Fault(
        "copies",
        "of more than three dimensions, the outer ones drift",
        "copies.py",
        """            source -= read_long(steps + d * 8) * index
            target -= read_long(strides + d * 8) * index
            write8(indices + d * 8, 0)
            d -= 1


COPY_RUNS""",
        """            source -= read_long(steps + d * 8) * (index - 1)
            target -= read_long(strides + d * 8) * index
            write8(indices + d * 8, 0)
            d -= 1


COPY_RUNS""",
    ),
    "short run": Fault(
        "routes",
        "a run of one element more than a power of two loses its last element",
        "rows.py",
        'builder.icmp_signed(">", last, zero)',
        'builder.icmp_signed(">", last, ir.Constant(I64, 1))',
    ),
    "replica": Fault(
        "routes",
        "all rows of a replica are its first row",
        "routes.py",
        "target + found + i * step, n)",
        "target + found, n)",
    ),
    "negative index": Fault(
        "lookups",
        "negative indices of 8 bits name no row",
        "lookups.py",
        "        index = (np.int64(read1(address)) ^ 0x80) - 0x80\n",
        "        index = np.int64(read1(address))\n",
    ),
    "first row": Fault(
        "lookups",
        "the first row of a cell is never replaced",
        "lookups.py",
        "        if row < 0:\n",
        "        if row <= 0:\n",
    ),
    "growth": Fault(
        "bounds",
        "errors of terms do not grow as they are added up",
        "bounds.py",
        "growth * (get(size, i) + total)",
        "growth * get(size, i)",
    ),
    "last byte": Fault(
        "equality",
        "the last byte of an odd number of bytes is not compared",
        "equality.py",
        "        for size in (32, 16, 8, 4, 2, 1):\n",
        "        for size in (32, 16, 8, 4, 2):\n",
    ),
    "last units": Fault(
        "sharing",
        "units that are left after each thread has its stretch are not done",
        "sharing.py",
        "units * (i + 1) // threads",
        "units // threads * (i + 1)",
    ),
}
"""Faults by name."""

PROGRAM = """
import json, sys
sys.path.insert(0, {folder!r})
from abele.backends.host import load, tasks
# Nothing but what the task needs is compiled.
load.SHARES = (), (), *((each,) for each in tasks.NEEDS)
task = {task!r}
proof = load.proof_of(task)
print(json.dumps([proof.problem, load.has_kernels(task)]))
"""
"""The program of the other process."""


def planted(fault: Fault, folder: Path) -> None:
    """Copy the sources into a folder, with a fault."""
    package = folder / "abele"
    for room in ROOMS:
        shutil.copytree(
            KERNELS.parents[2] / room, package / room, ignore=shutil.ignore_patterns("__pycache__")
        )
    path = package / "backends" / "host" / "kernels" / fault.file
    text = path.read_text()
    if text.count(fault.old) != 1:
        raise InputError(f"{fault.file}: has changed; need once: {fault.old.strip()}")
    path.write_text(text.replace(fault.old, fault.new))


def finding(fault: Fault, form: str) -> str:
    """The fault that the battery finds; "" if it finds none."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        planted(fault, folder)
        environment = {**os.environ, FORM_VARIABLE: form, "ABELE_CACHE": str(folder / "cache")}
        environment.pop("NUMBA_CACHE_DIR", None)
        program = PROGRAM.format(folder=name, task=fault.task)
        done = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
    if done.returncode:
        raise InputError(f"{fault.what}: {done.stderr.strip().splitlines()[-1]}")
    problem, has_kernels = json.loads(done.stdout)
    return "" if has_kernels else problem


def kernel_faults(
    forms: Annotated[str, typer.Option(help="Forms of kernels, separated by commas.")] = "",
    faults: Annotated[str, typer.Option(help="Names of faults, separated by commas.")] = "",
) -> None:
    """Plant faults in kernels, and show what the batteries find. Each takes 10 to 40 s."""
    names = names_in("--faults", faults, FAULTS) if faults else list(FAULTS)
    chosen = names_in("--forms", forms, FORMS) if forms else list(FORMS)
    table = figure_table(
        "planted faults", ("task", "form", "fault", "finding"), ("fault", "finding")
    )
    missed = 0
    for name in names:
        fault = FAULTS[name]
        for form in chosen:
            if form in fault.forms:
                found = finding(fault, form)
                missed += not found
                table.add_row(fault.task, form, fault.what, found or "NOTHING")
    console().print(table)
    if missed:
        raise InputError(f"{missed} planted faults are not found")


if __name__ == "__main__":
    run_script(kernel_faults)
