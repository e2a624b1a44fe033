"""Which vertex runs on which tile, which copies are needed, and the control program.

Passes write two decisions as attributes. `superstep` is a number on copies, compute sets and host
traffic; neighbours with equal numbers share a superstep. `address`, on variables, is the address of
the first byte of a variable's block on each tile.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    StringAttr,
    SymbolNameConstraint,
    TensorType,
    UnitAttr,
)
from xdsl.ir import Block, Dialect, Operation, Region
from xdsl.irdl import IRDLOperation, irdl_op_definition, prop_def, region_def, traits_def
from xdsl.traits import NoTerminator, SymbolOpInterface

from ..ir.geometry.layout import Layout
from .abele import LayoutAttr
from .blob_attr import BlobAttr
from .program import (
    Copy,
    HostInput,
    HostOutput,
    ReadPredicate,
    Variable,
    Vertices,
)
from .superstep import Superstep, Sync


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
    """Example: tile.copy [@image] -> @conv1.in"""

    name = "tile.copy"
    assembly_format = "$reads `->` $writes (`moves` $moves^)? attr-dict"


@irdl_op_definition
class VerticesOp(Vertices):
    """Example: tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
    plan <split [6]> reads [@x] writes @y
    """

    name = "tile.vertices"
    assembly_format = (
        "`space` $space `body` $body `plan` $plan `reads` $reads `writes` $writes attr-dict"
    )


@irdl_op_definition
class ComputeSetOp(IRDLOperation):
    """Vertices that run in one compute phase.

    sym_name: what reports call it. body: the vertices.

    Example:
        tile.compute_set @relu1 {
          tile.vertices space <[d0 = 96] (d0) of [96] -> (d0) of [96]> body <relu>
            plan <split [6]> reads [@x] writes @y
        }
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
class InputOp(HostInput):
    """Example: tile.input "image" -> @image : tensor<1x3x224x224xf32>"""

    name = "tile.input"
    assembly_format = "$host_name `->` $writes `:` $tensor attr-dict"


@irdl_op_definition
class OutputOp(HostOutput):
    """Example: tile.output @prob -> "prob" : tensor<1x1000xf32>"""

    name = "tile.output"
    assembly_format = "$reads `->` $host_name `:` $tensor attr-dict"


@irdl_op_definition
class SyncOp(Sync):
    """Example: tile.sync "internal"."""

    name = "tile.sync"
    assembly_format = "$zone attr-dict"


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
    assembly_format = "$sym_name $body attr-dict"
    traits = traits_def(NoTerminator())


@irdl_op_definition
class ReadOp(ReadPredicate):
    """Example: %c = tile.read @more : i1"""

    name = "tile.read"
    assembly_format = "$variable attr-dict `:` type($result)"


Tile = Dialect(
    "tile",
    [
        VariableOp,
        CopyOp,
        VerticesOp,
        ComputeSetOp,
        InputOp,
        OutputOp,
        SyncOp,
        SuperstepOp,
        ReadOp,
    ],
    [],
)
