"""What every tile does in every superstep, and what each operation adds to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...dialects.steps import Copy, Load, Store, Superstep, Vertices
from ...ir.support.arrays import Integers
from ...ir.upstream import ModuleOp
from ..clocks.advance import Advance
from ..target import Target
from .price import (
    Charge,
    StepPrice,
    SuperstepPrice,
    ZonePrice,
    busiest_of,
    charge_operation,
    charged_exchange,
    charged_price,
    last_tile,
    no_charge,
    run_price,
    variables_of,
)
from .words import words_only

Charged = Copy | Vertices


@dataclass(frozen=True, eq=False)
class OperationCharge:
    """What one operation adds to a superstep.

    Attributes:
        charge: of every tile.
        alone_exchange, alone_compute: cycles of the tile that exchanges and computes longest for it
            alone.
        compute_cycles: its part of the superstep's cycles of compute, on the superstep's busiest
            tile: over all operations, these add up to the superstep's.
        exchange_cycles: the same for the exchange, shared in proportion to what each operation
            alone costs on that tile. Loads from remote memory and stores to it have the rest.
        critical_compute, critical_exchange: its parts of the cycles that a run spends in the
            superstep on the critical path, over all executions.
    """

    op: Charged
    charge: Charge
    alone_exchange: int
    alone_compute: int
    compute_cycles: int
    exchange_cycles: float
    critical_compute: float
    critical_exchange: float


@dataclass(frozen=True, eq=False)
class StepCharge:
    """One execution of a superstep.

    Attributes:
        charge: of all operations together.
        advance: what it does to the clocks.
        exchange: cycles in which each tile exchanges, (tiles,).
    """

    step: Superstep
    price: SuperstepPrice
    advance: Advance
    charge: Charge
    exchange: Integers
    operations: tuple[OperationCharge, ...]


@dataclass(frozen=True, eq=False)
class ProgramCharge:
    """The charges of a program.

    Attributes:
        steps: of all supersteps, in the order of the text.
        chips: what each chip does.
    """

    steps: tuple[StepCharge, ...]
    chips: tuple[ZonePrice, ...]


def step_charges(module: ModuleOp, target: Target) -> ProgramCharge:
    """The charges of all supersteps of an exchange module.

    Raises InputError as `price` does.
    """
    variables, free = variables_of(module), words_only(module)
    found: list[StepPrice] = []
    charges: list[tuple[Charge, Charge, list[tuple[Charged, Charge]]]] = []
    for step in module.walk():
        if not isinstance(step, Superstep):
            continue
        tiles = max(target.tiles, last_tile(step, variables))
        alone: list[tuple[Charged, Charge]] = []
        remote = no_charge(tiles)
        for op in step.body.block.ops:
            if isinstance(op, Load | Store):
                charge_operation(op, variables, target, remote, free)
            elif isinstance(op, Charged):
                charge = no_charge(tiles)
                charge_operation(op, variables, target, charge, free)
                alone.append((op, charge))
        whole = _sum([remote, *(charge for _, charge in alone)], tiles)
        found.append(charged_price(step, whole, target, free))
        charges.append((whole, remote, alone))
    run = run_price(module, found, target)
    steps = (
        _charge(each, whole, remote, alone, target)
        for each, (whole, remote, alone) in zip(run.steps, charges, strict=True)
    )
    return ProgramCharge(tuple(steps), run.chips)


def _charge(
    found: StepPrice,
    whole: Charge,
    remote: Charge,
    alone: list[tuple[Charged, Charge]],
    target: Target,
) -> StepCharge:
    exchange = charged_exchange(whole, target)
    parts = tuple(_parts(alone, remote, found, target))
    return StepCharge(found.step, found.price, found.advance, whole, exchange, parts)


def _sum(charges: list[Charge], tiles: int) -> Charge:
    total = no_charge(tiles)
    for each in charges:
        total.add(each)
    return total


def _parts(
    alone: list[tuple[Charged, Charge]], remote: Charge, found: StepPrice, target: Target
) -> Iterator[OperationCharge]:
    price, advance = found.price, found.advance
    zones = np.append(np.flatnonzero(found.taken), 0)
    tiles = advance.tile[zones]
    tiles[-1] = price.busiest_tile
    # What each operation alone exchanges on the tiles that decide, the superstep's last. Loads and
    # stores also have a share. They are not among these operations, so their share comes last.
    every = [*(each for _, each in alone), remote]
    own = np.array([charged_exchange(each, target)[tiles] for each in every], np.float64)
    cycles = advance.exchange_cycles[zones].astype(np.float64)
    cycles[-1] = price.exchange_cycles
    exchange = cycles * own / np.maximum(own.sum(axis=0), 1)
    times = found.taken[zones[:-1]].astype(np.float64)
    for (op, charge), each in zip(alone, exchange[:-1], strict=True):
        busiest = busiest_of(charge, target)
        yield OperationCharge(
            op,
            charge,
            busiest.exchange_cycles,
            busiest.compute_cycles,
            int(charge.compute[price.busiest_tile]),
            float(each[-1]),
            float(charge.compute[tiles[:-1]] @ times),
            float(each[:-1] @ times),
        )
