"""The page of PyTorch's operators that abele imports from archives of torch.export."""

from __future__ import annotations

from ..importers.pt2.numbers import NUMBERS
from ..importers.pt2.operators import SECTIONS
from ..importers.pt2.ops_control import HIGHER_ORDER
from .markdown import code, link, page, table


def pytorch_operators_page() -> str:
    """The text of the page."""
    count = sum(map(len, SECTIONS.values()))
    porting = link("Bring a model", "../porting.md")
    return page(
        "PyTorch operators",
        f"abele imports {count} operators of the namespace `aten` from archives of `torch.export`, "
        "with the meaning that PyTorch gives them: those that an export holds as it is made, and "
        "those that are left after `run_decompositions()`. All overloads of an operator are read, "
        "and so is its form that writes into its operand, such as `add_`. If a node uses a form "
        "that abele does not support, the error names the node, the line of Python, and the forms "
        f"that are supported. {porting} says what to do then.",
        table(
            ("operators", "names"),
            (
                (kind, ", ".join(map(code, sorted(operators))))
                for kind, operators in SECTIONS.items()
            ),
        ),
        "Nodes that compute with sizes are computed at import: "
        + ", ".join(map(code, sorted(NUMBERS)))
        + ".",
        "Operators with graphs inside: " + ", ".join(map(code, sorted(HIGHER_ORDER))) + ".",
    )
