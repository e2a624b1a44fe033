"""Arguments and options that several commands share."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from numpy.typing import ArrayLike

from ...ir.support.errors import InputError
from ...ir.well_known import LEVEL_NAMES
from ..driver.arrays import read_npy
from ..importers.bounds import GivenSize, size_or_bounds

ModelFile = Annotated[
    str,
    typer.Argument(
        help="An .onnx, .pt2, .prototxt, -symbol.json, .stablehlo, .mlirbc, .mlir (any level) or "
        ".abele file."
    ),
]
PassesElsewhere = Annotated[
    str | None,
    typer.Option(
        "-p",
        "--pass-pipeline",
        metavar="SPEC",
        hidden=True,
        help="Refused: the passes are arguments of this command.",
    ),
]
"""The option -p of a command that takes passes as arguments; its error names the right usage."""
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="FILE",
        help="An extension: passes, dialects and functions in a .py file, rules in a .rw file, a "
        "target in a .toml file. May be repeated.",
    ),
]
Where = Annotated[
    str,
    typer.Option(
        "--executor",
        metavar="NAME",
        help="Where the work runs, instead of in --jobs processes of this host: local:N, "
        "dask-local:N, dask://HOST:PORT, or here.",
    ),
]
LEVELS_HELP = f"{', '.join(LEVEL_NAMES)}, or the name of a level that an extension adds"
"""The names of levels, for the help of options. Help is shown before any extension is loaded."""
ProfileFile = Annotated[
    Path | None,
    typer.Option("--profile", metavar="P.json", help="Write counts, cycles and seconds here."),
]
TraceFile = Annotated[
    Path | None,
    typer.Option(
        "--trace",
        metavar="T.json",
        help="Write a timeline of the supersteps and operations here, for Perfetto "
        "(https://ui.perfetto.dev) or chrome://tracing. Times are estimates, as cycles are.",
    ),
]
DumpFolder = Annotated[
    Path | None,
    typer.Option("--dump-ir", metavar="DIR", help="Write the program after each pass here."),
]


ListOps = Annotated[
    bool,
    typer.Option(
        "--list-ops",
        help="Only print which operators an ONNX model uses, and why some are not supported.",
    ),
]

LARGEST_DIGITS = 9
"""The most digits of a size. Longer ones take time, and no machine holds such a tensor."""


LONGEST_VALUE = 10_000
"""The most letters of a value in an option. A longer value belongs in a file."""

NPY_FILE = ".npy"
"""The end of the name of a file with one array."""


def given_values(given: list[str] | None) -> dict[str, ArrayLike]:
    """The values of inputs by name, each from INPUT=VALUE. Raises InputError."""
    found: dict[str, ArrayLike] = {}
    for each in given or ():
        name, separator, text = each.partition("=")
        if not (name and separator and text):
            raise InputError(f"--value {each}: need INPUT=VALUE, such as sr=16000")
        if name in found:
            raise InputError(f"--value {each}: {name} has a value already; need one")
        found[name] = read_npy(text) if text.endswith(NPY_FILE) else _parsed(name, text)
    return found


def _parsed(name: str, text: str) -> ArrayLike:
    """A number, a truth value, or lists of them; commas alone make a list."""
    if len(text) > LONGEST_VALUE:
        raise InputError(f"--value {name}=...: {len(text)} letters; need a {NPY_FILE} file")
    is_list = "," in text and not text.lstrip().startswith("[")
    try:
        value = json.loads(f"[{text}]" if is_list else text)
        array = np.asarray(value)
    except (ValueError, RecursionError):
        array = np.asarray(None)
    if array.dtype.kind not in "biuf":
        raise InputError(
            f"--value {name}={text}: need numbers, true or false, a list of them such as 1,2, or a "
            f"{NPY_FILE} file"
        )
    return array


def sizes(given: list[str] | None) -> dict[str, GivenSize]:
    """The sizes of dimensions by name, each from NAME=SIZE or NAME=LEAST..MOST.

    Raises InputError.
    """
    found: dict[str, GivenSize] = {}
    for each in given or ():
        name, _, text = each.rpartition("=")
        if any(len(end) > LARGEST_DIGITS for end in text.split("..")):
            raise InputError(f"--dim {each}: need a size below 10^{LARGEST_DIGITS}")
        size = size_or_bounds(text if ".." in text else f"{text}..{text}")
        if not name or size is None:
            raise InputError(
                f"--dim {each}: need NAME=SIZE, such as batch=1, or NAME=LEAST..MOST, such as "
                "past=0..64"
            )
        if found.setdefault(name, size) != size:
            raise InputError(f"--dim {each}: {name} is {found[name]} already; need one size")
    return found


def kept(given: list[str] | None) -> dict[str, str]:
    """For each input to keep on the device, the output that it receives, from INPUT=OUTPUT.

    Raises InputError.
    """
    found: dict[str, str] = {}
    for each in given or ():
        name, equals, output = each.rpartition("=")
        if not (name and equals and output):
            raise InputError(f"--keep {each}: need INPUT=OUTPUT, such as past=present")
        if found.setdefault(name, output) != output:
            raise InputError(f"--keep {each}: {name} is {found[name]} already; need one output")
    return found


def refuse_pipeline(given: str | None, usage: str) -> None:
    """Raise InputError if passes were given by -p to a command that takes them as arguments."""
    if given is not None:
        raise InputError(f"-p {given}: passes are arguments here; need {usage}")
