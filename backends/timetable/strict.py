"""Whether the exchanges of a program can run as their timetables say."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ...dialects.steps import Superstep
from ...dialects.variable import Variable
from ..target import Target
from .check import check_timetable
from .faults import TimetableFault
from .link_lanes import LinkLanes
from .moves import moves_of
from .timetable import timetable_on

MOST_CHECKED = 1 << 18
"""Deliveries of the largest exchange that is checked. Chosen by judgement: it takes about a
second."""


def check_timetables(
    steps: Iterable[Superstep],
    variables: Mapping[str, Variable],
    target: Target,
    faults: Sequence[TimetableFault] = (),
) -> tuple[str, ...]:
    """The names of the exchanges that are left out, which have very many messages and no fault.

    Raises MachineFault for the first other exchange whose timetable cannot run, and ValueError for
    a fault that cannot happen.

    Args:
        faults: mistakes that the timetables have on purpose.
    """
    left, unchecked = list(faults), list[str]()
    for step in steps:
        name, moves = step.sym_name.data, moves_of(step, variables)
        own = [each for each in left if each.superstep == name]
        left = [each for each in left if each.superstep != name]
        if not own and not moves:
            continue
        if not own and sum(m.deliveries() for m in moves) > MOST_CHECKED:
            unchecked.append(name)
            continue
        table = timetable_on(moves, target)
        for fault in own:
            try:
                table = fault.applied(table)
            except ValueError as error:
                raise ValueError(f"{fault}: {error}") from None
        check_timetable(table, target.exchange, name, LinkLanes.of(target))
    if left:
        raise ValueError(f"{left[0]}: no superstep @{left[0].superstep}")
    return tuple(unchecked)
