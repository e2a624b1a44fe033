"""Fields of operations, without xDSL's views of them.

xDSL makes a new object each time that somebody asks an operation for its operands or successors.
Verifying a program asks each operation several times after every pass.
"""

from __future__ import annotations

from xdsl.ir import Block, Operation, SSAValue


def operands_of(op: Operation) -> tuple[SSAValue, ...]:
    """The operands of an operation."""
    return op._operands  # pyright: ignore[reportPrivateUsage]


def successors_of(op: Operation) -> tuple[Block, ...]:
    """The successors of an operation."""
    return op._successors  # pyright: ignore[reportPrivateUsage]
