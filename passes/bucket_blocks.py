"""Put the blocks of sparse matrices whose pattern changes from run to run into buckets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ..backends.prices import cost
from ..backends.prices.block_products import block_product_cycles
from ..backends.target import Target
from ..dialects import nn
from ..dialects.block_inputs import BlockInput, block_inputs, set_block_inputs
from ..dialects.dtypes import element_type, numpy_dtype
from ..dialects.host import host_names
from ..dialects.levels import NN
from ..dialects.nn.base import wide_element
from ..dialects.structured import Structure
from ..ir.edit import Edit, source_at
from ..ir.geometry.block_lists import BlockLists, Tier
from ..ir.provenance import at, named, place
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass, Rewriter
from ..ir.well_known import ENTRY
from .planner.alone import cycles_alone
from .plans.block_tiers import tier_structure
from .plans.planned import asked_target

FINALISTS = 3
"""The numbers of buckets that the planner prices, of those that are estimated."""


@dataclass(frozen=True)
class BucketBlocks(ModulePass):
    """Put blocks whose pattern only a run knows into buckets. nn -> nn.

    The products are those of nn.block_matmul with a capacity, of values, rows and columns that are
    inputs of the program. Its rows of blocks are cut into bands and its columns into parts, and
    each band and part has a bucket with more room than the average one needs. A bucket of the
    whole matrix takes the blocks that find no room in theirs. The program then takes buckets
    instead of lists, and has an attribute that says how the host makes them: any pattern that fits
    is one more run. Products of all buckets add up. The planner prices the most promising numbers
    of bands and parts.

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
        """Run on a module. Raises InputError for a list of blocks that is no input."""
        groups: dict[tuple[SSAValue, ...], list[nn.BlockMatMulOp]] = {}
        for each in op.walk():
            if isinstance(each, nn.BlockMatMulOp) and each.capacity is not None:
                groups.setdefault((each.values, each.rows, each.columns), []).append(each)
        if not groups:
            return
        main = next(
            f for f in op.body.block.ops if isinstance(f, FuncOp) and f.sym_name.data == ENTRY
        )
        for products in groups.values():
            _check(products, main)
        target = asked_target(op, self.target)
        for products in groups.values():
            if may_rewrite():
                lists = _chosen(products, target)
                set_block_inputs(op, (*block_inputs(op), _replace(products, main, lists)))


def _check(products: Sequence[nn.BlockMatMulOp], main: FuncOp) -> None:
    """Raise InputError unless blocks of products are inputs of the program and nothing else."""
    first, *others = products
    lists = (first.values, first.rows, first.columns)
    for each in lists:
        where = f"{first.name} at {place(first)}: capacity"
        if not isinstance(each, BlockArgument) or each.block is not main.body.block:
            raise InputError(f"{where} of a list that is computed; need inputs of the program")
        if any(use.operation not in products for use in each.uses):
            raise InputError(f"{where} of a list that something else reads")
    if len({*lists}) < len(lists) or any(each.dense in lists for each in products):
        raise InputError(f"{first.name} at {place(first)}: need an input for each list of blocks")
    for each in others:
        if _asked(each) != _asked(first):
            raise InputError(
                f"{each.name} at {place(each)}: capacity of blocks that another product reads; "
                "need the same capacity, oversize, buckets and matrix"
            )


def _asked(op: nn.BlockMatMulOp) -> tuple[object, ...]:
    return (op.most_blocks, op.room_more, op.buckets, op.grid)


# The number of buckets


def _chosen(products: Sequence[nn.BlockMatMulOp], target: Target) -> BlockLists:
    """The buckets for the blocks of some products: those that were asked for, or the fastest."""
    first = products[0]
    blocks = first.most_blocks
    assert blocks is not None
    if first.buckets is not None:
        bands, parts = nn.values_of(first.buckets)
        return BlockLists.planned(first.grid, (bands, parts), blocks, first.room_more)
    candidates = [
        BlockLists.planned(first.grid, (bands, parts), blocks, first.room_more)
        for bands in _divisors(first.grid[0], target.tiles)
        for parts in _divisors(first.grid[1], target.tiles)
        if bands * parts <= min(target.tiles, max(blocks, 1))
    ]
    promising = sorted(candidates, key=lambda each: _estimate(products, each, target))[:FINALISTS]
    return min(promising, key=lambda each: _price(products, each, target))


def _divisors(n: int, most: int) -> list[int]:
    return [each for each in range(1, min(n, most) + 1) if n % each == 0] or [1]


def _structure(op: nn.BlockMatMulOp, tier: Tier) -> Structure:
    _, height, width = nn.shape_of(op.values)
    return tier_structure(
        tier,
        op.grid,
        (height, width),
        op.columns_shape,
        transposed=op.transposed is not None,
        dense_last=op.dense_last is not None,
    )


def _price(products: Sequence[nn.BlockMatMulOp], lists: BlockLists, target: Target) -> float:
    """The cycles of products with all tiers of buckets."""
    total = 0.0
    for op in products:
        number = numpy_dtype(nn.element_of(op.values))
        for tier in lists.tiers:
            index = tier.index(lists.shape)
            kinds = [number, number, index, index, numpy_dtype(nn.element_of(op.result))]
            total += cycles_alone(_structure(op, tier), kinds, [False, True, False, False], target)
    return total


def _estimate(products: Sequence[nn.BlockMatMulOp], lists: BlockLists, target: Target) -> float:
    """About the cycles of products on a tile for each bucket and some of the columns."""
    op = products[0]
    dtype, (height, width) = numpy_dtype(nn.element_of(op.values)), op.block
    n = int(np.prod(op.columns_shape, dtype=np.int64))
    first = lists.tiers[0]
    high, wide = first.sizes(lists.shape)
    bands, parts = lists.bands, lists.parts
    if op.transposed is not None:
        high, wide, bands, parts = wide, high, parts, bands
    across = np.arange(1, min(n, max(target.tiles // (bands * parts), 1)) + 1)
    columns = -(-n // across)
    room = first.room + -(-lists.spill // (bands * parts))
    cycles = block_product_cycles(
        room, min(high, room), (height, width), columns, dtype.name, target
    )
    # The spilled blocks read any dense rows.
    read = wide * (parts if lists.spill else 1)
    cycles = cycles + cost.least_exchange_cycles(read * width * columns * dtype.itemsize, 0, target)
    if parts > 1:
        sums = high * height * columns
        cycles = cycles + cost.least_exchange_cycles(4 * sums, 0, target)
        cycles = cycles + cost.reduce_cycles(-(-sums // parts), parts, "float32", target)
    return float(np.min(cycles))


# Rewriting


def _replace(products: Sequence[nn.BlockMatMulOp], main: FuncOp, lists: BlockLists) -> BlockInput:
    """Let the program take buckets instead of lists, and replace the products."""
    first = products[0]
    given = [each for each in first.operands if each is not first.dense]
    names = host_names(main, "arg_names", len(main.body.block.args))
    values, rows, columns = (names[each.index] for each in given if isinstance(each, BlockArgument))
    made = BlockInput((values, rows, columns), nn.element_of(first.rows), lists)
    structures = [[_structure(op, tier) for tier in lists.tiers] for op in products]
    with Edit(source_at(f"put the blocks of {first.name} into buckets", _replace), first) as edit:
        tiers: list[list[SSAValue]] = []
        for types, called in zip(_types(first, lists), made.tier_names, strict=True):
            kinds = zip(types, called, strict=True)
            if tiers:
                tiers.append([_input(main, kind, name, names) for kind, name in kinds])
            else:
                tiers.append(list(map(Rewriter.replace_value_with_new_type, given, types)))
        main.update_function_type()
        main.properties.pop("arg_names", None)
        main.attributes["arg_names"] = ArrayAttr(map(StringAttr, names))
        edit.modified(main)
        for op, mine in zip(products, structures, strict=True):
            _multiply(op, mine, tiers, edit)
    return made


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
