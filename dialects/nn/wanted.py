"""What an operation that is drawn at random should have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute


@dataclass(frozen=True)
class Wanted:
    """What a class method `sample` is asked for.

    A class of operations has this method if its attributes fit each other only when they are drawn
    together. It returns an operation whose operands are arguments of a detached block. It raises
    VerifyException or ValueError if what was drawn does not fit.

    Attributes:
        random: makes all choices.
        sizes: candidate sizes of axes; any if empty.
        first: a type that one of the operands may have; None if they are free.
        elements: the element types that operands may have; any if empty.
    """

    random: Random
    sizes: Sequence[int]
    first: TensorType[Attribute] | None
    elements: Sequence[Attribute]
