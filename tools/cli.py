"""The command line: abele and abele-opt. A new command is a function, and a line in COMMANDS."""

from __future__ import annotations

from collections.abc import Callable

import typer

from ..ir.garbage import heap_frozen_after
from .commands.bench import bench_command
from .commands.bisect import bisect_command
from .commands.compile import compile_command
from .commands.demo import demo
from .commands.explain import explain_command
from .commands.fuzz import fuzz_command
from .commands.graph import graph_command
from .commands.memory import memory_command
from .commands.mutate import mutate_command
from .commands.opt import opt
from .commands.plan import plan_command
from .commands.run import run
from .commands.scan import scan_command
from .commands.signals import end_by_exception

COMMANDS: dict[str, Callable[..., None]] = {
    "run": run,
    "compile": compile_command,
    "opt": opt,
    "plan": plan_command,
    "memory": memory_command,
    "graph": graph_command,
    "scan": scan_command,
    "bisect": bisect_command,
    "explain": explain_command,
    "fuzz": fuzz_command,
    "bench": bench_command,
    "mutate": mutate_command,
    "demo": demo,
}

app = typer.Typer(
    help="Compile neural networks for tile machines, and run them there.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Markup would cut off long names, such as --mlir-print-ir-after-change.
    rich_markup_mode=None,
)
opt_app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)

for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
opt_app.command()(opt)


def main() -> None:
    """Run the command abele."""
    end_by_exception()
    with heap_frozen_after():
        app()


def opt_main() -> None:
    """Run the command abele-opt, which is abele opt under a name that mlir-opt users expect."""
    end_by_exception()
    with heap_frozen_after():
        opt_app()
