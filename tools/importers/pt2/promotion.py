"""The element type to which torch promotes the operands of one operation.

Tensors with axes decide, unless a tensor without axes is of a higher category, or a number of
Python is: float32 times 2 stays float32, and an integer times 0.5 becomes float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, TypeAlias

import numpy as np

from ....ir.support.number_kinds import is_floating
from ..lengths import Length

Number: TypeAlias = "bool | int | float"


@dataclass(frozen=True)
class Undecided:
    """Whether a condition on sizes holds, where that depends on the run.

    Attributes:
        length: one of the sizes, for messages.
    """

    length: Length


Size: TypeAlias = "Number | Length | Undecided"
"""What a node that computes with sizes gives: a number, or one that only a run knows."""

Operand: TypeAlias = "Number | tuple[np.dtype[Any], bool]"
"""A number of Python, or a tensor: its dtype, and whether it has axes."""

DEFAULTS = (np.dtype(np.bool_), np.dtype(np.int64), np.dtype(np.float32))
"""The dtypes of Python's numbers, by category."""


def category(dtype: np.dtype[Any]) -> int:
    """0 for truth values, 1 for integers, 2 for floats."""
    return 2 if is_floating(dtype) else 0 if dtype.kind == "b" else 1


def common(a: np.dtype[Any], b: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype that holds the elements of two tensors."""
    if a == b:
        return a
    if category(a) != category(b):
        return max(a, b, key=category)
    if category(a) == 2:
        return DEFAULTS[2] if a.itemsize == b.itemsize else max(a, b, key=lambda d: d.itemsize)
    return np.promote_types(a, b)


def promoted(operands: Sequence[Operand]) -> np.dtype[Any]:
    """The element type in which an operation on these operands computes."""
    groups: list[list[np.dtype[Any]]] = [[], [], []]
    for each in operands:
        if isinstance(each, tuple):
            groups[0 if each[1] else 1].append(each[0])
        else:
            groups[2].append(
                DEFAULTS[0 if isinstance(each, bool) else 1 if isinstance(each, int) else 2]
            )
    found = [reduce(common, group) for group in groups if group]
    best = max(map(category, found))
    return next(each for each in found if category(each) == best)
