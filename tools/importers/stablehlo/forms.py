"""The forms in which a program of StableHLO is stored: generic text, pretty text and bytecode.

abele reads generic text itself. The other two are turned into it by jaxlib, where it is installed.
"""

from __future__ import annotations

import re

from ....ir.support.errors import InputError

BYTECODE = b"ML\xefR"
"""The first bytes of a file of MLIR's bytecode."""

_NAMED = re.compile(rb"\b(?:stablehlo|chlo|vhlo)\.[a-z]")
"""An operation or an attribute of StableHLO."""

_PRETTY = re.compile(
    r"^[ \t]*(?:module\b|(?:%[^=\n]*=[ \t]*)?(?:stablehlo|chlo)\.\w)", re.MULTILINE
)
"""A line that only MLIR's own parser reads."""

HOW_TO_PRINT = (
    'python -c "import sys; from jax._src.interpreters import mlir; from jaxlib.mlir import ir; '
    "c = mlir.make_ir_context(); m = ir.Module.parse(open(sys.argv[1], 'rb').read(), c); "
    'print(m.operation.get_asm(print_generic_op_form=True, enable_debug_info=True))" '
)
"""The command that prints generic form, before the name of a file."""


def is_stablehlo(data: bytes) -> bool:
    """Whether the bytes of a file are a program of StableHLO."""
    return data.startswith(BYTECODE) or _NAMED.search(data) is not None


def generic_text(data: bytes, place: str) -> str:
    """The generic text of a program in any form.

    Raises InputError for a form that needs jaxlib where it is not installed.

    Args:
        place: the program's name in messages.
    """
    if data.startswith(BYTECODE):
        return _by_jaxlib(data, place, "bytecode")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{place}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
    return _by_jaxlib(data, place, "pretty text") if _PRETTY.search(text) else text


def _by_jaxlib(data: bytes, place: str, form: str) -> str:
    """The generic text of a program, printed by jaxlib."""
    raise InputError(
        f"{place}: {form} of StableHLO; abele reads its generic form, which jax prints: "
        f"{HOW_TO_PRINT}{place} > generic.mlir"
    )
