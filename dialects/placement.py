"""The placement of a function: the chips on which its operations, and what it holds, lie.

A function of nn may have an attribute with three numbers: its first chip, how many chips it has,
and how many chips they are apart.

    func.func @stage1(%x: tensor<8xf32>) -> tensor<8xf32> attributes {abele.chips = [1, 2, 4]} {...}

lies on chips 1 and 5. The first of these chips is its chip 0, and so on: a program that lies on as
many chips of a machine of its own is moved there.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from ..ir.geometry.layout import Layout, canonical, placement_order, with_gaps
from ..ir.geometry.tiles import MOST_CHIPS, Tiles, digits_of_chips
from ..ir.upstream import VerifyException
from .abele import Plan

CHIPS = "abele.chips"
"""The attribute of a function."""

Placed = TypeVar("Placed", Plan, Layout)


class ChipSize(NamedTuple):
    """How many tiles a chip has.

    Attributes:
        used: the first ones, on which programs lie. A machine of these chips alone has no others.
        all: with those that are kept aside.
    """

    used: int
    all: int


@dataclass(frozen=True)
class Placement:
    """Some chips of a machine.

        Placement(1, 2, 4) of 8 chips:   . 0 . . . 1 . .

    Raises ValueError for numbers that are no placement.

    Attributes:
        first: the first chip.
        count: how many chips there are.
        apart: the distance from a chip to the next.
    """

    first: int
    count: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        if not 0 <= self.first <= MOST_CHIPS:
            raise ValueError(f"first chip {self.first}; need 0 to {MOST_CHIPS}")
        if not 1 <= self.count <= MOST_CHIPS:
            raise ValueError(f"{self.count} chips; need 1 to {MOST_CHIPS}")
        if not 1 <= self.apart <= MOST_CHIPS:
            raise ValueError(f"chips {self.apart} apart; need 1 to {MOST_CHIPS}")

    @property
    def chips(self) -> range:
        """The chips."""
        return range(self.first, self.first + self.count * self.apart, self.apart)

    @property
    def last(self) -> int:
        """The last chip."""
        return self.chips[-1]

    @property
    def attribute(self) -> Attribute:
        """The attribute that gives a function this placement."""
        return ArrayAttr([IntegerAttr(n, i64) for n in (self.first, self.count, self.apart)])

    def __str__(self) -> str:
        return f"[{self.first}, {self.count}, {self.apart}]"

    # From chips of its own to these chips, and back

    def moved(self, placed: Placed, size: ChipSize) -> Placed:
        """A plan or layout for a machine that has only these chips, moved to them.

        Raises ValueError if cells lie on several chips in a row that are not in a row here, and do
        not fill them.
        """
        if isinstance(placed, Layout):
            if self._has_gaps(size):
                placed = with_gaps(placed, size.used)
            return canonical(self._at(placed, *self._to(placed.tiles, size)))
        combine = placed.combine and self.moved(placed.combine, size)
        if self._has_gaps(size):
            placed = _with_gaps(placed, size.used)
        return replace(self._at(placed, *self._to(placed.tiles, size)), combine=combine)

    def own(self, placed: Placed, size: ChipSize) -> Placed:
        """A plan or layout that lies on these chips, for a machine that has only them.

        Raises ValueError if it has cells on other chips, or on tiles that are not used.
        """
        if isinstance(placed, Layout):
            if self._has_gaps(size):
                placed = with_gaps(placed, size.all)
            return canonical(self._at(placed, *self._from(placed.tiles, size)))
        combine = placed.combine and self.own(placed.combine, size)
        return replace(self._at(placed, *self._from(placed.tiles, size)), combine=combine)

    def _has_gaps(self, size: ChipSize) -> bool:
        """Whether the used tiles of a chip are not neighbours of those of the next one."""
        return self.apart > 1 or size.used < size.all

    @staticmethod
    def _at(placed: Placed, first_tile: int, apart: int) -> Placed:
        return replace(placed, first_tile=first_tile, apart=apart)

    def _to(self, tiles: Tiles, size: ChipSize) -> tuple[int, int]:
        """The first tile here, and the distance between chips."""
        chip, at = divmod(tiles.first, size.used)
        self._check_rows(tiles, at, size)
        apart, more = divmod(tiles.apart * self.apart * size.all, size.used)
        if more:
            raise ValueError(f"tiles {tiles}; chips have {size.used}, which is no divisor")
        return (self.first + chip * self.apart) * size.all + at, apart

    def _from(self, tiles: Tiles, size: ChipSize) -> tuple[int, int]:
        chip, at = divmod(tiles.first, size.all)
        self._check_rows(tiles, at, size)
        own, rest = divmod(chip - self.first, self.apart)
        apart, more = divmod(tiles.apart, self.apart * size.all)
        last = (tiles.end - 1) // size.all
        if own < 0 or rest or more or last > self.last:
            raise ValueError(f"tiles {tiles}; chips {self} have {self._tiles(size)}")
        return own * size.used + at, apart * size.used

    def _check_rows(self, tiles: Tiles, at: int, size: ChipSize) -> None:
        """Raise ValueError if cells in a row cross from the used tiles of a chip to others, or to a
        chip that is not the next here."""
        if not self._has_gaps(size) or at + tiles.on_a_chip <= size.used:
            return
        if self.apart > 1 and size.used == size.all:
            raise ValueError(
                f"tiles {tiles} in a row; chips {self} are not neighbours, so parts need to be "
                "spread over them with across"
            )
        raise ValueError(f"tiles {tiles} in a row; programs may use {self._tiles(size)}")

    def _tiles(self, size: ChipSize) -> str:
        begins = (c * size.all for c in self.chips[:4])
        ends = (f"{begin}..{begin + size.used - 1}" for begin in begins)
        return ", ".join(ends) + (", ..." if self.count > 4 else "")


def _with_gaps(plan: Plan, chip_tiles: int) -> Plan:
    """The plan spread over chips, if its cells fill several chips in a row; else the plan.

    Raises ValueError for a plan in steps whose cells do.
    """
    order = placement_order(len(plan.split), plan.order)
    chips = None if plan.across else digits_of_chips(plan.tiles, chip_tiles)
    if chips is None:
        return plan
    if plan.steps or plan.ring:
        raise ValueError(f"tiles {plan.tiles} in a row, in steps; steps take one chip")
    across = {d: n for d, n in zip(order, chips, strict=True)}
    return replace(plan, across=tuple(across[d] for d in sorted(across)), apart=chip_tiles)


def placement_of(function: FuncOp) -> Placement | None:
    """The placement that a function's attribute gives it; None if it has none.

    Raises VerifyException if the attribute is anything but a placement.
    """
    given = function.attributes.get(CHIPS)
    if given is None:
        return None
    listed = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else ()
    numbers = [each.value.data for each in listed if isinstance(each, IntegerAttr)]
    what = f"@{function.sym_name.data}: {CHIPS} = {given}"
    if len(numbers) != 3 or len(listed) != 3:
        raise VerifyException(f"{what}; need [first chip, number of chips, chips apart]")
    try:
        return Placement(*numbers)
    except ValueError as error:
        raise VerifyException(f"{what}: {error}") from None


def keep_placement(old: FuncOp, new: FuncOp) -> None:
    """Give a function the placement of the one that it is made from."""
    if CHIPS in old.attributes:
        new.attributes[CHIPS] = old.attributes[CHIPS]
