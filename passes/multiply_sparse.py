"""Multiply sparse matrices whose values and pattern are known, without their zeros."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from xdsl.ir import Operation, SSAValue

from ..backends.reference import KnownValues
from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..dialects.settable import changing_states
from ..dialects.structured import Movement, Reinterpretation, Structured
from ..ir.edit import Edit, source_at
from ..ir.provenance import place
from ..ir.rewriting import may_rewrite
from ..ir.support.arrays import Array
from ..ir.support.block_size import read_block
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .planner.alone import cycles_alone
from .planner.sparse_products import InBuckets, fastest_buckets
from .plans.planned import asked_target
from .plans.sparse_prices import SparsePrice, write_sparse_prices
from .sparse.candidates import PRODUCTS, Candidate, candidate
from .sparse.constant_indices import by_tables
from .sparse.replacing import replace_product

MARGIN = 1.1
"""How many times cheaper than the operation its replacement must be. Assumed: its price ignores the
layouts that the planner chooses for the operations around it.
"""

TOO_LITTLE = "buckets are faster by less than a tenth"
"""Why a product stays although its sparse product is a little cheaper."""

MOST_KNOWN = 1 << 28
"""The most points of an operation of constants whose result is looked at: about a second of the
reference.
"""

PLAN = "plan"
"""The attribute of an operation that is planned already."""


@dataclass(frozen=True)
class MultiplySparse(ModulePass):
    """Multiply sparse matrices without their zeros, where that takes fewer cycles. nn -> nn.

    The matrix is a constant or a state that never changes: a factor of nn.matmul, the weights of
    nn.conv, or the blocks and the indices of nn.block_matmul. Its rows of blocks are dealt to bands
    with about equally many blocks. The blocks of each band are cut into parts, which become buckets
    of one size. So each tile of a plan has as many blocks, receives the dense rows that its blocks
    read, and adds to the rows of its band; sums over parts are merged. Last, a movement puts the
    rows back in their order. The planner prices the most promising buckets, and the dense product,
    which stays unless buckets are clearly faster.

        %1 = nn.matmul %x, %w        %0 = nn.compute(%values, %x, %rows, %columns)
                                            space <[band, row, y, part, block, column, x] ...>
                                     %1 = nn.take %0

    A convolution is a product with the windows of its image. Its matrix has a row for each output,
    and a column for each channel of each tap. Where windows are larger than a point, the image is
    first repeated tap by tap, which the price counts.

    Other sums of products at known indices, such as the gradient of the values of such a product,
    name the rows that they read by tables if that is faster.

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
            if isinstance(each, PRODUCTS) and not {GROUP, PLAN} & each.attributes.keys()
        ]
        sums = [each for each in op.walk() if _is_related_sum(each)]
        if not products and not sums:
            return
        known, target = _known_values(op), asked_target(op, self.target)
        for each in sums:
            if may_rewrite():
                _read_by_tables(each, known, target)
        prices: list[SparsePrice] = []
        for each in products:
            if not may_rewrite():
                break
            found = candidate(each, known, blocks)
            if found is None:
                continue
            best, price = _best(each, found, target)
            prices.append(price)
            if best is not None:
                replace_product(each, best, found, ctx)
        write_sparse_prices(op, prices)


def _is_related_sum(op: Operation) -> bool:
    """Whether an operation is a sum of products where indices say so, and is not planned yet."""
    if not isinstance(op, nn.ComputeOp) or {GROUP, PLAN} & op.attributes.keys():
        return False
    structure = op.structure()
    return bool(structure.space.relations) and structure.body.sums_products


def _read_by_tables(op: Operation, known: KnownValues, target: Target) -> None:
    """Let a sum of products name its rows by tables if its indices are known and that is faster.

    So the gradient of the values of a known pattern reads only the rows of its blocks.
    """
    assert isinstance(op, nn.ComputeOp)
    structure = op.structure()
    related = {each.operand: known.array(op.operands[each.operand])
               for each in structure.space.relations}  # fmt: skip
    arrays = {i: array for i, array in related.items() if array is not None}
    found = by_tables(structure, arrays)
    if found is None:
        return
    dtypes = [numpy_dtype(nn.element_of(value)) for value in (*op.operands, *op.results)]
    dense = [i not in related for i in range(len(op.operands))]
    kept = [dtypes[i] for i in found.operands]
    before = cycles_alone(structure, dtypes, dense, target)
    after = cycles_alone(found.structure, [*kept, dtypes[-1]], [True] * len(kept), target)
    if after >= before:
        return
    with Edit(source_at("name rows by tables", _read_by_tables), op) as edit:
        operands = [op.operands[i] for i in found.operands]
        made = nn.ComputeOp(operands, found.structure, nn.tensor_of(op.results[0]))
        made.location = op.location
        edit.insert(made, InsertPoint.before(op))
        edit.replace(op, [made.results[0]])


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


def _best(op: Operation, found: Candidate, target: Target) -> tuple[InBuckets | None, SparsePrice]:
    """The fastest buckets, if they are clearly faster than the operation, and both prices."""
    assert isinstance(op, Structured)
    price = SparsePrice(place(op), found.matrix, "", found.held, np.inf, np.inf, found.kept)
    if not found.products:
        return None, price
    dtypes = [numpy_dtype(nn.element_of(value)) for value in (*op.operands, *op.results)]
    dense = [value is found.dense for value in op.operands]
    before = cycles_alone(op.structure(), dtypes, dense, target)
    best = fastest_buckets(found.products, dtypes[0], dtypes[-1], target)
    if found.windows is not None:
        reading = cycles_alone(found.windows, [dtypes[0], dtypes[0]], [True], target)
        best = replace(best, cycles=best.cycles + reading)
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
