"""Put the blocks of sparse matrices whose pattern changes from run to run into buckets."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ..backends.target import Target
from ..dialects import nn
from ..dialects.block_inputs import (
    BLOCK_INPUTS,
    BLOCK_STATES,
    BlockInput,
    block_inputs,
    encoded,
    set_block_inputs,
)
from ..dialects.dtypes import element_type, numpy_dtype
from ..dialects.host import host_names
from ..dialects.levels import NN
from ..dialects.nn.base import wide_element
from ..dialects.settable import listed_names
from ..dialects.structured import Structure
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.geometry.block_lists import BlockLists, Tier
from ..ir.provenance import at, named, place
from ..ir.rewriting import may_rewrite
from ..ir.support.arrays import Array
from ..ir.support.errors import InputError
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass, Rewriter
from ..ir.well_known import ENTRY, UPDATED
from .planner.alone import cycles_alone
from .planner.sparse_products import estimated_cycles
from .plans.bucket_product import BucketSizes, bucket_structure
from .plans.planned import asked_target

FINALISTS = 3
"""The numbers of buckets with spilled blocks that the planner prices, of those that are estimated,
and as many without."""


@dataclass(frozen=True)
class BucketBlocks(ModulePass):
    """Put blocks whose pattern only a run knows into buckets. nn -> nn.

    The products are those of nn.block_matmul with a capacity, of values, rows and columns that are
    inputs of the program, or states. Its rows of blocks are cut into bands and its columns into
    parts, and each band and part has a bucket with more room than the average one needs. A bucket
    of the whole matrix takes the blocks that find no room in theirs. The program then has buckets
    instead of lists, and an attribute that says how the host makes them: any pattern that fits is
    one more run. Products of all buckets add up. The planner prices the most promising numbers of
    bands and parts.

        @main(%v, %x, %r, %c)                  @main(%v, %x, %r, %c, %v.spilled, ...)
        %0 = nn.block_matmul %v, %x            %0 = nn.compute(%v, %x, %r, %c) ...
            at %r, %c capacity 40              %1 = nn.compute(%v.spilled, %x, ...) ...
                                               %2 = nn.add %0, %1

    Attributes:
        target: as for plan-splits.
    """

    name = "bucket-blocks"
    takes = NN
    skips_other_levels = True

    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module.

        Raises InputError for a list of blocks that is neither an input nor a state, and for blocks
        of states that do not fit.
        """
        groups: dict[tuple[SSAValue | str, ...], list[nn.BlockMatMulOp]] = {}
        for each in op.walk():
            if isinstance(each, nn.BlockMatMulOp) and each.most_blocks is not None:
                groups.setdefault(tuple(map(_source, _lists(each))), []).append(each)
        if not groups:
            return
        functions = [f for f in op.body.block.ops if isinstance(f, FuncOp)]
        main = next((f for f in functions if f.sym_name.data == ENTRY), None)
        if main is None:
            raise InputError(f"no function @{ENTRY}, whose inputs could be lists of blocks")
        loads = _Loads(op)
        for sources, products in groups.items():
            _check(sources, products, main, loads)
        target = asked_target(op, self.target)
        for sources, products in groups.items():
            if not may_rewrite():
                return
            _check_room(products[0], target)
            buckets = _chosen(products, target)
            if isinstance(sources[0], str):
                held = _States(op, main, ctx)
            else:
                held = _Inputs(op, main, ctx)
            held.replace(products, buckets)


def _lists(op: nn.BlockMatMulOp) -> tuple[SSAValue, SSAValue, SSAValue]:
    """The values, rows and columns of blocks."""
    return op.values, op.rows, op.columns


def _source(value: SSAValue) -> SSAValue | str:
    """The state from which a value is loaded; the value, if it is not."""
    op = value.owner
    return op.state.string_value() if isinstance(op, nn.LoadOp) else value


class _Loads:
    """The uses of states."""

    def __init__(self, module: ModuleOp) -> None:
        self.states: dict[str, list[nn.LoadOp]] = {}
        self.stored = set[str]()
        for op in module.walk():
            if isinstance(op, nn.LoadOp):
                self.states.setdefault(op.state.string_value(), []).append(op)
            elif isinstance(op, nn.StoreOp):
                self.stored.add(op.state.string_value())


def _check(
    sources: tuple[SSAValue | str, ...],
    products: Sequence[nn.BlockMatMulOp],
    main: FuncOp,
    loads: _Loads,
) -> None:
    """Raise InputError unless blocks of products are inputs or states, and nothing else."""
    first, *others = products
    where = f"{first.name} at {place(first)}: capacity"
    if len({isinstance(each, str) for each in sources}) > 1:
        raise InputError(f"{where} of inputs and states; need three inputs, or three states")
    if len({*sources}) < len(sources) or any(_source(each.dense) in sources for each in products):
        raise InputError(f"{where} of a list that is used twice; need one each")
    for each in sources:
        if isinstance(each, str):
            values: list[SSAValue] = [op.result for op in loads.states[each]]
            if each in loads.stored:
                raise InputError(f"{where} of a state that the program stores: @{each}")
        elif isinstance(each, BlockArgument) and each.block is main.body.block:
            values = [each]
        else:
            raise InputError(f"{where} of a list that is computed; need an input or a state")
        if any(use.operation not in products for value in values for use in value.uses):
            raise InputError(f"{where} of a list that something else reads")
    for each in others:
        if _asked(each) != _asked(first):
            raise InputError(
                f"{each.name} at {place(each)}: capacity of blocks that another product reads; "
                "need the same capacity, oversize, buckets and matrix"
            )


def _asked(op: nn.BlockMatMulOp) -> tuple[object, ...]:
    return (op.most_blocks, op.room_more, op.buckets, op.grid)


def _check_room(op: nn.BlockMatMulOp, target: Target) -> None:
    """Raise InputError for blocks of which no tiles of a target can hold as many."""
    _, height, width = nn.shape_of(op.values)
    assert op.most_blocks is not None
    most = ceil(op.most_blocks * (1 + op.room_more))
    size = most * height * width * numpy_dtype(nn.element_of(op.values)).itemsize
    held = target.tiles * target.usable_bytes_per_tile
    if size > held:
        raise InputError(
            f"{op.name} at {place(op)}: buckets for {most:,} blocks take {size:,} bytes; "
            f"{target.spelling()} has {held:,}"
        )


# The number of buckets


def _chosen(products: Sequence[nn.BlockMatMulOp], target: Target) -> BlockLists:
    """The buckets for the blocks of some products: those that were asked for, or the fastest."""
    first = products[0]
    if first.buckets is None:
        return fastest(products, target)[0]
    blocks, (bands, parts) = first.most_blocks, nn.values_of(first.buckets)
    assert blocks is not None
    return BlockLists.planned(first.grid, (bands, parts), blocks, first.room_more)


def fastest(products: Sequence[nn.BlockMatMulOp], target: Target) -> tuple[BlockLists, float]:
    """The buckets with which products of one list with a capacity are fastest, and their cycles."""
    first = products[0]
    blocks = first.most_blocks
    assert blocks is not None
    candidates = [
        BlockLists.planned(first.grid, (bands, parts), blocks, first.room_more)
        for bands in _divisors(first.grid[0], target.tiles)
        for parts in _divisors(first.grid[1], target.tiles)
        if bands * parts <= min(target.tiles, max(blocks, 1))
    ]
    candidates.sort(key=lambda each: _estimate(products, each, target))
    # A second product for spilled blocks costs more than an estimate sees.
    promising = [
        each
        for spills in (False, True)
        for each in [c for c in candidates if (c.spill > 0) == spills][:FINALISTS]
    ]
    prices = [_price(products, each, target) for each in promising]
    best = min(range(len(prices)), key=prices.__getitem__)
    return promising[best], prices[best]


def _divisors(n: int, most: int) -> list[int]:
    return [each for each in range(1, min(n, most) + 1) if n % each == 0] or [1]


def _structure(op: nn.BlockMatMulOp, tier: Tier) -> Structure:
    _, height, width = nn.shape_of(op.values)
    high, wide = tier.sizes(op.grid)
    return bucket_structure(
        BucketSizes(tier.bands, high, tier.parts, wide, tier.room, (height, width)),
        op.columns_shape,
        transposed=op.transposed is not None,
        before=len(op.columns_shape) if op.dense_last is not None else 0,
    )


def _price(products: Sequence[nn.BlockMatMulOp], lists: BlockLists, target: Target) -> float:
    """The cycles of products with all tiers of buckets."""
    total = 0.0
    # Inputs come from the host, each element once; states lie where they are read.
    arrives = not isinstance(products[0].values.owner, nn.LoadOp)
    dense = [arrives, True, arrives, arrives]
    for op in products:
        number = numpy_dtype(nn.element_of(op.values))
        for tier in lists.tiers:
            index = tier.index(lists.shape)
            kinds = [number, number, index, index, numpy_dtype(nn.element_of(op.result))]
            total += cycles_alone(_structure(op, tier), kinds, dense, target)
    return total


def _estimate(products: Sequence[nn.BlockMatMulOp], lists: BlockLists, target: Target) -> float:
    """About the cycles of one of some products that read the same buckets."""
    op = products[0]
    first = lists.tiers[0]
    high, wide = first.sizes(lists.shape)
    bands, parts = lists.bands, lists.parts
    if op.transposed is not None:
        high, wide, bands, parts = wide, high, parts, bands
    found = estimated_cycles(
        (bands, parts),
        high,
        first.room + -(-lists.spill // (bands * parts)),
        # The spilled blocks read any dense rows.
        wide * (parts if lists.spill else 1),
        op.block,
        int(np.prod(op.columns_shape, dtype=np.int64)),
        numpy_dtype(nn.element_of(op.values)),
        target,
    )
    return float(found[0])


# Rewriting


class _Held(ABC):
    """Where a program gets lists of blocks from.

    Attributes:
        attribute: of a module, for lists of this kind.
    """

    attribute: ClassVar[str]

    def __init__(self, module: ModuleOp, main: FuncOp, ctx: Context) -> None:
        self.module = module
        self.main = main
        self.ctx = ctx

    def replace(self, products: Sequence[nn.BlockMatMulOp], lists: BlockLists) -> None:
        """Let the program hold buckets instead of lists, and replace the products."""
        first = products[0]
        values, rows, columns = self.names(first)
        made = BlockInput((values, rows, columns), nn.element_of(first.rows), lists)
        types = _types(first, lists)
        structures = [[_structure(op, tier) for tier in lists.tiers] for op in products]
        owners = (each.owner for op in products for each in _lists(op))
        loads = dict.fromkeys(each for each in owners if isinstance(each, nn.LoadOp))
        name = f"put the blocks of {first.name} into buckets"
        with Edit(source_at(name, _Held.replace), first) as edit:
            tiers = self.take(products, made, types, edit)
            for op, mine, buckets in zip(products, structures, tiers, strict=True):
                _multiply(op, mine, buckets, edit)
            for load in loads:
                edit.erase(load)
            known = block_inputs(self.module, self.attribute)
            set_block_inputs(self.module, (*known, made), self.attribute)

    @abstractmethod
    def names(self, op: nn.BlockMatMulOp) -> tuple[str, ...]:
        """The names of values, rows and columns of a product."""

    @abstractmethod
    def take(
        self,
        products: Sequence[nn.BlockMatMulOp],
        made: BlockInput,
        types: Sequence[tuple[TensorType[Attribute], ...]],
        edit: Edit,
    ) -> list[list[Sequence[SSAValue]]]:
        """For each product, the buckets of each tier, of these types."""


class _Inputs(_Held):
    """Lists that are inputs of the program."""

    attribute = BLOCK_INPUTS

    def names(self, op: nn.BlockMatMulOp) -> tuple[str, ...]:
        listed = host_names(self.main, "arg_names", len(self.main.body.block.args))
        return tuple(listed[each.index] for each in _lists(op) if isinstance(each, BlockArgument))

    def take(
        self,
        products: Sequence[nn.BlockMatMulOp],
        made: BlockInput,
        types: Sequence[tuple[TensorType[Attribute], ...]],
        edit: Edit,
    ) -> list[list[Sequence[SSAValue]]]:
        main = self.main
        names = host_names(main, "arg_names", len(main.body.block.args))
        own = map(Rewriter.replace_value_with_new_type, _lists(products[0]), types[0])
        tiers: list[Sequence[SSAValue]] = [list(own)]
        for kinds, called in zip(types[1:], made.tier_names[1:], strict=True):
            pairs = zip(kinds, called, strict=True)
            tiers.append([_input(main, kind, name, names) for kind, name in pairs])
        main.update_function_type()
        main.properties.pop("arg_names", None)
        main.attributes["arg_names"] = ArrayAttr(map(StringAttr, names))
        edit.modified(main)
        return [tiers] * len(products)


class _States(_Held):
    """Lists that are states of the program. The host may set them."""

    attribute = BLOCK_STATES

    def names(self, op: nn.BlockMatMulOp) -> tuple[str, ...]:
        return tuple(str(_source(each)) for each in _lists(op))

    def take(
        self,
        products: Sequence[nn.BlockMatMulOp],
        made: BlockInput,
        types: Sequence[tuple[TensorType[Attribute], ...]],
        edit: Edit,
    ) -> list[list[Sequence[SSAValue]]]:
        states = {
            op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, nn.StateOp)
        }
        old = [states[name] for name in made.names]
        first = encoded([made], {op.sym_name.data: op.value.array for op in old}, "states")
        for op in old:
            self._state(op.sym_name.data, first, op, edit)
        for names in made.tier_names[1:]:
            for name, op in zip(names, old, strict=True):
                if name in states:
                    raise InputError(f"the program has a state {name!r}; need another name for it")
                self._state(name, first, op, edit)
        listed = listed_names(self.module, UPDATED) or ()
        every = (*listed, *(name for names in made.tier_names for name in names))
        self.module.attributes[UPDATED] = ArrayAttr(map(StringAttr, dict.fromkeys(every)))
        found: list[list[Sequence[SSAValue]]] = []
        for product in products:
            tiers: list[Sequence[SSAValue]] = []
            for kinds, names in zip(types, made.tier_names, strict=True):
                loads = [nn.LoadOp(*each) for each in zip(names, kinds, strict=True)]
                for load in loads:
                    load.location = product.location
                    edit.insert(load, InsertPoint.before(product))
                tiers.append([load.result for load in loads])
            found.append(tiers)
        for op in old:
            edit.erase(op)
        return found

    def _state(self, name: str, first: Mapping[str, Array], like: nn.StateOp, edit: Edit) -> None:
        """Insert a state with its buckets before another one."""
        array = first[name]
        blob = self.ctx.blobs.add(array) if isinstance(self.ctx, AbeleContext) else Blob(array)
        made = nn.StateOp(name, blob)
        made.location = like.location
        edit.insert(made, InsertPoint.before(like))


def _types(op: nn.BlockMatMulOp, lists: BlockLists) -> list[tuple[TensorType[Attribute], ...]]:
    """For each tier, the types of the values, rows and columns of its blocks."""
    element, (_, height, width) = nn.element_of(op.values), nn.shape_of(op.values)
    found: list[tuple[TensorType[Attribute], ...]] = []
    for tier in lists.tiers:
        places = (tier.bands, tier.parts, tier.room)
        index = TensorType(element_type(tier.index(lists.shape)), places)
        found.append((TensorType(element, (*places, height, width)), index, index))
    return found


def _input(main: FuncOp, kind: TensorType[Attribute], name: str, names: list[str]) -> SSAValue:
    """A new input of the program, whose name is added to those of the others."""
    if name in names:
        raise InputError(f"the program has an input {name!r}; need another name for it")
    value = main.body.block.insert_arg(kind, len(main.body.block.args))
    value.name_hint = None
    value.location = named(name)
    names.append(name)
    return value


def _multiply(
    op: nn.BlockMatMulOp,
    structures: Sequence[Structure],
    tiers: Sequence[Sequence[SSAValue]],
    edit: Edit,
) -> None:
    """Replace a product by the sum of those with the buckets of each tier."""
    point, exact = InsertPoint.before(op), nn.element_of(op.result)
    wide = wide_element(exact) if len(tiers) > 1 else exact
    total: SSAValue | None = None
    for structure, (values, rows, columns) in zip(structures, tiers, strict=True):
        kind = nn.tensor(nn.shape_of(op.result), wide)
        made = nn.ComputeOp([values, op.dense, rows, columns], structure, kind)
        made.location = op.location if total is None else at(op, "spilled")
        edit.insert(made, point)
        if total is None:
            total = made.result
            continue
        added = nn.AddOp(total, made.result)
        added.location = at(op, "sum")
        edit.insert(added, point)
        total = added.result
    assert total is not None
    if wide != exact:
        cast = nn.CastOp(total, exact)
        cast.location = at(op, "rounded")
        edit.insert(cast, point)
        total = cast.result
    edit.replace(op, [total])
