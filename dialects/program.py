"""What the two program levels share: variables, vertex sets, copies, predicates, the host.

`tile` and `exchange` both speak of variables that lie on tiles; an exchange variable has an
address besides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from math import prod
from typing import Any, TypeVar

import numpy as np
from xdsl.dialects.builtin import (
    ArrayAttr,
    ModuleOp,
    StringAttr,
    SymbolNameConstraint,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i1,
)
from xdsl.ir import Operation
from xdsl.irdl import IRDLOperation, opt_prop_def, prop_def, result_def
from xdsl.utils.exceptions import VerifyException

from ..ir.geometry.layout import Layout
from ..ir.geometry.space import Space
from ..ir.provenance import place
from ..ir.walk import operations
from . import partition
from .abele import BodyAttr, LayoutAttr, Plan, PlanAttr, SpaceAttr, verify_chain
from .blob_attr import BlobAttr
from .dtypes import numpy_dtype
from .partition import PartitionTensor, access_layout, verify_cut, verify_moves
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
    plan: how the space is cut over tiles, in parallel dimensions only, and over workers; combine
    is not set. reads: one variable an operand of the space, in the layout that the plan needs.
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
    same element type. moves: one space a variable read, from its tensor to the one written
    (transpose, concat, slice, pad, ...); without it the one variable is taken as it is, row-major.
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


def verify_symbols(module: ModuleOp) -> None:
    """Check that every variable an operation names is there and lies as the operation needs.

    Raises VerifyException naming the operation, the variable and what is wrong.
    """
    ops = module.body.block.ops
    declared = _Declared(
        {op.symbol: op for op in ops if isinstance(op, Variable)},
        {op.sym_name.data: op.type for op in ops if isinstance(op, partition.StateOp)},
    )
    for op in operations(module):
        check = _check_of(type(op))
        if check is None:
            continue
        try:
            check(op, declared)
        except VerifyException as error:
            raise VerifyException(f"{op.name} at {place(op)}: {error}") from None


@dataclass(frozen=True)
class _Declared:
    """What operations name: variables and states."""

    variables: Mapping[str, Variable]
    states: Mapping[str, PartitionTensor]


def _named(name: str, known: Mapping[str, T], what: str) -> T:
    if name not in known:
        raise VerifyException(f"no {what} @{name}")
    return known[name]


def verify_use(op: Vertices | Copy, variables: Mapping[str, Variable]) -> None:
    """Check an operation against the variables that it names. Raises VerifyException."""
    sources = [_named(n, variables, "variable") for n in op.sources]
    destination = _named(op.destination, variables, "variable")
    if isinstance(op, Vertices):
        verify_chain(op.body.data.then, destination.tensor.element_type)
        for variable, need in zip((*sources, destination), op.layouts(), strict=True):
            if variable.placed != need:
                raise VerifyException(
                    f"@{variable.symbol} has layout {LayoutAttr(variable.placed).text()}; the "
                    f"split needs {LayoutAttr(need).text()}"
                )
        return
    verify_moves(op.moves, [v.placed.shape for v in sources], destination.placed.shape)
    for v in sources:
        if v.dtype != destination.dtype:
            raise VerifyException(f"copies {v.dtype} @{v.symbol} into {destination.dtype}")
        if not v.placed.is_partition:
            raise VerifyException(f"blocks of @{v.symbol} overlap: elements have no one owner")


def _verify_program(op: Vertices | Copy, declared: _Declared) -> None:
    verify_use(op, declared.variables)


def _verify_host(op: HostInput | HostOutput, declared: _Declared) -> None:
    name = (op.writes if isinstance(op, HostInput) else op.reads).string_value()
    variable = _named(name, declared.variables, "variable")
    if prod(op.tensor.get_shape()) != prod(variable.placed.shape):
        raise VerifyException(f"@{name} is {variable.tensor}; the host's tensor is {op.tensor}")
    if op.tensor.element_type != variable.tensor.element_type:
        raise VerifyException(f"@{name} is {variable.tensor}; the host's tensor is {op.tensor}")


def _verify_predicate(op: ReadPredicate, declared: _Declared) -> None:
    variable = _named(op.variable.string_value(), declared.variables, "variable")
    if variable.dtype != np.bool_ or prod(variable.placed.shape) != 1:
        raise VerifyException(f"@{variable.symbol} is {variable.tensor}; need a single i1")


def _verify_state(op: partition.LoadOp | partition.StoreOp, declared: _Declared) -> None:
    value = op.result if isinstance(op, partition.LoadOp) else op.value
    type_ = _named(op.state.string_value(), declared.states, "state")
    if value.type != type_:
        raise VerifyException(f"{op.state} is {type_}; the operation says {value.type}")


_CHECKS: dict[type[Operation], Callable[[Any, _Declared], None]] = {
    Vertices: _verify_program,
    Copy: _verify_program,
    HostInput: _verify_host,
    HostOutput: _verify_host,
    ReadPredicate: _verify_predicate,
    partition.LoadOp: _verify_state,
    partition.StoreOp: _verify_state,
}
"""What has to hold between an operation and what it names."""


@cache
def _check_of(kind: type[Operation]) -> Callable[[Any, _Declared], None] | None:
    return next((check for known, check in _CHECKS.items() if issubclass(kind, known)), None)
