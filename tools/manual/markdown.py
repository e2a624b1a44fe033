"""Markdown as forges render it: prose, code, tables, links to headings."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterable, Sequence

COLUMNS = 100
"""The length of lines of prose."""

NOTE = "<!-- Made by `make reference` from abele's definitions: edit those. -->"
"""The first line of every page."""


def code(text: str) -> str:
    """Inline code."""
    ticks = "``" if "`" in text else "`"
    pad = " " * ("`" in text)
    return f"{ticks}{pad}{text}{pad}{ticks}" if text else ""


def fence(text: str, language: str = "") -> str:
    """A block of code."""
    return f"```{language}\n{text.rstrip()}\n```"


def plain(text: str) -> str:
    """A sentence, escaped so that formulas and types are not markup; `code` and *stress* stay."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if i % 2 else re.sub(r"([<\\]|(?<=[\w)])\*(?=[\w(]))", r"\\\1", part)
        for i, part in enumerate(parts)
    )


def prose(text: str) -> str:
    """The paragraphs of a docstring, with lists. Indented lines are code."""
    blocks: list[str] = []
    for paragraph in re.split(r"\n[ \t]*\n", text.strip("\n")):
        lines = paragraph.splitlines()
        if lines and lines[0].startswith("    "):
            listing = inspect.cleandoc("\n".join(lines))
            if blocks and blocks[-1].startswith("```"):
                # The listing contains an empty line.
                listing = f"{blocks.pop()[4:-4]}\n\n{listing}"
            blocks.append(fence(listing))
        elif lines and lines[0].startswith("- "):
            items = re.split(r"\n(?=- )", paragraph)
            blocks.append("\n".join(plain(" ".join(item.split())) for item in items))
        else:
            blocks.append(plain(" ".join(paragraph.split())))
    return "\n\n".join(block for block in blocks if block)


def table(titles: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table without empty columns; "" without rows."""
    every = [tuple(row) for row in rows]
    kept = [i for i in range(len(titles)) if any(row[i] for row in every)]
    lines = [[titles[i] for i in kept], ["---"] * len(kept)]
    lines += [[row[i].replace("|", "\\|") for i in kept] for row in every]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) if every else ""


def slug(heading: str) -> str:
    """The anchor of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def link(text: str, page: str = "", heading: str = "") -> str:
    """A link to a page, to a heading of a page, or to a heading of this page."""
    return f"[{text}]({page}{'#' * bool(heading)}{slug(heading)})"


def page(title: str, *blocks: str) -> str:
    """A page of blocks, without empty ones. Prose wraps at 100 columns."""
    text = "\n\n".join([NOTE, f"# {title}", *(block for block in blocks if block)])
    # Every second piece is a block of code.
    pieces = re.split(r"^(```.*?^```)$", text, flags=re.MULTILINE | re.DOTALL)
    return "".join(piece if i % 2 else _wrapped(piece) for i, piece in enumerate(pieces)) + "\n"


def _wrapped(text: str) -> str:
    return "\n".join(_wrapped_line(line) for line in text.split("\n"))


def _wrapped_line(line: str) -> str:
    """A line as several. Headings and rows of tables stay as they are."""
    if len(line) <= COLUMNS or line.startswith(("#", "|")):
        return line
    # At the start of a line, these would begin a list, a heading or a quotation.
    kept = re.sub(r" (?=(?:[-+*>]|#+|\d+[.)])(?: |$))", "\0", line[2:])
    indent = "  " if line.startswith("- ") else ""
    lines = textwrap.wrap(
        line[:2] + kept,
        COLUMNS,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines).replace("\0", " ")
