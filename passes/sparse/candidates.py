"""The products of a program that have a known matrix, as sparse products."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from xdsl.dialects.builtin import AnyFloat, i1
from xdsl.ir import Operation, SSAValue

from ...backends.reference import KnownValues
from ...dialects import nn
from ...dialects.structured import Structure
from ...ir.support.arrays import Array
from ...ir.support.errors import InputError
from ..planner.sparse_products import SparseProduct
from ..plans.bands import BlockPattern, in_blocks
from .windows import as_matrix, windows_of

SIDES = (16, 8, 4, 1)
"""The sides of blocks that are tried where none is asked for."""

MOST_DENSITY = 0.5
"""A matrix with a larger share of blocks is not priced as a sparse one."""

FAULT = "an index is out of range"
"""Why a product of a list of blocks stays."""


@dataclass(frozen=True, eq=False)
class Candidate:
    """A product of a known matrix, and the sparse products that it may be.

    Attributes:
        matrix: its rows by columns.
        held: the share of its elements, or of the blocks in a list, that are not 0.
        products: one for each size of blocks.
        kept: why there are none.
        dense: the other factor, if there are.
        windows: for a convolution, how the dense matrix is read from that factor; None if they are
            the same.
    """

    matrix: str
    held: float
    products: tuple[SparseProduct, ...] = ()
    kept: str = ""
    dense: SSAValue | None = None
    windows: Structure | None = None


@dataclass(frozen=True, eq=False)
class _Matrix:
    """A known matrix in a product: rows of the result by terms.

    Attributes:
        depth: how many terms follow each other; a block lies within them.
        others: the axes of the dense factor that are no terms.
        before: how many of them come before the terms.
        cannot: why the pass does not rewrite the product; "" if it may.
    """

    array: Array
    depth: int
    dense: SSAValue
    others: tuple[int, ...]
    before: int
    cannot: str
    windows: Structure | None = None

    @property
    def candidate(self) -> Candidate:
        """The candidate of this matrix, without products yet."""
        sizes = "x".join(map(str, self.array.shape))
        held = np.count_nonzero(self.array) / self.array.size
        return Candidate(sizes, held, kept=self.cannot, dense=self.dense, windows=self.windows)


def candidate(op: Operation, known: KnownValues, block: tuple[int, int] | None) -> Candidate | None:
    """The sparse products that an operation may be; None if it has no known matrix of numbers.

    Args:
        block: the height and width of blocks; None for any.
    """
    rule = _RULES.get(type(op))
    if rule is None or 0 in nn.shape_of(op.results[0]) or nn.element_of(op.results[0]) == i1:
        # nn.compute adds up numbers only.
        return None
    return rule(op, known, block)


def _of_matrices(matrices: list[_Matrix], block: tuple[int, int] | None) -> Candidate | None:
    found = [_in_blocks(each, block) for each in matrices]
    return next((each for each in found if each.products), found[0] if found else None)


def _matmul(op: Operation, known: KnownValues, block: tuple[int, int] | None) -> Candidate | None:
    assert isinstance(op, nn.MatMulOp)
    if not isinstance(nn.element_of(op.result), AnyFloat):
        return None
    found: list[_Matrix] = []
    for matrix, dense, last in ((op.lhs, op.rhs, False), (op.rhs, op.lhs, True)):
        array = known.array(matrix)
        if array is None or not array.size:
            continue
        turned = (op.transpose_rhs is None) if last else (op.transpose_lhs is not None)
        array = array.swapaxes(-1, -2) if turned and array.ndim > 1 else array
        shape, kept = nn.shape_of(dense), _cannot(op, array, dense, last=last)
        others = shape[:-1] if last else shape[1:]
        before = len(others) if last else 0
        found.append(_Matrix(array, array.shape[-1], dense, others, before, kept))
    return _of_matrices(found, block)


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


def _convolution(
    op: Operation, known: KnownValues, block: tuple[int, int] | None
) -> Candidate | None:
    """A convolution, whose matrix has a row for each output, and a column for each channel of each
    tap."""
    assert isinstance(op, nn.ConvOp)
    array = known.array(op.weight)
    if array is None or not array.size or not isinstance(nn.element_of(op.result), AnyFloat):
        return None
    kept = ""
    if op.scale is not None:
        kept = "the product has a scale"
    elif op.narrow_partials is not None:
        kept = "its partial sums are narrow"
    elif op.group_count > 1:
        kept = "it has groups"
    n, _, *out = nn.shape_of(op.result)
    matrix = as_matrix(array)
    return _of_matrices(
        [_Matrix(matrix, array.shape[1], op.image, (n, *out), 1, kept, windows_of(op))], block
    )


def _block_matmul(
    op: Operation, known: KnownValues, block: tuple[int, int] | None
) -> Candidate | None:
    """The product of a known list of blocks; None if it is not known."""
    assert isinstance(op, nn.BlockMatMulOp)
    values, rows, columns = (known.array(value) for value in (op.values, op.rows, op.columns))
    if rows is None or columns is None:
        return None
    m, k = op.size.value.data, op.terms
    high, wide = op.block
    if op.transposed is not None:
        rows, columns = columns, rows
        values = None if values is None else values.swapaxes(1, 2)
    shape = (m // high, k // wide)
    try:
        pattern = BlockPattern.of_list(rows, columns, shape, op.block)
    except InputError:
        # The run raises the fault, at every level alike.
        return Candidate(f"{m}x{k}", len(rows) / max(shape[0] * shape[1], 1), kept=FAULT)
    others = op.columns_shape
    before = len(others) if op.dense_last is not None else 0
    product = SparseProduct(pattern, others, before, values)
    return Candidate(f"{m}x{k}", pattern.density, (product,), dense=op.dense)


def _in_blocks(matrix: _Matrix, block: tuple[int, int] | None) -> Candidate:
    """The products with a matrix in blocks of each size that divides it and leaves zeros out."""
    found, array = matrix.candidate, matrix.array
    if found.kept:
        return found
    if found.held > MOST_DENSITY:
        return replace(found, kept=f"{found.held:.0%} of its elements are not 0")
    sizes = [block] if block else [(side, side) for side in SIDES]
    fits = [(h, w) for h, w in sizes if not array.shape[0] % h and not matrix.depth % w]
    if not fits:
        return replace(found, kept="blocks of {}x{} do not divide it".format(*sizes[0]))
    every = [BlockPattern.of_dense(array, each) for each in fits]
    sparse = [each for each in every if each.density <= MOST_DENSITY]
    if not sparse:
        least = min(every, key=lambda each: each.density)
        size = "{}x{}".format(*least.block)
        kept = f"{least.density:.0%} of its blocks of {size} are not 0"
        return replace(found, kept=kept)
    products = tuple(
        SparseProduct(
            *(each, matrix.others, matrix.before),
            in_blocks(array, each.block)[each.rows, each.columns],
        )
        for each in sparse
    )
    return replace(found, products=products)


_Rule = Callable[[Operation, KnownValues, "tuple[int, int] | None"], "Candidate | None"]

_RULES: dict[type[Operation], _Rule] = {
    nn.MatMulOp: _matmul,
    nn.ConvOp: _convolution,
    nn.BlockMatMulOp: _block_matmul,
}
"""How the known matrix of each kind of operation is found."""

PRODUCTS = tuple(_RULES)
"""The operations that may be sparse products."""
