"""Calls of compiled kernels."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..codelets.calls import Array, address
from ..codelets.stamps import Table


class KernelCall:
    """A call of a kernel with its tables.

    kept: objects that must live as long as the call, such as the arrays that its tables hold the
    addresses of.
    """

    __slots__ = ("_arguments", "_kept", "_kernel")

    def __init__(
        self, kernel: Callable[..., None], arguments: Sequence[Array | int], kept: Sequence[object]
    ) -> None:
        self._kernel = kernel
        self._arguments = arguments
        self._kept = kept

    def __call__(self) -> None:
        """Run the kernel."""
        self._kernel(*self._arguments)


def table_address(table: Table) -> int:
    """The address of a table for a kernel that reads it there."""
    assert table.dtype == np.int64
    assert table.flags.c_contiguous
    return address(table)
