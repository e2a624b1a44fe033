"""The forms in which a program of StableHLO is stored: generic text, pretty text and bytecode.

abele reads generic text itself, and the other two through jaxlib.
"""

from __future__ import annotations

import re
from pathlib import Path

from ....ir.support.errors import InputError
from .print_generic import BYTECODE, bytecode_of
from .through_jaxlib import by_jaxlib

FLAT = 64
"""The bytes at the beginning of a FlatBuffer that have a 0 among them, as no text does."""

_NAMED = re.compile(rb"\b(?:stablehlo|chlo|vhlo)\.[a-z]")
"""An operation or an attribute of StableHLO."""

_PRETTY = re.compile(
    r"^[ \t]*(?:module\b|(?:%[^=\n]*=[ \t]*)?(?:stablehlo|chlo)\.\w)", re.MULTILINE
)
"""A line that only MLIR's own parser reads."""


def is_stablehlo(data: bytes) -> bool:
    """Whether the bytes of a file are a program of StableHLO."""
    return is_bytecode(data) or _NAMED.search(data) is not None


def is_bytecode(data: bytes) -> bool:
    """Whether data are MLIR's bytecode, or the FlatBuffer of jax.export, which holds some."""
    return data.startswith(BYTECODE) or (b"\0" in data[:FLAT] and bool(bytecode_of(data)))


def generic_text(data: bytes, place: str, file: Path | None = None) -> str:
    """The generic text of a program in any form.

    Raises InputError for a form that needs jaxlib where it is not installed.

    Args:
        place: the program's name in messages.
        file: the file that has the data; None if none has.
    """
    if is_bytecode(data):
        return by_jaxlib(data, place, "bytecode of MLIR", file)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise InputError(f"{place}:{line}: byte 0x{data[error.start]:02x} is not UTF-8") from None
    if _PRETTY.search(text):
        return by_jaxlib(data, place, "StableHLO in MLIR's pretty form", file)
    return text
