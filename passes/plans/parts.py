"""The part of a machine on which each function of a module lies.

A function whose attribute names chips lies there (see dialects/placement.py). Its plans are those
of a program on a machine that has only these chips, moved to them. So is what no plan places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...backends.target import Target
from ...dialects import nn
from ...dialects.home import home_of
from ...dialects.placement import CHIPS, ChipSize, Placed, Placement, placement_of
from ...ir.geometry.layout import Layout
from ...ir.geometry.tiles import Tiles
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.support.hash_once import hash_once
from ...ir.upstream import ModuleOp, VerifyException
from ...ir.well_known import ENTRY


@hash_once
@dataclass(frozen=True)
class Part:
    """Some chips of a machine, or all of them, without their I/O tiles.

    Attributes:
        target: a machine that has only these chips, and no I/O tiles.
        placement: which chips they are; None for all.
        aside: the I/O tiles of each chip.
    """

    target: Target
    placement: Placement | None = None
    aside: int = 0

    @staticmethod
    def of(machine: Target, placement: Placement | None = None) -> Part:
        """A part of a machine. Raises InputError for chips that the machine does not have.

        Args:
            placement: which chips; None for all.
        """
        if placement is not None and placement.count == 1:
            # The distance of one chip from the next says nothing.
            placement = Placement(placement.first)
        if placement is None or placement == Placement(0, machine.chips):
            return Part(machine.computing, aside=machine.io_tiles)
        some = machine.some_chips(placement.first, placement.count, placement.apart)
        return Part(some.computing, placement, machine.io_tiles)

    @property
    def is_whole(self) -> bool:
        """Whether the part has all chips of the machine."""
        return self.placement is None

    def moved(self, placed: Placed) -> Placed:
        """A plan or layout for these chips alone, on the machine.

        Raises ValueError if its cells cannot be spread over the chips.
        """
        if self.placement is None and not self.aside:
            return placed
        return _moved(self._on_machine, placed, self._size)

    def own(self, placed: Placed) -> Placed:
        """A plan or layout on the machine, for these chips alone.

        Raises ValueError if it has cells on other chips, or on I/O tiles.
        """
        if self.placement is None and not self.aside:
            return placed
        return _own(self._on_machine, placed, self._size)

    @cached_property
    def _on_machine(self) -> Placement:
        """Which chips of the machine the part has."""
        return self.placement or Placement(0, self.target.chips)

    @cached_property
    def _size(self) -> ChipSize:
        """The tiles of a chip."""
        used = self.target.tiles_per_chip
        return ChipSize(used, used + self.aside)

    def has(self, layout: Layout) -> bool:
        """Whether a layout on the machine lies on these chips."""
        try:
            self.own(layout)
        except ValueError:
            return False
        return True

    @cached_property
    def chips(self) -> NDArray[np.int64]:
        """The chips of the machine that the part has."""
        return np.array(self._on_machine.chips)

    def chips_of(self, tiles: Tiles) -> NDArray[np.int64]:
        """The chips of the machine that have some of the tiles, which are tiles of the part."""
        return self.chips[_chips_of(tiles, self.target.tiles_per_chip)]


@lru_cache(maxsize=8192)
def _moved(placement: Placement, placed: Placed, size: ChipSize) -> Placed:
    return placement.moved(placed, size)


@lru_cache(maxsize=8192)
def _own(placement: Placement, placed: Placed, size: ChipSize) -> Placed:
    return placement.own(placed, size)


@lru_cache(maxsize=8192)
def _chips_of(tiles: Tiles, chip_tiles: int) -> NDArray[np.int64]:
    return tiles.used_chips(chip_tiles)


@dataclass(frozen=True, eq=False)
class Parts:
    """The parts of a machine on which the functions of a module at nn lie.

    A function without the attribute lies where all functions that call it lie, if they lie on the
    same chips, and else on the rest.

    Raises InputError for an attribute that is no placement on the machine.

    Attributes:
        machine: all chips.
        rest: the part for functions that nobody places.
    """

    module: ModuleOp
    machine: Target
    rest: Part
    _of: dict[str, Part] = field(default_factory=dict[str, Part])

    def __post_init__(self) -> None:
        callers: dict[str, list[str]] = {}
        for name, function in self.functions.items():
            for op in function.walk():
                if isinstance(op, CallOp):
                    callers.setdefault(op.callee.string_value(), []).append(name)
        for name in reversed([*self.functions]):
            function = self.functions[name]
            placed = self._asked(function)
            if placed is None and name != ENTRY:
                around = {self._of.get(each, self.rest) for each in callers.get(name, ())}
                placed = around.pop() if len(around) == 1 else None
            self._of[name] = placed or self.rest

    def _asked(self, function: FuncOp) -> Part | None:
        """The part that a function's attribute names; None if it has none."""
        try:
            placement = placement_of(function)
        except VerifyException as error:
            raise InputError(f"{place(function)}: {error}") from None
        if placement is None:
            return None
        try:
            return Part.of(self.machine, placement)
        except InputError as error:
            raise InputError(
                f"@{function.sym_name.data} at {place(function)}: {CHIPS} = {placement}: {error}"
            ) from None

    @cached_property
    def functions(self) -> dict[str, FuncOp]:
        """The functions by name, each before those that call it."""
        every = {
            op.sym_name.data: op
            for op in self.module.body.block.ops
            if isinstance(op, FuncOp) and op.body.blocks
        }
        found: dict[str, FuncOp] = {}
        entered: set[str] = set()

        def visit(name: str) -> None:
            if name in entered or name not in every:
                return
            entered.add(name)
            for op in every[name].walk():
                if isinstance(op, CallOp):
                    visit(op.callee.string_value())
            found[name] = every[name]

        for name in every:
            visit(name)
        return found

    def of(self, function: str) -> Part:
        """The part on which a function lies."""
        return self._of[function]

    def around(self, value: SSAValue | Operation) -> Part:
        """The part on which the function around an operation or value lies."""
        at = value.owner if isinstance(value, SSAValue) else value
        while not isinstance(at, FuncOp):
            parent = at.parent
            if parent is None:
                return self.rest
            at = parent
        return self.of(at.sym_name.data)

    @property
    def placed(self) -> Iterator[Part]:
        """The parts for functions that are placed, each once."""
        return (part for part in dict.fromkeys(self._of.values()) if part != self.rest)

    def names(self, part: Part) -> list[str]:
        """The functions that lie on a part."""
        return [name for name, each in self._of.items() if each == part]

    @cached_property
    def owners(self) -> dict[str, Part]:
        """The part on which each state lies: that of the first placed function which loads, stores
        or is given it, or of the rest if there is none. A required home decides before."""
        found: dict[str, Part] = {}
        for name, function in self.functions.items():
            for op in function.walk():
                if not isinstance(op, nn.LoadOp | nn.StoreOp):
                    continue
                given = (use.operation for value in op.results for use in value.uses)
                taken = (op.callee.string_value() for op in given if isinstance(op, CallOp))
                for each in (name, *taken):
                    state = op.state.string_value()
                    if found.get(state, self.rest) == self.rest:
                        found[state] = self._of.get(each, self.rest)
        for op in self.module.body.block.ops:
            if isinstance(op, nn.StateOp):
                home, part = home_of(op), found.setdefault(op.sym_name.data, self.rest)
                if home is not None and home.reload is None and not part.has(home.layout):
                    found[op.sym_name.data] = Part.of(self.machine)
        return found


class Carrier(NamedTuple):
    """The call that decides where a loop carries a value.

    Attributes:
        function: what it calls.
        number: the number of the operand or result that is the value.
        takes: whether the value is an operand.
    """

    function: str
    number: int
    takes: bool


def reader_or_writer(argument: SSAValue, yielded: SSAValue) -> Carrier | None:
    """The first call that takes a value which a loop carries, or else the one that makes it.

    None if there is no such call. So a value that goes from one part of the machine to another
    crosses there once in an iteration.

    Args:
        argument: the value in the body of the loop.
        yielded: the value that an iteration leaves.
    """
    takes = {use.operation: use.index for use in argument.uses if isinstance(use.operation, CallOp)}
    block = argument.owner
    if takes and isinstance(block, Block):
        for op in block.ops:
            if isinstance(op, CallOp) and op in takes:
                return Carrier(op.callee.string_value(), takes[op], True)
    if isinstance(yielded, OpResult) and isinstance(yielded.op, CallOp):
        return Carrier(yielded.op.callee.string_value(), yielded.index, False)
    return None
