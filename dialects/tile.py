"""Which vertex runs on which tile, which copies are needed, and the control program.

Passes write two decisions as attributes. `superstep` is a number on copies, compute sets and host
traffic; neighbours with equal numbers share a superstep. `address`, on variables, is the address of
the first byte of a variable's block on each tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, TensorType, UnitAttr
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.traits import NoTerminator, SymbolOpInterface

from ..ir.geometry.layout import Layout
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
from .variable import Variable


@irdl_op_definition
class VariableOp(Variable):
    """A tensor resident on tiles.

    Example: tile.variable @conv1 : tensor<1x96xf32> layout <[96 by 6] (d0) of [96]>
    """

    name = "tile.variable"
    assembly_format = (
        "$sym_name `:` $tensor `layout` $layout "
        "(`state` $state^)? (`=` `blob` $initial^)? attr-dict"
    )
    traits = traits_def(SymbolOpInterface())

    def __init__(
        self,
        name: str,
        tensor: TensorType,
        layout: Layout,
        initial: BlobAttr | None = None,
        state: bool = False,
    ):
        super().__init__(
            properties={
                "sym_name": StringAttr(name),
                "tensor": tensor,
                "layout": LayoutAttr(layout),
                "initial": initial,
                "state": UnitAttr() if state else None,
            }
        )


@irdl_op_definition
class CopyOp(Copy):
    """Fill a variable with the elements of others, on all tiles at once, padding included.

    Example: tile.copy [@image] -> @conv1.in
    """

    name = "tile.copy"


@irdl_op_definition
class VerticesOp(Vertices):
    """One codelet on every cell of a split: which blocks it reads and writes.

    Example: tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
    plan <split [6]> reads [@x] writes @y
    """

    name = "tile.vertices"


@irdl_op_definition
class ComputeSetOp(IRDLOperation):
    """Vertices that run in one compute phase.

    Example:
        tile.compute_set @relu1 {
          tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }

    Attributes:
        sym_name: what reports call it.
        body: the vertices.
    """

    name = "tile.compute_set"
    sym_name = prop_def(SymbolNameConstraint())
    body = region_def("single_block")
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())

    def __init__(self, name: str, vertices: Sequence[Operation]):
        super().__init__(
            properties={"sym_name": StringAttr(name)}, regions=[Region(Block(vertices))]
        )


@irdl_op_definition
class InputOp(Input):
    """The host writes a run's input into a variable.

    Example: tile.input "image" -> @image : tensor<1x3x224x224xf32>
    """

    name = "tile.input"


@irdl_op_definition
class OutputOp(Output):
    """The host reads a result of the run from a variable.

    Example: tile.output @prob -> "prob" : tensor<1x1000xf32>
    """

    name = "tile.output"


@irdl_op_definition
class RemoteOp(Remote):
    """A state in remote memory: memory beside the chips, which no tile computes on.

    Example: tile.remote @w : tensor<96xf32> = blob <"39296d74...">
    """

    name = "tile.remote"


@irdl_op_definition
class LoadOp(Load):
    """Fill a variable with what a state in remote memory holds.

    Example: tile.load @w -> @w.loaded : tensor<96xf32>
    """

    name = "tile.load"


@irdl_op_definition
class StoreOp(Store):
    """Let a state in remote memory hold what a variable holds.

    Example: tile.store @w.new -> @w : tensor<96xf32>
    """

    name = "tile.store"


@irdl_op_definition
class SyncOp(Sync):
    """Tiles wait for each other.

    The tiles of all chips of a group wait for each other. On a chip of no group that takes part in
    the superstep, the tiles wait only for each other.

    Example: tile.sync "all" of <[0 to 3] times 16 apart 4>
    """

    name = "tile.sync"


@irdl_op_definition
class SuperstepOp(Superstep):
    """A sync, and the copies and vertices that had one `superstep` number.

    Example:
        tile.superstep @relu1 {
          tile.sync "internal"
          tile.copy [@image] -> @x
          tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }
    """

    name = "tile.superstep"


@irdl_op_definition
class ReadOp(Read):
    """The single i1 that a variable holds, for the control program.

    Example: %c = tile.read @more : i1
    """

    name = "tile.read"


Tile = Dialect(
    "tile",
    [
        VariableOp,
        CopyOp,
        VerticesOp,
        ComputeSetOp,
        InputOp,
        OutputOp,
        RemoteOp,
        LoadOp,
        StoreOp,
        SyncOp,
        SuperstepOp,
        ReadOp,
    ],
    [],
)
verified_by_form(*Tile.operations)
