"""The tiles that are kept aside for traffic with the host, and what lies on them.

The host writes inputs to these tiles and reads results from them, while the other tiles compute. At
the beginning of a run a copy brings the inputs to where they are read; from then on, the tiles are
free for those of the next run. At the end another copy takes the results there, where they wait for
the host while the next run computes. So inputs and results have bytes of their own, each of them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerAttr, i64

from ...backends.target import Target
from ...dialects import tile
from ...dialects.dtypes import numpy_dtype
from ...dialects.home import ADDRESS
from ...dialects.partition import laid_out
from ...ir.geometry.layout import linear_layout
from .conversion import ToTile


@dataclass
class IoTiles:
    """Places the variables on the tiles that a machine keeps aside.

    Attributes:
        end: the address behind the last variable.
    """

    target: Target
    end: int = 0

    def _variable(self, near: str, host: str, new: ToTile) -> str:
        """A variable on these tiles for a tensor that is in another variable."""
        tensor, own = new.types[near].tensor, self.target.io_tiles
        itemsize = numpy_dtype(tensor.element_type).itemsize
        layout = linear_layout(tensor.get_shape(), itemsize, own)
        there = laid_out(tensor, replace(layout, first_tile=self.target.tiles - own))
        made = new.declare(new.names.unused(f"{host}.io"), there)
        made.attributes[ADDRESS] = IntegerAttr(self.end, i64)
        self.end += made.bytes_per_tile
        return made.symbol

    def take(self, host: str, parameter: str, new: ToTile) -> None:
        """Take an input from the host, through these tiles."""
        through = self._variable(parameter, host, new)
        new.add(tile.InputOp(host, through, new.types[parameter].tensor))
        new.copy(through, parameter)

    def give(self, result: str, host: str, new: ToTile) -> None:
        """Give a result to the host, through these tiles.

        One that several tiles hold goes directly: a copy would not know which of them owns it.
        """
        if not new.types[result].layout.data.is_partition:
            new.add(tile.OutputOp(result, host, new.types[result].tensor))
            return
        through = self._variable(result, host, new)
        new.copy(result, through)
        new.add(tile.OutputOp(through, host, new.types[result].tensor))
