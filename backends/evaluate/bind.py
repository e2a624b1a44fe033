"""The calls of one operation on the blocks of the variables that it names.

Operations of tile and exchange are the same here. Only the variables know where blocks are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...dialects.constraints import verify_use
from ...dialects.generators import GENERATOR_BYTES
from ...dialects.steps import Copy, Vertices
from ...dialects.variable import Variable
from ...ir.geometry.space import Space
from ...ir.support.strided import as_strided
from ..codelets.calls import Call, Scratch
from ..codelets.drawing import Generators
from ..codelets.numerics import bind_vertices
from .blocks import Blocks, bind_copy


def calls_of_copy(
    op: Copy, variables: Mapping[str, Variable], blocks: Mapping[str, Blocks], scratch: Scratch
) -> list[Call]:
    """The calls of a copy.

    Raises VerifyException for an operation that does not suit its variables.
    """
    verify_use(op, variables)
    sources = [blocks[name] for name in op.sources]
    return bind_copy(sources, *routes_of(op, variables, blocks), scratch)


def routes_of(
    op: Copy, variables: Mapping[str, Variable], blocks: Mapping[str, Blocks]
) -> tuple[tuple[Space, ...] | None, Blocks]:
    """The moves of a copy, and the blocks that it fills: see `Copy.routes`."""
    written, placed = blocks[op.destination], variables[op.destination].placed
    layout, moves = op.routes(placed)
    # In an array of its own, a variable has a row a cell, on whatever tile that is.
    return moves, replace(written, layout=layout if written.layout == placed else layout.stacked)


def calls_of_vertices(
    op: Vertices,
    variables: Mapping[str, Variable],
    blocks: Mapping[str, Blocks],
    scratch: Scratch,
    *,
    stacked: bool = False,
) -> list[Call]:
    """The calls of a vertex set.

    Raises VerifyException for an operation that does not suit its variables.

    Args:
        stacked: whether the memory of each variable has a row a cell, and not a row a tile.
    """
    verify_use(op, variables)
    plan = op.plan.data
    result, *further = (blocks[name].placed for name in op.destinations)
    return bind_vertices(
        op.structure(),
        plan.stacked if stacked else plan,
        [blocks[name].placed for name in op.sources],
        result,
        scratch,
        further,
        generators_of(op, variables, blocks),
    )


def generators_of(
    op: Vertices, variables: Mapping[str, Variable], blocks: Mapping[str, Blocks]
) -> Generators | None:
    """The generators from which a vertex set draws; None if it names none."""
    if op.generators is None:
        return None
    name = op.generators.string_value()
    tiles, workers, _ = variables[name].tensor.get_shape()
    placed = blocks[name].placed
    end = placed.address + workers * GENERATOR_BYTES
    whole = placed.memory[:tiles, placed.address : end].view(np.uint64)
    row, word = whole.strides
    states = as_strided(whole, (tiles, workers, 2), (row, 2 * word, word))
    return Generators(states, op.plan.data.tiles)
