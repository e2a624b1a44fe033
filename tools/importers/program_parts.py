"""What the modules of lengths and padding read of the program that is being built, and add to it.

The builders of `building.py` use these modules for each operation that they add, so the modules
know the builders by what they do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import nn
from ...ir.support.arrays import Array
from .errors import NotConstantError
from .lengths import Length

T = TypeVar("T", bound=Operation)

Sizes = Mapping[int, Length]
"""The number of elements that exist along axes with padding, by axis. The size of the axis in the
type is the largest possible number.
"""


class Program(Protocol):
    """The program so far. A ProgramBuilder is one, and describes the attributes."""

    main: Block
    sizes: dict[SSAValue, Sizes]
    lengths: dict[SSAValue, NDArray[np.object_] | None]
    counts: dict[tuple[Block, SSAValue], Length]
    held_lengths: dict[tuple[Block, Length], SSAValue]

    @property
    def body(self) -> Block:
        """The block to which nodes add operations."""
        ...

    def known(self, value: SSAValue, /) -> Array | None:
        """The elements of a value, if they are known at import; None if not."""
        ...


class Node(Protocol):
    """A node whose operations are added to the program. A NodeBuilder is one."""

    @property
    def program(self) -> Program:
        """The program so far."""
        ...

    def add(self, op: nn.PureTensorOp | nn.ConstantOp) -> SSAValue:
        """Append an operation, keep the padding of its operands out, and return its result."""
        ...

    def append(self, op: T) -> T:
        """Append an operation whose results say nothing of padding, and return it."""
        ...

    def constant(self, value: float, like: SSAValue) -> SSAValue:
        """Append a constant without axes, of the element type of another value."""
        ...

    def emitted(self, array: Array, like: SSAValue | None = None) -> SSAValue:
        """An array as a constant of the program, of the element type of another value."""
        ...

    def cast(self, value: SSAValue, element: Attribute) -> SSAValue:
        """The value in another element type."""
        ...

    def reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value in another shape."""
        ...

    def bare_reshape(self, value: SSAValue, shape: Sequence[int]) -> SSAValue:
        """The value in another shape, without regard to padding."""
        ...

    def size_refused(self, what: str, *lengths: Length) -> NotConstantError:
        """Return an error for a size that depends on values, where the node needs a fixed one."""
        ...
