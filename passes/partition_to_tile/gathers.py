"""All-gathers in rounds: see `passes/replicas/gathers.py`.

Of four chips, each of which has a part of a tensor, chip 0 receives:

    round 1   part 3 from chip 3, and part 1 from chip 1
    round 2   part 2 from chip 3

After the rounds, a chip has the parts in the order in which they came past, which differs by chip.
It puts them in order, and copies them to where they are read. Both happen within the chip.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute

from ...dialects import partition, tile
from ...dialects.partition import laid_out, partition_type
from ...ir.geometry.layout import Layout
from ...ir.geometry.space import AccessMap, AxisMap, Dim, Space, first_entry, identity_map
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ..replicas.gathers import Gather, gather_of
from .conversion import ToTile


def convert_gather(op: partition.RelayoutOp, new: ToTile) -> None:
    """A relayout in rounds becomes copies: those of the rounds, and three within each chip."""
    (value,) = op.inputs
    source, wanted = partition_type(value), partition_type(op.result)
    target, gather = new.target, None
    if target is not None and op.moves is None:
        gather = gather_of(source.layout.data, wanted.layout.data, target)
    if gather is None:
        raise InputError(
            f"{op.name} at {place(op)}: rounds of a relayout that is no all-gather over all chips; "
            "need equal parts on the chips, and then all of it on each"
        )
    name = new.result(op.result)
    _Rounds(new, gather, source.tensor.element_type).copy_all(new.where[value], name)


@dataclass(frozen=True)
class _Rounds:
    """Adds the copies of an all-gather, whose elements have a type."""

    new: ToTile
    gather: Gather
    element: Attribute

    def copy_all(self, source: str, destination: str) -> None:
        """Copy a variable to another one in rounds."""
        gather, chips = self.gather, self.gather.chips
        # By how many chips back along the ring a part began that a chip has.
        passed = {0: self.copy([source], gather.parts, [self.own_part()])}
        for back in range(1, chips // 2 + 1):
            passed[back] = self.copy([passed[back - 1]], gather.parts, [self.moved_on(1)])
            if chips - back != back:
                before = passed[(chips - back + 1) % chips]
                passed[chips - back] = self.copy([before], gather.parts, [self.moved_on(-1)])
        every = [passed[back] for back in range(chips)]
        stacked = self.copy(every, gather.stacked, [self.at(back) for back in range(chips)])
        moves = [self.in_order(chip) for chip in range(chips)]
        whole = self.copy([stacked] * chips, gather.whole, moves)
        first = first_entry((chips, *gather.shape))
        self.new.add(tile.CopyOp([whole], destination, [first], own=True))

    def copy(self, sources: list[str], layout: Layout, moves: list[Space]) -> str:
        """Copy variables to a new one, and return its name."""
        name = self.new.fresh(laid_out(TensorType(self.element, layout.shape), layout))
        self.new.add(tile.CopyOp(sources, name, moves))
        return name

    # Moves. Dimensions: 0 the chip, the others the elements of a part

    def own_part(self) -> Space:
        """The move from the whole tensor to the part of each chip."""
        axes = list(self.elements)
        axis = self.gather.axis
        along = self.gather.part[axis]
        axes[axis] = AxisMap(self.gather.shape[axis], ((0, along), (axis + 1, 1)))
        return self.move(axes, [self.chip, *self.elements])

    def moved_on(self, step: int) -> Space:
        """The move of what each chip has to the chip some steps further on the ring."""
        before = AxisMap(self.gather.chips, ((0, 1),), -step, outside="wrap")
        return self.move([before, *self.elements], [self.chip, *self.elements])

    def at(self, back: int) -> Space:
        """The move of a part to its place in a tensor of all parts, by the chips it came past."""
        place = AxisMap(self.gather.chips, (), back)
        here = [self.chip, *self.elements]
        return self.move(here, [place, *here])

    def in_order(self, chip: int) -> Space:
        """The move of a chip's part to its place in the whole tensor of every chip."""
        gather, axis = self.gather, self.gather.axis
        back = AxisMap(gather.chips, ((0, 1),), -chip, outside="wrap")
        axes = list(self.elements)
        axes[axis] = AxisMap(gather.shape[axis], ((axis + 1, 1),), chip * gather.part[axis])
        return self.move([back, self.chip, *self.elements], [self.chip, *axes])

    @property
    def chip(self) -> AxisMap:
        return AxisMap(self.gather.chips, ((0, 1),))

    @property
    def elements(self) -> tuple[AxisMap, ...]:
        return identity_map(tuple(range(1, len(self.gather.shape) + 1)), self.gather.part).axes

    def move(self, read: list[AxisMap], written: list[AxisMap]) -> Space:
        sizes = (self.gather.chips, *self.gather.part)
        dims = tuple(Dim(f"d{i}", n) for i, n in enumerate(sizes))
        return Space(dims, (AccessMap(tuple(read)),), (AccessMap(tuple(written)),))
