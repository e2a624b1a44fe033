"""A class of mistakes in the output of a pass: the places of a program where it can be made."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from xdsl.ir import Attribute, Operation

from ....ir.upstream import ModuleOp

Break = Callable[[], None]
"""Breaks a program in one place. Raises ValueError if the broken program cannot be represented."""

Sites = Callable[[ModuleOp], Iterator[Break]]
"""The places of a program where a class of mistakes can be made, in program order."""


@dataclass(frozen=True)
class ResultClass:
    """A class of mistakes.

    Attributes:
        line: a one-line description.
    """

    name: str
    line: str
    sites: Sites


def set_property(op: Operation, name: str, value: Attribute) -> None:
    """Give a property of an operation another value."""
    op.properties[name] = value
