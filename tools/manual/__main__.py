"""Write the reference: python -m abele.tools.manual OUT_DIR."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ...ir.support.errors import InputError
from ..driver.files import write_text
from ..views.script import run_script
from .markdown import NOTE
from .pages import pages


def write_reference(
    folder: Annotated[Path, typer.Argument(metavar="OUT_DIR", help="The folder of the pages.")],
) -> None:
    """Write all pages to a folder, and operators.md beside it.

    Removes pages that no longer exist. A page whose first line does not say that this command has
    written it is neither removed nor replaced. Raises InputError.
    """
    made = {folder / path: text for path, text in pages().items()}
    for path in made:
        if path.exists() and not _is_ours(path):
            raise InputError(f"{path}: not a page of the reference; need another folder")
    for path, text in made.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_text(path, text)
    for path in sorted(folder.rglob("*.md")):
        if path not in made and _is_ours(path):
            path.unlink()


def _is_ours(path: Path) -> bool:
    """Whether a file begins like every page of the reference."""
    return path.is_file() and path.read_text("utf-8", errors="replace").startswith(NOTE)


if __name__ == "__main__":
    run_script(write_reference)
