"""The inputs and outputs of a program."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .arrays import Array, Tensor

if TYPE_CHECKING:
    from ...dialects.host import ResultSize


@dataclass(frozen=True)
class Signature:
    """The inputs and outputs of a program, in order.

    Attributes:
        sizes: the outputs whose size depends on values. Their shapes here are the largest ones. The
            results that hold these sizes are no outputs.
    """

    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    sizes: tuple[ResultSize, ...] = ()

    def trimmed(self, results: Mapping[str, Array]) -> dict[str, Array]:
        """The outputs by name, without padding, from all results of a run."""
        found = {tensor.name: results[tensor.name] for tensor in self.outputs}
        for each in self.sizes:
            count = int(results[each.size])
            found[each.result] = found[each.result][(*[slice(None)] * each.axis, slice(count))]
        return found
