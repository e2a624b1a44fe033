"""abele bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from ...backends.target import resolve_target
from ...ir.support.errors import InputError
from ...ir.support.suggestions import suggestion
from ..views.user_errors import user_errors
from .checkout import from_checkout


@dataclass(frozen=True)
class Benchmark:
    """A benchmark, imported on first use.

    Attributes:
        options: the options of `abele bench` that it takes.
    """

    module: str
    function: str
    options: tuple[str, ...]

    def load(self, name: str) -> Callable[..., None]:
        """Its function. Raises InputError if its module, or one that it needs, is missing."""
        return getattr(from_checkout(self.module, f"bench {name}"), self.function)


# Some need onnxruntime or the packages of the extra "test".
PROGRAMS: Mapping[str, Benchmark] = {
    "fidelity": Benchmark(
        "..bench.fidelity.bench", "fidelity", ("csv", "rows", "networks", "json", "timetables")
    ),
    "light": Benchmark("..bench.__main__", "bench", ("networks", "target", "json")),
    "exchange": Benchmark("..workshop.exchanges", "exchanges", ("networks", "target")),
    "fusion": Benchmark("..workshop.fusion", "fusion", ("networks", "target")),
    "trace": Benchmark("..workshop.trace", "trace", ("networks", "target")),
    "planning": Benchmark("..workshop.planning", "planning", ("networks", "target")),
    "utilisation": Benchmark("..workshop.utilisation", "utilisation", ("target",)),
    "comparator": Benchmark("..workshop.comparator.bench", "comparator", ("json",)),
    "models": Benchmark(
        "..bench.models.bench", "models", ("networks", "target", "folder", "json", "executor")
    ),
    "quantised": Benchmark(
        "..workshop.quantised", "quantised", ("networks", "target", "folder", "json")
    ),
    "transformers": Benchmark(
        "..workshop.transformers.bench", "transformers", ("networks", "target", "json")
    ),
    "learning": Benchmark("..workshop.learning.bench", "learning", ("networks", "target", "json")),
    "lookups": Benchmark("..workshop.lookups", "lookups", ("target",)),
    "recurrent": Benchmark("..workshop.recurrent", "recurrent", ("target",)),
    "training": Benchmark(
        "..workshop.training", "training", ("networks", "target", "folder", "layers")
    ),
    "steps": Benchmark("..workshop.steps", "steps", ("networks", "target")),
    "start": Benchmark("..workshop.start", "start", ("networks", "target")),
    "switching": Benchmark("..workshop.switching", "switching", ("target",)),
    "graphs": Benchmark("..workshop.graphs", "graphs", ("networks", "target")),
    "sparse": Benchmark("..workshop.sparse_grid", "sparse_grid", ("target", "folder", "json")),
    "kit": Benchmark("..workshop.kit", "kit", ()),
    "blame": Benchmark("..workshop.blame", "blame", ()),
    "proofs": Benchmark("..workshop.proofs", "proofs", ()),
}

PARAMETERS = {"json": "report"}
"""The option of each parameter whose name differs from its option's."""


def bench_command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PROGRAMS)}.")] = "light",
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="fidelity: measurements. Default: those of the calibration."
        ),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="fidelity: show every row.")] = False,
    networks: Annotated[
        str | None,
        typer.Option(
            help="light, fusion, trace, planning, start: names of light networks, separated by "
            "commas. fidelity: names of networks that were measured on chips, or of steps of "
            "training on pods, instead of the calibration. models, quantised: names of published "
            "models. learning: names of data. transformers: bert-base, gpt2-small, gpt2-medium. "
            "steps: NAME:BATCH. training, graphs: NAME:BATCH:VERTICES_PER_TILE."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="light to sparse, except comparator: a preset.")
    ] = None,
    timetables: Annotated[
        bool,
        typer.Option(
            "--timetables",
            help="fidelity: price exchanges by timetables, where the messages are known.",
        ),
    ] = False,
    layers: Annotated[
        bool, typer.Option("--layers", help="training: print a table by layer, too.")
    ] = False,
    folder: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="models, quantised: look for packages of models here, and download those that are "
            "missing. training, sparse: draw into this folder.",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--json",
            metavar="OUT",
            help="fidelity, light, models, quantised, transformers, comparator, learning, sparse: "
            "write all figures here.",
        ),
    ] = None,
    executor: Annotated[
        str,
        typer.Option(
            "--executor",
            metavar="NAME",
            help="models: what runs them: local:N, dask-local:N, dask://HOST:PORT. Default: "
            "local:1. More than one at a time slow each other down.",
        ),
    ] = "",
) -> None:
    """Measure abele.

    The wheel has fidelity, light and models; a checkout has all of them.

    \b
    - fidelity: predictions beside measurements on chips
    - light: networks beside onnxruntime
    - fusion: what the fusing rules gain
    - trace: whether every operation names its origin
    - planning: time to plan whole networks
    - utilisation: the share of peak performance
    - comparator: plans beside those of another planner
    - models: published models with their trained weights, beside onnxruntime
    - quantised: published models in int8 and fp8, by method of calibration
    - transformers: BERT-base and GPT-2, seeded weights, beside onnxruntime
    - learning: networks that learn real data of installed packages
    - lookups: the host's time of an embedding, beside onnxruntime
    - recurrent: cycles and time of a step of an LSTM, by sequence length
    - training: graphs of steps of training, by phase
    - steps: the host's time of a step of training, beside torch
    - start: cold and warm starts of commands
    - switching: what changing between programs moves
    - graphs: time and size of the tables of vertices and edges
    - sparse: sparse products beside the published grid of PopSparse
    - kit: the speed of the test kit
    - blame: which pass the kit blames for planted bugs
    """  # noqa: D301 - typer keeps the lines of a paragraph that begins with a backspace
    given = {
        option: value
        for option, value in (
            ("csv", csv),
            ("rows", rows or None),
            ("networks", networks),
            ("target", target),
            ("layers", layers or None),
            ("timetables", timetables or None),
            ("folder", folder),
            ("json", out),
            ("executor", executor or None),
        )
        if value is not None
    }
    with user_errors():
        if name not in PROGRAMS:
            raise InputError(
                f"bench {name!r}; need one of {', '.join(PROGRAMS)}{suggestion(name, PROGRAMS)}"
            )
        program = PROGRAMS[name]
        _only(name, given, program.options)
        if target is not None:
            resolve_target(target)
        arguments: dict[str, Any] = {PARAMETERS.get(k, k): v for k, v in given.items()}
        program.load(name)(**arguments)


def _only(name: str, given: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    """Raise InputError for an option that a benchmark does not take."""
    for option in given:
        if option not in allowed:
            takes = ", ".join(f"--{each}" for each in allowed)
            raise InputError(f"bench {name}: --{option}; it takes {takes}")
