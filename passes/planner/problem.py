"""The planner's description of one operator."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...backends.prices.workload import Workload, left_dtypes, number_dtype
from ...backends.target import Target
from ...dialects.abele import Plan
from ...dialects.structured import Body, Structure
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import Dim, Space, identity_map
from ...ir.support.hash_once import hash_once
from ..plans.derive import final_layout, movement_result_layout
from .terms import FREE, Terms


@hash_once
@dataclass(frozen=True)
class Problem:
    """One operator to be planned.

    Attributes:
        operand_dtypes: one per operand.
        resident: whether each operand is a weight or constant that no operator has placed yet, so
            that this plan decides its home.
        moves: the spaces of a movement, whose structure is then only the space of its result; empty
            for a compute.
        merges: whether reductions may be split into partials.
        free: whether each operand is an input of the program, which is stored where this plan wants
            it, every element once (see ir.geometry.spread); empty if none is.
        terms: constraints on the plan.
        further_dtypes: of the results after the first.
        again: operands that repeat an earlier operand, in the same layout.
        replaced: operands without later readers whose memory stays allocated, so that the result is
            written over them.
    """

    structure: Structure
    operand_dtypes: tuple[np.dtype[Any], ...]
    result_dtype: np.dtype[Any]
    resident: tuple[bool, ...]
    moves: tuple[Space, ...] = ()
    merges: bool = True
    terms: Terms = FREE
    free: tuple[bool, ...] = ()
    further_dtypes: tuple[np.dtype[Any], ...] = ()
    again: tuple[int, ...] = ()
    replaced: tuple[int, ...] = ()

    @cached_property
    def result_itemsize(self) -> int:
        """The bytes of an element of all results together."""
        return sum(dtype.itemsize for dtype in (self.result_dtype, *self.further_dtypes))

    @cached_property
    def left_dtypes(self) -> tuple[np.dtype[Any], ...]:
        """The dtypes of the partials: of the members, or of partial sums."""
        return left_dtypes(self.structure, self.operand_dtypes, self.result_dtype)

    @cached_property
    def left_itemsize(self) -> int:
        """The bytes of an element of all partials together."""
        return sum(dtype.itemsize for dtype in self.left_dtypes)

    def is_free(self, operand: int) -> bool:
        """Whether an operand is stored where the plan wants it."""
        return bool(self.free) and self.free[operand]

    @cached_property
    def number_dtype(self) -> np.dtype[Any]:
        """The dtype that decides the price: that of the first operand that is not boolean."""
        return number_dtype(self.operand_dtypes)

    @cached_property
    def partials_dtype(self) -> np.dtype[Any]:
        """The dtype of partials, in which sums are kept; that of the first member."""
        return self.left_dtypes[0]

    def workload(self, target: Target) -> Workload:
        """The workload of one cell of the operator on a target. Updates count as in place."""
        return Workload(
            *(self.structure, self.number_dtype, self.result_dtype, target),
            in_place=self.structure.body.updates,
        )


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


def final_layouts_of(problem: Problem, plan: Plan) -> tuple[Layout, ...]:
    """The final layouts of the operator's results."""
    results = problem.structure.space.results
    if problem.moves:
        return (movement_result_layout(results[0].shape, plan),)
    return tuple(final_layout(problem.structure, plan, i) for i in range(len(results)))
