"""abele exchange."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from rich.table import Table

from ...backends.timetable.link_lanes import LinkLanes
from ...backends.timetable.timetable import Timetable
from ...ir.support.arrays import Integers
from ...ir.support.errors import InputError
from ..driver.compile import compiled
from ..driver.files import check_files
from ..views.exchange.exchanges import (
    Exchange,
    TileRow,
    code_bytes,
    exchange_of,
    exchanging_steps,
    move_rows,
    receives_of,
    sends_of,
    superstep_named,
    why,
)
from ..views.exchange.picture import draw_exchange
from ..views.terminal import console
from ..views.user_errors import text_in, user_errors
from .arguments import ModelFile
from .compiling import Compilation, compiles
from .showing import warn

MOST_RUNS = 4
"""Runs of addresses that are shown for a message."""


@compiles
def exchange_command(
    model: ModelFile,
    *,
    how: Compilation,
    superstep: Annotated[
        str, typer.Option(metavar="NAME", help="Show the exchange of this superstep.")
    ] = "",
    tile: Annotated[
        int | None,
        typer.Option(min=0, metavar="N", help="List what this tile sends and receives."),
    ] = None,
    order: Annotated[
        bool,
        typer.Option("--order", help="Order moves that have no order, as order-exchanges does."),
    ] = False,
    draw: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw what each lane carries, cycle by cycle."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, metavar="N", help="Exchanges to show.")] = 8,
) -> None:
    """Show when the messages of an exchange leave and arrive.

    Without --superstep, lists the longest exchanges, and what those over their bound wait for. The
    bound is what the busiest lane takes: the cycles of a perfect order. The code of an exchange is
    the bytes of its instructions, on the tile with the most and on the mean of those that have any.
    """
    with user_errors(text_in(model), model) as context:
        extensions = context.load(how.load)
        check_files({"the model": Path(model), **how.files}, {"--draw": draw})
        if not superstep and (tile is not None or draw is not None):
            raise InputError("--tile and --draw need --superstep NAME")
        with how.progress(extensions) as tell:
            exe = compiled(how.request(model, extensions, tell))
        warn(exe.relaxed)
        target, module = exe.target, exe.module_at("exchange")
        if not target.exchange.has_timetables:
            raise InputError(
                f"{target.label()}: a {target.exchange.kind} has no timetables, because its links "
                "can be busy too; need a fabric that is a crossbar"
            )
        if tile is not None and tile >= target.tiles:
            raise InputError(f"--tile {tile}; {target.label()} has tiles 0..{target.tiles - 1}")
        if not superstep:
            steps = exchanging_steps(module)
            found = [exchange_of(module, step, target, order=order) for step in steps]
            _show_all(found, top, LinkLanes.of(target))
            return
        found = exchange_of(module, superstep_named(module, superstep), target, order=order)
        if draw is not None and not len(found.table.start):
            raise InputError(f"@{superstep}: no messages between tiles, so nothing to draw")
        _show(found)
        if tile is not None:
            _show_messages(f"tile {tile} sends", "to tile", sends_of(found.table, tile))
            _show_messages(f"tile {tile} receives", "from tile", receives_of(found.table, tile))
        if draw is not None:
            draw_exchange(found, draw)


def _show_all(exchanges: list[Exchange], top: int, links: LinkLanes | None) -> None:
    """Print the longest exchanges."""
    longest = sorted(exchanges, key=lambda each: -each.table.cycles)
    table = Table(title="longest exchanges", title_justify="left")
    names = (
        "superstep",
        "messages",
        "bound",
        "cycles",
        "times the bound",
        "code, most",
        "code, mean",
    )
    for name in names:
        table.add_column(name, justify="left" if name == "superstep" else "right")
    for each in longest[:top]:
        table.add_row(each.name, *_figures([each.table], each.code))
    if exchanges:
        table.add_section()
        code = np.sum([each.code for each in exchanges], axis=0)
        table.add_row(f"all {len(exchanges)}", *_figures([each.table for each in exchanges], code))
    terminal = console()
    terminal.print(table)
    for each in longest[:top]:
        if each.table.cycles > each.table.bound:
            reason = why(each.table, each.table.moves, links)
            terminal.print(f"@{each.name}: {reason}", highlight=False, soft_wrap=True, markup=False)


def _figures(tables: Sequence[Timetable], code: Integers) -> tuple[str, ...]:
    """Columns of exchanges that follow each other.

    Args:
        code: bytes of their instructions on each tile.
    """
    messages = sum(len(each.start) for each in tables)
    bound, cycles = sum(each.bound for each in tables), sum(each.cycles for each in tables)
    most, mean = code_bytes(code)
    times = f"{cycles / max(bound, 1):.2f}"
    return f"{messages:,}", f"{bound:,}", f"{cycles:,}", times, f"{most:,}", f"{mean:,.0f}"


def _show(exchange: Exchange) -> None:
    """Print the moves of an exchange."""
    found = exchange.table
    terminal = console()
    terminal.print(
        f"@{exchange.name}: {found.cycles:,} cycles; bound {found.bound:,}; "
        f"{len(found.start):,} messages, {len(found.latency):,} deliveries",
        highlight=False,
        soft_wrap=True,
    )
    for row in move_rows(found):
        order = f"order <{row.order}>" if row.order else "in the order of the senders"
        terminal.print(
            f"  {row.name}: {row.messages:,} messages, {row.words:,} words, {row.cycles:,} cycles, "
            f"{order}",
            highlight=False,
            soft_wrap=True,
            markup=False,
        )


def _show_messages(title: str, other: str, rows: list[TileRow]) -> None:
    """Print the messages that a tile sends, or those that it receives."""
    table = Table(title=title, title_justify="left")
    for name in ("cycle", "words", other, "move", "addresses"):
        right = name in ("cycle", "words")
        table.add_column(name, justify="right" if right else "left")
    for row in rows:
        runs = [f"{first}..{end - 1}" for first, end in row.runs[:MOST_RUNS]]
        more = [f"and {len(row.runs) - MOST_RUNS} more"] if len(row.runs) > MOST_RUNS else []
        tiles = ", ".join(map(str, row.tiles[:MOST_RUNS]))
        if len(row.tiles) > MOST_RUNS:
            tiles += f" and {len(row.tiles) - MOST_RUNS} more"
        addresses = ", ".join([*runs, *more])
        table.add_row(f"{row.cycle:,}", f"{row.words:,}", tiles, row.move, addresses)
    console().print(table)
