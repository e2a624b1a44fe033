"""Draw the example of docs/design.md at all four levels.

python -m abele.tools.manual.way_down docs/design.md docs/way_down.svg
"""

from __future__ import annotations

import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import typer

from ....ir.support.errors import InputError
from ...driver.files import write_text
from ...views.script import run_script
from .drawing import drawn
from .example import example

PROGRAM = re.compile(r"^```mlir\n// conv\.mlir\n(.*?)^```$", re.MULTILINE | re.DOTALL)
"""The block of the page that holds the example."""

COMMAND = re.compile(r"^\$ abele compile conv\.mlir .*--target (\S+)", re.MULTILINE)
"""The command of the page that compiles the example."""


def picture(page: str) -> str:
    """The picture of the example that a page holds, for the target that the page names.

    Raises InputError if the page has no such example.
    """
    program, command = PROGRAM.search(page), COMMAND.search(page)
    if program is None or command is None:
        raise InputError("no example: the page needs a block `// conv.mlir`, and its command")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "conv.mlir"
        path.write_text(program[1], encoding="utf-8")
        return drawn(example(path, command[1]))


def draw(
    page: Annotated[Path, typer.Argument(help="docs/design.md.")],
    output: Annotated[Path, typer.Argument(help="The SVG file to write.")],
) -> None:
    """Draw the example of a page. Raises InputError."""
    try:
        text = page.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{page}: cannot be read: {error}") from None
    write_text(output, picture(text))


if __name__ == "__main__":
    run_script(draw)
