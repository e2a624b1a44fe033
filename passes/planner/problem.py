"""One operator as the planner sees it, and a plan of it with its figures."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...dialects.abele import Plan
from ...dialects.structured import Body, Structure
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Dim, Space, identity_map
from ...ir.hash_once import hash_once
from .derive import final_layout, movement_result_layout
from .terms import FREE, Terms


@hash_once
@dataclass(frozen=True)
class Problem:
    """One operator, to be planned.

    operand_dtypes: one each operand. resident: the operands that lie where this operator wants
    them for good (weights and constants nobody has placed yet). moves: of a movement, whose
    structure is then only the space of its result; empty for a compute. merges: whether
    reductions may be split into partials. free: the operands that lie wherever this operator
    likes, every element once (see ir.geometry.spread): a program's inputs. terms: what a plan has
    to meet.
    """

    structure: Structure
    operand_dtypes: tuple[np.dtype[Any], ...]
    result_dtype: np.dtype[Any]
    resident: tuple[bool, ...]
    moves: tuple[Space, ...] = ()
    merges: bool = True
    terms: Terms = FREE
    free: tuple[bool, ...] = ()

    def is_free(self, operand: int) -> bool:
        """Whether an operand lies wherever this operator likes."""
        return bool(self.free) and self.free[operand]


@dataclass(frozen=True)
class Choice:
    """A plan and what it costs, on the tile that has most.

    resident_bytes: of operands that stay for good. temporary_bytes: copies of other operands,
    partials and the result, at the worst moment. result_bytes: the result alone. cells: tiles
    used. merge: of the cycles and bytes above, those of the compute that merges partials.
    """

    plan: Plan
    cycles: float
    compute_cycles: float
    exchange_cycles: float
    sync_cycles: float
    resident_bytes: int
    temporary_bytes: int
    result_bytes: int
    cells: int
    merge: Choice | None = None


def movement_problem(
    moves: tuple[Space, ...],
    dtype: np.dtype[Any],
    resident: tuple[bool, ...] = (),
    terms: Terms = FREE,
) -> Problem:
    """The problem of a movement: to cut the axes of its result."""
    shape = moves[0].results[0].shape
    dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(shape))
    access = identity_map(tuple(range(len(shape))), shape)
    structure = Structure(Space(dims, (access,), (access,)), Body("identity"))
    still = resident or (False,) * len(moves)
    return Problem(structure, (dtype,) * len(moves), dtype, still, moves, terms=terms)


def final_layout_of(problem: Problem, plan: Plan) -> Layout:
    """The layout that the operator's result ends up in."""
    if problem.moves:
        return movement_result_layout(problem.structure.space.results[0].shape, plan)
    return final_layout(problem.structure, plan)
