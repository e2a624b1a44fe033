"""The values of an iteration that may be computed directly into the variables that a loop
carries."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from xdsl.ir import Operation, SSAValue, Use

from ...dialects import control, partition
from ...ir.xdsl.around import nearest

Loop = control.RepeatOp | control.WhileOp


def carried_in_place(loop: Loop) -> dict[SSAValue, int]:
    """The values that may overwrite a carried value, each with that value's position.

    Each of these values is yielded by an iteration, or the iteration yields an update of it.

    Args:
        loop: a loop at partition.
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
    """The values that may be computed directly at the place of an older value.

    These are `value` itself (under its reshapes) and the values of which it is an update. The list
    ends at a value that is computed while the older value is still needed.

    Args:
        old: all reads of the older value.
        position: the position of each operation in the value's block.
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
        # The update overwrites the elements of this value, so all its other readers must come
        # before.
        if made is not None and not _all_before(maker, [*reads_of(made)], position):
            break
    return found


def unshaped(value: SSAValue) -> SSAValue:
    """The value under the reshapes of a value: its elements before any reshape."""
    while isinstance(value.owner, partition.ReshapeOp):
        value = value.owner.value
    return value


def reads_of(value: SSAValue) -> Iterator[Use]:
    """The uses of a value of partition and of its reshapes; a reshape itself is not a use."""
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
    """Whether each read comes before an operation, or is that operation's own read in place."""
    return all(_is_before(use, maker, position) or _is_in_place(maker, use) for use in reads)


def _is_before(use: Use, maker: Operation, position: Mapping[Operation, int]) -> bool:
    """Whether a use is in an operation before `maker` in its block, or nested inside such an
    operation.
    """
    op = nearest(use.operation, position)
    return op is not None and position[op] < position[maker]


def _is_in_place(maker: partition.ComputeOp | partition.RelayoutOp, use: Use) -> bool:
    return (
        use.operation is maker
        and isinstance(maker, partition.ComputeOp)
        and maker.structure().reads_in_place(use.index)
    )
