"""Inputs and states that are lists of blocks at the host, and buckets in the program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, DenseArrayBase, FloatAttr, IntegerType, StringAttr, i64
from xdsl.ir import Attribute

from ..ir.geometry.block_lists import BlockLists
from ..ir.support.arrays import Array
from ..ir.support.errors import InputError
from ..ir.upstream import ModuleOp
from .dtypes import numpy_dtype
from .nn.base import number, values_of

BLOCK_INPUTS = "abele.block_inputs"
"""The attribute of a module that lists such inputs, and how their blocks are put into buckets."""

BLOCK_STATES = "abele.block_states"
"""The attribute of a module that lists such states."""

SPILLED = ".spilled"
"""What follows the name of a list in the name of the input or state with blocks that spill."""

NEED = "names of values, rows and columns, their type, six sizes, and a share"


@dataclass(frozen=True)
class BlockInput:
    """A list of blocks at the host: three inputs, or three states.

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
        """For each tier of buckets, the names of the inputs or states of the program."""
        spilled = tuple(f"{name}{SPILLED}" for name in self.names)
        return (self.names, spilled)[: len(self.lists.tiers)]


def encoded(lists: Sequence[BlockInput], given: Mapping[str, Array], what: str) -> dict[str, Array]:
    """Arrays by name, with the buckets of all tiers instead of lists of blocks.

    Raises InputError for a list of blocks that does not fit.

    Args:
        what: what messages call the lists, such as "inputs".
    """
    found = dict(given)
    for each in lists:
        try:
            tiers = each.lists.encode(*(given[name] for name in each.names))
        except InputError as error:
            raise InputError(f"{what} {', '.join(map(repr, each.names))}: {error}") from None
        for names, buckets in zip(each.tier_names, tiers, strict=True):
            found.update(zip(names, buckets, strict=True))
    return found


def decoded(lists: Sequence[BlockInput], held: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays by name, with lists of blocks instead of the buckets of all tiers.

    A list that is put into the same buckets again leaves each block in its place.
    """
    found = dict(held)
    for each in lists:
        if not all(name in held for names in each.tier_names for name in names):
            continue
        tiers = [tuple(found.pop(name) for name in names) for names in each.tier_names]
        index = numpy_dtype(each.index)
        values, *indices = each.lists.decode(tuple((v, r, c) for v, r, c in tiers))
        arrays = (values, *(array.astype(index) for array in indices))
        found.update(zip(each.names, arrays, strict=True))
    return found


def set_block_inputs(
    module: ModuleOp, inputs: Sequence[BlockInput], attribute: str = BLOCK_INPUTS
) -> None:
    """Record in a module which of its inputs, or states, are lists of blocks at the host."""
    module.attributes.pop(attribute, None)
    if inputs:
        module.attributes[attribute] = ArrayAttr(map(_written, inputs))


def _written(each: BlockInput) -> ArrayAttr[Attribute]:
    lists = each.lists
    sizes = (*lists.shape, lists.bands, lists.parts, lists.room, lists.spill)
    array = DenseArrayBase.from_list(i64, sizes)
    return ArrayAttr([*map(StringAttr, each.names), each.index, array, number(lists.oversize)])


def block_inputs(module: ModuleOp, attribute: str = BLOCK_INPUTS) -> tuple[BlockInput, ...]:
    """The inputs, or states, of a module that are lists of blocks at the host.

    Raises InputError if the attribute holds anything else.
    """
    given = module.attributes.get(attribute)
    if given is None:
        return ()
    entries = cast("ArrayAttr[Attribute]", given).data if isinstance(given, ArrayAttr) else (given,)
    return tuple(_read(entry, attribute) for entry in entries)


def block_states(module: ModuleOp) -> tuple[BlockInput, ...]:
    """The states of a module that are lists of blocks at the host. Raises InputError."""
    return block_inputs(module, BLOCK_STATES)


def _read(entry: Attribute, attribute: str) -> BlockInput:
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
    raise InputError(f"{attribute}: {entry}; need {NEED}")
