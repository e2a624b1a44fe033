"""What moves tensors between tiles and what is outside of them: the host and remote memory."""

from __future__ import annotations

from math import prod
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr, TensorType
from xdsl.irdl import IRDLOperation, prop_def, traits_def
from xdsl.traits import SymbolOpInterface

from ...ir.upstream import VerifyException
from ..blob_attr import BlobAttr
from ..dtypes import numpy_dtype


class Arrival(IRDLOperation):
    """What fills a variable with a tensor that comes from outside of the tiles.

    Attributes:
        writes: the variable.
        tensor: the shape outside, of as many elements as the variable, and of its element type.
    """

    writes = prop_def(SymbolRefAttr)
    tensor = prop_def(TensorType)

    @property
    def destination(self) -> str:
        """Name of the variable written."""
        return self.writes.string_value()


class Departure(IRDLOperation):
    """What gives the tensor that a variable holds to something outside of the tiles.

    Attributes:
        reads: the variable.
        tensor: the shape outside, of as many elements as the variable, and of its element type.
    """

    reads = prop_def(SymbolRefAttr)
    tensor = prop_def(TensorType)

    @property
    def source(self) -> str:
        """Name of the variable read."""
        return self.reads.string_value()


class Input(Arrival):
    """The host writes a run's input into a variable.

    Attributes:
        host_name: what the host calls the input.
    """

    host_name = prop_def(StringAttr)
    assembly_format = "$host_name `->` $writes `:` $tensor attr-dict"

    def __init__(self, host_name: str, writes: str, tensor: TensorType):
        super().__init__(
            properties={
                "host_name": StringAttr(host_name),
                "writes": SymbolRefAttr(writes),
                "tensor": tensor,
            }
        )


class Output(Departure):
    """The host reads a result of the run from a variable.

    Attributes:
        host_name: what the host calls the result.
    """

    host_name = prop_def(StringAttr)
    assembly_format = "$reads `->` $host_name `:` $tensor attr-dict"

    def __init__(self, reads: str, host_name: str, tensor: TensorType):
        super().__init__(
            properties={
                "reads": SymbolRefAttr(reads),
                "host_name": StringAttr(host_name),
                "tensor": tensor,
            }
        )


class Remote(IRDLOperation):
    """A state in remote memory: memory beside the chips, which no tile computes on.

    Attributes:
        sym_name: its name in loads and stores.
        tensor: its shape and element type.
        initial: what it holds before the first run.
    """

    sym_name = prop_def(SymbolNameConstraint())
    tensor = prop_def(TensorType)
    initial = prop_def(BlobAttr)
    assembly_format = "$sym_name `:` $tensor `=` `blob` $initial attr-dict"
    traits = traits_def(SymbolOpInterface())

    def __init__(self, name: str, tensor: TensorType, initial: BlobAttr):
        super().__init__(
            properties={"sym_name": StringAttr(name), "tensor": tensor, "initial": initial}
        )

    @property
    def symbol(self) -> str:
        """Its name."""
        return self.sym_name.data

    @property
    def first_value(self) -> NDArray[Any]:
        """What it holds before the first run, in its own shape."""
        return self.initial.array.reshape(self.tensor.get_shape())

    @property
    def bytes(self) -> int:
        """The bytes that it takes of remote memory."""
        return self.initial.array.nbytes

    def verify_(self) -> None:
        """Check that the first value has the elements of the tensor."""
        try:
            dtype = numpy_dtype(self.tensor.element_type)
        except ValueError as error:
            raise VerifyException(f"@{self.symbol}: {error}") from None
        found = self.initial.array
        if found.dtype != dtype or found.size != prod(self.tensor.get_shape()):
            raise VerifyException(
                f"@{self.symbol}: initial value of {found.dtype} {list(found.shape)} for "
                f"{self.tensor}"
            )


class Load(Arrival):
    """Fill a variable with what a state in remote memory holds.

    Attributes:
        remote: the state.
    """

    remote = prop_def(SymbolRefAttr)
    assembly_format = "$remote `->` $writes `:` $tensor attr-dict"

    def __init__(self, remote: str, writes: str, tensor: TensorType):
        super().__init__(
            properties={
                "remote": SymbolRefAttr(remote),
                "writes": SymbolRefAttr(writes),
                "tensor": tensor,
            }
        )


class Store(Departure):
    """Let a state in remote memory hold what a variable holds.

    Attributes:
        remote: the state.
    """

    remote = prop_def(SymbolRefAttr)
    assembly_format = "$reads `->` $remote `:` $tensor attr-dict"

    def __init__(self, reads: str, remote: str, tensor: TensorType):
        super().__init__(
            properties={
                "reads": SymbolRefAttr(reads),
                "remote": SymbolRefAttr(remote),
                "tensor": tensor,
            }
        )
