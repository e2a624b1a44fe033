"""The values of a loop's turn that may be computed directly into what the loop carries."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation, SSAValue, Use

from ...dialects import control, partition

Loop = control.RepeatOp | control.WhileOp


def carried_in_place(loop: Loop) -> dict[int, SSAValue]:
    """The yielded values that may overwrite the carried ones they replace, by position.

    loop: at partition. Such a value is made by an operation of the body. What it replaces has been
    read by then: all its reads come before that operation, or are that operation and in place.
    """
    block = loop.body.block
    last = block.last_op
    assert isinstance(last, control.YieldOp)
    position = {op: i for i, op in enumerate(block.ops)}
    found: dict[int, SSAValue] = {}
    for i, value in enumerate(last.values):
        maker = value.owner
        if (
            isinstance(maker, partition.ComputeOp | partition.RelayoutOp)
            and maker.parent is block
            and value not in found.values()
            and all(
                _is_before(use, maker, position) or _is_in_place(maker, use)
                for use in reads_of(block.args[i])
            )
        ):
            found[i] = value
    return found


def reads_of(value: SSAValue) -> Iterator[Use]:
    """The uses of a value of partition, and of reshapes of it."""
    for use in value.uses:
        if isinstance(use.operation, partition.ReshapeOp):
            yield from reads_of(use.operation.result)
        else:
            yield use


def _is_before(use: Use, maker: Operation, position: dict[Operation, int]) -> bool:
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
