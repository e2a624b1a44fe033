"""Arguments and options that several commands share."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...backends.presets import PRESET_VALUES
from ...ir.errors import InputError

ModelFile = Annotated[str, typer.Argument(help="An .onnx, .mlir (any level) or .abele file.")]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        help=f"A preset ({', '.join(PRESET_VALUES)}), NAME:TILES, a TOML file, or a target of an "
        "extension. Default: the model's own, else mk2.",
    ),
]
Dims = Annotated[
    list[str] | None,
    typer.Option("--dim", metavar="NAME=SIZE", help="Set the size of a symbolic dimension."),
]
Keep = Annotated[
    list[str] | None,
    typer.Option(
        "--keep",
        metavar="INPUT=OUTPUT",
        help="Keep a value on the device: the input becomes a state, which holds the output of the "
        "run before, and zeros in the first. May be repeated.",
    ),
]
Pipeline = Annotated[
    str,
    typer.Option(
        "-p",
        "--pass-pipeline",
        metavar="SPEC",
        help="Passes in order: 'a,b{option=1}'. nn, partition, tile and exchange stand for the "
        "default passes that lead there. Default: all four.",
    ),
]
Load = Annotated[
    list[str] | None,
    typer.Option(
        "--load",
        metavar="FILE",
        help="An extension: passes, dialects and functions in a .py file, rules in a .rw file, a "
        "target in a .toml file. May be repeated.",
    ),
]
ConstraintsFile = Annotated[
    Path | None,
    typer.Option(
        "--constraints",
        metavar="FILE.json",
        help="Choices per operator: method, split, tiles, steps, memory_proportion, plan.",
    ),
]
MemoryProportion = Annotated[
    float | None,
    typer.Option(
        "--memory-proportion",
        metavar="P",
        help="The share of a tile's usable memory, 0..1, that one operator may take for copies, "
        "partials and its result. Relaxed, with a warning, if no plan keeps it. Default: the "
        "constraints' own, else 0.6.",
    ),
]
VerticesPerTile = Annotated[
    int | None,
    typer.Option(
        "--vertices-per-tile",
        metavar="N",
        help="Split work into at most N vertices of each compute set per tile; the workers of the "
        "tile take turns. Default: one per worker.",
    ),
]
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


Lenient = Annotated[
    bool,
    typer.Option(
        "--lenient",
        help="Take an ONNX model that breaks rules of ONNX, such as one with an unknown attribute "
        "or a false output type.",
    ),
]
Verbose = Annotated[
    bool,
    typer.Option("--verbose", help="Print what each stage does, and how many seconds it takes."),
]

LARGEST_DIGITS = 9
"""Digits of a size. Python takes long to read more, and no tile machine holds such a tensor."""


def sizes(given: list[str] | None) -> dict[str, int]:
    """The sizes of dimensions by name, each from NAME=SIZE. Raises InputError."""
    found: dict[str, int] = {}
    for each in given or ():
        name, _, size = each.rpartition("=")
        if not (name and size.isascii() and size.isdigit()):
            raise InputError(f"--dim {each}: need NAME=SIZE, such as batch=1")
        if len(size) > LARGEST_DIGITS:
            raise InputError(f"--dim {each}: need a size below 10^{LARGEST_DIGITS}")
        if found.setdefault(name, int(size)) != int(size):
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
