"""What every tile does in every superstep, and what each operation adds to it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ...dialects.tile import CopyOp, LoadOp, StoreOp, SuperstepOp, VerticesOp
from ...ir.support.arrays import Integers
from ...ir.upstream import ModuleOp
from ..target import Target
from .price import (
    Charge,
    Executions,
    SuperstepPrice,
    busiest_of,
    charge_operation,
    charged_exchange,
    charged_price,
    functions_of,
    last_tile,
    no_charge,
    variables_of,
)
from .words import words_only

Charged = CopyOp | VerticesOp


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
            alone costs on that tile.
    """

    op: Charged
    charge: Charge
    alone_exchange: int
    alone_compute: int
    compute_cycles: int
    exchange_cycles: float


@dataclass(frozen=True, eq=False)
class StepCharge:
    """One execution of a superstep.

    Attributes:
        charge: of all operations together.
        exchange: cycles in which each tile exchanges, (tiles,).
    """

    step: SuperstepOp
    price: SuperstepPrice
    charge: Charge
    exchange: Integers
    operations: tuple[OperationCharge, ...]


def step_charges(module: ModuleOp, target: Target) -> tuple[StepCharge, ...]:
    """The charges of all supersteps of an exchange module, in the order of its text.

    Raises InputError as `price` does.
    """
    found = tuple(_charges(module, target))
    cycles = {each.step: each.price.cycles for each in found}
    times = Executions(functions_of(module), cycles).entry()
    return tuple(
        replace(each, price=replace(each.price, times=times.get(each.step, 0))) for each in found
    )


def _charges(module: ModuleOp, target: Target) -> Iterator[StepCharge]:
    variables, free = variables_of(module), words_only(module)
    for step in module.walk():
        if not isinstance(step, SuperstepOp):
            continue
        tiles = max(target.tiles, last_tile(step, variables))
        alone: list[tuple[Charged, Charge]] = []
        remote: list[Charge] = []
        for op in step.body.block.ops:
            if isinstance(op, Charged | LoadOp | StoreOp):
                charge = no_charge(tiles)
                charge_operation(op, variables, target, charge, free)
                if isinstance(op, Charged):
                    alone.append((op, charge))
                else:
                    remote.append(charge)
        whole = _sum([*(charge for _, charge in alone), *remote], tiles)
        exchange = charged_exchange(whole, target)
        price = charged_price(step, whole, target, free)
        yield StepCharge(step, price, whole, exchange, tuple(_parts(alone, price, target)))


def _sum(charges: list[Charge], tiles: int) -> Charge:
    total = no_charge(tiles)
    for each in charges:
        total.add(each)
    return total


def _parts(
    alone: list[tuple[Charged, Charge]], price: SuperstepPrice, target: Target
) -> Iterator[OperationCharge]:
    tile, cycles = price.busiest_tile, price.exchange_cycles
    own = [int(charged_exchange(each, target)[tile]) for _, each in alone]
    total = sum(own)
    for (op, charge), part in zip(alone, own, strict=True):
        share = cycles * part / total if total else 0.0
        busiest = busiest_of(charge, target)
        yield OperationCharge(
            op,
            charge,
            busiest.exchange_cycles,
            busiest.compute_cycles,
            int(charge.compute[tile]),
            share,
        )
