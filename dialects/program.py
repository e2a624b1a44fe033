"""What programs of `tile` and `exchange` are made of: variables, vertices, copies, the host.

The operations of `tile` are built on these classes; `exchange.variable` is a Variable with an
address.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
)
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from ..ir.geometry.layout import Layout
from ..ir.geometry.space import Space
from .abele import BodyAttr, LayoutAttr, Plan, PlanAttr, SpaceAttr
from .blob_attr import BlobAttr
from .dtypes import numpy_dtype
from .partition import access_layout, verify_cut
from .structured import Structure

T = TypeVar("T")

ALIGNMENT = 8
"""Bytes; every variable begins and ends at a multiple, for loads of 64 bits."""


def bytes_per_tile(layout: Layout, itemsize: int) -> int:
    """Bytes on each of a layout's tiles, alignment included. itemsize: bytes of an element."""
    return -(-layout.block_elements * itemsize // ALIGNMENT) * ALIGNMENT


class Variable(IRDLOperation):
    """What lies on tiles under one name: a tensor, its layout, perhaps its first value.

    sym_name: what operations call it. tensor: its shape and element type. layout: which block of
    it lies on which tile; it views the elements row-major, perhaps in another shape. initial: what
    it holds before the first run. state: it keeps its value from run to run; with initial alone it
    is a constant.
    """

    sym_name = prop_def(SymbolNameConstraint())
    tensor = prop_def(TensorType)
    layout = prop_def(LayoutAttr)
    initial = opt_prop_def(BlobAttr)
    state = opt_prop_def(UnitAttr)

    @property
    def symbol(self) -> str:
        """The variable's name."""
        return self.sym_name.data

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of its elements."""
        return numpy_dtype(self.tensor.element_type)

    @property
    def placed(self) -> Layout:
        """Its layout."""
        return self.layout.data

    @property
    def bytes_per_tile(self) -> int:
        """Bytes on each of its tiles, alignment included."""
        return bytes_per_tile(self.placed, self.dtype.itemsize)

    @property
    def is_resident(self) -> bool:
        """True if it holds its value before and after every run: state and constants."""
        return self.state is not None or self.initial is not None

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if prod(self.placed.shape) != prod(self.tensor.get_shape()):
            raise VerifyException(
                f"@{self.symbol}: layout of {list(self.placed.shape)} for a tensor of "
                f"{list(self.tensor.get_shape())}"
            )
        try:
            _ = self.dtype
        except ValueError as error:
            raise VerifyException(f"@{self.symbol}: {error}") from None
        if self.initial is not None and (
            self.initial.array.dtype != self.dtype
            or self.initial.array.size != prod(self.tensor.get_shape())
        ):
            raise VerifyException(
                f"@{self.symbol}: initial value of {self.initial.array.dtype} "
                f"{list(self.initial.array.shape)} for {self.tensor}"
            )


class Vertices(IRDLOperation):
    """One codelet on every cell of a split: which blocks it reads and writes.

    space: where each point reads and writes; it has one result. body: what happens at each point.
    plan: how the space is split over tiles, in parallel dimensions only, and over workers; combine
    is not set. reads: one variable per operand of the space, in the layout that the plan needs.
    writes: the variable of the result, in the layout that the plan needs.
    """

    space = prop_def(SpaceAttr)
    body = prop_def(BodyAttr)
    plan = prop_def(PlanAttr)
    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr)

    def __init__(self, structure: Structure, plan: Plan, reads: Sequence[str], writes: str):
        super().__init__(
            properties={
                "space": SpaceAttr(structure.space),
                "body": BodyAttr(structure.body),
                "plan": PlanAttr(plan),
                "reads": references(reads),
                "writes": SymbolRefAttr(writes),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read, one an operand."""
        return symbols(self.reads)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()

    def structure(self) -> Structure:
        """The space and the body."""
        return Structure(self.space.data, self.body.data)

    def layouts(self) -> tuple[Layout, ...]:
        """The layouts that operands and, last, the result must have."""
        return _layouts(self.space.data, self.plan.data)

    def overwritable(self) -> frozenset[str]:
        """The variables that the result may be written over, both from the same address on, if
        their elements are as wide and nothing else needs what they held."""
        reads, structure = list(enumerate(self.sources)), self.structure()
        apart = {name for i, name in reads if not structure.reads_in_place(i)}
        return frozenset(name for _, name in reads) - apart

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        verify_cut(self.structure(), self.plan.data)
        if len(self.space.data.operands) != len(self.reads) or len(self.space.data.results) != 1:
            raise VerifyException(
                f"reads {len(self.reads)} variables for a space of "
                f"{len(self.space.data.operands)} operands and "
                f"{len(self.space.data.results)} results"
            )


@lru_cache(maxsize=4096)
def _layouts(space: Space, plan: Plan) -> tuple[Layout, ...]:
    """The layouts that a split needs: each is asked for at every verification."""
    return tuple(access_layout(space, a, plan) for a in (*space.operands, *space.results))


class Copy(IRDLOperation):
    """Fill a variable with the elements of others, on all tiles at once, padding included.

    reads: variables whose layouts give each element one owner. writes: another variable, of the
    same element type. moves: one space per variable that is read, from its tensor to the one
    written (transpose, concat, slice, pad, ...); without it, the only variable is copied as it is,
    row-major.
    """

    reads = prop_def(ArrayAttr[SymbolRefAttr])
    writes = prop_def(SymbolRefAttr)
    moves = opt_prop_def(ArrayAttr[SpaceAttr])

    def __init__(self, reads: Sequence[str], writes: str, moves: Sequence[Space] | None = None):
        super().__init__(
            properties={
                "reads": references(reads),
                "writes": SymbolRefAttr(writes),
                "moves": None if moves is None else ArrayAttr(map(SpaceAttr, moves)),
            }
        )

    @property
    def sources(self) -> list[str]:
        """Names of the variables read."""
        return symbols(self.reads)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()

    @property
    def spaces(self) -> tuple[Space, ...] | None:
        """One move a source; None where the one source is taken as it is."""
        return None if self.moves is None else tuple(m.data for m in self.moves)

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.destination in self.sources:
            raise VerifyException(f"copy of @{self.destination} onto itself")


class HostInput(IRDLOperation):
    """The host writes a run's input into a variable.

    host_name: what the host calls the input. writes: the variable. tensor: the shape at the host,
    of as many elements as the variable, and of its element type.
    """

    host_name = prop_def(StringAttr)
    writes = prop_def(SymbolRefAttr)
    tensor = prop_def(TensorType)

    def __init__(self, host_name: str, writes: str, tensor: TensorType):
        super().__init__(
            properties={
                "host_name": StringAttr(host_name),
                "writes": SymbolRefAttr(writes),
                "tensor": tensor,
            }
        )


class HostOutput(IRDLOperation):
    """The host reads a result of the run from a variable.

    reads: the variable. host_name: what the host calls the result. tensor: the shape at the host,
    of as many elements as the variable, and of its element type.
    """

    reads = prop_def(SymbolRefAttr)
    host_name = prop_def(StringAttr)
    tensor = prop_def(TensorType)

    def __init__(self, reads: str, host_name: str, tensor: TensorType):
        super().__init__(
            properties={
                "reads": SymbolRefAttr(reads),
                "host_name": StringAttr(host_name),
                "tensor": tensor,
            }
        )


class ReadPredicate(IRDLOperation):
    """The single i1 that a variable holds, for the control program.

    variable: of one element, an i1.
    """

    variable = prop_def(SymbolRefAttr)
    result = result_def(i1)

    def __init__(self, variable: str):
        super().__init__(properties={"variable": SymbolRefAttr(variable)}, result_types=[i1])


def symbols(references: ArrayAttr[SymbolRefAttr]) -> list[str]:
    """The names of symbol references."""
    return [r.string_value() for r in references]


def references(names: Sequence[str]) -> ArrayAttr[SymbolRefAttr]:
    """Symbol references to names."""
    return ArrayAttr(SymbolRefAttr(n) for n in names)
