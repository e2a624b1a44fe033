"""The price of every operation of a program: its cycles and bytes, taken by itself."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
from xdsl.ir import Operation

from ...dialects.steps import Copy, Superstep, Vertices
from ...dialects.variable import Variable
from ...ir.provenance import line_of, origin
from ...ir.upstream import ModuleOp
from ..target import Target
from .price import (
    block_sizes,
    busiest_of,
    charge_operation,
    last_tile,
    no_charge,
    price,
    variables_of,
)
from .words import words_only


@dataclass(frozen=True)
class OperationPrice:
    """The cycles and bytes of one execution of a copy or a compute set.

    Attributes:
        operation: its name, such as exchange.move.
        node: the framework's node.
        line: of the user's file, such as net.py:12; "" if it is not known.
        superstep: where it runs.
        writes: the variable that it fills.
        times: how often a run executes it.
        exchange_cycles, compute_cycles: of the tile that exchanges and computes longest for this
            operation alone; copies within the tile and filled padding count as compute. The busiest
            tile of a superstep may be another one, so these need not add up to the superstep's.
        exchange_bytes: received from other tiles, summed over all tiles.
        tile_bytes: of the result on the fullest tile.
        worst_compute_cycles: those of a lookup whose indices all name rows of one tile, where
            compute_cycles are those of indices that are spread evenly; equal for other operations.
    """

    operation: str
    node: str | None
    line: str
    superstep: str
    writes: str
    times: int
    exchange_cycles: int
    compute_cycles: int
    exchange_bytes: int
    tile_bytes: int
    worst_compute_cycles: int

    @property
    def cycles(self) -> int:
        """The cycles of one execution, without those of the sync."""
        return self.exchange_cycles + self.compute_cycles


Priced = Copy | Vertices


def price_operations(module: ModuleOp, target: Target) -> dict[Priced, OperationPrice]:
    """The prices of all copies and compute sets in supersteps, in the order of the text.

    Raises InputError for an unknown variable.
    """
    variables, free = variables_of(module), words_only(module)
    steps = [op for op in module.walk() if isinstance(op, Superstep)]
    return {
        op: found
        for step, whole in zip(steps, price(module, target), strict=True)
        for op, found in _priced(step, whole.times, variables, target, free)
    }


def _priced(
    step: Superstep,
    times: int,
    variables: Mapping[str, Variable],
    target: Target,
    free: Container[Operation],
) -> Iterator[tuple[Priced, OperationPrice]]:
    tiles = max(target.tiles, last_tile(step, variables))
    for op in step.body.block.ops:
        if not isinstance(op, Priced):
            continue
        charge = no_charge(tiles)
        charge_operation(op, variables, target, charge, free)
        busiest = busiest_of(charge, target)
        results = [variables[name] for name in op.destinations]
        found = OperationPrice(
            operation=op.name,
            node=origin(op),
            line=line_of(op),
            superstep=step.sym_name.data,
            writes=op.destination,
            times=times,
            exchange_cycles=busiest.exchange_cycles,
            compute_cycles=busiest.compute_cycles,
            exchange_bytes=int(charge.traffic.received.sum()),
            tile_bytes=sum(
                int(np.max(block_sizes(result.placed), initial=0)) * result.dtype.itemsize
                for result in results
            ),
            worst_compute_cycles=busiest.worst_compute_cycles,
        )
        yield op, found
