"""What a program takes on every tile beside its variables: code, vertex state, exchange code and
stacks.

No vendor publishes these byte counts, so they follow from a few rules, whose numbers are the
target's table `code`:

- *code*: one copy of every codelet that a tile runs, and what the tile's supervisor does in each
  superstep. Two vertex sets share a codelet if they compute the same on the same types by the same
  method: shapes are state.
- *vertex state*: for every vertex a pointer to each operand and to the result, and a count for
  each dimension that it goes through.
- *exchange code*: an instruction for so many words sent, and for each message that comes from
  another tile those that select its sender and say where it goes.
- *stacks*: one for each worker and one for the supervisor.

A superstep in a loop, or in a function, is there once.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from math import prod

import numpy as np
from numpy.typing import NDArray

from ..dialects.abele import Plan
from ..dialects.exchange import SuperstepOp
from ..dialects.program import Copy, Variable, Vertices
from ..ir.geometry.grid import Cut
from ..ir.geometry.layout import Layout
from ..ir.geometry.space import Space
from ..ir.upstream import ModuleOp
from .price import copy_overlaps, operands_of, sent_elements
from .target import Target

Integers = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Overheads:
    """Bytes on every tile, (tiles,) each; 0 on tiles that have no part in the program."""

    code: Integers
    vertex_state: Integers
    exchange_code: Integers
    stacks: Integers

    @property
    def total(self) -> Integers:
        """All of them together."""
        return self.code + self.vertex_state + self.exchange_code + self.stacks


def overheads(
    module: ModuleOp, variables: Mapping[str, Variable], tiles: int, target: Target
) -> Overheads:
    """Of an exchange module, on so many tiles. Raises InputError for an unknown variable."""
    steps = [op for op in module.walk() if isinstance(op, SuperstepOp)]
    used = np.zeros(tiles, bool)
    for variable in variables.values():
        used[_cells(variable.placed)] = True
    codelets: dict[Hashable, NDArray[np.bool_]] = {}
    state, exchange = np.zeros(tiles, np.int64), np.zeros(tiles, np.int64)
    for step in steps:
        for op in step.body.block.ops:
            if isinstance(op, Vertices):
                plan = op.plan.data
                here = slice(plan.first_tile, plan.first_tile + prod(plan.split))
                types = tuple(v.dtype.str for v in operands_of(op, variables))
                body = op.structure().body
                runs = codelets.setdefault((body, plan.method, types), np.zeros(tiles, bool))
                runs[here] |= True
                state[here] += _vertices(op.space.data, plan) * _state_bytes(op, target)
            elif isinstance(op, Copy):
                _add_messages(op, variables, target, exchange)
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


def _cells(layout: Layout) -> slice:
    return slice(layout.first_tile, layout.first_tile + layout.cells)


def _vertices(space: Space, plan: Plan) -> Integers:
    """Vertices of each cell, in the order of the tiles."""
    workers = plan.workers or (1,) * len(plan.split)
    count = np.ones((), np.int64)
    for dim, parts, threads in zip(space.dims, plan.split, workers, strict=True):
        count = np.multiply.outer(count, np.minimum(np.diff(Cut(dim.size, parts).edges()), threads))
    order = [*plan.order, *(d for d in range(count.ndim) if d not in plan.order)]
    return count.transpose(order).ravel()


def _state_bytes(op: Vertices, target: Target) -> int:
    """Of one vertex."""
    counts = sum(dim.size > 1 for dim in op.space.data.dims)
    pointers = len(op.sources) + 1
    return pointers * target.code.pointer_bytes + counts * target.code.count_bytes


def _add_messages(
    op: Copy, variables: Mapping[str, Variable], target: Target, exchange: Integers
) -> None:
    """Add the bytes of the instructions that send and receive what a copy moves."""
    run, itemsize = target.code, variables[op.destination].dtype.itemsize
    for shared in copy_overlaps(op, variables):
        words = -(-sent_elements(shared) * itemsize // target.exchange.word_bytes)
        sends = -(-words // run.words_per_send)
        exchange[_cells(shared.source)] += sends * run.instruction_bytes
        # What a tile holds itself does not come as a message.
        messages = np.maximum(shared.sources - (shared.local > 0), 0) * (shared.received > 0)
        exchange[_cells(shared.destination)] += (
            messages * run.receive_instructions * run.instruction_bytes
        )
