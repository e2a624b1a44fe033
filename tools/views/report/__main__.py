"""Write the section of docs/report.md that lists the tables.

python -m abele.tools.views.report docs/report.md
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....ir.support.errors import InputError
from ...driver.files import write_text
from ..script import run_script
from .schema import markdown

MARK = "<!-- tables:"


def with_tables(text: str) -> str:
    """The text of the page, in which the tables follow the line with the mark."""
    head, mark, rest = text.partition(MARK)
    line = rest.partition("\n")[0]
    return f"{head}{mark}{line}\n\n" + "\n".join(markdown())


def write_tables(page: Annotated[Path, typer.Argument(help="docs/report.md.")]) -> None:
    """Replace the tables of a page. Raises InputError."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{page}: cannot be read: {error}") from None
    if MARK not in text:
        raise InputError(f"{page}: has no line that begins with {MARK}, which the tables follow")
    write_text(page, with_tables(text))


if __name__ == "__main__":
    run_script(write_tables)
