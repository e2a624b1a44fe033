"""The command line: abele and abele-opt. A new command is a function, and a line in COMMANDS.

Nothing that a command needs is imported before the command is chosen, so that help comes at once.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from ..ir.support.garbage import heap_frozen_after
from .commands.signals import end_by_exception
from .commands.wall import WALL
from .views.application import STYLE, run_application


@dataclass(frozen=True)
class Command:
    """A command, imported when it is chosen.

    Attributes:
        home: `module:function`, the module in commands/.
        summary: its line in `abele --help`, which fits into 80 columns.
    """

    home: str
    summary: str

    def load(self) -> Callable[..., None]:
        """Import the function of the command."""
        module, function = self.home.split(":")
        return getattr(import_module(f".commands.{module}", __package__), function)


COMMANDS: dict[str, Command] = {
    "run": Command("run:run", "Compile a model, or load a program, and run it once."),
    "compile": Command("compile:compile_command", "Compile a model into a program file."),
    "generate": Command(
        "generate:generate_command", "Generate tokens with a decoder of a language model."
    ),
    "train": Command("train:train_command", "Train a model on samples of a file."),
    "quantise": Command(
        "quantise:quantise_command", "Write a float model with products of 8 bits."
    ),
    "opt": Command("opt:opt", "Run passes on a module of any level, and print the result."),
    "export": Command(
        "export:export_command", "Write a model for other compilers, in StableHLO or linalg."
    ),
    "plan": Command(
        "plan:plan_command", "Show how operators are split over tiles, and what that costs."
    ),
    "sweep": Command(
        "sweep:sweep_command", "Compare models on many machines: a row of figures for each."
    ),
    "memory": Command(
        "memory:memory_command", "Show what fills the fullest tile, by category and layer."
    ),
    "exchange": Command(
        "exchange:exchange_command", "Show when the messages of an exchange leave and arrive."
    ),
    "graph": Command("graph:graph_command", "Write the vertices and edges of a program as tables."),
    "report": Command(
        "report:report_command", "Write a report: where memory and cycles go, and why."
    ),
    "scan": Command("scan:scan_command", "Draw the vertices and edges of a program."),
    "cache": Command("cache:cache_command", "Show, explain or clear the kept compiled programs."),
    "bisect": Command(
        "bisect:bisect_command", "Find the first pass, rewrite and value that are wrong."
    ),
    "explain": Command(
        "explain:explain_command", "Explain why a rule matches each operation or does not."
    ),
    "prove": Command("prove:prove_command", "Prove rewrite rules, or refute them by a program."),
    "fuzz": Command("fuzz:fuzz_command", "Run generated programs before and after each pass."),
    "bench": Command("bench:bench_command", "Measure abele."),
    "mutate": Command(
        "mutate:mutate_command", "Plant bugs in passes, and report which ones are found."
    ),
    "doctor": Command("doctor:doctor", "Show what abele uses of this host, and test its kernels."),
    "demo": Command("demo:demo", "Compile and run AlexNet, check it, and print its cost."),
}


class _Loading(MutableMapping[str, Any]):
    """The commands of the group by name: each is imported when it is looked up."""

    def __getitem__(self, name: str) -> Any:
        if name not in COMMANDS:
            raise KeyError(name)
        return typer.main.get_command(command_app(name))

    def __setitem__(self, name: str, command: Any) -> None:
        raise TypeError(f"command {name}: commands are listed in COMMANDS")

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"command {name}: commands are listed in COMMANDS")

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    """The group of all commands, whose help comes from COMMANDS and imports none of them."""

    def __init__(self, **given: Any) -> None:
        super().__init__(**given)
        self.commands = cast(Any, _Loading())

    def list_commands(self, ctx: Any) -> list[str]:
        """The commands in the order of the table."""
        return list(COMMANDS)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the section of the help that lists the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.summary) for name, each in COMMANDS.items()])


app = typer.Typer(cls=_Group, no_args_is_help=True, **STYLE)


def command_app(name: str) -> typer.Typer:
    """An application of one command."""
    alone = typer.Typer(**STYLE)
    alone.command(name)(COMMANDS[name].load())
    return alone


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"abele {version('abele')}")
        raise typer.Exit


@app.callback()
def abele(
    _version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version),
    ] = False,
) -> None:
    """Compile neural networks for tile machines, and run them there."""


BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""The environment variables that say how many threads the BLAS of NumPy uses."""


def use_one_thread_of_blas() -> None:
    """Leave the cores to abele's own threads. It must be called before NumPy is imported.

    With several threads, the last bits of a product may depend on their number.
    """
    for variable in BLAS_THREADS:
        os.environ.setdefault(variable, "1")


def main() -> None:
    """Run the command abele."""
    WALL.of_process = True
    end_by_exception()
    use_one_thread_of_blas()
    if len(sys.argv) > 2:
        # Help need not wait for it.
        from .driver.cache.model_digest import begin_for  # noqa: PLC0415

        begin_for(sys.argv)
    with heap_frozen_after():
        run_application(app)


def opt_main() -> None:
    """Run the command abele-opt, which is abele opt under a name that mlir-opt users expect."""
    end_by_exception()
    with heap_frozen_after():
        run_application(command_app("opt"))
