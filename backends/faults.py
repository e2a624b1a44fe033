"""What a run raises when the program is at fault."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from ..ir.support.deferred import deferred
from ..ir.support.errors import InputError

with deferred(__name__):
    from xdsl.ir import Operation

    from ..ir.provenance import origin, place


class IterationLimit(RuntimeError):
    """Raised if a run takes more iterations and calls than are allowed."""


class MachineFault(Exception):
    """Raised if a program does what the machine cannot do, or must not do.

    Attributes:
        superstep, op, variable: the names of those concerned; "" for none.
        tile, addresses: the first tile concerned, and the range of its bytes, end excluded.
        node: the framework's node, if it is known.
    """

    def __init__(
        self,
        message: str,
        *,
        superstep: str | None = None,
        op: str | None = None,
        variable: str | None = None,
        tile: int | None = None,
        addresses: tuple[int, int] | None = None,
        node: str | None = None,
    ) -> None:
        super().__init__(message)
        self.superstep = superstep
        self.op = op
        self.variable = variable
        self.tile = tile
        self.addresses = addresses
        self.node = node


class IndexFault(InputError):
    """Raised if an index operand names an element that its axis does not have.

    Attributes:
        value: the index that is wrong.
        position: the position of this index in its operand.
        size: the number of elements of the axis; indices -size..size-1 are legal.
        operation: the name of the operation; "" until it is known.
        node: the name of the framework's node; "" until it is known.
    """

    def __init__(
        self,
        value: int,
        position: tuple[int, ...],
        size: int,
        operation: str = "",
        node: str = "",
    ) -> None:
        at = f" at {list(position)}" if position else ""
        super().__init__(
            f"{operation}: index {value}{at} of an axis of {size} elements; "
            f"need {-size}..{size - 1}"
            if size
            else f"{operation}: index {value}{at} of an axis without elements; need no index"
        )
        self.value = value
        self.position = position
        self.size = size
        self.operation = operation
        self.node = node

    def of(self, op: Operation) -> IndexFault:
        """The same fault, which names an operation and where it comes from."""
        name = f"{op.name} at {place(op)}"
        return IndexFault(self.value, self.position, self.size, name, origin(op) or "")


@contextmanager
def naming_index_faults(op: Operation) -> Generator[None]:
    """Let faults raised in the block name an operation, unless they name one already."""
    try:
        yield
    except IndexFault as fault:
        if fault.operation:
            raise
        raise fault.of(op) from None
