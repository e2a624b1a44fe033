"""Applications of typer that report wrong usage in the form of abele's other errors."""

from __future__ import annotations

import io
import sys
from typing import Any, NoReturn

import typer

from ...ir.support.errors import shortened

STYLE: dict[str, Any] = {
    "add_completion": False,
    "pretty_exceptions_enable": False,
    # Markup would cut off long names, such as --mlir-print-ir-after-change.
    "rich_markup_mode": None,
}
"""The options of typer that all applications share."""

_UsageError: Any = typer.BadParameter.__base__
"""The class of typer's errors for wrong usage: an unknown option or command, or a bad value."""


def run_application(application: typer.Typer) -> NoReturn:
    """Run an application, and end the process with its exit code."""
    try:
        code = application(standalone_mode=False)
    except typer.Abort:
        sys.exit("Aborted!")
    except _UsageError as error:
        # An import at the head would make each --help wait for it.
        from .syntax.colour import message_for  # noqa: PLC0415

        text = io.StringIO()
        error.show(file=text)
        for line in text.getvalue().splitlines():
            line = f"error: {line.removeprefix('Error: ')}" if line.startswith("Error: ") else line
            sys.stderr.write(f"{message_for(shortened(line), sys.stderr)}\n")
        sys.exit(error.exit_code)
    sys.exit(code or 0)
