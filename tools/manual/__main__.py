"""Write the reference: python -m abele.tools.manual OUT_DIR."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from ...ir.whole_file import whole_file
from ..commands.user_errors import BAD_INPUT
from .markdown import NOTE
from .pages import pages


def main(arguments: Sequence[str]) -> int:
    """Write all pages to a folder, and operators.md beside it; returns the exit code.

    Removes pages that no longer exist.

    A page that this command has not written, which its first line says, is neither removed nor
    replaced.
    """
    if len(arguments) != 1 or arguments[0].startswith("-"):
        sys.stderr.write("usage: python -m abele.tools.manual OUT_DIR\n")
        return BAD_INPUT
    folder = Path(arguments[0])
    made = {folder / path: text for path, text in pages().items()}
    try:
        for path in made:
            if path.exists() and not _is_ours(path):
                sys.stderr.write(
                    f"error: {path}: not a page of the reference; need another folder\n"
                )
                return BAD_INPUT
        for path, text in made.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            with whole_file(path) as stream:
                stream.write(text.encode())
        for path in sorted(folder.rglob("*.md")):
            if path not in made and _is_ours(path):
                path.unlink()
    except OSError as error:
        sys.stderr.write(f"error: {error.filename or folder}: {error.strerror}\n")
        return BAD_INPUT
    return 0


def _is_ours(path: Path) -> bool:
    """Whether a file begins as every page of the reference does."""
    return path.is_file() and path.read_text("utf-8", errors="replace").startswith(NOTE)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
