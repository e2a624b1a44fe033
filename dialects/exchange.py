"""When and at which address: supersteps of sync, exchange and compute on the bytes of tiles."""

from __future__ import annotations

from xdsl.dialects.builtin import (
    I64,
    IntegerAttr,
    StringAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.ir import Dialect
from xdsl.irdl import OpTraits, irdl_op_definition, lazy_traits_def, prop_def, traits_def
from xdsl.traits import HasParent, NoTerminator, SymbolOpInterface
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
from .superstep import Superstep, Sync


def _in_a_superstep() -> OpTraits:
    """The trait of what stands in supersteps only."""
    return lazy_traits_def(lambda: (HasParent(SuperstepOp),))


@irdl_op_definition
class VariableOp(Variable):
    """Bytes at one address on every tile of a layout.

    address: of its block's first byte on each tile, a multiple of 8 from 0.

    Example: exchange.variable @conv1 at 4096 : tensor<1x96xf32> layout <[96 by 6] (d0) of [96]>
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
class SyncOp(Sync):
    """Example: exchange.sync "internal"."""

    name = "exchange.sync"
    assembly_format = "$zone attr-dict"
    traits = _in_a_superstep()


@irdl_op_definition
class MoveOp(Copy):
    """Messages that fill a variable. Example: exchange.move [@image] -> @conv1.in"""

    name = "exchange.move"
    assembly_format = "$reads `->` $writes (`moves` $moves^)? attr-dict"
    traits = _in_a_superstep()


@irdl_op_definition
class ComputeOp(Vertices):
    """One codelet on every cell, on the bytes of its own tile.

    Example: exchange.compute space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
    plan <split [6]> reads [@x] writes @y
    """

    name = "exchange.compute"
    assembly_format = (
        "`space` $space `body` $body `plan` $plan `reads` $reads `writes` $writes attr-dict"
    )
    traits = _in_a_superstep()


@irdl_op_definition
class InputOp(HostInput):
    """Example: exchange.input "image" -> @image : tensor<1x3x224x224xf32>"""

    name = "exchange.input"
    assembly_format = "$host_name `->` $writes `:` $tensor attr-dict"
    traits = _in_a_superstep()


@irdl_op_definition
class OutputOp(HostOutput):
    """Example: exchange.output @prob -> "prob" : tensor<1x1000xf32>"""

    name = "exchange.output"
    assembly_format = "$reads `->` $host_name `:` $tensor attr-dict"
    traits = _in_a_superstep()


@irdl_op_definition
class SuperstepOp(Superstep):
    """Sync, then exchange, then compute.

    Its moves happen at once and read nothing they write; its vertices may read what was
    delivered.

    Example:
        exchange.superstep @relu1 {
          exchange.sync "internal"
          exchange.move [@image] -> @x
          exchange.compute space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }
    """

    name = "exchange.superstep"
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())


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
