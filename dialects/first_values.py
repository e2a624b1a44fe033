"""The first values of the states of a program of any level."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Operation

from ..ir.upstream import ModuleOp
from .blob_attr import BlobAttr
from .variable import Variable

PROPERTIES = ("value", "initial")
"""The properties with the first value of a state: of nn, and of the levels below."""


@dataclass(frozen=True)
class FirstValue:
    """The first value of a state.

    Attributes:
        op: the state.
        key: the property that holds the value.
    """

    op: Operation
    key: str

    @property
    def name(self) -> str:
        """The name of the state."""
        return cast("StringAttr", self.op.properties["sym_name"]).data

    @property
    def blob(self) -> BlobAttr:
        """The value."""
        return cast("BlobAttr", self.op.properties[self.key])

    def set(self, value: BlobAttr) -> None:
        """Replace the value by another of the same shape and element type."""
        self.op.properties[self.key] = value


def first_values(module: ModuleOp) -> Iterator[FirstValue]:
    """The first value of each state. Constants have a value, but are none."""
    for op in module.body.block.ops:
        if not isinstance(op.properties.get("sym_name"), StringAttr):
            continue
        if isinstance(op, Variable) and op.state is None:
            continue
        for key in PROPERTIES:
            if isinstance(op.properties.get(key), BlobAttr):
                yield FirstValue(op, key)
