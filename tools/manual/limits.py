"""The page of limits: the counted things, the allowed numbers, and the ways to change them."""

from __future__ import annotations

from ...ir.support.limits import LIMITS
from .markdown import code, link, page, plain, table


def limits_page() -> str:
    """The text of the page."""
    return page(
        "Limits",
        f"Defined in {link(code('ir/support/limits.py'), '../../ir/support/limits.py')}.",
        "Some input would take forever, or all memory. abele refuses it with a message that names "
        "the limit. Each limit has an environment variable, which holds another number: "
        f"{code('ABELE_MOST_TURNS=50000000 abele run net.onnx')}.",
        table(
            ("limit", "allowed", "environment variable", "what it counts"),
            (
                (limit.name, f"{limit.default:,}", code(limit.variable), plain(limit.meaning))
                for limit in LIMITS
            ),
        ),
    )
