"""The calls of one operation on the blocks of the variables that it names.

Operations of tile and exchange are the same here. Only the variables know where blocks are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from ...dialects.constraints import verify_use
from ...dialects.tile import CopyOp, VerticesOp
from ...dialects.variable import Variable
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
    return bind_vertices(
        op.structure(),
        plan if first_tile is None else replace(plan, first_tile=first_tile),
        [blocks[name].placed for name in op.sources],
        result,
        scratch,
        further,
    )
