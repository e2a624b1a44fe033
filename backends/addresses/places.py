"""Whether each variable lies inside its target: tiles, bytes of a tile, alignment."""

from __future__ import annotations

from collections.abc import Mapping

from ...dialects.exchange import VariableOp
from ...ir.provenance import place
from ..faults import MachineFault
from ..target import Target


def check_places(variables: Mapping[str, VariableOp], target: Target) -> None:
    """Raise MachineFault for the first variable outside the target, or at an unaligned address."""
    for name, v in variables.items():
        first, end_tile = v.placed.tiles.span
        if first < 0 or end_tile > target.tiles:
            raise MachineFault(
                f"@{name} at {place(v)}: tiles {v.placed.tiles}; the target has {target.tiles}",
                variable=name,
                tile=end_tile - 1,
            )
        end = v.start + v.placed.block_elements * v.dtype.itemsize
        if v.start < 0 or end > target.bytes_per_tile:
            raise MachineFault(
                f"@{name} at {place(v)}: bytes {v.start}..{end - 1} of tile {first}; a tile has "
                f"{target.bytes_per_tile}",
                variable=name,
                tile=first,
                addresses=(v.start, end),
            )
        if v.start % v.dtype.itemsize:
            raise MachineFault(
                f"@{name} at {place(v)}: address {v.start} of elements of {v.dtype.itemsize} "
                "bytes; need a multiple",
                variable=name,
                tile=first,
                addresses=(v.start, end),
            )
