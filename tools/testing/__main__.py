"""python -m abele.tools.testing FOLDER: run a saved failure again.

Exits 1 if it still fails, 0 if it does not, 2 if the folder cannot be read.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..views.script import run_script
from ..views.user_errors import CHECK_FAILED
from .onnx_graphs.checks import replayed as replayed_model
from .onnx_graphs.graph import MODEL
from .onnx_tools.check import replayed as replayed_finding
from .onnx_tools.finding import ABOUT
from .search.failures import AtFault
from .search.replay import replayed, saved_program


def replay(folder: Annotated[Path, typer.Argument(help="Of a saved program or model.")]) -> None:
    """Run a saved failure again. Exit with status 1 if it still fails. Raises InputError."""
    try:
        if (folder / ABOUT).exists():
            shown = replayed_finding(folder)
            sys.stdout.write(f"{shown or 'nothing is wrong any more'}\n")
            raise typer.Exit(CHECK_FAILED if shown else 0)
        if (folder / MODEL).exists():
            failing, wrong = replayed_model(folder)
        else:
            failing, record = saved_program(folder)
            wrong = replayed(failing, record)
    except AtFault as error:
        sys.stdout.write(f"{error}\n")
        raise typer.Exit(CHECK_FAILED) from None
    sys.stdout.write(f"{failing.text}\n{wrong.text if wrong else 'nothing is wrong any more'}\n")
    if wrong:
        raise typer.Exit(CHECK_FAILED)


if __name__ == "__main__":
    run_script(replay)
