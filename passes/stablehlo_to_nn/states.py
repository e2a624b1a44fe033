"""States, which programs of stablehlo load and store as those of nn do."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from ...dialects import nn
from .conversion import Lower, ToNn


def _load(op: nn.LoadOp, new: ToNn) -> Sequence[SSAValue]:
    return [new.add(nn.LoadOp(op.state.string_value(), nn.tensor_of(op.result)))]


def _store(op: nn.StoreOp, new: ToNn) -> Sequence[SSAValue]:
    new.add(nn.StoreOp(new.value(op.stored), op.state.string_value()))
    return []


TABLE: Mapping[str, Lower] = {
    "nn.load": _load,
    "nn.store": _store,
}
"""What lowers each operation on states, by name."""
