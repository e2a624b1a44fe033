"""One operator as the planner sees it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...backends.codelets.workload import Workload, number_dtype, partials_dtype
from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.structured import Body, Structure
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Dim, Space, identity_map
from ...ir.hash_once import hash_once
from ..plans.derive import final_layout, movement_result_layout
from .terms import FREE, Terms


@hash_once
@dataclass(frozen=True)
class Problem:
    """One operator to be planned.

    operand_dtypes: one per operand. resident: whether each operand is a weight or constant that no
    operator has placed yet, so that this plan decides where it stays. moves: the spaces of a
    movement, whose structure is then only the space of its result; empty for a compute. merges:
    whether reductions may be split into partials. free: whether each operand is an input of the
    program, which lies wherever this plan wants it, every element once (see ir.geometry.spread);
    empty if none is. terms: what the plan has to meet.
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
        """Whether an operand lies wherever the plan wants it."""
        return bool(self.free) and self.free[operand]

    @cached_property
    def number_dtype(self) -> np.dtype[Any]:
        """The dtype that decides the price: that of the first operand that is no boolean."""
        return number_dtype(self.operand_dtypes)

    @cached_property
    def partials_dtype(self) -> np.dtype[Any]:
        """The dtype of partials, which sums are kept in."""
        return partials_dtype(self.result_dtype, self.structure.body)

    def workload(self, target: Target) -> Workload:
        """What one cell of the operator computes on a target."""
        return Workload(self.structure, self.number_dtype, self.result_dtype, target)


def movement_problem(
    moves: tuple[Space, ...],
    dtype: np.dtype[Any],
    resident: tuple[bool, ...] = (),
    terms: Terms = FREE,
) -> Problem:
    """The problem of a movement: its plan cuts the axes of the result."""
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
