"""What each chip does over time, in boxes: one call of a function each, or work on one layer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....ir.support.arrays import Integers
from ....ir.well_known import ENTRY
from .collect import Report
from .columns import Table

MOST_BOXES = 20_000
"""The most boxes of a picture. Assumed: a page of about a megabyte. Of more, the first are kept."""

MOST_MEETINGS = 2_000
"""The most meetings of a picture; of more, one in several is kept."""

SKIPPED = -1
"""The part of a box that stands for iterations or calls that the timeline skips."""


@dataclass(frozen=True, eq=False)
class Boxes:
    """What each chip does over time.

    Attributes:
        parts: the names of functions; of layers, if no function is called.
        chip, start, end: of each box, (boxes,). Between boxes, a chip waits.
        part: the number of a box's part; SKIPPED if it stands for what the timeline skips.
        turn: how often the chip has done this part before; of a skipped box, the iterations.
        meet: the cycles in which chips meet, (meetings,).
        first, last: the first and the last chip that meet, (meetings,).
        left_out: boxes that are not here.
    """

    parts: tuple[str, ...]
    chip: Integers
    start: Integers
    end: Integers
    part: Integers
    turn: Integers
    meet: Integers
    first: Integers
    last: Integers
    left_out: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as a page has them."""
        names = ("chip", "start", "end", "part", "turn", "meet", "first", "last")
        return {
            "parts": list(self.parts),
            **{name: getattr(self, name).tolist() for name in names},
            "left_out": self.left_out,
        }


def chip_boxes(report: Report) -> Boxes:
    """The boxes of a run, chip by chip, each in the order of time."""
    tables = report.tables
    rows = _on_chips(tables)
    parts, part_of_step = _parts(tables)
    step = np.asarray(tables["executions"]["superstep"])[rows["execution"]]
    turns = np.asarray(tables["executions"]["turns"])[rows["execution"]]
    part = np.where(step < 0, SKIPPED, part_of_step[np.maximum(step, 0)] if len(parts) else SKIPPED)
    order = np.lexsort((rows["execution"], rows["chip"]))
    chip, part, step, turns = (each[order] for each in (rows["chip"], part, step, turns))
    start, end = rows["start"][order], rows["end"][order]
    calls = _begins(chip, part, step)
    # A call in which a chip waits is several boxes.
    begins = calls | (np.append(-1, end[:-1])[: len(start)] < start)
    first = np.flatnonzero(begins)
    after = np.append(first[1:], len(chip)).astype(np.int64)
    own = part[first]
    at = np.flatnonzero(calls)
    turn = np.where(own < 0, turns[first], _turns(chip[at], part[at])[np.cumsum(calls)[first] - 1])
    boxes = np.stack([chip[first], start[first], end[after - 1], own, turn])
    # A chip that only meets others has a box of no length.
    boxes = boxes[:, boxes[2] > boxes[1]]
    left_out = max(boxes.shape[1] - MOST_BOXES, 0)
    if left_out:
        kept = np.sort(np.argsort(boxes[1], kind="stable")[:MOST_BOXES])
        boxes = boxes[:, kept]
    columns = (boxes[0], boxes[1], boxes[2], boxes[3], boxes[4])
    return Boxes(parts, *columns, *_meetings(rows), left_out)


def _on_chips(tables: Mapping[str, Table]) -> dict[str, Integers]:
    """What chips do in each execution. The only chip of a machine takes part in all."""
    runs, own = tables["executions"], tables["chip_executions"]
    if len(tables["chips"]["chip"]) > 1:
        return {
            name: np.asarray(own[name]) for name in ("execution", "chip", "arrives", "start", "end")
        }
    start, cycles = np.asarray(runs["start"]), np.asarray(runs["cycles"])
    return {
        "execution": np.arange(len(start)),
        "chip": np.zeros(len(start), np.int64),
        "arrives": start,
        "start": start,
        "end": start + cycles,
    }


def _parts(tables: Mapping[str, Table]) -> tuple[tuple[str, ...], Integers]:
    """The names of parts, and the part of each superstep: the function that it is in, or, if no
    function is called, the layer of its operation."""
    tree = tables["tree"]
    layers = [str(each) for each in tables["operations"]["layer"]]
    names = map(str, tree["name"])
    parents: list[int] = np.asarray(tree["parent"]).tolist()
    kinds = [str(each) for each in tree["kind"]]
    function: list[str] = []
    for kind, name, parent in zip(kinds, names, parents, strict=True):
        function.append(name if kind in ("call", "function") else function[parent])
    steps = tables["supersteps"]
    of_step: list[int] = np.asarray(tree["superstep"]).tolist()
    called = {
        step: name
        for kind, name, step in zip(kinds, function, of_step, strict=True)
        if kind == "superstep" and name != f"@{ENTRY}"
    }
    operation: list[int] = np.asarray(steps["operation"]).tolist()
    own: list[str] = []
    if called:
        # What the entry does then is mostly to move values from function to function.
        own = [called.get(k, ENTRY).removeprefix("@") for k in range(len(operation))]
    else:
        steps_own = zip(operation, map(str, steps["name"]), strict=True)
        own = [(layers[k] if k >= 0 else "") or name for k, name in steps_own]
    number = {name: k for k, name in enumerate(dict.fromkeys(own))}
    return tuple(number), np.array([number[name] for name in own], np.int64)


def _begins(chip: Integers, part: Integers, step: Integers) -> NDArray[np.bool_]:
    """Where a box begins: with another part, or with the first superstep of its part again.

    Args:
        chip, part, step: of what chips do, chip by chip and in order, (rows,) each.
    """
    if not len(chip):
        return np.zeros(0, np.bool_)
    change = (np.diff(chip) != 0) | (np.diff(part) != 0)
    key, which = np.unique(chip * (part.max() + 2) + part + 1, return_inverse=True)
    least = np.full(len(key), np.iinfo(np.int64).max)
    np.minimum.at(least, which, step)
    again = (step == least[which])[1:]
    return np.concatenate([[True], change | again | (part[1:] < 0)])


def _turns(chip: Integers, part: Integers) -> Integers:
    """How often the same chip has had the same part before: (boxes,)."""
    key = chip * (part.max(initial=0) + 2) + part
    order = np.argsort(key, kind="stable")
    sorted_key = key[order]
    first = np.flatnonzero(np.append(True, np.diff(sorted_key) != 0)[: len(key)])
    lengths = np.diff(np.append(first, len(key)))
    found = np.empty(len(key), np.int64)
    found[order] = np.arange(len(key)) - np.repeat(first, lengths)
    return found


def _meetings(rows: dict[str, Integers]) -> tuple[Integers, Integers, Integers]:
    """When chips meet, and the first and the last chip of each meeting.

    Chips that go on in the same cycle, after one of them has waited, have met.
    """
    execution, start = rows["execution"], rows["start"]
    if not len(start):
        none = np.zeros(0, np.int64)
        return none, none, none
    key = execution * (int(start.max()) + 1) + start
    groups, which, size = np.unique(key, return_inverse=True, return_counts=True)
    first, last = np.full(len(groups), np.iinfo(np.int64).max), np.full(len(groups), -1)
    np.minimum.at(first, which, rows["chip"])
    np.maximum.at(last, which, rows["chip"])
    waited = np.bincount(which, start > rows["arrives"], len(groups)) > 0
    at = np.empty(len(groups), np.int64)
    at[which] = start
    kept = np.flatnonzero(waited & (size > 1))
    kept = kept[:: max(-(-len(kept) // MOST_MEETINGS), 1)]
    return at[kept], first[kept], last[kept]
