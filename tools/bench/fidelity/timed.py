"""Predicted cycles of exchanges by their timetables, in the best orders that are known."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from ....backends.target import Target
from ....backends.timetable.link_lanes import LinkLanes
from ....backends.timetable.moves import Move
from ....backends.timetable.orders import best_order
from ....backends.timetable.timetable import timetable
from ....dialects.abele import Plan
from ....dialects.structured import Structure
from ....ir.geometry.layout import Layout
from ....ir.geometry.tile_pairs import partners_alike
from ....ir.support.errors import InputError
from ....passes.plans.derive import (
    combining,
    compute_layouts,
    home_of_free,
    leaves_partials,
    result_layout,
)


def with_timetables(target: Target) -> Target:
    """The target, if it prices exchanges by timetables."""
    return replace(target, exchange=replace(target.exchange, timetables=1))


def exchange_cycles(moves: Sequence[Move], target: Target, links: LinkLanes | None = None) -> float:
    """The cycles of an exchange of some moves, each of an operation of its own; 0 without messages.

    It has what a phase takes beside its timetable and its sync. Raises InputError for too many
    messages.

    Args:
        links: between chips; None if all tiles are taken to be on one.
    """
    fabric, tiles = target.exchange, target.tiles
    ordered: list[Move] = []
    for k, move in enumerate(moves):
        pairs = bool(partners_alike(move.destination).all())
        best = best_order([move], fabric, tiles, pairs, links)
        ordered.append(replace(move, order=best.order, width=best.width, copy=k))
    cycles = timetable(ordered, fabric, tiles, links).cycles
    return float(cycles + max(fabric.phase_cycles - fabric.sync_cycles, 0)) if cycles else 0.0


def of_plan(
    structure: Structure, plan: Plan, itemsizes: Sequence[int], between: int, target: Target
) -> float | None:
    """The cycles of all exchanges of an operator's plan; None if they have no timetable.

    Operands come from layouts that suit the plan, with one copy of each element.

    Args:
        itemsizes: bytes of an element of each operand.
        between: bytes of an element of a partial sum.
    """
    try:
        return sum(
            exchange_cycles(moves, target)
            for moves in _exchanges(structure, plan, itemsizes, between, target)
        )
    except InputError:
        return None


def _exchanges(
    structure: Structure, plan: Plan, itemsizes: Sequence[int], between: int, target: Target
) -> Iterator[list[Move]]:
    """The moves of each exchange: of the operands, and of the partial sums of each merge."""
    wanted = compute_layouts(structure, plan)
    homes = (
        home_of_free(layout, size, target.tiles)
        for layout, size in zip(wanted, itemsizes, strict=True)
    )
    yield _moves(homes, wanted, itemsizes)
    while leaves_partials(structure, plan):
        have = result_layout(structure, plan)
        structure, plan = combining(structure, plan)
        yield _moves([have], compute_layouts(structure, plan)[:1], [between])


def _moves(
    have: Iterator[Layout] | list[Layout], wanted: Sequence[Layout], itemsizes: Sequence[int]
) -> list[Move]:
    """The moves between layouts that differ."""
    return [
        Move(f"operand {k}", own, layout, None, size)
        for k, (own, layout, size) in enumerate(zip(have, wanted, itemsizes, strict=True))
        if own != layout
    ]
