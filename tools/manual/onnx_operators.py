"""The page of ONNX operators: the forms that the importer takes, and how to add an operator."""

from __future__ import annotations

from collections.abc import Iterable

from ..importers.onnx.ops_contrib import CONTRIBUTED
from ..importers.onnx.reader import (
    CONTRIBUTED_DOMAIN,
    DOMAINS,
    OPSETS,
    RUNTIMES_OPERATORS,
    SECTIONS,
)
from .markdown import code, link, page, table


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(code, sorted(names)))


def _is_other(domain: str) -> bool:
    """Whether a domain belongs to ONNX, but is not ai.onnx."""
    return domain.startswith("ai.onnx.")


def onnx_operators_page() -> str:
    """The text of the page."""
    count = sum(map(len, SECTIONS.values()))
    every = link("ONNX operators, one by one", "../operators.md")
    adding = link("Add an operator", "../tutorial/4-add-an-operator.md")
    return page(
        "ONNX operators",
        f"abele imports {count} operators of the domain `ai.onnx`, of opsets {OPSETS[0]} to "
        f"{OPSETS[-1]}, with the meaning that ONNX gives them. If a node uses a form that abele "
        "does not support, such as an attribute or a type, the error names the node and the forms "
        f"that are supported. {every} lists every operator of ONNX with what is refused of it.",
        table(
            ("operators", "names"),
            ((kind, _names(operators)) for kind, operators in SECTIONS.items()),
        ),
        f"Of the operators that onnxruntime adds, it imports {_names(RUNTIMES_OPERATORS)} of the "
        f"domain `ai.onnx`, and {_names(CONTRIBUTED)} of the domain `{CONTRIBUTED_DOMAIN}`.",
        "Of ONNX's other domains, it imports "
        + ", and ".join(
            f"{_names(DOMAINS[domain])} of `{domain}`"
            for domain in sorted(DOMAINS)
            if _is_other(domain)
        )
        + ".",
        "Operators that ONNX defines by a function body, and functions of a model, are inlined if "
        "abele imports what their bodies use.",
        "You can add an operator in a file of your own, also in the domain `ai.onnx`: "
        '`@onnx_operator("Erf")` makes a function its importer, and `--load` loads the file. '
        f"{adding} shows it from the importer to the price. An operation of your own dialect needs "
        "no importer: a node `Softsign` of the domain `mine` is the operation `mine.Softsign`, and "
        '`ModelCall("com.example.Softsign", SoftsignOp)` gives it another name.',
    )
