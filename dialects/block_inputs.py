"""Inputs of a program that are lists of blocks at the host, and buckets in the program."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerType, StringAttr, i64
from xdsl.ir import Attribute

from ..ir.geometry.block_lists import BlockLists
from ..ir.support.errors import InputError
from ..ir.upstream import ModuleOp
from .nn.base import number, values_of

BLOCK_INPUTS = "abele.block_inputs"
"""The attribute of a module that lists such inputs, and how their blocks are put into buckets."""

SPILLED = ".spilled"
"""What follows the name of a list in the name of the input with the blocks that spill."""

NEED = "names of values, rows and columns, their type, six sizes, and a share"


@dataclass(frozen=True)
class BlockInput:
    """A list of blocks at the host.

    Attributes:
        names: of values, rows and columns.
        index: the type of rows and columns.
        lists: how blocks are put into buckets.
    """

    names: tuple[str, str, str]
    index: Attribute
    lists: BlockLists

    @property
    def tier_names(self) -> tuple[tuple[str, ...], ...]:
        """For each tier of buckets, the names of the inputs of the program."""
        spilled = tuple(f"{name}{SPILLED}" for name in self.names)
        return (self.names, spilled)[: len(self.lists.tiers)]


def set_block_inputs(module: ModuleOp, inputs: Sequence[BlockInput]) -> None:
    """Record in a module which of its inputs are lists of blocks at the host."""
    module.attributes.pop(BLOCK_INPUTS, None)
    if inputs:
        module.attributes[BLOCK_INPUTS] = ArrayAttr(map(_written, inputs))


def _written(each: BlockInput) -> ArrayAttr[Attribute]:
    lists = each.lists
    sizes = (*lists.shape, lists.bands, lists.parts, lists.room, lists.spill)
    array = DenseArrayBase.from_list(i64, sizes)
    return ArrayAttr([*map(StringAttr, each.names), each.index, array, number(lists.oversize)])


def block_inputs(module: ModuleOp) -> tuple[BlockInput, ...]:
    """The inputs of a module that are lists of blocks at the host.

    Raises InputError if the attribute holds anything else.
    """
    given = module.attributes.get(BLOCK_INPUTS)
    if given is None:
        return ()
    entries = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    return tuple(map(_read, entries))


def _read(entry: Attribute) -> BlockInput:
    parts = cast("ArrayAttr[Attribute]", entry).data if isinstance(entry, ArrayAttr) else ()
    match parts:
        case (
            StringAttr() as values,
            StringAttr() as rows,
            StringAttr() as columns,
            IntegerType() as index,
            DenseArrayBase() as sizes,
            FloatAttr() as oversize,
        ):
            numbers = values_of(cast("DenseArrayBase[IntegerType]", sizes))
            if len(numbers) == 6 and min(numbers) >= 0 and oversize.value.data >= 0:
                high, wide, bands, parts, room, spill = numbers
                if bands and parts and not high % bands and not wide % parts:
                    lists = BlockLists((high, wide), bands, parts, room, spill, oversize.value.data)
                    return BlockInput((values.data, rows.data, columns.data), index, lists)
        case _:
            pass
    raise InputError(f"{BLOCK_INPUTS}: {entry}; need {NEED}")
