"""Draws the programs of a check: generated programs, or those of a Hypothesis strategy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import TYPE_CHECKING

from ....dialects.levels import STABLEHLO
from ....ir.support.errors import InputError, one_line_with_notes
from ..generators.build import build
from ..generators.levels import at_level
from ..generators.program import Program
from ..generators.sketch import MOST_KINDS, about_literals, random_sketch
from ..generators.stablehlo_programs.program import random_program
from ..generators.training import is_step
from .aim import Aim
from .failures import StrategyFailed
from .focus import about, programs_of_rules
from .judge import invalid
from .learned import Learned
from .settings import LIMIT

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

STEPS = 8
"""One program in this many is a step of training, if it has a gradient."""

Look = Callable[[Program], bool]
"""Checks one program and returns whether the passes change it. Any error that it raises ends the
drawing."""


def generated(
    level: str,
    count: int,
    seed: int,
    aim: Aim,
    look: Look,
    news: Callable[[], bool] = bool,
    training: bool = False,
) -> None:
    """Pass generated programs of a level to a function.

    Args:
        look: the function.
        aim: the operators, decisions and numbers that programs should contain. Half of the programs
            contain the left sides of rules, or are made of the aim's operators. Others resemble
            programs that the passes changed, or that reached new code of them. If the aim names
            nothing, or nothing that helps, half of the programs resemble changed ones. Programs of
            stablehlo resemble no others.
        news: whether the latest program reached new code.
        training: whether to make steps of training only, which stablehlo has none of.
    """
    if level == STABLEHLO.name:
        if training:
            raise InputError(f"steps of training are programs of nn, not of {level}")
        for number in range(count):
            key = f"{seed} {number}"
            look(random_program(Random(key), aim.of_stablehlo(number), key))
        return
    operators = aim.vocabulary()
    named, literals = aim.numbers(operators), aim.literals()
    learned = Learned(bool(named), bool(aim.operators))
    fitting = programs_of_rules(aim.passes, operators, seed, LIMIT)
    for number in range(count):
        random = Random(f"{seed} {number}")
        made = next(fitting, None) if number % 4 == 3 else None
        if made is not None and not training:
            made.key = f"{seed} {number}"
            look(aim.planned(made))
            news()
            continue
        sketch = random_sketch(random)
        aimed = learned.is_aimed(number)
        if aimed:
            sketch = about(sketch, named)
        elif known := learned.resembles(number):
            sketch = learned.like(known, sketch, random)
        sketch = about_literals(sketch, literals, Random(f"{seed} {number} literals"))
        if training or number % STEPS == STEPS // 2 + 1:
            sketch = replace(sketch, training=random.randint(1, MOST_KINDS))
        sketch = aim.decided(sketch, operators, random)
        built = build(sketch, operators)
        # A program without a gradient stays as it is.
        program = None if training and not is_step(built.module) else at_level(built, level)
        changed = program is not None and look(aim.planned(program))
        learned.add(sketch, aimed, changed, news())


def drawn(programs: SearchStrategy[Program], count: int, seed: int, look: Look) -> None:
    """Pass programs of a strategy to a function. Raises StrategyFailed if the strategy fails."""
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
    """Carries an error of the function through Hypothesis, which would blame the strategy."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def _checked(program: object) -> Program:
    """A strategy's result, if it is a valid program. Raises StrategyFailed."""
    if not isinstance(program, Program):
        raise StrategyFailed(f"made a value of type {type(program).__name__}; need a Program")
    problem = invalid(program.module)
    if problem is not None:
        raise StrategyFailed(f"made an invalid program: {problem.text}", program)
    return program
