"""Bytes at addresses: the variables of a program that the machine runs.

The level `exchange` is the level `tile` with two things decided: each variable has an address, and
every operation is in a superstep. Only the variable differs, so it is the only operation here. The
supersteps, copies and vertices are those of `tile`.
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


Exchange = Dialect("exchange", [VariableOp], [])
verified_by_form(*Exchange.operations)
