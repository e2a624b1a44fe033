"""The values of a loop's turn that may be computed directly into what the loop carries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.ir import Operation, SSAValue, Use

from ...dialects import control, partition

Loop = control.RepeatOp | control.WhileOp


def carried_in_place(loop: Loop) -> dict[SSAValue, int]:
    """The values that may overwrite what a loop carries, with the position that each overwrites.

    loop: at partition. A turn yields such a value, or updates it and yields that.
    """
    block = loop.body.block
    last = block.last_op
    assert isinstance(last, control.YieldOp)
    position = {op: i for i, op in enumerate(block.ops)}
    found: dict[SSAValue, int] = {}
    for i, value in enumerate(last.values):
        for each in overwriting(value, [*reads_of(block.args[i])], position):
            found.setdefault(each, i)
    return found


def overwriting(
    value: SSAValue, old: Collection[Use], position: Mapping[Operation, int]
) -> list[SSAValue]:
    """The values that may be computed where a value is to lie: its own elements, and what these are
    updates of. Empty if what lies there is still read when they are computed.

    old: all reads of what lies there. position: of each operation in the value's block.
    """
    found: list[SSAValue] = []
    made: SSAValue | None = unshaped(value)
    while made is not None:
        maker = made.owner
        if (
            not isinstance(maker, partition.ComputeOp | partition.RelayoutOp)
            or maker not in position
            or not _all_before(maker, old, position)
        ):
            break
        found.append(made)
        made = _updated(maker)
        # The update overwrites these elements, so that all others have to read them before.
        if made is not None and not _all_before(maker, [*reads_of(made)], position):
            break
    return found


def unshaped(value: SSAValue) -> SSAValue:
    """The value that a reshaped one has its elements from."""
    while isinstance(value.owner, partition.ReshapeOp):
        value = value.owner.value
    return value


def reads_of(value: SSAValue) -> Iterator[Use]:
    """The uses of a value of partition, and of reshapes of it."""
    for use in value.uses:
        if isinstance(use.operation, partition.ReshapeOp):
            yield from reads_of(use.operation.result)
        else:
            yield use


def _updated(maker: partition.ComputeOp | partition.RelayoutOp) -> SSAValue | None:
    """The value that an operation updates at indices; None for other operations."""
    if not isinstance(maker, partition.ComputeOp) or not maker.structure().body.updates:
        return None
    return unshaped(maker.inputs[maker.structure().own_operands - 1])


def _all_before(
    maker: partition.ComputeOp | partition.RelayoutOp,
    reads: Collection[Use],
    position: Mapping[Operation, int],
) -> bool:
    """Whether all reads come before an operation, or are the operation itself and in place."""
    return all(_is_before(use, maker, position) or _is_in_place(maker, use) for use in reads)


def _is_before(use: Use, maker: Operation, position: Mapping[Operation, int]) -> bool:
    """Whether a use is in an operation of the body that comes before another, or inside such a
    one."""
    op: Operation | None = use.operation
    while op is not None and op not in position:
        op = op.parent_op()
    return op is not None and position[op] < position[maker]


def _is_in_place(maker: partition.ComputeOp | partition.RelayoutOp, use: Use) -> bool:
    return (
        use.operation is maker
        and isinstance(maker, partition.ComputeOp)
        and maker.structure().reads_in_place(use.index)
    )
