"""The option --threads, and what it sets."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ...backends.host import switch
from ...backends.host.cores import VARIABLE, cores, default_threads
from ...backends.host.threads import THREADS
from ..views.user_errors import print_error_line

ThreadCount = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help=f"How many threads run the program; results are the same to the bit. Default: what "
        f"{VARIABLE} says, else all cores.",
    ),
]

OneThread = Annotated[
    int,
    typer.Option(
        "--threads",
        min=1,
        metavar="N",
        help="How many threads run each program. Programs are small, and --jobs uses more cores.",
    ),
]


def use_threads(asked: int | None) -> None:
    """Set how many threads run programs, in this process and in those that it starts.

    Raises InputError if the environment variable is not a number, or if another one forces a form
    of kernels that this host cannot run: a command says so before it compiles a program.

    Args:
        asked: the number of threads, of which at most one per core is used; None for the default.
    """
    if os.environ.get(switch.VARIABLE):
        _ = switch.choice()
    count = default_threads() if asked is None else min(asked, cores())
    if asked is not None and asked > count:
        has = "one core, and uses it" if count == 1 else f"{count} cores, and uses them"
        print_error_line(f"note: --threads {asked}: abele may use {has}")
    THREADS.count = count
    os.environ[VARIABLE] = str(count)
