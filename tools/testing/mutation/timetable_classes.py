"""Mutants with a mistake in a timetable: the output of the pass is right, and its machine is not.

A timetable follows from the text, so no text can have such a mistake. The mutated pass marks its
supersteps. A strict machine that loads marked ones makes the mistake on purpose, and must find it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute

from ....backends import machine
from ....backends.target import Target
from ....backends.timetable.faults import (
    ShiftMessage,
    SwapMessages,
    TimetableFault,
    WrongMux,
)
from ....backends.timetable.moves import moves_of
from ....backends.timetable.timetable import Timetable, timetable_on
from ....dialects.steps import Superstep
from ....dialects.variable import Variable
from ....ir.upstream import Context, ModuleOp, ModulePass
from ..search.contracts import with_apply
from .compare import Case
from .mutant import Mutant

PLANTED = "planted_fault"
"""The attribute that marks a superstep. Its value is the name of a class, and which place."""

Faults = Callable[[str, Timetable], list[TimetableFault]]
"""The mistakes of a class in the timetable of a superstep, given its name."""


@dataclass(frozen=True)
class TimetableClass:
    """A class of mistakes in timetables.

    Attributes:
        name: as `left-swap-messages`.
        line: what is wrong, in words.
        faults: the places in which it can be made.
    """

    name: str
    line: str
    faults: Faults


def _swaps(step: str, table: Timetable) -> list[TimetableFault]:
    # Two messages of one sender leave one after the other.
    order = np.lexsort((table.start, table.messages.tile))
    tile = table.messages.tile[order]
    pairs = np.flatnonzero(tile[1:] == tile[:-1])
    return [SwapMessages(step, int(order[k]), int(order[k + 1])) for k in pairs.tolist()]


def _shifts(step: str, table: Timetable) -> list[TimetableFault]:
    return [ShiftMessage(step, k) for k in range(len(table.start))]


def _muxes(step: str, table: Timetable) -> list[TimetableFault]:
    count = len(table.start)
    return [WrongMux(step, k, (k + 1) % count) for k in range(count if count > 1 else 0)]


TIMETABLE_CLASSES = (
    TimetableClass(
        "left-swap-messages", "two messages of a tile leave in each other's turn", _swaps
    ),
    TimetableClass("left-shift-message", "a message leaves a cycle late", _shifts),
    TimetableClass("left-wrong-mux", "a receiver listens to the sender of another message", _muxes),
)
"""All classes of mistakes in timetables, in the order in which they are reported."""

WHICH: Mapping[str, int] = {"first": 0, "last": -1}
"""The place of a program in which the mistake is made."""


def timetable_mutants(original: ModulePass, known: Sequence[Case]) -> list[Mutant]:
    """The mutants of the timetables that follow from a pass's output at the exchange level.

    Args:
        known: outputs of the pass.
    """
    done = [each for each in known if not each.outcome]
    hit = sum(any(_exchanging(each.after)) for each in done)
    if not hit:
        return []
    return [
        Mutant(
            original.name,
            kind.name,
            number,
            f"{hit} of {len(done)} programs have exchanges",
            f"the {which} message",
            kind.line,
            partial(_mutated_pass, original, kind.name, which),
            is_in_output=False,
        )
        for kind in TIMETABLE_CLASSES
        for number, which in enumerate(WHICH, 1)
    ]


def _exchanging(module: ModuleOp) -> Iterable[Superstep]:
    """The supersteps of a program that may send messages."""
    variables = _variables(module)
    placed = all(hasattr(each, "start") for each in variables.values())
    steps = (op for op in module.walk() if isinstance(op, Superstep)) if placed else ()
    return (step for step in steps if any(m.deliveries() for m in moves_of(step, variables)))


def _variables(module: ModuleOp) -> dict[str, Variable]:
    return {op.symbol: op for op in module.ops if isinstance(op, Variable)}


def _mutated_pass(original: ModulePass, kind: str, which: str) -> ModulePass:
    """The pass, whose output a strict machine of this process runs with a mistake."""
    _let_machines_plant()

    def apply(ctx: Context, op: ModuleOp) -> None:
        original.apply(ctx, op)
        for step in _exchanging(op):
            step.attributes[PLANTED] = StringAttr(f"{kind} {which}")

    return with_apply(original, apply)


def _let_machines_plant() -> None:
    """Let all strict machines that this process makes from now on look for marks."""
    machine.check_timetables = partial(_check_planted, machine.check_timetables)


def _check_planted(
    check: Callable[..., tuple[str, ...]],
    steps: Iterable[Superstep],
    variables: Mapping[str, Variable],
    target: Target,
    faults: Sequence[TimetableFault] = (),
) -> tuple[str, ...]:
    """Check timetables, one of which has the mistake that its superstep is marked with."""
    steps = list(steps)
    planted: list[TimetableFault] = []
    which = ""
    for step in steps:
        mark: Attribute | None = step.attributes.get(PLANTED)
        if isinstance(mark, StringAttr):
            name, which = mark.data.split()
            kind = next(each for each in TIMETABLE_CLASSES if each.name == name)
            table = timetable_on(moves_of(step, variables), target)
            planted += kind.faults(step.sym_name.data, table)
    own = [planted[WHICH[which]]] if planted else []
    return check(steps, variables, target, [*faults, *own])
