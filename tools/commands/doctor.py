"""abele doctor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from ..debug.health import Health, health
from ..driver.files import check_files, write_text
from ..views.terminal import console
from ..views.user_errors import CHECK_FAILED, print_error_line, user_errors


def doctor(
    again: Annotated[
        bool, typer.Option("--again", help="Compute the self-test of all kernels again.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("--json", metavar="OUT", help="Write all of it here, too.")
    ] = None,
) -> None:
    """Show what abele uses of this host, and test its compiled kernels.

    The self-test compares kernels with NumPy, byte by byte. It is computed once for each host and
    version, when kernels are compiled; this command computes what is missing. Exits with 1 if
    something is wrong.
    """
    with user_errors():
        check_files({}, {"--json": output})
        found = health(again)
        table = Table(show_header=False)
        table.add_column(style="bold")
        for name, value in _rows(found):
            table.add_row(name, value)
        console().print(table)
        if output is not None:
            record = {"fine": not found.problems, "problems": found.problems, **asdict(found)}
            write_text(output, json.dumps(record, indent=1) + "\n")
        tell(found)


def tell(found: Health) -> None:
    """Say whether a host is fine; exit with 1 if not."""
    if found.problems:
        for each in found.problems:
            print_error_line(f"wrong: {each}")
        raise typer.Exit(CHECK_FAILED)
    console().print(found.verdict, highlight=False)


def _rows(found: Health) -> Iterator[tuple[str, str]]:
    yield from found.host.items()
    yield "threads", str(found.threads)
    yield from found.versions.items()
    for each in found.folders:
        kept = f"{each.files} files, {each.size:,} bytes"
        yield f"cache of {each.name}", f"{each.path}: {each.problem or kept}"
    yield "kernels", f"{found.form} ({found.reason})"
    for proof in found.proofs:
        passed = f"{proof.cases:,} cases passed, {proof.seconds:.2f} s"
        yield f"self-test of {proof.task}", f"FAILED: {proof.problem}" if proof.problem else passed
