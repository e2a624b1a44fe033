"""The page of levels: what is legal on each one, and what holds there."""

from __future__ import annotations

from ...dialects.levels import LEVELS, MIXED, NN_CORE, SOURCES
from ...dialects.onnx_level import ONNX_LEVEL
from ...ir.level import Level
from .markdown import code, link, page, plain, table


def levels_page() -> str:
    """The text of the page."""
    return page(
        "Levels",
        f"Defined in {link(code('dialects/levels.py'), '../../dialects/levels.py')}.",
        "A program is on one level at a time. It begins at nn, or above it if another compiler's "
        "program was read. Each level has a table of the operations that are "
        "legal on it, and of what must hold of them there:",
        "- A name without a point is a dialect, and means all its operations.\n"
        "- An operation in several rows must meet all of them.\n"
        "- What must hold on every level is on the page of the operation's dialect.",
        "After each pass, abele verifies the table of the level that the pass leaves. The error "
        "names the pass that broke it.",
        *(
            f"## {level}\n\n{plain(level.meaning)}\n\n{_table(level)}"
            for level in (ONNX_LEVEL, *SOURCES, *LEVELS)
        ),
        "## Between levels",
        plain(
            f"After `decompose`, a program of `nn` is on `{NN_CORE}`. {NN_CORE.meaning} Its other "
            "rows are those of `nn`."
        ),
        "If nobody has declared the level of a program, as in a pipeline of `abele opt`, and its "
        "operations are of several levels, then any operation is legal, and this holds:",
        _table(MIXED),
    )


def _table(level: Level) -> str:
    return table(
        ("operations", "what must hold"),
        (
            (
                ", ".join(map(code, each.ops)),
                "; ".join(plain(need.says) for need in each.needs) or "legal",
            )
            for each in level.rows
        ),
    )
