"""The page of MXNet's operators that abele imports."""

from __future__ import annotations

from ..importers.mxnet.reader import SECTIONS
from .markdown import code, link, page, table


def mxnet_operators_page() -> str:
    """The text of the page."""
    count = sum(map(len, SECTIONS.values()))
    porting = link("From MXNet", "../porting/mxnet.md")
    return page(
        "MXNet operators",
        f"abele imports {count} operators from graphs of MXNet, `NAME-symbol.json`; several names "
        "stand for one operator, as in MXNet. If a node uses an attribute or a form that abele "
        "does not support, the error names the node, its line, and the forms that are supported. "
        f"{porting} says how a graph and its weights come in.",
        table(
            ("operators", "names"),
            (
                (kind, ", ".join(map(code, sorted(operators))))
                for kind, operators in SECTIONS.items()
            ),
        ),
    )
