"""Measures orders of messages: kinds of moves alone, and whole networks with timetables.

python -m abele.tools.workshop.exchanges [--networks squeezenet,...] [--target mk2]
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
from rich.table import Table

from ...backends.fabrics.traffic import Carried, Traffic
from ...backends.target import Target, resolve_target
from ...backends.timetable.link_lanes import LinkLanes
from ...backends.timetable.moves import Move
from ...backends.timetable.orders import best_order
from ...backends.timetable.timetable import timetable, timetable_on
from ...dialects.message_order import MessageOrder
from ...ir.blob import Blob
from ...ir.geometry.grid import Cut
from ...ir.geometry.layout import Layout
from ...ir.geometry.overlap import overlap
from ...ir.geometry.space import AccessMap, AxisMap, identity_map
from ..bench.measure import write_network
from ..bench.named import names_in
from ..bench.own_process import in_own_process
from ..driver.compile import compile_model
from ..importers.light_networks import light_names
from ..views.script import run_script
from ..views.terminal import console

NETWORKS = "alexnet,squeezenet,resnet50"
"""The networks that are compiled unless others are named."""

SEVERAL = "mk2x4"
"""The machine whose chips send to each other."""

WORDS = 1, 8, 64, 512
"""Words of the pieces that tiles send to other chips."""

ON = "exchange.timetables=1"
"""The choice of a target to price exchanges by timetables."""


def blocks(
    shape: tuple[int, ...], parts: tuple[int, ...], copies: int = 1, sets: int = 1
) -> Layout:
    """A tensor cut along each axis, each block on so many tiles next to each other.

    Args:
        sets: how often the whole of it lies on tiles, one set behind the other.
    """
    cuts = tuple(Cut(n, p) for n, p in zip(shape, parts, strict=True))
    before, behind = ((Cut(n, n),) if n > 1 else () for n in (sets, copies))
    first = len(before)
    dims = tuple(range(first, first + len(shape)))
    return Layout((*before, *cuts, *behind), identity_map(dims, shape))


def windows(shape: tuple[int, int], parts: tuple[int, int]) -> Layout:
    """A tensor cut along both axes, each block with one element more around it."""
    axes = tuple(AxisMap(n, ((i, 1), (2 + i, 1)), -1, outside="fill") for i, n in enumerate(shape))
    cuts = tuple(Cut(n, p) for n, p in zip(shape, parts, strict=True))
    return Layout((*cuts, Cut(3), Cut(3)), AccessMap(axes))


MOVES: dict[str, Move] = {
    "all to all, 256 tiles, 8 words": Move(
        "", blocks((256, 2048), (256, 1)), blocks((256, 2048), (1, 256)), None, 4
    ),
    "reduce-scatter, 32 groups of 46, 8 words": Move(
        "", blocks((32, 46, 368), (32, 46, 1)), blocks((32, 46, 368), (32, 1, 46)), None, 4
    ),
    "multicast, 32 groups of 46, 64 words": Move(
        "", blocks((32, 2944), (32, 46)), blocks((32, 2944), (32, 1), 46), None, 4
    ),
    "halo, 38 x 38 tiles, blocks of 16 x 16": Move(
        "", blocks((608, 608), (38, 38)), windows((608, 608), (38, 38)), None, 4
    ),
    "relayout, 8 x 184 to 184 x 8 tiles": Move(
        "", blocks((736, 736), (8, 184)), blocks((736, 736), (184, 8)), None, 4
    ),
}
"""Kinds of moves, as networks have them."""


def chip_moves(target: Target, words: int) -> dict[str, Move]:
    """Kinds of moves between chips, in which a tile sends pieces of so many words."""
    chips, tiles = target.chips, target.tiles // target.chips
    each, all_but_one = (chips, tiles, words), (chips - 1, tiles, words)
    parts = (chips - 1, tiles, 1)
    return {
        "reduce-scatter": Move(
            "",
            blocks((chips, *each), (chips, 1, tiles, 1)),
            blocks((chips, *each), (1, chips, tiles, 1)),
            None,
            4,
        ),
        "all-gather": Move(
            "", blocks(each, (chips, tiles, 1)), blocks(each, (1, tiles, 1), sets=chips), None, 4
        ),
        "to the next chip": Move(
            "",
            blocks(all_but_one, parts),
            replace(blocks(all_but_one, parts), first_tile=tiles),
            None,
            4,
        ),
    }


def between_chips(target: Target) -> Table:
    """How long moves between chips take by their timetables, over what their busiest link takes."""
    table = Table(title=f"moves between chips, {target.label()}", title_justify="left")
    for name in ("move", "words", "messages", "busiest link", "senders", "best", "times the link"):
        table.add_column(name, justify="left" if name == "move" else "right")
    for words in WORDS:
        for kind, move in chip_moves(target, words).items():
            traffic = Traffic.none(target.tiles)
            traffic.carried.append(Carried(overlap(move.source, move.destination), move.itemsize))
            link = target.links.waiting_cycles(traffic, target.tiles, target.clock_hz).max()
            found = timetable_on([move], target)
            best = best_order(
                [move], target.exchange, target.tiles, links=LinkLanes.of(target)
            ).cycles
            shown = found.start.size, link, found.cycles, best
            numbers = (f"{each:,}" for each in shown)
            table.add_row(kind, f"{words}", *numbers, f"{best / link:.2f}")
    return table


def _orders(move: Move, target: Target) -> Iterator[tuple[str, MessageOrder | None]]:
    """The orders that are compared: of the senders, drawn, and the best that is known."""
    yield "of the senders", None
    messages = len(move.streams.cell)
    drawn = Blob(np.random.default_rng(0).permutation(messages))
    parts = move.destination.parts, move.source.parts
    yield "drawn", MessageOrder((), drawn, *parts)
    best = best_order([move], target.exchange, target.tiles).order
    if best is not None:
        text = ", ".join(key.text() for key in best.keys) or "by colour"
        yield text if len(text) < 40 else f"{text[:37]}...", best


def kinds(target: Target) -> Table:
    """How long each kind of move takes in each order, over its bound."""
    table = Table(title=f"kinds of moves, {target.label()}", title_justify="left")
    for name in ("move", "messages", "order", "cycles", "times the bound", "passes", "seconds"):
        table.add_column(name, justify="left" if name in ("move", "order") else "right")
    for kind, move in MOVES.items():
        for name, order in _orders(move, target):
            begin = time.process_time()
            found = timetable([replace(move, order=order)], target.exchange, target.tiles)
            seconds = time.process_time() - begin
            table.add_row(
                kind,
                f"{len(found.start):,}",
                name,
                f"{found.cycles:,}",
                f"{found.cycles / found.bound:.2f}",
                str(found.passes),
                f"{seconds:.2f}",
            )
    return table


SMALL = """func.func @main(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %0 = nn.softmax %x axis 1 : (tensor<8x8xf32>) -> tensor<8x8xf32>
  func.return %0 : tensor<8x8xf32>
}
"""
"""A program that is compiled first, to load what compiling imports."""


def figures(path: Path, target: str) -> dict[str, Any]:
    """Cycles of a network, and the seconds of processor time in which it is compiled and priced.

    Call it in a process of its own, because equal moves share their timetables in one.
    """
    small = path.with_name("small.mlir")
    small.write_text(SMALL)
    _ = compile_model(small, target, cache=False).profile
    begin = time.process_time()
    profile = compile_model(path, target, cache=False).profile
    seconds = time.process_time() - begin
    return {"seconds": seconds, **{n: profile[n] for n in ("cycles", "exchange_cycles")}}


def exchanges(
    networks: Annotated[str, typer.Option(help="Names, separated by commas.")] = NETWORKS,
    target: Annotated[str, typer.Option(help="A preset machine.")] = "mk2",
) -> None:
    """Print how long moves take in several orders, and networks with and without timetables."""
    machine = resolve_target(target)
    names = names_in("--networks", networks, light_names())
    console().print(kinds(machine))
    console().print(between_chips(resolve_target(SEVERAL)))
    table = Table(title=f"networks, {target}, batch 1", title_justify="left")
    columns = ("cycles", "exchange cycles", "compile s")
    table.add_column("network", no_wrap=True)
    for which in ("bound", "timetable"):
        for name in columns:
            table.add_column(f"{name}, {which}", justify="right")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder, f"{name}.onnx")
            write_network(name, path)
            row: list[str] = []
            for each in (target, f"{target},{ON}"):
                found = in_own_process(figures, path, each)
                row += [f"{found['cycles']:,}", f"{found['exchange_cycles']:,}"]
                row.append(f"{found['seconds']:.1f}")
            table.add_row(name, *row)
    console().print(table)


if __name__ == "__main__":
    run_script(exchanges)
