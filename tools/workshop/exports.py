"""Exports of frameworks, run as a new user would: with the file and an input, and nothing else.

python -m abele.tools.workshop.exports FOLDER [--only NAME,...] [--target mk2]

`tests/tools/workshop/exports/make.py` fills the folder, where the frameworks are installed. Each
export is compiled and run by `abele run` in a process of its own, and run again from the cache. The
table says how far the outputs are from the framework's own, relative to the largest one; the CPU
time of the second process without the run; and the time of the import per operation.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import process_time
from typing import Annotated, Any, cast

import numpy as np
import typer

from ...backends.target import resolve_target
from ...ir.support.cache_folder import cache_folder
from ...ir.support.errors import InputError
from ..driver.arrays import Array, read_arrays
from ..driver.context import new_context
from ..driver.example import example_of, sizes_by_example
from ..importers.front_end import Reading
from ..importers.front_ends import front_end_at, suffixes
from ..views.script import run_script
from ..views.table import figure_table
from ..views.terminal import console
from ..views.user_errors import print_error_line
from .start import measured

TOLERANCE = 2e-3
"""The largest difference of right outputs, relative to the largest output."""

ABELE = ("-c", "from abele.tools.cli import main; main()")
"""The arguments of Python for the command."""

IMPORTS = 3
"""How often a model is read: the first time loads modules, and any may collect garbage."""

MOST_LETTERS = 100
"""The most letters of a message in the table."""


@dataclass(frozen=True)
class Outcome:
    """What became of an export.

    Attributes:
        problem: why it did not run, or what is wrong with its outputs; "" for none.
        error: the largest difference of an output from the framework's, relative to its largest
            value; NaN if it did not run.
        warm: the seconds of CPU time of a run from the cache, besides the run itself.
        reading: the milliseconds of the import per operation of nn.
    """

    problem: str
    error: float = float("nan")
    warm: float = float("nan")
    reading: float = float("nan")


def difference(found: Sequence[Array], expected: Sequence[Array]) -> float:
    """The largest difference of arrays from others, relative to the largest value of each.

    Infinite if there are others, if shapes differ, or if strings do.
    """
    if len(found) != len(expected):
        return float("inf")
    return max((_apart(*pair) for pair in zip(found, expected, strict=True)), default=0.0)


def _apart(found: Array, expected: Array) -> float:
    # Frameworks return a column of one number as a list of numbers.
    if found.size == expected.size and {found.ndim, expected.ndim} == {1, 2}:
        found = found.reshape(expected.shape)
    texts = found.dtype.kind == "U" or expected.dtype.kind == "U"
    if found.shape != expected.shape or (texts and not np.array_equal(found, expected)):
        return float("inf")
    if texts or not found.size:
        return 0.0
    wide = [each.astype(np.float64) for each in (found, expected)]
    finite = np.isfinite(wide[1])
    if not np.array_equal(np.isfinite(wide[0]), finite):
        return float("inf")
    largest = float(np.abs(wide[1][finite]).max(initial=0.0)) or 1.0
    return float(np.abs(wide[0] - wide[1])[finite].max(initial=0.0)) / largest


def exports_in(folder: Path, only: Sequence[str]) -> Iterator[tuple[str, Path]]:
    """The names and paths of the exports in a folder. Raises InputError for a name without one."""
    found = {
        path.name.removesuffix(suffix): path
        for suffix in suffixes()
        for path in sorted(folder.glob(f"*{suffix}"))
    }
    missing = [each for each in only if each not in found]
    if missing or not found:
        raise InputError(f"{folder}: no export {missing[0] if missing else 'at all'}")
    yield from (
        (name, path.resolve()) for name, path in sorted(found.items()) if not only or name in only
    )


def tried(name: str, path: Path, target: str) -> Outcome:
    """Run an export twice, and compare its outputs."""
    with tempfile.TemporaryDirectory() as made:
        outputs, profile = Path(made, "y.npz"), Path(made, "profile.json")
        inputs = path.with_name(f"{name}.npz")
        command = (*ABELE, "run", str(path), "--inputs", str(inputs), "--target", target)
        first = subprocess.run(
            [sys.executable, *command, "--outputs", str(outputs), "--profile", str(profile)],
            capture_output=True,
            text=True,
        )
        if first.returncode:
            lines = first.stderr.strip().splitlines() or ["no message"]
            return Outcome(lines[-1].replace(str(path.parent) + os.sep, "")[:MOST_LETTERS])
        figures = cast("Mapping[str, Any]", json.loads(profile.read_text()))
        expected = list(read_arrays(path.with_name(f"{name}.expected.npz")).values())
        error = difference(list(read_arrays(outputs).values()), expected)
        # The last stage is the run.
        warm = measured(command, Path(made), cache_folder()).cpu - figures["seconds"]["run"]
    reading = 1e3 * _import_seconds(path, read_arrays(inputs)) / figures["ops"]["nn"]
    return Outcome("" if error <= TOLERANCE else "differs", error, warm, reading)


def _import_seconds(path: Path, inputs: Mapping[str, Array]) -> float:
    """The least CPU time of reading a model, of several times in this process."""
    front_end = front_end_at(str(path))
    assert front_end is not None
    assert front_end.open_shapes is not None
    declared = front_end.open_shapes(str(path))
    dims = sizes_by_example(str(path), declared, example_of(inputs), {}, {}, None)
    seconds: list[float] = []
    for _ in range(IMPORTS):
        reading = Reading(new_context(), str(path), dims)
        begin = process_time()
        front_end.read(str(path), reading)
        seconds.append(process_time() - begin)
    return min(seconds)


def exports(
    folder: Annotated[Path, typer.Argument(help="The folder of the exports.")],
    only: Annotated[str, typer.Option(help="Names, with commas between them.")] = "",
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Run exports, and print how each went."""
    resolve_target(target)
    text = ("export", "result")
    columns = (*text, "largest error", "warm CPU s", "import ms per op")
    table = figure_table(f"exports on {target}", columns, text)
    good = count = 0
    for name, path in exports_in(folder, [each for each in only.split(",") if each]):
        outcome = tried(name, path, target)
        good, count = good + (not outcome.problem), count + 1
        print_error_line(f"{name}: {outcome.problem or 'agrees'}")
        figures = (f"{outcome.error:.0e}", f"{outcome.warm:.2f}", f"{outcome.reading:.2f}")
        table.add_row(name, outcome.problem or "agrees", *figures)
    console().print(table)
    print(f"{good} of {count} agree")


if __name__ == "__main__":
    run_script(exports)
