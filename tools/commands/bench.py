"""abele bench."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ...ir.errors import InputError
from ...ir.suggestions import suggestion
from ..driver.files import check_files
from .answers import answers


@dataclass(frozen=True)
class Program:
    """A benchmark that is loaded when it is asked for. options: those of `abele bench` it takes."""

    module: str
    function: str
    options: tuple[str, ...]

    def load(self) -> Callable[..., None]:
        """Its function. Raises InputError where what it needs is not installed."""
        try:
            found = getattr(import_module(self.module, __package__), self.function)
        except ModuleNotFoundError as error:
            raise InputError(
                f"needs {error.name}, which is not installed: pip install 'abele[test]'"
            ) from None
        return found


# Some need onnxruntime, or what tests need.
PROGRAMS: Mapping[str, Program] = {
    "fidelity": Program("..bench.fidelity.bench", "fidelity", ("csv", "rows", "json")),
    "light": Program("..bench.__main__", "bench", ("networks", "target", "json")),
    "fusion": Program("..bench.fusion", "fusion", ("networks", "target")),
    "trace": Program("..bench.trace", "trace", ("networks", "target")),
    "planning": Program("..bench.planning", "planning", ("networks", "target")),
    "utilisation": Program("..bench.utilisation", "utilisation", ("target",)),
    "comparator": Program("..bench.comparator", "comparator", ("json",)),
    "graphs": Program("..bench.graphs", "graphs", ("target",)),
    "kit": Program("..bench.kit", "kit", ()),
    "blame": Program("..bench.blame", "blame", ()),
}

PARAMETERS = {"json": "report"}
"""Options whose parameter is called otherwise."""


def bench_command(
    name: Annotated[str, typer.Argument(help=f"One of {', '.join(PROGRAMS)}.")] = "light",
    csv: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="fidelity: measurements; if none are given, the calibration's."
        ),
    ] = None,
    rows: Annotated[bool, typer.Option("--rows", help="fidelity: show every row.")] = False,
    networks: Annotated[
        str | None,
        typer.Option(
            help="light, fusion, trace and planning: names of light networks, separated by commas."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(help="Of the same, utilisation and graphs: a preset.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--json", metavar="OUT", help="fidelity, light and comparator: write all figures here."
        ),
    ] = None,
) -> None:
    """Measure abele.

    fidelity: predictions against measurements on chips. light: networks against onnxruntime, and
    fusion and trace: what two of its parts bring. planning: of whole networks; utilisation: of the
    peak; comparator: plans against another planner's. graphs: tables of vertices and edges. kit:
    the testing kit; blame: whom it blames.
    """
    given = {
        option: value
        for option, value in (
            ("csv", csv),
            ("rows", rows or None),
            ("networks", networks),
            ("target", target),
            ("json", out),
        )
        if value is not None
    }
    with answers():
        if name not in PROGRAMS:
            raise InputError(
                f"bench {name!r}; need one of {', '.join(PROGRAMS)}{suggestion(name, PROGRAMS)}"
            )
        program = PROGRAMS[name]
        _only(name, given, program.options)
        if out is not None:
            check_files({}, {"--json": out})
        arguments: dict[str, Any] = {PARAMETERS.get(k, k): v for k, v in given.items()}
        program.load()(**arguments)


def _only(name: str, given: Mapping[str, object], allowed: tuple[str, ...]) -> None:
    """Raise InputError for an option that a benchmark does not take."""
    for option in given:
        if option not in allowed:
            takes = ", ".join(f"--{each}" for each in allowed)
            raise InputError(f"bench {name}: --{option}; it takes {takes}")
