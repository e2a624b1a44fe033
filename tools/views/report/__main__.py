"""Write the section of docs/report.md that lists the tables.

python -m abele.tools.views.report docs/report.md
"""

from __future__ import annotations

import sys
from pathlib import Path

from .schema import markdown

MARK = "<!-- tables:"


def with_tables(text: str) -> str:
    """The text of the page, in which the tables follow the line with the mark."""
    head, mark, rest = text.partition(MARK)
    line = rest.partition("\n")[0]
    return f"{head}{mark}{line}\n\n" + "\n".join(markdown())


if __name__ == "__main__":
    page = Path(sys.argv[1])
    page.write_text(with_tables(page.read_text(encoding="utf-8")), encoding="utf-8")
