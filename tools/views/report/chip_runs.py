"""What each chip does in a run, in order of time, as pictures and traces draw it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ....ir.support.arrays import Integers
from .collect import Report


@dataclass(frozen=True, eq=False)
class ChipRun:
    """The executions of supersteps on one chip, one after the other; each array is (executions,).

    Attributes:
        superstep: its number; -1 for iterations of a loop or a call that are skipped.
        turns: the iterations that an entry stands for.
        arrives: the cycle in which the chip is done with everything before.
        start: the cycle in which the chips that it waits for are, too.
        end: the cycle in which it is done.
        sync, exchange, compute: cycles of each phase; 0 for what is skipped.
    """

    superstep: Integers
    turns: Integers
    arrives: Integers
    start: Integers
    end: Integers
    sync: Integers
    exchange: Integers
    compute: Integers


def chip_runs(report: Report) -> list[ChipRun]:
    """What each chip does: as many as there are."""
    runs, steps = report.tables["executions"], report.tables["supersteps"]
    chips = len(report.tables["chips"]["chip"])
    superstep, turns = np.asarray(runs["superstep"]), np.asarray(runs["turns"])
    if chips < 2:
        start = np.asarray(runs["start"])
        known = superstep >= 0
        own = {
            name: np.where(known, np.append(np.asarray(steps[f"{name}_cycles"]), 0)[superstep], 0)
            for name in PHASES
        }
        return [ChipRun(superstep, turns, start, start, start + np.asarray(runs["cycles"]), **own)]
    rows = {name: np.asarray(column) for name, column in report.tables["chip_executions"].items()}
    # Rows are in order of time. Sorted by chip, those of each chip are neighbours.
    order = np.argsort(rows["chip"], kind="stable")
    ends = np.searchsorted(rows["chip"][order], np.arange(1, chips))
    at = rows["execution"]
    columns = (
        superstep[at],
        turns[at],
        *(rows[name] for name in ("arrives", "start", "end")),
        *(rows[f"{name}_cycles"] for name in PHASES),
    )
    of_chips = zip(*(np.split(column[order], ends) for column in columns), strict=True)
    return [ChipRun(*own) for own in of_chips]


PHASES = ("sync", "exchange", "compute")
"""The phases of an execution, in order of time."""
