"""Multiply sparse matrices whose values and pattern are known, without their zeros."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Operation, SSAValue

from ..backends.reference import KnownValues
from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..dialects.settable import changing_states
from ..dialects.structured import Movement, Reinterpretation, Structured
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.provenance import at, place
from ..ir.rewriting import may_rewrite
from ..ir.support.arrays import Array
from ..ir.support.block_size import read_block
from ..ir.support.errors import InputError
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .planner.alone import cycles_alone
from .planner.sparse_products import InBuckets, SparseProduct, fastest_buckets
from .plans.bands import BlockPattern, in_blocks
from .plans.planned import asked_target
from .plans.sparse_prices import SparsePrice, write_sparse_prices

SIDES = (16, 8, 4, 1)
"""The sides of blocks that are tried where none is asked for."""

MOST_DENSITY = 0.5
"""A matrix with a larger share of blocks is not priced as a sparse one."""

MARGIN = 1.1
"""How many times cheaper than the operation its replacement must be. Assumed: its price ignores the
layouts that the planner chooses for the operations around it.
"""

TOO_LITTLE = "buckets are faster by less than a tenth"
"""Why a product stays although its sparse product is a little cheaper."""

FAULT = "an index is out of range"
"""Why a product of a list of blocks stays."""

MOST_KNOWN = 1 << 28
"""The most points of an operation of constants whose result is looked at: about a second of the
reference.
"""

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class MultiplySparse(ModulePass):
    """Multiply sparse matrices without their zeros, where that takes fewer cycles. nn -> nn.

    The matrix is a constant or a state that never changes: a factor of nn.matmul, or the blocks and
    the indices of nn.block_matmul. Its rows of blocks are dealt to bands with about equally many
    blocks, and the blocks of each band are cut into parts, which become buckets of one size. So
    each tile of a plan has as many blocks, receives the dense rows that its blocks read, and adds
    to the rows of its band; sums over parts are merged. Last, the rows go back to their order,
    which is a movement. The planner prices the most promising buckets, and the dense product, which
    stays unless buckets are clearly faster.

        %1 = nn.matmul %x, %w        %0 = nn.compute(%values, %x, %rows, %columns)
                                            space <[band, row, y, part, block, column, x] ...>
                                     %1 = nn.take %0

    The values of nn.block_matmul may also be known to a run only, such as those that are trained.
    Then a movement puts them into the buckets.

    A zero of a matrix that is left out is not multiplied, so it does not turn an infinity or a NaN
    of the other factor into NaN.

    Attributes:
        target: as for plan-splits.
        block: the height and width of blocks, as in 16x16; by default, squares of 16, 8, 4 or 1.
    """

    name = "multiply-sparse"
    takes = NN
    skips_other_levels = True

    target: str = ""
    block: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module. Raises InputError for a block that is none."""
        blocks = read_block(self.block) if self.block else None
        products = [
            each
            for each in op.walk()
            if isinstance(each, nn.MatMulOp | nn.BlockMatMulOp)
            and not {GROUP, PLAN} & each.attributes.keys()
        ]
        if not products:
            return
        known, target = _known_values(op), asked_target(op, self.target)
        prices: list[SparsePrice] = []
        for each in products:
            if not may_rewrite():
                break
            found = _looked_at(each, known, blocks)
            if found is None:
                continue
            best, price = _best(each, found, target)
            prices.append(price)
            if best is not None:
                assert found.dense is not None
                _replace(each, best, found.dense, ctx)
        write_sparse_prices(op, prices)


def _known_values(module: ModuleOp) -> KnownValues:
    """The values of a module that are always the same."""
    changing = changing_states(module)
    states = {
        each.sym_name.data: each
        for each in module.body.block.ops
        if isinstance(each, nn.StateOp) and each.sym_name.data not in changing
    }

    def begins(value: SSAValue) -> Array | None:
        op = value.owner
        if isinstance(op, nn.ConstantOp):
            return op.value.array
        state = states.get(op.state.string_value()) if isinstance(op, nn.LoadOp) else None
        return None if state is None else state.value.array

    def is_closed(value: SSAValue) -> bool:
        op = value.owner
        if isinstance(op, Movement | Reinterpretation):
            return True
        if not isinstance(op, Structured):
            return False
        space = op.structure().space
        # An index may be a fault, which the run has to raise.
        return not space.relations and space.points <= MOST_KNOWN

    return KnownValues(MOST_KNOWN, begins, is_closed)


@dataclass(frozen=True, eq=False)
class _LookedAt:
    """A product of a known matrix, and the sparse products that it may be.

    Attributes:
        matrix: its rows by columns.
        held: the share of its elements, or of the blocks in a list, that are not 0.
        products: one for each size of blocks.
        kept: why there are none.
        dense: the other factor, if there are.
    """

    matrix: str
    held: float
    products: tuple[SparseProduct, ...] = ()
    kept: str = ""
    dense: SSAValue | None = None


def _looked_at(
    op: Operation, known: KnownValues, block: tuple[int, int] | None
) -> _LookedAt | None:
    """The sparse products that an operation may be; None if it has no known matrix of numbers."""
    element = nn.element_of(op.results[0])
    if 0 in nn.shape_of(op.results[0]) or element == i1:
        # nn.compute adds up numbers only.
        return None
    if isinstance(op, nn.BlockMatMulOp):
        return _listed(op, known)
    if not isinstance(op, nn.MatMulOp) or not isinstance(element, AnyFloat):
        return None
    found: list[_LookedAt] = []
    for matrix, dense, last in ((op.lhs, op.rhs, False), (op.rhs, op.lhs, True)):
        array = known.array(matrix)
        if array is not None and array.size:
            turned = (op.transpose_rhs is None) if last else (op.transpose_lhs is not None)
            array = array.swapaxes(-1, -2) if turned and array.ndim > 1 else array
            kept = _cannot(op, array, dense, last=last)
            sizes, held = "x".join(map(str, array.shape)), np.count_nonzero(array) / array.size
            if kept:
                found.append(_LookedAt(sizes, held, kept=kept))
            else:
                found.append(_in_blocks(array, dense, block, _LookedAt(sizes, held), last=last))
    return next((each for each in found if each.products), found[0] if found else None)


def _listed(op: nn.BlockMatMulOp, known: KnownValues) -> _LookedAt | None:
    """The product of a known list of blocks; None if it is not known."""
    values, rows, columns = (known.array(value) for value in (op.values, op.rows, op.columns))
    if rows is None or columns is None:
        return None
    m, k = op.size.value.data, op.terms
    high, wide = op.block
    if op.transposed is not None:
        rows, columns = columns, rows
        values = None if values is None else values.swapaxes(1, 2)
    shape = (m // high, k // wide)
    last = op.dense_last is not None
    try:
        pattern = BlockPattern.of_list(rows, columns, shape, op.block)
    except InputError:
        # The run raises the fault, at every level alike.
        return _LookedAt(f"{m}x{k}", len(rows) / max(shape[0] * shape[1], 1), kept=FAULT)
    product = SparseProduct(pattern, op.columns_shape, last, values)
    return _LookedAt(f"{m}x{k}", pattern.density, (product,), dense=op.dense)


def _cannot(op: nn.MatMulOp, array: Array, dense: SSAValue, *, last: bool) -> str:
    """Why the pass does not rewrite the product of a matrix of any kind; "" if it may."""
    if op.scale is not None:
        return "the product has a scale"
    if op.narrow_partials is not None:
        return "its partial sums are narrow"
    if array.ndim != 2:
        return "it is a batch of matrices"
    if (op.transpose_lhs if last else op.transpose_rhs) is not None:
        return "the other factor is transposed"
    if not last and len(nn.shape_of(dense)) != 2:
        return "the other factor is a batch of matrices"
    return ""


def _in_blocks(
    array: Array, dense: SSAValue, block: tuple[int, int] | None, found: _LookedAt, *, last: bool
) -> _LookedAt:
    """The products with a matrix in blocks of each size that divides it and leaves zeros out."""
    if found.held > MOST_DENSITY:
        return replace(found, kept=f"{found.held:.0%} of its elements are not 0")
    sizes = [block] if block else [(side, side) for side in SIDES]
    fits = [(h, w) for h, w in sizes if not array.shape[0] % h and not array.shape[1] % w]
    if not fits:
        return replace(found, kept="blocks of {}x{} do not divide it".format(*sizes[0]))
    every = [BlockPattern.of_dense(array, each) for each in fits]
    sparse = [each for each in every if each.density <= MOST_DENSITY]
    if not sparse:
        least = min(every, key=lambda each: each.density)
        size = "{}x{}".format(*least.block)
        kept = f"{least.density:.0%} of its blocks of {size} are not 0"
        return replace(found, kept=kept)
    shape = nn.shape_of(dense)
    others = shape[:-1] if last else shape[1:]
    products = tuple(
        SparseProduct(each, others, last, in_blocks(array, each.block)[each.rows, each.columns])
        for each in sparse
    )
    return replace(found, products=products, dense=dense)


def _best(
    op: Operation, looked_at: _LookedAt, target: Target
) -> tuple[InBuckets | None, SparsePrice]:
    """The fastest buckets, if they are clearly faster than the operation, and both prices."""
    assert isinstance(op, nn.MatMulOp | nn.BlockMatMulOp)
    products = looked_at.products
    price = SparsePrice(
        place(op), looked_at.matrix, "", looked_at.held, np.inf, np.inf, looked_at.kept
    )
    if not products:
        return None, price
    dtypes = [numpy_dtype(nn.element_of(value)) for value in (*op.operands, op.result)]
    dense = [value is looked_at.dense for value in op.operands]
    before = cycles_alone(op.structure(), dtypes, dense, target)
    best = fastest_buckets(products, dtypes[0], dtypes[-1], target)
    pattern = best.product.pattern
    price = replace(
        price,
        block="{}x{}".format(*pattern.block),
        held=pattern.density,
        dense=before,
        sparse=best.cycles,
    )
    # A list of blocks is priced as if they lay at random, so its price says little of this pattern.
    unread = isinstance(op, nn.BlockMatMulOp)
    if not np.isfinite(best.cycles):
        return None, replace(price, kept="no buckets fit on the tiles")
    if unread or best.cycles * MARGIN < before:
        return best, price
    slower = best.cycles >= before
    return None, replace(price, kept="buckets are slower" if slower else TOO_LITTLE)


def _replace(op: Operation, best: InBuckets, dense: SSAValue, ctx: Context) -> None:
    """Replace a product by that of the buckets."""
    with Edit(source_at(f"multiply {op.name} without zeros", _replace), op) as edit:
        made = _InPlace(op, best, edit, ctx)
        rows, columns = (
            made.constant(name, array)
            for name, array in zip(("rows", "columns"), best.buckets.indices(), strict=True)
        )
        edit.replace(op, [made.product([made.values(), dense, rows, columns])])


@dataclass(frozen=True, eq=False)
class _InPlace:
    """Inserts the operations of a product in buckets before the product that they replace."""

    op: Operation
    best: InBuckets
    edit: Edit
    ctx: Context

    def __call__(self, name: str, made: nn.PureTensorOp | nn.ConstantOp | nn.ComputeOp) -> SSAValue:
        """Insert an operation; the last one has no name of its own."""
        made.location = at(self.op, name) if name else self.op.location
        self.edit.insert(made, InsertPoint.before(self.op))
        return made.result

    def constant(self, name: str, array: Array) -> SSAValue:
        """A constant of the program."""
        ctx = self.ctx
        blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
        return self(name, nn.ConstantOp(blob))

    def values(self) -> SSAValue:
        """The elements of the blocks in all places of the buckets."""
        product, buckets = self.best.product, self.best.buckets
        places = (buckets.bands, buckets.parts, buckets.room)
        members = buckets.members()
        shape = (*places, *product.pattern.block)
        if product.values is not None:
            values = np.zeros((len(members), *product.pattern.block), product.values.dtype)
            values[members >= 0] = product.values[members[members >= 0]]
            return self.constant("values", values.reshape(shape))
        assert isinstance(self.op, nn.BlockMatMulOp)
        value: SSAValue = self.op.values
        if not members.size or not nn.shape_of(value)[0]:
            return self.constant("values", np.zeros(shape, numpy_dtype(nn.element_of(value))))
        value = self("buckets", nn.TakeOp(value, members))
        if self.op.transposed is not None:
            value = self("turned", nn.TransposeOp(value, (0, 2, 1)))
        return self("values", nn.ReshapeOp(value, shape))

    def product(self, operands: Sequence[SSAValue]) -> SSAValue:
        """The product, with its rows in the order of the matrix."""
        (result,), structure = self.op.results, self.best.structure
        order, element = self.best.buckets.order(), nn.element_of(result)
        if order is None:
            return self("", nn.ComputeOp(operands, structure, nn.tensor_of(result)))
        product, buckets = self.best.product, self.best.buckets
        rank, height = len(product.others), product.pattern.block[0]
        rows = (buckets.bands * buckets.high, height)
        shape = (*product.others, *rows) if product.last else (*rows, *product.others)
        (access,) = structure.space.results
        dealt = self("dealt", nn.ComputeOp(operands, structure, nn.tensor(access.shape, element)))
        dealt = self("blocks", nn.ReshapeOp(dealt, shape))
        taken = self("order", nn.TakeOp(dealt, order, rank if product.last else 0))
        return self("", nn.ReshapeOp(taken, nn.shape_of(result)))
