"""Bugs of buckets, planted in multiply-sparse: the kit finds each of them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import strategies as st
from xdsl.dialects.builtin import TensorType, f32
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import Block, Region

from abele.backends.target import resolve_target
from abele.dialects import nn
from abele.dialects.abele import SpaceAttr
from abele.dialects.blob_attr import BlobAttr
from abele.ir.blob import Blob
from abele.ir.geometry.space import AxisMap
from abele.ir.geometry.table import Table
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes.multiply_sparse import MultiplySparse
from abele.tools.driver.context import new_context
from abele.tools.testing import Miscompiled, check_pass
from abele.tools.testing.generators.program import Program
from abele.tools.testing.search.contracts import contracts_of, with_apply

VALUES, ROWS, COLUMNS = 0, 2, 3
"""The operands of a product of buckets."""

TINY = resolve_target("tiny:4")

Damage = Callable[[nn.ComputeOp], None]


def turn_blocks(op: nn.ComputeOp) -> None:
    values = op.operands[VALUES].owner.value.array
    if values.shape[-1] == values.shape[-2]:
        replace(op, VALUES, values.swapaxes(-1, -2))


def move(operand: int, dim: str) -> Damage:
    """Put each block one row or column of blocks further, within its band or part."""

    def damage(op: nn.ComputeOp) -> None:
        (extent,) = (each.size for each in op.structure().space.dims if each.name == dim)
        indices = op.operands[operand].owner.value.array
        replace(op, operand, ((indices + 1) % extent).astype(indices.dtype))

    return damage


def drop_the_last_block(op: nn.ComputeOp) -> None:
    values = op.operands[VALUES].owner.value.array.copy()
    values[:, :, -1] = 0
    replace(op, VALUES, values)


def miss_a_row(op: nn.ComputeOp) -> None:
    """Leave the last dense row of blocks that a bucket needs out of its table."""
    found = table_of(op)
    with_table(op, np.where(found == found.max(), -1, found))


def read_other_rows(op: nn.ComputeOp) -> None:
    """Let each place of the table name the dense row of blocks before the right one."""
    found = table_of(op)
    with_table(op, np.where(found > 0, found - 1, found))


def table_of(op: nn.ComputeOp) -> np.ndarray:
    (found,) = (each.elements for each in op.structure().space.tables)
    return found


def with_table(op: nn.ComputeOp, table: np.ndarray) -> None:
    """Let a product read its dense rows by another table."""
    space = op.structure().space

    def changed(axis: AxisMap) -> AxisMap:
        tabled = isinstance(axis.outside, Table)
        return dataclasses.replace(axis, outside=Table.of(table)) if tabled else axis

    operands = tuple(
        dataclasses.replace(each, axes=tuple(map(changed, each.axes))) for each in space.operands
    )
    op.space = SpaceAttr(dataclasses.replace(space, operands=operands))


def turn_the_order(op: nn.ComputeOp) -> None:
    """Put the rows of blocks in the places one further than those of the matrix."""
    take = next((each for each in op.parent.ops if isinstance(each, nn.TakeOp)), None)
    if take is not None:
        take.places = BlobAttr(Blob(np.roll(take.places.array, 1)))


def replace(op: nn.ComputeOp, operand: int, array: np.ndarray) -> None:
    op.operands[operand].owner.value = BlobAttr(Blob(np.ascontiguousarray(array)))


BUGS: dict[str, Damage] = {
    "a block is transposed": turn_blocks,
    "a block is in the wrong column": move(COLUMNS, "column"),
    "a block is in the wrong row": move(ROWS, "row"),
    "the last block of a bucket is lost": drop_the_last_block,
    "a dense row is missing in the table": miss_a_row,
    "a table names the row before": read_other_rows,
    "rows of the result are in a wrong order": turn_the_order,
}

MOST_PROGRAMS = 60
"""Within how many products of lists of blocks the kit finds each bug. Few of them
put rows back in their order."""


def product(seed: int) -> Program:
    """A product of a list of blocks that is constant, in any form."""
    rng = np.random.default_rng(seed)
    height, width, high, wide = (int(n) for n in rng.integers(1, 5, 4))
    blocks, n = int(rng.integers(0, 8)), int(rng.integers(1, 5))
    transposed, last = (bool(flag) for flag in rng.integers(0, 2, 2))
    rows, columns = (rng.integers(-size, size, blocks) for size in (high, wide))
    values = rng.integers(-4, 5, (blocks, height, width)).astype(np.float32)
    m, k = high * height, wide * width
    m, k = (k, m) if transposed else (m, k)
    block = Block(arg_types=[TensorType(f32, (n, k) if last else (k, n))])
    held = (values, rows.astype(np.int32), columns.astype(np.int32))
    made = [nn.ConstantOp(each) for each in held]
    values_of, rows_of, columns_of = (each.result for each in made)
    op = nn.BlockMatMulOp(
        *(values_of, block.args[0], rows_of, columns_of, m), transposed=transposed, dense_last=last
    )
    block.add_ops([*made, op, ReturnOp(op.result)])
    main = FuncOp("main", ([block.args[0].type], [op.result.type]), Region(block))
    x = rng.integers(-4, 5, nn.shape_of(block.args[0])).astype(np.float32)
    return Program(ModuleOp([main]), new_context(), {"arg0": x}, TINY)


PRODUCTS = st.integers(0, 500).map(product)


def damaged(damage: Damage) -> ModulePass:
    tested = MultiplySparse("tiny:4")

    def apply(ctx: Context, op: ModuleOp) -> None:
        before = {each for each in op.walk() if isinstance(each, nn.ComputeOp)}
        tested.apply(ctx, op)
        for each in [o for o in op.walk() if isinstance(o, nn.ComputeOp) and o not in before]:
            damage(each)

    return with_apply(tested, apply)


def test_random_programs_keep_their_meaning():
    report = check_pass(
        MultiplySparse("tiny:4"), examples=30, seed=0, relation=contracts_of(MultiplySparse)
    )
    assert report.changed >= 5


@pytest.mark.parametrize("name", BUGS)
def test_the_kit_finds_a_planted_bug(name: str):
    with pytest.raises(Miscompiled) as found:
        _ = check_pass(
            damaged(BUGS[name]), programs=PRODUCTS, examples=200, seed=0, reduce_seconds=0
        )
    assert found.value.examples <= MOST_PROGRAMS
