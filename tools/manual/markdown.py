"""Markdown as forges render it: prose, code, tables, links to headings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Sequence

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
    """A page of blocks, without empty ones."""
    return "\n\n".join([NOTE, f"# {title}", *(block for block in blocks if block)]) + "\n"
