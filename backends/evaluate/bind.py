"""The calls of one operation on the blocks of the variables that it names.

Operations of tile and exchange are the same here. Only the variables know where blocks are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ...dialects.constraints import verify_use
from ...dialects.generators import GENERATOR_BYTES
from ...dialects.tile import CopyOp, VerticesOp
from ...dialects.variable import Variable
from ...ir.support.strided import as_strided
from ...ir.support.xoroshiro import States
from ..codelets.calls import Call, Scratch
from ..codelets.numerics import bind_vertices
from .blocks import Blocks, bind_copy


def calls_of_copy(
    op: CopyOp, variables: Mapping[str, Variable], blocks: Mapping[str, Blocks], scratch: Scratch
) -> list[Call]:
    """The calls of a copy.

    Raises VerifyException for an operation that does not suit its variables.
    """
    verify_use(op, variables)
    sources = [blocks[name] for name in op.sources]
    return bind_copy(sources, op.spaces, blocks[op.destination], scratch)


def calls_of_vertices(
    op: VerticesOp,
    variables: Mapping[str, Variable],
    blocks: Mapping[str, Blocks],
    scratch: Scratch,
    *,
    first_tile: int | None = None,
) -> list[Call]:
    """The calls of a vertex set.

    Raises VerifyException for an operation that does not suit its variables.

    Args:
        first_tile: the tile where its memory begins, if not the first tile of the machine.
    """
    verify_use(op, variables)
    plan = op.plan.data
    result, *further = (blocks[name].placed for name in op.destinations)
    generators = generators_of(op, variables, blocks)
    if first_tile is not None:
        generators = None if generators is None else generators[plan.first_tile - first_tile :]
        plan = replace(plan, first_tile=first_tile)
    return bind_vertices(
        op.structure(),
        plan,
        [blocks[name].placed for name in op.sources],
        result,
        scratch,
        further,
        generators,
    )


def generators_of(
    op: VerticesOp, variables: Mapping[str, Variable], blocks: Mapping[str, Blocks]
) -> States | None:
    """A view of the generators from which a vertex set draws; None if it names none."""
    if op.generators is None:
        return None
    name = op.generators.string_value()
    tiles, workers, _ = variables[name].tensor.get_shape()
    placed = blocks[name].placed
    end = placed.address + workers * GENERATOR_BYTES
    whole = placed.memory[:tiles, placed.address : end].view(np.uint64)
    row, word = whole.strides
    return as_strided(whole, (tiles, workers, 2), (row, 2 * word, word))
