"""The bytes that a program needs on every tile besides its variables.

They are code, vertex state, exchange code and stacks. No vendor publishes them, so they follow from
a few rules. The numbers in the rules are the facts in the target's table `code`, each with its
source:

- *code*: one copy of each codelet that the tile runs, and the supervisor's instructions of each
  superstep. Vertex sets share a codelet if they have the same body, dtypes and method. Shapes are
  vertex state.
- *vertex state*: for each vertex, a pointer to each operand and to the result, and a count for each
  dimension with more than one element.
- *exchange code*: the instructions of every send, and of every receive: one for each fragment that
  travels between tiles (`ir/geometry/fragments.py`). A send of many words takes more, and so does a
  receive that is not placed behind the one before. Assumed: a tile's fragments are of equal length.
- *stacks*: one per worker and one for the supervisor.

A superstep in a loop or in a function counts once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...dialects.abele import Plan
from ...dialects.steps import Copy, Superstep, Vertices
from ...dialects.variable import Variable
from ...ir.geometry.fragments import fragments
from ...ir.geometry.grid import Cut
from ...ir.geometry.overlap import sent_elements
from ...ir.geometry.space import Space
from ...ir.support.arrays import Integers
from ...ir.upstream import ModuleOp
from ..target import Target
from .price import copy_overlaps, operands_of


@dataclass(frozen=True, eq=False)
class Overheads:
    """Bytes on every tile, (tiles,) each; 0 on tiles that the program does not use."""

    code: Integers
    vertex_state: Integers
    exchange_code: Integers
    stacks: Integers

    @property
    def total(self) -> Integers:
        """The sum of all: (tiles,)."""
        return self.code + self.vertex_state + self.exchange_code + self.stacks


def overheads(
    module: ModuleOp, variables: Mapping[str, Variable], tiles: int, target: Target
) -> Overheads:
    """The overheads of an exchange module. Raises InputError for an unknown variable."""
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    used = np.zeros(tiles, bool)
    for variable in variables.values():
        used[variable.placed.tiles.rows] = True
    codelets: dict[Hashable, NDArray[np.bool_]] = {}
    state, exchange = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    for step in steps:
        exchange += exchange_code(step, variables, tiles, target)
        for op in step.body.block.ops:
            if isinstance(op, Vertices):
                plan = op.plan.data
                here = plan.tiles.rows
                types = tuple(v.dtype.str for v in operands_of(op, variables))
                body = op.structure().body
                runs = codelets.setdefault((body, plan.method, types), np.zeros(tiles, bool))
                runs[here] |= True
                state[here] += _vertices(op.space.data, plan) * _state_bytes(op, target)
    run = target.code
    code = run.instruction_bytes * (
        run.codelet_instructions * sum(codelets.values(), np.zeros(tiles, np.int64))
        + run.step_instructions * len(steps)
    )
    return Overheads(
        code=code * used,
        vertex_state=state,
        exchange_code=exchange,
        stacks=run.stack_bytes * (target.workers + 1) * used,
    )


def exchange_code(
    step: Superstep, variables: Mapping[str, Variable], tiles: int, target: Target
) -> Integers:
    """The bytes of the instructions that send and receive in a superstep: (tiles,)."""
    found = np.zeros(tiles, np.int64)
    for op in step.body.block.ops:
        if isinstance(op, Copy):
            _add_messages(op, variables, target, found)
    return found


def _vertices(space: Space, plan: Plan) -> Integers:
    """The number of vertices of each cell, in the order of the tiles: (cells,)."""
    workers = plan.workers or (1,) * len(plan.split)
    count = np.ones((), np.int64)
    for dim, parts, threads in zip(space.dims, plan.split, workers, strict=True):
        count = np.multiply.outer(count, np.minimum(np.diff(Cut(dim.size, parts).edges()), threads))
    order = [*plan.order, *(d for d in range(count.ndim) if d not in plan.order)]
    return count.transpose(order).ravel()


def _state_bytes(op: Vertices, target: Target) -> int:
    """Bytes of the state of one vertex."""
    counts = sum(dim.size > 1 for dim in op.space.data.dims)
    pointers = len(op.sources) + len(op.destinations)
    return pointers * target.code.pointer_bytes + counts * target.code.count_bytes


def _add_messages(
    op: Copy, variables: Mapping[str, Variable], target: Target, exchange: Integers
) -> None:
    """Add the bytes of the instructions that send and receive the fragments of a copy."""
    run, itemsize = target.code, variables[op.destination].dtype.itemsize
    for shared in copy_overlaps(op, variables):
        moved = fragments(shared)
        sent_bytes = sent_elements(shared) * itemsize
        words = -(-sent_bytes // (np.maximum(moved.sent, 1) * target.exchange.word_bytes))
        sends = moved.sent * -(-words // run.words_per_message)
        long = np.where(words > run.words_per_send, run.long_send_instructions, 0)
        exchange[shared.source.tiles.rows] += (
            sends * (run.send_instructions + long) * run.instruction_bytes
        )
        exchange[shared.destination.tiles.rows] += run.instruction_bytes * (
            moved.received * run.receive_instructions + moved.places * run.place_instructions
        )
