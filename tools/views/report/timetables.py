"""The exchanges of a report, with timetables of the longest ones and pictures of their lanes."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from ....backends.prices.overheads import exchange_code
from ....backends.prices.step_charges import StepCharge
from ....backends.target import Target
from ....backends.timetable.link_lanes import LinkLanes
from ....backends.timetable.moves import Move, moves_of
from ....backends.timetable.timetable import Timetable, timetable_on, without_names
from ....dialects.variable import Variable
from ...driver.shown_text import shown
from ..exchange.exchanges import code_bytes, why
from ..exchange.lanes import lanes_picture, used_tiles
from .columns import Table, empty, rows_table

MOST_LISTED = 1 << 22
"""Deliveries of all timetables of a report together. Measured: some two seconds."""

MOST_DRAWN = 3
"""Exchanges whose lanes are drawn: the longest ones that differ."""

ROWS, COLUMNS = 256, 480
"""The most tiles of a picture, and the most steps of time."""

SHADES = 255
"""Senders that a picture tells apart. 0 is an idle lane."""


@dataclass(frozen=True)
class Lanes:
    """The lanes of an exchange over time.

    Attributes:
        supersteps: which have this exchange.
        tiles: one for each row.
        columns: steps of time.
        cycles, bound: of the timetable.
        lanes_out, lanes_in: who sends, as bytes in base64, row by row: 0 where a lane is idle, else
            from 1 for tile 0 to 255 for the last tile.
    """

    supersteps: tuple[int, ...]
    tiles: tuple[int, ...]
    columns: int
    cycles: int
    bound: int
    lanes_out: str
    lanes_in: str

    def to_dict(self) -> dict[str, Any]:
        """The picture as plain values."""
        return asdict(self)


class Timetables(NamedTuple):
    """What a report knows about timetables.

    Attributes:
        absent: why some are missing; "" if none is.
    """

    table: Table
    lanes: tuple[Lanes, ...]
    absent: str


def timetables_of(
    steps: Sequence[StepCharge], variables: Mapping[str, Variable], target: Target, tiles: int
) -> Timetables:
    """The exchanges of all supersteps, in the order of the text.

    The ones that take most cycles of a run have timetables, as far as there is time for them. Equal
    exchanges share one.

    Args:
        tiles: of the program, which may be more than the target has.
    """
    if not target.exchange.has_timetables:
        why_not = f"a {target.exchange.kind} has no timetables, as its links can be busy too"
        return Timetables(empty("timetables"), (), why_not)
    moves = {k: tuple(moves_of(each.step, variables)) for k, each in enumerate(steps)}
    moves = {k: each for k, each in moves.items() if each}
    longest = sorted(moves, key=lambda k: -steps[k].price.exchange_cycles * steps[k].price.times)
    alike: dict[tuple[Move, ...], list[int]] = {}
    for k in longest:
        alike.setdefault(without_names(moves[k]), []).append(k)
    links = LinkLanes.of(target)
    rows = {k: _unlisted(k, steps[k], variables, target, tiles) for k in moves}
    left, missing = MOST_LISTED, 0
    shown: list[tuple[Timetable, list[int]]] = []
    for key, which in alike.items():
        size = sum(move.deliveries() for move in key)
        if size > left or tiles > target.tiles:
            missing += len(which)
            continue
        left -= size
        found = timetable_on(key, target)
        for k in which:
            rows[k] |= _listed(found, moves[k], links)
        if len(found.start):
            shown = sorted([*shown, (found, which)], key=lambda each: -each[0].cycles)[:MOST_DRAWN]
    absent = ""
    if missing and tiles > target.tiles:
        absent = "no timetables: the program uses more tiles than the target has"
    elif missing:
        absent = (
            f"{missing:,} of {len(rows):,} exchanges have no timetables here: the timetables of a "
            f"report have at most {MOST_LISTED:,} deliveries together; abele exchange shows all"
        )
    lanes = tuple(_drawn(*each) for each in shown)
    return Timetables(rows_table("timetables", rows.values()), lanes, absent)


def _unlisted(
    k: int, step: StepCharge, variables: Mapping[str, Variable], target: Target, tiles: int
) -> dict[str, Any]:
    """The row of an exchange without a timetable."""
    code = exchange_code(step.step, variables, tiles, target)
    most, mean = code_bytes(code)
    return {
        "superstep": k,
        **dict.fromkeys(("messages", "bound", "cycles"), -1),
        "times_bound": np.nan,
        "why": "",
        "code_most": most,
        "code_mean": mean,
        "code_tiles": int(np.count_nonzero(code)),
    }


def _listed(table: Timetable, moves: Sequence[Move], links: LinkLanes | None) -> dict[str, Any]:
    """What a timetable adds to the row."""
    return {
        "messages": len(table.start),
        "bound": table.bound,
        "cycles": table.cycles,
        "times_bound": table.cycles / table.bound if table.bound else 1.0,
        "why": shown(why(table, moves, links)),
    }


def _drawn(table: Timetable, supersteps: Sequence[int]) -> Lanes:
    """The picture of an exchange. If tiles outnumber rows, it has every Nth."""
    tiles = used_tiles(table)
    tiles = tiles[:: -(-len(tiles) // ROWS)]
    last = max(len(table.control) - 1, 1)
    sides: list[str] = []
    columns = 0
    for side in (0, 1):
        senders = lanes_picture(table, tiles, side, COLUMNS)
        columns = senders.shape[1]
        shades = np.nan_to_num(1 + senders * (SHADES - 1) // last, nan=0)
        sides.append(b64encode(shades.astype(np.uint8).tobytes()).decode())
    return Lanes(
        tuple(sorted(supersteps)),
        tuple(tiles.tolist()),
        columns,
        table.cycles,
        table.bound,
        *sides,
    )
