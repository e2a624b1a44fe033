"""Drawing the programs that a check runs: generated ones, or those of a Hypothesis strategy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from ....ir.errors import one_line_with_notes
from ....ir.upstream import ModulePass
from ..generators.build import build, default_operators
from ..generators.levels import at_level
from ..generators.program import Program
from ..generators.sketch import MOST_KINDS, random_sketch
from .failures import StrategyFailed
from .focus import about, named_operators, programs_of_rules
from .judge import invalid
from .learned import Learned
from .settings import LIMIT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

STEPS = 8
"""One program in this many is a step of training, if it has a gradient."""

Look = Callable[[Program], bool]
"""Checks one program, and returns whether the passes change it. What it raises ends the drawing."""


def generated(level: str, count: int, seed: int, passes: Sequence[ModulePass], look: Look) -> None:
    """Show generated programs of a level to a function.

    passes: half of the programs are aimed at these: they contain the left sides of their rules, or
    the operators that their code names. Others resemble programs that the passes changed. If the
    code names nothing, or nothing that helps, half of the programs do.
    """
    operators = default_operators()
    learned = Learned()
    named = named_operators(passes, operators)
    fitting = programs_of_rules(passes, operators, seed, LIMIT)
    for number in range(count):
        random = Random(f"{seed} {number}")
        made = next(fitting, None) if number % 4 == 3 else None
        if made is not None:
            made.key = f"{seed} {number}"
            look(made)
            continue
        sketch = random_sketch(random)
        aimed = bool(named) and number % 2 == 1 and learned.aim_helps
        if aimed:
            sketch = about(sketch, named)
        elif learned.sketches and number % 4 in learned.turns(bool(named)):
            sketch = learned.like(sketch, random)
        if number % STEPS == STEPS // 2 + 1:
            sketch = replace(sketch, training=random.randint(1, MOST_KINDS))
        program = at_level(build(sketch, operators), level)
        changed = program is not None and look(program)
        learned.add(sketch, aimed, changed)


def drawn(programs: SearchStrategy[Program], count: int, seed: int, look: Look) -> None:
    """Show programs of a strategy to a function. Raises StrategyFailed if the strategy fails."""
    # Only a caller with a strategy needs Hypothesis, which is an extra.
    import hypothesis  # noqa: PLC0415

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=[
            hypothesis.HealthCheck.too_slow,
            hypothesis.HealthCheck.filter_too_much,
            hypothesis.HealthCheck.data_too_large,
        ],
    )
    @hypothesis.given(programs)
    def each(program: object) -> None:
        try:
            look(_checked(program))
        except Exception as error:
            raise _FromLook(error) from None

    try:
        each()
    except _FromLook as inner:
        raise inner.error from None
    # All other errors come from the strategy.
    except Exception as error:
        raise StrategyFailed(f"raised {one_line_with_notes(error)}") from error


class _FromLook(BaseException):
    """Carries an error of the look through Hypothesis, which would take it for the strategy's."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _checked(program: object) -> Program:
    """What a strategy made, if it is a valid program. Raises StrategyFailed."""
    if not isinstance(program, Program):
        raise StrategyFailed(f"made a value of type {type(program).__name__}; need a Program")
    problem = invalid(program.module)
    if problem is not None:
        raise StrategyFailed(f"made an invalid program: {problem.text}", program)
    return program
