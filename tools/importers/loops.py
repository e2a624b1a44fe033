"""Builds loops on the device."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager

import numpy as np
from xdsl.ir import Attribute, Block, BlockArgument, Region, SSAValue

from ...dialects import control, nn
from ...dialects.dtypes import numpy_dtype
from .building import NodeBuilder


@contextmanager
def in_block(node: NodeBuilder, types: Sequence[Attribute]) -> Generator[Block]:
    """A block with arguments of these types, to which the node adds operations inside the `with`.

    After an exception, the block and its operations are removed.
    """
    outer, count = node.program.region, len(node.ops)
    node.program.region = block = Block(arg_types=types)
    try:
        yield block
    except BaseException:
        for op in reversed(tuple(block.ops)):
            op.detach()
            op.erase(safe_erase=False)
        del node.ops[count:]
        raise
    finally:
        node.program.region = outer


Rows = Sequence[tuple[SSAValue, SSAValue]]
"""The contributions of an iteration to the results that a loop collects: rows, and their
indices."""

Iteration = Callable[[list[SSAValue], SSAValue], tuple[Sequence[SSAValue], Rows]]
"""Builds an iteration, from the carried values and its number, an i32.

Returns the new carried values, of the same types, and rows.
"""


def collecting_loop(
    node: NodeBuilder, iterations: int, initial: Sequence[SSAValue], iteration: Iteration
) -> tuple[list[SSAValue], list[SSAValue]]:
    """A loop with a known number of iterations.

    Returns the carried values after the last iteration, and for each row that an iteration gives, a
    table of the rows of all iterations: [iterations, ...].
    """
    with in_block(node, [*(v.type for v in initial), control.ITERATION_NUMBER]) as block:
        *carried, number = block.args
        values, rows = iteration(list(carried), number)
        places: list[BlockArgument] = []
        for row, _ in rows:
            type_ = nn.tensor((iterations, *nn.shape_of(row)), nn.element_of(row))
            # The iteration number follows the carried values.
            places.append(block.insert_arg(type_, len(block.args) - 1))
        tables = [
            placed_at(node, place, row, at) for place, (row, at) in zip(places, rows, strict=True)
        ]
        node.add_control(control.YieldOp(*values, *tables))
    begin = [_zeros(node, place) for place in places]
    done = node.add_control(control.RepeatOp(iterations, [*initial, *begin], Region(block)))
    return done[: len(initial)], done[len(initial) :]


def numbered_loop(
    node: NodeBuilder,
    iterations: int,
    initial: Sequence[SSAValue],
    body: Callable[[list[SSAValue], SSAValue], Sequence[SSAValue]],
) -> list[SSAValue]:
    """The values carried by a loop with a known number of iterations, after the last one.

    Args:
        body: builds an iteration, from the carried values and its number, an i32; returns the new
            carried values, of the same types.
    """
    return collecting_loop(
        node, iterations, initial, lambda given, number: (body(given, number), ())
    )[0]


def _zeros(node: NodeBuilder, like: SSAValue) -> SSAValue:
    zero = node.known(np.zeros((), numpy_dtype(nn.element_of(like))))
    return node.add(nn.ExpandOp(node.program.emitted(zero), nn.shape_of(like)))


def row_at(node: NodeBuilder, table: SSAValue, at: SSAValue | int) -> SSAValue:
    """A row of a table, without its first axis.

    Args:
        at: its number, an integer without axes.
    """
    shape = nn.shape_of(table)
    if isinstance(at, int):
        starts, extent = [at, *[0] * (len(shape) - 1)], [1, *shape[1:]]
        row = node.add(nn.SliceOp(table, starts, [1] * len(shape), extent))
    else:
        row = node.add(nn.GatherOp(table, node.reshape(at, (1,)), 0))
    return node.reshape(row, shape[1:])


def placed_at(node: NodeBuilder, table: SSAValue, row: SSAValue, at: SSAValue) -> SSAValue:
    """A table in which one row is replaced.

    Args:
        at: its number, an integer without axes.
    """
    shape = nn.shape_of(table)
    update = node.reshape(row, (1, *shape[1:]))
    index = node.reshape(at, (1,) * len(shape))
    return node.add(nn.UpdateOp(update, index, table, "last", 0))
