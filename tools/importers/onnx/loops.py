"""Build control flow of the device for nodes of ONNX."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

from xdsl.ir import Attribute, Block, Region, SSAValue

from ....dialects import control
from .node import Node


@contextmanager
def in_block(node: Node, types: Sequence[Attribute]) -> Generator[Block]:
    """A block of these arguments, to which the node adds operations meanwhile."""
    outer, node.graph.body = node.graph.body, Block(arg_types=types)
    try:
        yield node.graph.body
    finally:
        node.graph.body = outer


def numbered_loop(
    node: Node,
    turns: int,
    initial: Sequence[SSAValue],
    body: Callable[[list[SSAValue], SSAValue], Sequence[SSAValue]],
) -> list[SSAValue]:
    """The values that a loop of a known number of turns carries, after its last turn.

    body: builds a turn, from the values that are carried into it and its number, an i32; returns
    the values that it carries on, of the same types.
    """
    with in_block(node, [*(v.type for v in initial), control.TURN]) as block:
        *carried, number = block.args
        node.add_control(control.YieldOp(*body(list(carried), number)))
    return node.add_control(control.RepeatOp(turns, initial, Region(block)))
