"""The size of a block of a matrix, as users write it."""

from __future__ import annotations

import re

from .errors import InputError


def read_block(text: str) -> tuple[int, int]:
    """The height and width of HEIGHTxWIDTH. Raises InputError."""
    sides = re.fullmatch(r"([1-9]\d{0,5})x([1-9]\d{0,5})", text)
    if sides is None:
        raise InputError(f"block {text!r}; need HEIGHTxWIDTH, such as 16x16")
    return int(sides[1]), int(sides[2])
