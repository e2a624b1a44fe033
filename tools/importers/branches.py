"""Builds branches on the device: one of two regions runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.ir import Block, Region, SSAValue

from ...dialects import control
from .building import NodeBuilder
from .carried import Joined, OtherTypesError, reopened
from .loops import in_block


class OtherResultsError(OtherTypesError):
    """Two branches give results of different element types, or of different ranks.

    Attributes:
        results: of each branch.
    """

    def __init__(self, results: Sequence[Sequence[SSAValue]]) -> None:
        super().__init__()
        self.results = results


def branched(
    node: NodeBuilder, condition: SSAValue, builds: Sequence[Callable[[], list[SSAValue]]]
) -> list[SSAValue]:
    """The results of one of two branches. Raises OtherResultsError if these do not fit together.

    Args:
        condition: chooses the first branch if it is true. It has one element.
        builds: build the branches, and return their results.
    """
    blocks: list[Block] = []
    given: list[list[SSAValue]] = []
    for build in builds:
        with in_block(node, []) as block:
            given.append(build())
        blocks.append(block)
    try:
        joined = Joined(node, blocks, given)
    except OtherTypesError:
        raise OtherResultsError(given) from None
    yielded = [joined.yielded(number) for number in range(len(blocks))]
    for block, values in zip(blocks, yielded, strict=True):
        with reopened(node, block):
            node.add_control(control.YieldOp(*values))
    types = [v.type for v in yielded[0]]
    first, second = map(Region, blocks)
    return joined.marked(node.add_control(control.IfOp(condition, types, first, second)))
