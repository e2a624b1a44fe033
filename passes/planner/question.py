"""Questions to the planner about one operator."""

from __future__ import annotations

from dataclasses import dataclass

from ...backends.target import Target
from ...dialects.structured import Structure
from ...ir.geometry.layout import Layout
from ...ir.support.hash_once import hash_once
from .problem import Problem
from .terms import Terms


@hash_once
@dataclass(frozen=True)
class Question:
    """A question to the planner: the plans of an operator, given the layouts of its operands.

    The planner caches its answers by question, so a question keeps its hash.

    Attributes:
        have: the layout of each operand; None for an operand that the plan places.
        bound: bytes of a tile for resident operands and temporaries together.
    """

    problem: Problem
    have: tuple[Layout | None, ...]
    target: Target
    bound: int

    @property
    def structure(self) -> Structure:
        """The operator's structure."""
        return self.problem.structure

    @property
    def terms(self) -> Terms:
        """The constraints on the plan."""
        return self.problem.terms


def unplaced(problem: Problem, target: Target, bound: int) -> Question:
    """The question about an operator whose operands have no layouts yet."""
    return Question(problem, (None,) * len(problem.operand_dtypes), target, bound)
