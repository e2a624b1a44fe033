"""What is around an operation."""

from __future__ import annotations

from collections.abc import Container

from xdsl.dialects.func import FuncOp
from xdsl.ir import Block, Operation


def nearest(op: Operation, known: Container[Operation]) -> Operation | None:
    """The operation, or the nearest one around it, that is among known ones; None if none is."""
    outer: Operation | None = op
    while outer is not None and outer not in known:
        outer = outer.parent_op()
    return outer


def in_block(op: Operation, block: Block) -> Operation | None:
    """The operation of a block that an operation is, or lies in; None if there is none."""
    outer: Operation | None = op
    while outer is not None and outer.parent is not block:
        outer = outer.parent_op()
    return outer


def function_around(op: Operation) -> FuncOp | None:
    """The function that an operation is in; None if it is in none. A function is in itself."""
    outer: Operation | None = op
    while outer is not None and not isinstance(outer, FuncOp):
        outer = outer.parent_op()
    return outer
