"""Hypothesis strategies of programs and machines.

    @given(programs("nn"))
    def test_mine(program):
        ...

Hypothesis draws a sketch of a few numbers, and the program is built from the sketch. So failures
print short and shrink fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TypeAlias

import hypothesis.strategies as st
from hypothesis import assume
from hypothesis.strategies import SearchStrategy
from xdsl.ir import Attribute, Operation

from ....backends.target import Target
from .build import ELEMENTS, Operators, build, default_operators, is_users, users_operators
from .levels import at_level, known_levels
from .program import Program
from .sketch import (
    CONTROLLED,
    DATA,
    MACHINES,
    MOST_KINDS,
    MOST_TILES,
    RARE_ELEMENTS,
    WITHIN,
    Data,
    Sketch,
    Step,
    edges,
    machine_of,
)
from .training import PLAINEST, is_step

OperatorNames: TypeAlias = "Sequence[type[Operation] | str] | Operators | None"


def machines(most_tiles: int = MOST_TILES) -> SearchStrategy[Target]:
    """Small machines: 1 to 16 tiles, few or many workers, and sometimes little memory.

    The number of tiles may be odd. The simplest machine has one tile.
    """
    return _spellings(most_tiles).map(machine_of)


# Each strategy is made once, because Hypothesis analyses every new strategy object.


@lru_cache
def _spellings(most_tiles: int = MOST_TILES) -> SearchStrategy[str]:
    tiles = st.integers(1, most_tiles).map(lambda n: f"tiny:{n}")
    settings = st.sampled_from(MACHINES)
    return st.tuples(tiles, settings).map(lambda pair: ",".join(filter(None, pair)))


@lru_cache
def _sizes(tiles: int) -> SearchStrategy[list[int]]:
    return st.lists(st.sampled_from(edges(tiles)), min_size=1, max_size=4)


@lru_cache
def _steps(controlled: float, most: int) -> SearchStrategy[list[Step]]:
    """Lists of at most `most` steps.

    Args:
        controlled: the share of steps inside a loop or a branch.
    """
    plain = [st.just("")] * (round(1 / controlled) - 1 if controlled else 1)
    within = st.one_of(*plain, st.sampled_from(WITHIN)) if controlled else plain[0]
    numbers = st.integers(0, MOST_KINDS - 1)
    steps = st.builds(Step, numbers, st.integers(0, 7), numbers, within)
    return st.lists(steps, min_size=1, max_size=most)


@lru_cache
def _kinds(data: tuple[Data, ...]) -> SearchStrategy[Data]:
    return st.sampled_from(data)


_one_in_32 = st.integers(0, 31)
_shares = st.sampled_from(CONTROLLED)
_elements = st.sampled_from((*(0, 0, 0, 0, 1, 1, 2, 3) * 6, *range(4, 4 + RARE_ELEMENTS)))
_seeds = st.integers(0, 4095)
_steps_of_training = st.integers(PLAINEST, 4095)


@st.composite
def sketches(
    draw: st.DrawFn,
    target: str | Target | None = None,
    max_ops: int = 5,
    data: Sequence[Data] = DATA,
    control_flow: bool = True,
    training: bool = False,
) -> Sketch:
    """Sketches of programs of up to max_ops operations.

    Args:
        training: of training steps instead.
    """
    if target is None:
        spelling = draw(_spellings())
    else:
        spelling = target if isinstance(target, str) else target.spelling()
    chosen = tuple(draw(_sizes(machine_of(spelling).tiles)))
    if draw(_one_in_32) == 31:
        chosen += (0,)
    controlled = draw(_shares) if control_flow else 0.0
    return Sketch(
        tuple(draw(_steps(controlled, max_ops))),
        chosen,
        draw(_elements),
        draw(_kinds(tuple(data))),
        draw(_seeds),
        spelling,
        training=draw(_steps_of_training) if training else 0,
        loops=control_flow,
    )


def programs(
    level: str = "nn",
    *,
    target: str | Target | None = None,
    max_ops: int = 5,
    dtypes: Sequence[Attribute] = ELEMENTS,
    operators: OperatorNames = None,
    data: Sequence[Data] = DATA,
    control_flow: bool = True,
    training: bool = False,
) -> SearchStrategy[Program]:
    """Well-typed programs of a level, with inputs. Every value is a result.

    Raises ValueError for an unknown level or if none of the operators is known.

    Args:
        level: nn; partition, tile or exchange, reached from nn by random legal decisions; planned,
            which is nn with a plan on each operation; or one of levels.TILE_DECISIONS, which says
            how far the supersteps and addresses of a program of tile are decided ("tile" picks one
            at random).
        target: the machine; any small one if None.
        dtypes: element types; some operations add booleans.
        operators: classes or names; all operators of the dialects of nn if None.
        data: the kinds of values of inputs.
        control_flow: whether to generate loops and branches.
        training: whether every program is a step of training, whose results are its loss and
            perhaps the outputs.
    """
    known = known_levels()
    if level not in known:
        raise ValueError(f"level {level!r}; need one of {', '.join(known)}")
    known = operators_of(operators)
    elements = tuple(dtypes)

    def program_of(sketch: Sketch) -> Program:
        made = build(sketch, known, elements)
        assume(not training or is_step(made.module))
        program = at_level(made, level)
        assume(program is not None)
        assert program is not None
        return program

    return sketches(target, max_ops, data, control_flow, training).map(program_of)


def operators_of(operators: OperatorNames) -> Operators:
    """The operators with these names; abele's own if None. Raises ValueError if none is known."""
    if isinstance(operators, Operators):
        return operators
    if operators is None:
        return default_operators()
    names = tuple(o if isinstance(o, str) else o.name for o in operators)
    if any(map(is_users, names)):
        return users_operators(names)
    return default_operators(names)
