"""When and at which address: supersteps of sync, exchange and compute on the bytes of tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.traits import NoTerminator, SymbolOpInterface
from xdsl.utils.exceptions import VerifyException

from ..ir.geometry.layout import Layout
from .abele import LayoutAttr
from .blob_attr import BlobAttr
from .program import (
    ALIGNMENT,
    Copy,
    HostInput,
    HostOutput,
    ReadPredicate,
    Variable,
    Vertices,
)

SYNC_ZONES = ("internal", "external")
"""internal: the tiles of one chip; external: the host takes part."""


@irdl_op_definition
class VariableOp(Variable):
    """Bytes at one address on every tile of a layout.

    Example: exchange.variable @conv1 at 4096 : tensor<1x96xf32> layout<...>
    """

    name = "exchange.variable"
    address = prop_def(IntegerAttr[I64])
    assembly_format = (
        "$sym_name `at` $address `:` $tensor `layout` $layout "
        "(`state` $state^)? (`=` `blob` $initial^)? attr-dict"
    )
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        address: int,
        tensor: TensorType,
        layout: Layout,
        initial: BlobAttr | None = None,
        state: bool = False,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "address": IntegerAttr(address, i64),
                "tensor": tensor,
                "layout": LayoutAttr(layout),
                "initial": initial,
                "state": UnitAttr() if state else None,
            }
        )

    @property
    def start(self) -> int:
        """The address of its first byte on each tile."""
        return self.address.value.data

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        super().verify_()
        if self.start < 0 or self.start % ALIGNMENT:
            raise VerifyException(
                f"@{self.symbol}: address {self.start}; need a multiple of {ALIGNMENT} from 0"
            )


@irdl_op_definition
class SyncOp(IRDLOperation):
    """All tiles of the zone wait for each other. Example: exchange.sync "internal"."""

    name = "exchange.sync"
    zone = prop_def(StringAttr)
    assembly_format = "$zone attr-dict"

    def __init__(self, zone: str):
        super().__init__(properties={"zone": StringAttr(zone)})

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        if self.zone.data not in SYNC_ZONES:
            raise VerifyException(
                f'sync zone "{self.zone.data}"; need one of {", ".join(SYNC_ZONES)}'
            )


@irdl_op_definition
class MoveOp(Copy):
    """Messages that fill a variable. Example: exchange.move [@image] -> @conv1.in"""

    name = "exchange.move"
    assembly_format = "$reads `->` $writes (`moves` $moves^)? attr-dict"


@irdl_op_definition
class ComputeOp(Vertices):
    """One codelet on every cell, on the bytes of its own tile.

    Example: exchange.compute space<...> body<relu> plan<...> reads [@x]
    writes @y
    """

    name = "exchange.compute"
    assembly_format = (
        "`space` $space `body` $body `plan` $plan `reads` $reads `writes` $writes attr-dict"
    )


@irdl_op_definition
class InputOp(HostInput):
    """Example: exchange.input "image" -> @image : tensor<1x3x224x224xf32>"""

    name = "exchange.input"
    assembly_format = "$host_name `->` $writes `:` $tensor attr-dict"


@irdl_op_definition
class OutputOp(HostOutput):
    """Example: exchange.output @prob -> "prob" : tensor<1x1000xf32>"""

    name = "exchange.output"
    assembly_format = "$reads `->` $host_name `:` $tensor attr-dict"


@irdl_op_definition
class SuperstepOp(IRDLOperation):
    """Sync, then exchange, then compute.

    Its moves happen at once and read nothing they write; its vertices may read what was
    delivered.
    Example: exchange.superstep @conv1 { exchange.sync "internal" ... }
    """

    name = "exchange.superstep"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, ops: Sequence[Operation]):
        super().__init__(properties={"sym_name": StringAttr(name)}, regions=[Region(Block(ops))])

    def verify_(self) -> None:
        """Check what can be seen without other operations."""
        rank: dict[type[Operation], int] = {
            SyncOp: 0,
            InputOp: 1,
            MoveOp: 1,
            OutputOp: 1,
            ComputeOp: 2,
        }
        kinds = [rank.get(type(op), -1) for op in self.body.block.ops]
        if -1 in kinds or kinds != sorted(kinds) or kinds[:1] != [0] or kinds.count(0) != 1:
            raise VerifyException(
                "a superstep is one sync, then moves and host traffic, then compute"
            )


@irdl_op_definition
class ReadOp(ReadPredicate):
    """Example: %c = exchange.read @more : i1"""

    name = "exchange.read"
    assembly_format = "$variable attr-dict `:` type($result)"


Exchange = Dialect(
    "exchange",
    [VariableOp, SyncOp, MoveOp, ComputeOp, InputOp, OutputOp, SuperstepOp, ReadOp],
    [],
)
