"""Triangular factors of matrices, and systems of equations with triangular matrices.

Both work on blocks of rows, one after the other in a loop. So most of the work is products, and the
number of operations does not depend on the size of a matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt, prod

import numpy as np
from xdsl.dialects.builtin import AnyFloat, TensorType, UnitAttr, f32, i32
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def

from ...ir.support.number_kinds import is_floating
from ...ir.unmet import Unmet
from ..dtypes import STORED, numpy_dtype
from ..structured import Stage
from .base import PureTensorOp, Shape, element_of, flags, same_element, shape_of, tensor
from .composite import CompositeOp, Parts
from .contraction import MatMulOp
from .elementwise import (
    CastOp,
    DivOp,
    EqualOp,
    GreaterEqualOp,
    GreaterOp,
    IsNaNOp,
    LogicalAndOp,
    SelectOp,
    SqrtOp,
    SubOp,
)
from .generic import compute
from .index import At, Index, at, dim
from .indexed import GatherOp, UpdateOp
from .iota import IotaOp
from .movement import ConcatOp, ExpandOp, PadOp, ReshapeOp, SliceOp, TransposeOp
from .state import ConstantOp
from .wanted import Wanted
from .window import ReduceOp

ONE_BLOCK = 8
"""The most rows of a matrix that is one block."""

MOST_SAMPLED = 12
"""The most rows of a matrix that `sample` draws. More than ONE_BLOCK: some have several blocks."""


def rows_of_block(n: int) -> int:
    """The rows of a block of a matrix with n rows: about as many as there are blocks.

    One loop goes over the rows of a block, and one over the blocks, so this makes both short.
    """
    return n if n <= ONE_BLOCK else 1 << isqrt(n - 1).bit_length()


def _need_square(value: SSAValue, what: str) -> Shape:
    """The shape of an operand. Raises VerifyException unless it holds square matrices of floats."""
    element, shape = element_of(value), shape_of(value)
    if not is_floating(numpy_dtype(element)):
        raise Unmet(f"{what} of {element}; need a floating-point type", what)
    if len(shape) < 2 or shape[-1] != shape[-2]:
        raise Unmet(f"{what} of shape {list(shape)}; need two equal last axes", what)
    return shape


def _sampled_square(wanted: Wanted) -> TensorType[Attribute]:
    """A type of square matrices: that of a given operand if it is one."""
    random, first = wanted.random, wanted.first
    if first is not None and len(shape_of(first)) > 1:
        *batch, rows, _ = shape_of(first)
        return tensor((*batch, rows, rows), first.element_type)
    floats = [each for each in wanted.elements if isinstance(each, AnyFloat) and each not in STORED]
    rows = min(random.choice(wanted.sizes or (1, 2, 3, 5)), MOST_SAMPLED)
    batch = [random.choice((1, 2, 3)) for _ in range(random.choice((0, 0, 1, 2)))]
    return tensor((*batch, rows, rows), random.choice(floats or (f32,)))


@dataclass
class _Blocks:
    """Steps on matrices [count, rows, columns], whose rows are cut into blocks of one size.

    Attributes:
        made: takes the steps.
        n: the rows of a matrix.
        count: the number of matrices.
    """

    made: Parts
    n: int
    count: int

    @property
    def rows(self) -> int:
        """The rows of a block."""
        return rows_of_block(self.n)

    @property
    def blocks(self) -> int:
        """The number of blocks of a matrix. Rows and columns are added until all are whole."""
        return -(-self.n // self.rows)

    @property
    def size(self) -> int:
        """The rows of all blocks of a matrix."""
        return self.rows * self.blocks

    @property
    def cut(self) -> tuple[int, int, int]:
        """The shape of matrices whose rows are cut into blocks, without their columns."""
        return self.count, self.blocks, self.rows

    def matrices(self, value: SSAValue) -> SSAValue:
        """A value [batch..., rows, columns] as matrices in at least f32."""
        shape = (self.count, *shape_of(value)[-2:])
        return self.made("matrices", ReshapeOp(self.made.wide(value), shape))

    def whole(self, value: SSAValue, columns: int) -> SSAValue:
        """Matrices with rows and columns of zeros added, so that all blocks are whole.

        Args:
            columns: that are added.
        """
        below = self.size - self.n
        if not below:
            return value
        return self.made("whole_blocks", PadOp(value, [0, 0, 0], [0, below, columns]))


def _index(made: Parts, shape: Sequence[int], axis: int) -> SSAValue:
    """The index along an axis of each element of a tensor, as i32."""
    steps = [int(i == axis) for i in range(len(shape))]
    return made("index", IotaOp(tensor(shape, i32), steps))


def _number(made: Parts, value: float, like: SSAValue) -> SSAValue:
    """A number in the type of a value."""
    return made("number", ConstantOp(np.array(value, numpy_dtype(element_of(like)))))


def _turned(made: Parts, value: SSAValue) -> SSAValue:
    """The transposes of matrices."""
    return made("transpose", TransposeOp(value, [0, 2, 1]))


def _at(made: Parts, table: SSAValue, number: SSAValue, axis: int) -> SSAValue:
    """The row of a table along an axis that the number of an iteration names; the axis stays."""
    index = made("number", ReshapeOp(number, (1,)))
    return made("row", GatherOp(table, index, axis))


def _with_block(made: Parts, table: SSAValue, block: SSAValue, number: SSAValue) -> SSAValue:
    """A table [count, blocks, rows, columns] in which one block is replaced."""
    shape = shape_of(table)
    update = made("block", ReshapeOp(block, (shape[0], 1, *shape[2:])))
    index = made("number", ReshapeOp(number, (1, 1, 1, 1)))
    return made("place", UpdateOp(update, index, table, "last", 1))


def _beside_units(made: Parts, matrices: SSAValue) -> SSAValue:
    """Matrices [count, rows, 3 * rows]: zeros, identity matrices, and given ones."""
    count, rows, _ = shape_of(matrices)
    shape = (count, rows, 2 * rows)
    column = made("index", IotaOp(tensor(shape, i32), [0, 0, 1], -rows))
    same = made("diagonal", EqualOp(_index(made, shape, 1), column))
    units = made("units", CastOp(same, element_of(matrices)))
    return made("beside", ConcatOp([units, matrices], 2))


def _eliminated(made: Parts, value: SSAValue, factors: Factors) -> SSAValue:
    """Matrices after elimination of one row after the other, in as many steps as there are rows.

    Each step subtracts multiples of the first row from the others, makes it the last row, and moves
    all columns one to the left, so each step does the same.

        x x x    0 x x x      0 0 x x 0
        x x x  ->  . x x  ->      . x    0 means that zeros come in from the right

    Args:
        value: [count, rows, columns]; the last columns are matrices.
        factors: the function and the operands that give the multiple for each row.
    """
    count, rows, columns = shape_of(value)
    m, i, c = dim("m", count), dim("i", rows), dim("c", columns)

    def step(made: Parts, value: SSAValue) -> SSAValue:
        moved = (c + 1).outside("fill")
        function, given = factors(value, m, i)
        then = [
            (Stage("mul"), at(value, m, 0, moved)),
            (Stage("sub", at=1), at(value, m, (i + 1).outside("wrap"), moved)),
        ]
        return made("row", compute(function, given, [m, i, c], then=then))

    def two(made: Parts, carried: Sequence[SSAValue], _: SSAValue) -> Sequence[SSAValue]:
        # The second step writes where the first one has read, so nothing is copied back.
        return (step(made, step(made, *carried)),)

    (found,) = made.repeat("rows", rows // 2, [value], two) if rows > 1 else (value,)
    return step(made, found) if rows % 2 else found


Factors = Callable[[SSAValue, Index, Index], tuple[str, Sequence[At]]]
"""The function and the operands of the multiples of a first row that other rows lose.

It gets the matrices, and the dimensions that number these and the rows behind the first."""


@irdl_op_definition
class CholeskyOp(CompositeOp):
    """The triangular factors L of symmetric positive definite matrices: A = L L^T.

    Example: %1 = nn.cholesky %0 : (tensor<2x8x8xf32>) -> tensor<2x8x8xf32>

    Elements on the other side of the diagonal are not read, and are 0 in the result. If a matrix is
    not positive definite, the diagonal of its result has a NaN, and so may all other elements.

    Attributes:
        operand: A, [batch..., n, n] of floats.
        upper: read the upper triangle, and give U = L^T.
    """

    name = "nn.cholesky"
    operand = operand_def(TensorType)
    upper = opt_prop_def(UnitAttr)
    assembly_format = "$operand (`upper` $upper^)? attr-dict `:` functional-type(operands, results)"

    def __init__(self, operand: SSAValue, *, upper: bool = False):
        super().__init__([operand], flags(upper=upper))

    def infer(self) -> TensorType[Attribute]:
        """The operand's type."""
        return tensor(_need_square(self.operand, "a matrix"), element_of(self.operand))

    @classmethod
    def sample(cls, wanted: Wanted) -> CholeskyOp:
        """A random factorisation."""
        block = Block(arg_types=[_sampled_square(wanted)])
        return cls(block.args[0], upper=wanted.random.random() < 0.5)

    def parts(self, made: Parts) -> SSAValue:
        """Blocks of rows of U, from the first to the last. Each one is subtracted from the rest.

        The rows of U right of a block on the diagonal are the inverse of that block of L times the
        rows of A that are left.
        """
        shape = shape_of(self.operand)
        if 0 in shape:
            return made("empty", ConstantOp(np.zeros(shape, numpy_dtype(element_of(self.result)))))
        n = shape[-1]
        on = _Blocks(made, n, prod(shape[:-2]))
        matrix = self._symmetric(on, on.whole(on.matrices(self.operand), on.size - n))
        if on.blocks == 1:
            _, rows = self._factored(made, matrix)
        else:
            rows = self._all_rows(on, matrix)
            rows = made("join", ReshapeOp(rows, (on.count, on.size, on.size)))
        if on.size != n:
            rows = made("crop", SliceOp(rows, [0, 0, 0], [1, 1, 1], [on.count, n, n]))
        square = shape_of(rows)
        above = made("above", GreaterEqualOp(_index(made, square, 2), _index(made, square, 1)))
        rows = made("triangle", SelectOp(above, rows, _number(made, 0.0, rows)))
        if self.upper is None:
            rows = _turned(made, rows)
        return made("back", ReshapeOp(made.narrow(rows), shape))

    def _symmetric(self, on: _Blocks, value: SSAValue) -> SSAValue:
        """Whole matrices, from one triangle of them; 1 on the diagonal of rows that are added."""
        made, square = on.made, shape_of(value)
        row, column = (_index(made, square, axis) for axis in (1, 2))
        first, second = (column, row) if self.upper is not None else (row, column)
        is_read = made("read", GreaterEqualOp(first, second))
        value = made("symmetric", SelectOp(is_read, value, _turned(made, value)))
        if on.size == on.n:
            return value
        added = made("added", GreaterEqualOp(row, _number(made, on.n, row)))
        same = made("diagonal", EqualOp(row, column))
        ones = made("added_diagonal", LogicalAndOp(added, same))
        return made("regular", SelectOp(ones, _number(made, 1.0, value), value))

    def _all_rows(self, on: _Blocks, matrix: SSAValue) -> SSAValue:
        """The rows of U, in blocks."""
        count, blocks, rows, size = *on.cut, on.size

        def block(made: Parts, carried: Sequence[SSAValue], number: SSAValue) -> Sequence[SSAValue]:
            rest, done = carried
            table = made("blocks", ReshapeOp(rest, (*on.cut, size)))
            own = made("own_rows", ReshapeOp(_at(made, table, number, 1), (count, rows, size)))
            across = made("across", ReshapeOp(own, (count, rows, blocks, rows)))
            corner = _at(made, across, number, 2)
            corner = made("corner", ReshapeOp(corner, (count, rows, rows)))
            inverse, factor = self._factored(made, corner)
            right = made("right", MatMulOp(inverse, own))
            right = made("right_blocks", ReshapeOp(right, (count, rows, blocks, rows)))
            place = _index(made, (1, 1, blocks, 1), 2)
            later = made("later", GreaterOp(place, number))
            right = made("only_right", SelectOp(later, right, _number(made, 0.0, right)))
            same = made("same", EqualOp(place, number))
            factor = made("own_block", ReshapeOp(factor, (count, rows, 1, rows)))
            found = made("rows", SelectOp(same, factor, right))
            found = made("rows_of_u", ReshapeOp(found, (count, rows, size)))
            square = made("square", MatMulOp(found, found, transpose_lhs=True))
            rest = made("rest", SubOp(rest, square))
            return rest, _with_block(made, done, found, number)

        begin = on.made("begin", ExpandOp(_number(on.made, 0.0, matrix), (*on.cut, size)))
        _, found = on.made.repeat("blocks", blocks, [matrix, begin], block)
        return found

    def _factored(self, made: Parts, matrices: SSAValue) -> tuple[SSAValue, SSAValue]:
        """The inverses of L, and U on and above its diagonal, of symmetric matrices."""
        count, rows, _ = shape_of(matrices)
        pivot = 2 * rows

        def factors(value: SSAValue, m: Index, i: Index) -> tuple[str, Sequence[At]]:
            own = at(value, m, 0, (i + 1 + pivot).outside("fill"))
            return "div", [own, at(value, m, 0, pivot)]

        value = _eliminated(made, _beside_units(made, matrices), factors)
        m, i, one = dim("m", count), dim("i", rows), dim("one", 1)
        pivots = made("pivots", compute("identity", [at(value, m, i, i + rows)], [m, i, one]))
        value = made("scale", DivOp(value, made("roots", SqrtOp(pivots))))
        inverse, factor = (
            made(step, SliceOp(value, [0, 0, start], [1, 1, 1], [count, rows, rows]))
            for step, start in (("inverse", 0), ("factor", rows))
        )
        return inverse, factor


@irdl_op_definition
class TriangularSolveOp(CompositeOp):
    """The solutions X of systems A X = B, where A is triangular.

    Example: %2 = nn.triangular_solve %0, %1 lower transpose
    : (tensor<2x8x8xf32>, tensor<2x8x3xf32>) -> tensor<2x8x3xf32>

    Elements of A on the other side of the diagonal are not read. If A has a 0 on its diagonal,
    elements of the result are infinite or NaN.

    Attributes:
        matrix: A, [batch..., n, n] of floats.
        right: B, [batch..., n, columns]; [batch..., rows, n] for `from_right`.
        lower: the elements on and below the diagonal are read, instead of those on and above it.
        transpose: A is transposed after that.
        unit: the diagonal counts as 1, and is not read either.
        from_right: the systems are X A = B.
    """

    name = "nn.triangular_solve"
    matrix = operand_def(TensorType)
    right = operand_def(TensorType)
    lower = opt_prop_def(UnitAttr)
    transpose = opt_prop_def(UnitAttr)
    unit = opt_prop_def(UnitAttr)
    from_right = opt_prop_def(UnitAttr)
    assembly_format = (
        "$matrix `,` $right (`lower` $lower^)? (`transpose` $transpose^)? (`unit` $unit^)?"
        " (`from_right` $from_right^)? attr-dict `:` functional-type(operands, results)"
    )

    def __init__(
        self,
        matrix: SSAValue,
        right: SSAValue,
        *,
        lower: bool = False,
        transpose: bool = False,
        unit: bool = False,
        from_right: bool = False,
    ):
        given = flags(lower=lower, transpose=transpose, unit=unit, from_right=from_right)
        super().__init__([matrix, right], given)

    def infer(self) -> TensorType[Attribute]:
        """The type of the right side."""
        element = same_element(self.matrix, self.right)
        *batch, n, _ = _need_square(self.matrix, "a matrix")
        shape = shape_of(self.right)
        axis = -1 if self.from_right is not None else -2
        if list(shape[:-2]) != batch or len(shape) != len(batch) + 2 or shape[axis] != n:
            need = [*map(str, batch), "columns"]
            need.insert(len(need) if axis == -1 else len(need) - 1, str(n))
            raise Unmet(f"a right side of shape {list(shape)}; need [{', '.join(need)}]", "right")
        return tensor(shape, element)

    @classmethod
    def sample(cls, wanted: Wanted) -> TriangularSolveOp:
        """A random system. A given operand is the matrix or the right side."""
        random, first = wanted.random, wanted.first
        named = ("lower", "transpose", "unit", "from_right")
        given = {name: random.random() < 0.5 for name in named}
        matrix = _sampled_square(wanted)
        *batch, n, columns = shape_of(matrix)
        if first is not None and first != matrix:
            right = first
            *batch, rows, columns = shape_of(first)
            n = columns if given["from_right"] else rows
            matrix = tensor((*batch, n, n), first.element_type)
        else:
            columns = random.choice((1, 2, 3, n))
            shape = (columns, n) if given["from_right"] else (n, columns)
            right = tensor((*batch, *shape), matrix.element_type)
        return cls(*Block(arg_types=[matrix, right]).args, **given)

    def parts(self, made: Parts) -> SSAValue:
        """Rows divided by the diagonal, blocks on the diagonal inverted, and blocks of rows of X
        from the first to the last.

        The systems become those of a lower triangular matrix on the left: upper ones by reversing
        rows and columns.
        """
        shape, beside = shape_of(self.right), self.from_right is not None
        if 0 in shape:
            return made("empty", ConstantOp(np.zeros(shape, numpy_dtype(element_of(self.result)))))
        n, columns = shape[-1:-3:-1] if beside else shape[-2:]
        on = _Blocks(made, n, prod(shape[:-2]))
        turned = (self.transpose is not None) != beside
        matrix, right = on.matrices(self.matrix), on.matrices(self.right)
        if turned:
            matrix = _turned(made, matrix)
        if beside:
            right = _turned(made, right)
        backwards = (self.lower is not None) == turned
        if backwards:
            matrix, right = _reversed(made, matrix, (1, 2)), _reversed(made, right, (1,))
        found = self._solved(on, on.whole(matrix, on.size - n), on.whole(right, 0))
        if on.size != n:
            found = made("crop", SliceOp(found, [0, 0, 0], [1, 1, 1], [on.count, n, columns]))
        if backwards:
            found = _reversed(made, found, (1,))
        if beside:
            found = _turned(made, found)
        return made("back", ReshapeOp(made.narrow(found), shape))

    def _solved(self, on: _Blocks, matrix: SSAValue, right: SSAValue) -> SSAValue:
        """The solutions [count, size, columns] for lower triangular matrices on the left."""
        made, square = on.made, shape_of(matrix)
        below = made("below", GreaterOp(_index(made, square, 1), _index(made, square, 2)))
        left = made("strict", SelectOp(below, matrix, _number(made, 0.0, matrix)))
        if self.unit is None:
            diagonal = self._diagonal(on, matrix)
            left = made("unit_diagonal", DivOp(left, diagonal))
            right = made("divide", DivOp(right, diagonal))
        inverses = self._inverses(on, left)
        columns = shape_of(right)[-1]
        right = made("blocks", ReshapeOp(right, (*on.cut, columns)))
        own = made("own", MatMulOp(inverses, right))
        if on.blocks > 1:
            own = self._all_rows(on, made("factors", MatMulOp(inverses, self._left(on, left))), own)
        return made("join", ReshapeOp(own, (on.count, on.size, columns)))

    def _diagonal(self, on: _Blocks, matrix: SSAValue) -> SSAValue:
        """The elements [count, size, 1] on the diagonal; 1 in rows that are added."""
        made = on.made
        m, i, one = dim("m", on.count), dim("i", on.size), dim("one", 1)
        found = made("diagonal", compute("identity", [at(matrix, m, i, i)], [m, i, one]))
        if on.size == on.n:
            return found
        row = _index(made, (on.size, 1), 0)
        added = made("added", GreaterEqualOp(row, _number(made, on.n, row)))
        return made("regular", SelectOp(added, _number(made, 1.0, found), found))

    def _inverses(self, on: _Blocks, left: SSAValue) -> SSAValue:
        """The inverses [count, blocks, rows, rows] of the blocks on the diagonal, which counts as
        1.

        Args:
            left: the elements below the diagonal, and zeros.
        """
        made, (count, blocks, rows) = on.made, on.cut
        m, q, i, j = dim("m", count), dim("q", blocks), dim("i", rows), dim("j", rows)
        view = (count, blocks, rows, blocks, rows)
        corners = compute("identity", [at(left, m, q, i, q, j, view=view)], [m, q, i, j])
        every = (count * blocks, rows, rows)
        corner = made("every", ReshapeOp(made("corners", corners), every))

        def factors(value: SSAValue, m: Index, i: Index) -> tuple[str, Sequence[At]]:
            return "identity", [at(value, m, (i + 1).outside("fill"), 2 * rows)]

        found = _eliminated(made, _beside_units(made, corner), factors)
        sizes = [count * blocks, rows, rows]
        found = made("inverse", SliceOp(found, [0, 0, 0], [1, 1, 1], sizes))
        return made("inverses", ReshapeOp(found, (*on.cut, rows)))

    def _left(self, on: _Blocks, left: SSAValue) -> SSAValue:
        """The elements [count, blocks, rows, size] left of the blocks on the diagonal, and
        zeros."""
        made, (_, blocks, rows) = on.made, on.cut
        view = (*on.cut, blocks, rows)
        seen = made("seen", ReshapeOp(left, view))
        shape = (1, blocks, 1, blocks, 1)
        beside = made("beside", GreaterOp(_index(made, shape, 1), _index(made, shape, 3)))
        kept = made("left", SelectOp(beside, seen, _number(made, 0.0, seen)))
        return made("rows", ReshapeOp(kept, (*on.cut, on.size)))

    def _all_rows(self, on: _Blocks, factors: SSAValue, own: SSAValue) -> SSAValue:
        """The solutions, in blocks of rows: each is its own part minus products of those before."""
        count, blocks, rows = on.cut
        columns = shape_of(own)[-1]

        def block(made: Parts, carried: Sequence[SSAValue], number: SSAValue) -> Sequence[SSAValue]:
            (done,) = carried
            factor = _at(made, factors, number, 1)
            factor = made("factor", ReshapeOp(factor, (count, rows, on.size)))
            before = made("before", ReshapeOp(done, (count, on.size, columns)))
            product = made("product", MatMulOp(factor, before))
            first = made("first", ReshapeOp(_at(made, own, number, 1), (count, rows, columns)))
            found = made("rest", SubOp(first, product))
            return (_with_block(made, done, found, number),)

        begin = on.made("begin", ExpandOp(_number(on.made, 0.0, own), shape_of(own)))
        (found,) = on.made.repeat("blocks", blocks, [begin], block)
        return found


def _reversed(made: Parts, value: SSAValue, axes: Sequence[int]) -> SSAValue:
    """A value with some axes in the opposite order."""
    shape = shape_of(value)
    starts = [n - 1 if i in axes else 0 for i, n in enumerate(shape)]
    steps = [-1 if i in axes else 1 for i in range(len(shape))]
    return made("reverse", SliceOp(value, starts, steps, shape))


def bad_pivot(add: Callable[[PureTensorOp | ConstantOp], SSAValue], factor: SSAValue) -> SSAValue:
    """For each matrix, the number of the first row whose factor has a NaN on the diagonal, from 1;
    0 if none has.

    That is the first row where the matrix is not positive definite. Where it is singular, rows of
    the same block before that one have a NaN too.

    Args:
        add: adds an operation, and returns its result.
        factor: the result of nn.cholesky.
    """
    shape = shape_of(factor)
    *batch, n, _ = shape
    if 0 in shape:
        return add(ConstantOp(np.zeros(batch, np.int32)))

    def number(value: int) -> SSAValue:
        return add(ConstantOp(np.array(value, np.int32)))

    square = tensor((n, n), i32)
    row, column = (add(IotaOp(square, steps, 1)) for steps in ([1, 0], [0, 1]))
    on_diagonal = add(EqualOp(row, column))
    bad = add(LogicalAndOp(add(IsNaNOp(factor)), on_diagonal))
    numbers = add(SelectOp(bad, row, number(n + 1)))
    last = len(shape) - 1
    first = add(ReduceOp(numbers, "min", [last - 1, last]))
    return add(SelectOp(add(GreaterOp(first, number(n))), number(0), first))
