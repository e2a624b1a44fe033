"""Give every variable an address."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import IntegerAttr, i64
from xdsl.dialects.func import FuncOp

from ..backends.elements import Elements
from ..backends.memory import ADVICE
from ..backends.target import Target
from ..dialects import tile
from ..dialects.home import ADDRESS, RELOAD, number_of
from ..dialects.levels import TILE
from ..dialects.placement import placement_of
from ..dialects.variable import Variable
from ..ir.provenance import origin_names
from ..ir.support.distinct import distinct
from ..ir.support.errors import DoesNotFit
from ..ir.upstream import Context, ModuleOp, ModulePass
from .analysis.lifetimes import FOREVER, Lifetimes, lifetimes
from .analysis.memory_elements import keep_apart, sent_and_received
from .analysis.packing import Boxes, pack
from .plans.beside import BESIDE
from .plans.planned import target_of
from .plans.remote_memory import check_remote_states


@dataclass(frozen=True)
class Allocate(ModulePass):
    """Give variables addresses by liveness. tile -> tile.

    Two variables share bytes only if they have no tile in common or are never live in the same
    phase. A superstep has two phases, exchange and compute, so a result may overwrite what the same
    superstep has sent. A result may also overwrite an operand that has no later reader, if each
    point of the computation reads only that element of the operand which it writes. Addresses that
    variables already have are kept. The address of a state or constant with a `reload` is a wish:
    it is given up if it overlaps an address that must be kept, or if otherwise not all variables
    fit. Wishes that save the fewest cycles per byte are given up first. Variables that are always
    live are placed first, then large ones before small ones: each at the address of an operand or
    result with which it may share bytes, else at the lowest free address.

    A tile cannot read words to send from the memory element in which it stores others. If the
    target knows its elements, a variable that one superstep sends, and another one that it
    receives, therefore get addresses in different elements, where no byte more is needed for it.
    With `spread`, they do so wherever the tile has room.

    Raises DoesNotFit, which names the fullest tile, the variables on it, and the functions that lie
    on its chip; and for states that remote memory does not hold.

    Attributes:
        unbounded: allow addresses beyond the end of a tile, for reports on what does not fit.
        spread: use more bytes of a tile to send and receive from different memory elements.
    """

    name = "allocate"
    takes = TILE
    decided = "placed"
    unbounded: bool = False
    spread: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        variables = [v for v in op.body.block.ops if isinstance(v, tile.VariableOp)]
        lives, target = lifetimes(op, variables), target_of(op)
        check_remote_states(op, target)
        room = target.usable_bytes_per_tile
        given = [number_of(v, ADDRESS) for v in variables]
        _keep_between_runs(variables, lives, given, target)
        wishes = _wishes(variables, given)
        _give_up_overlapping(wishes, variables, lives, given)
        shared = BESIDE in op.attributes
        addresses = pack(variables, lives, given, room, shared=shared)
        if wishes and _end(variables, addresses) > room:
            addresses = _with_fewer(wishes, variables, lives, given, room)
        elements = Elements.of(target)
        if elements is not None and not shared:
            stays = [
                v.is_resident or at is not None for v, at in zip(variables, given, strict=True)
            ]
            pairs = sent_and_received(op, variables)
            addresses = keep_apart(
                *(variables, lives, addresses, np.array(stays, np.bool_), pairs, elements),
                room if self.spread else 0,
            )
        if not self.unbounded:
            check_fits(variables, lives.phases, addresses, target, _owners(op))
        for variable, address in zip(variables, addresses, strict=True):
            variable.attributes[ADDRESS] = IntegerAttr(int(address), i64)
            variable.attributes.pop(RELOAD, None)


def _keep_between_runs(
    variables: Sequence[tile.VariableOp],
    lives: Lifetimes,
    given: Sequence[int | None],
    target: Target,
) -> None:
    """Let what the host uses on I/O tiles live forever: it uses them while other runs compute.

    These variables have their addresses already; states of remote memory there have none.
    """
    if target.io_tiles:
        aside = target.are_aside(np.array([v.placed.first_tile for v in variables], np.int64))
        has_address = np.array([at is not None for at in given], np.bool_)
        lives.phases[aside & has_address] = 0, FOREVER


def _wishes(variables: Sequence[tile.VariableOp], given: Sequence[int | None]) -> list[int]:
    """The variables whose addresses are wishes, the most valuable first.

    The value of a wish is the number of cycles that it saves per byte of a tile. Of equal wishes,
    those at neighbouring addresses follow each other, so that giving some up frees one large piece.
    """
    worth = {
        i: (reload / max(v.bytes_per_tile, 1), address)
        for i, (v, address) in enumerate(zip(variables, given, strict=True))
        if address is not None and (reload := number_of(v, RELOAD)) is not None
    }
    return sorted(worth, key=lambda i: worth[i], reverse=True)


def _give_up_overlapping(
    wishes: Sequence[int],
    variables: Sequence[tile.VariableOp],
    lives: Lifetimes,
    given: list[int | None],
) -> None:
    """Give up each wish that overlaps an address that must be kept, or a more valuable wish."""
    if not wishes:
        return
    boxes = Boxes(variables, lives)
    address = np.array([at or 0 for at in given], np.int64)
    may_move = set(wishes)
    kept = [i for i, at in enumerate(given) if at is not None and i not in may_move]
    for i in wishes:
        if len(boxes.hit(i, np.array(kept, np.int64), address)):
            given[i] = None
        else:
            kept.append(i)


def _with_fewer(
    wishes: Sequence[int],
    variables: Sequence[tile.VariableOp],
    lives: Lifetimes,
    given: Sequence[int | None],
    room: int,
) -> NDArray[np.int64]:
    """Addresses that keep as many of the first wishes as fit, found by bisection.

    If nothing fits, the addresses that keep no wish.
    """

    def packed(kept: int) -> NDArray[np.int64]:
        free = set(wishes[kept:])
        some = [None if i in free else at for i, at in enumerate(given)]
        return pack(variables, lives, some, room, shared=True)

    low, high, best = 0, len(wishes), packed(0)
    while high - low > 1:
        middle = (low + high) // 2
        found = packed(middle)
        if _end(variables, found) <= room:
            low, best = middle, found
        else:
            high = middle
    return best


def _end(variables: Sequence[Variable], address: NDArray[np.int64]) -> int:
    """One past the last byte that the variables occupy."""
    return int((address + [v.bytes_per_tile for v in variables]).max(initial=0))


def check_fits(
    variables: Sequence[Variable],
    lives: NDArray[np.int64],
    address: NDArray[np.int64],
    target: Target,
    owners: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """Raise DoesNotFit if a tile is too small, or if there are too few tiles.

    Args:
        owners: by chip, the functions that are placed there.
    """
    for v in variables:
        if v.placed.tiles.end > target.tiles:
            raise DoesNotFit(
                f"@{v.symbol}",
                v.placed.tiles.end,
                target.tiles,
                units="tiles",
                remedy="plan again for this target",
            )
    if not variables:
        return
    ends = address + np.array([v.bytes_per_tile for v in variables], np.int64)
    worst = int(np.argmax(ends))
    available = target.usable_bytes_per_tile
    if ends[worst] <= available:
        return
    tile_index = variables[worst].placed.first_tile
    if target.is_aside(tile_index):
        own = -(-int(ends[worst]) * target.io_tiles // available)
        raise DoesNotFit(
            "what the host and remote memory write and read",
            int(ends[worst]),
            available,
            tile=tile_index,
            remedy=f"keep about {own} tiles aside, with io_tiles",
        )
    here = np.array([tile_index in v.placed.tiles for v in variables])
    when = _busiest(variables, lives, here)
    live = here & (lives[:, 0] <= when) & (when <= lives[:, 1])
    layers: dict[str, int] = {}
    for i in np.flatnonzero(live).tolist():
        v = variables[i]
        layer = "+".join(n.split("/")[0] for n in origin_names(v)) or v.symbol
        layers[layer] = layers.get(layer, 0) + v.bytes_per_tile
    largest = sorted(layers.items(), key=lambda item: -item[1])
    shown = ", ".join(f"{layer} {size} B" for layer, size in largest[:6])
    rest = sum(size for _, size in largest[6:])
    names = sorted(np.flatnonzero(live).tolist(), key=lambda i: -variables[i].bytes_per_tile)[:3]
    examples = ", ".join(f"@{variables[i].symbol} {variables[i].bytes_per_tile} B" for i in names)
    over = int(ends[worst]) - available
    gaps = int(ends[worst]) - sum(layers.values())
    others = f", others {rest} B" if rest else ""
    chip = tile_index // target.tiles_per_chip
    placed = (owners or {}).get(chip, ())
    raise DoesNotFit(
        f"{', '.join(placed)} on chip {chip}" if placed else "the program",
        int(ends[worst]),
        available,
        tile=tile_index,
        remedy=ADVICE,
        details=(
            f"{over} bytes over: {shown}{others}{f', gaps {gaps} B' if gaps else ''}",
            f"largest variables: {examples}",
        ),
    )


def _owners(module: ModuleOp) -> dict[int, list[str]]:
    """The functions that are placed on each chip, by name, in the order of the module."""
    found: dict[int, list[str]] = {}
    for op in module.body.block.ops:
        if isinstance(op, FuncOp) and (placement := placement_of(op)) is not None:
            for chip in placement.chips:
                found.setdefault(chip, []).append(f"@{op.sym_name.data}")
    return found


def _busiest(
    variables: Sequence[Variable], lives: NDArray[np.int64], here: NDArray[np.bool_]
) -> int:
    """The phase in which the live variables of a tile take the most bytes.

    Args:
        here: whether each variable is on the tile.
    """
    size = np.array([v.bytes_per_tile for v in variables], np.int64) * here
    times = distinct(lives[here, 0])
    load = [int(size[(lives[:, 0] <= t) & (t <= lives[:, 1])].sum()) for t in times]
    return int(times[int(np.argmax(load))])
