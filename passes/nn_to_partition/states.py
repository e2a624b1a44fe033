"""States and constants: each lies at its home, in a layout that most of its readers want."""

from __future__ import annotations

from ...dialects import nn, partition
from ...dialects.home import handed_down
from .conversion import ToPartition


def convert_state(op: nn.StateOp, new: ToPartition) -> None:
    """`nn.state @w : tensor<8xf32>` becomes `partition.state @w : tensor <8xf32, [8 by 2] ...>`."""
    state = partition.StateOp(op.sym_name.data, new.types.state(op), op.value)
    state.attributes |= handed_down(op)
    new.add(state)


def convert_load(op: nn.LoadOp, new: ToPartition) -> None:
    """`nn.load @w` becomes `partition.load @w`, in the layout of the state, or of the first reader
    if the state is in remote memory.

    Where the state lies on other chips, its value is brought to those of the function.
    """
    load = partition.LoadOp(op.state.string_value(), new.types.stored(op))
    new.add(load)
    new.become(op, [new.brought(load.result, op.result)])


def convert_store(op: nn.StoreOp, new: ToPartition) -> None:
    """`nn.store %0, @w` becomes `partition.store %1 -> @w`, where %1 is %0 in the state's layout,
    or in its own layout if the state is in remote memory."""
    value, name = new.values[op.stored], op.state.string_value()
    if name not in new.types.homes.remote:
        value = new.in_layout(value, new.types.stored(op).layout.data, "store")
    new.add(partition.StoreOp(value, name))


def convert_constant(op: nn.ConstantOp, new: ToPartition) -> None:
    """`nn.constant` becomes `partition.constant`, at its home."""
    constant = partition.ConstantOp(op.value, new.types.constant(op))
    constant.attributes |= handed_down(op)
    new.add(constant)
    new.become(op, [constant.result])
