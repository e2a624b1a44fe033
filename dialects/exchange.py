"""Bytes at addresses, and when messages leave: the program that the machine runs.

The level `exchange` is the level `tile` with three things decided. Each variable has an address,
every operation is in a superstep, and a move may say in which order its messages leave.
"""

from __future__ import annotations

from xdsl.dialects.builtin import I64, IntegerAttr, StringAttr, TensorType, UnitAttr, i64
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, prop_def, traits_def
from xdsl.traits import SymbolOpInterface

from ..ir.geometry.layout import Layout
from ..ir.upstream import VerifyException
from ..ir.xdsl.verified_by_form import verified_by_form
from .abele import LayoutAttr
from .blob_attr import BlobAttr
from .steps import (
    Copy,
    Input,
    Load,
    Output,
    Read,
    Remote,
    Store,
    Superstep,
    Sync,
    Vertices,
)
from .variable import ALIGNMENT, Variable


@irdl_op_definition
class VariableOp(Variable):
    """Bytes at one address on every tile of a layout.

    Example: exchange.variable @conv1 at 4096 : tensor<1x96xf32> layout <[96 by 6] (d0) of [96]>

    Attributes:
        address: of the first byte of its block, the same on each tile; a multiple of 8 from 0.
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
class RemoteOp(Remote):
    """A state in remote memory: memory beside the chips, which no tile computes on.

    Example: exchange.remote @w : tensor<96xf32> = blob <"39296d74...">
    """

    name = "exchange.remote"


@irdl_op_definition
class SuperstepOp(Superstep):
    """A sync, then moves and host traffic, then computations.

    All moves happen at once, and so do all computations. Moves follow each other on the lanes of a
    tile as they follow each other in the text.

    Example:
        exchange.superstep @relu1 {
          exchange.sync "internal"
          exchange.move [@image] -> @x
          exchange.compute space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }
    """

    name = "exchange.superstep"


@irdl_op_definition
class SyncOp(Sync):
    """Tiles wait for each other.

    The tiles of all chips of a group wait for each other. On a chip of no group that takes part in
    the superstep, the tiles wait only for each other.

    Example: exchange.sync "all" of <[0 to 3] times 16 apart 4>
    """

    name = "exchange.sync"


@irdl_op_definition
class MoveOp(Copy):
    """Fill a variable with the elements of others, on all tiles at once, padding included.

    Its messages leave in an order that a pass decides. The bytes are the same in any order; what
    differs is when each message leaves, and so the cycles of the exchange.

    Example: exchange.move [@image] -> @conv1.in order <(sign(d0 - s0), s0)> chunk 256
    """

    name = "exchange.move"


@irdl_op_definition
class InputOp(Input):
    """The host writes a run's input into a variable.

    Example: exchange.input "image" -> @image : tensor<1x3x224x224xf32>
    """

    name = "exchange.input"


@irdl_op_definition
class OutputOp(Output):
    """The host reads a result of the run from a variable.

    Example: exchange.output @prob -> "prob" : tensor<1x1000xf32>
    """

    name = "exchange.output"


@irdl_op_definition
class LoadOp(Load):
    """Fill a variable with what a state in remote memory holds.

    Example: exchange.load @w -> @w.loaded : tensor<96xf32>
    """

    name = "exchange.load"


@irdl_op_definition
class StoreOp(Store):
    """Let a state in remote memory hold what a variable holds.

    Example: exchange.store @w.new -> @w : tensor<96xf32>
    """

    name = "exchange.store"


@irdl_op_definition
class ComputeOp(Vertices):
    """One codelet on every cell of a split: which blocks it reads and writes.

    Example: exchange.compute space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
    plan <split [6]> reads [@x] writes @y
    """

    name = "exchange.compute"


@irdl_op_definition
class ReadOp(Read):
    """The single i1 that a variable holds, for the control program.

    Example: %c = exchange.read @more : i1
    """

    name = "exchange.read"


Exchange = Dialect(
    "exchange",
    [
        VariableOp,
        RemoteOp,
        SuperstepOp,
        SyncOp,
        MoveOp,
        InputOp,
        OutputOp,
        LoadOp,
        StoreOp,
        ComputeOp,
        ReadOp,
    ],
    [],
)
verified_by_form(*Exchange.operations)
