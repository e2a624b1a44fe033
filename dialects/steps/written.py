"""What a run may write, and what states hold before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from xdsl.ir import Operation

from ...ir.blob import Blob
from ..variable import Variable
from .copies import Copy
from .outside import Arrival, Remote
from .vertices import Vertices


def written_by(op: Operation) -> list[str]:
    """The names of the variables that an operation writes; [] unless it is a copy, vertices or an
    arrival.
    """
    if isinstance(op, Copy | Vertices):
        return op.destinations
    return [op.destination] if isinstance(op, Arrival) else []


def written(module: Operation) -> set[str]:
    """Names of the variables that a run of a module may write."""
    return {name for op in module.walk() for name in written_by(op)}


@dataclass(frozen=True)
class FirstValue:
    """What a state holds before the first run.

    Attributes:
        shape: its own.
        blob: its elements.
    """

    shape: tuple[int, ...]
    blob: Blob

    @property
    def array(self) -> NDArray[Any]:
        """The value in the state's own shape."""
        return self.blob.array.reshape(self.shape)


def first_values(module: Operation) -> Mapping[str, FirstValue]:
    """The first value of each state of a module of tile or exchange, on tiles or remote, by name.

    A state on tiles without a first value is not among them.
    """
    return {
        op.symbol: FirstValue(op.tensor.get_shape(), op.initial.data)
        for op in module.regions[0].block.ops
        if isinstance(op, Remote) or (isinstance(op, Variable) and op.state is not None)
        if op.initial is not None
    }
