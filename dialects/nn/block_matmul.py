"""The product of a block-sparse matrix and a dense one.

The matrix is a list of blocks, each with the row and the column of blocks where it lies. Both are
dimensions of the iteration space, and two relations say that they equal the indices of the block.
"""

from __future__ import annotations

from math import floor

from xdsl.dialects.builtin import (
    AnyFloat,
    IntegerType,
    TensorType,
    UnitAttr,
    f16,
    f32,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def

from ...ir.geometry.block_lists import OVERSIZE
from ...ir.geometry.space import AccessMap, Dim, Relation, Space
from ...ir.unmet import Unmet
from ..structured import Body, Structure
from .base import (
    INTEGER,
    INTEGERS,
    MOST_POSITIONS,
    NUMBER,
    Shape,
    axis_map,
    element_of,
    flags,
    integer,
    integers,
    number,
    same_element,
    shape_of,
    tensor,
    values_of,
)
from .chain import CHAIN, ChainableOp
from .wanted import Wanted

MOST_OVERSIZE = 1000.0
"""The largest oversize of buckets."""

SIDES = (1, 2, 3, 4)
"""The sides of the blocks of random operations."""


@irdl_op_definition
class BlockMatMulOp(ChainableOp):
    """The product of a block-sparse matrix [m, k] and a dense one: [k, n...] becomes [m, n...].

    Example: %4 = nn.block_matmul %values, %x at %rows, %columns size 64
    : (tensor<9x16x16xf16>, tensor<32x8xf16>, tensor<9xi32>, tensor<9xi32>) -> tensor<64x8xf16>

    Block i lies in row rows[i] and column columns[i] of blocks; all elements outside the blocks are
    0. Blocks may come in any order, and those that lie in one place add up. Negative indices count
    from the end. An index that the matrix does not have is a fault. A list may be longer than a
    pattern needs: blocks of zeros change nothing, wherever they lie.

    Attributes:
        values: [blocks, height, width], the elements of each block. Height and width divide the
            sizes of the matrix; of blocks of 1 x 1, each is one element.
        dense: [k, n...], of the element type of the values.
        rows, columns: integers [blocks].
        size: the number of rows of the result.
        transposed: the blocks are those of the transposed matrix [k, m]: rows count along k, and
            columns along m.
        dense_last: the dense matrix is [n..., k], and the result is [n..., m], as in the layers of
            networks.
        capacity: says that the pattern changes from run to run: the number of blocks of a pattern
            to plan for. The pass bucket-blocks puts the blocks into buckets; without it, nothing
            changes.
        density: the same, as the share of all places that have a block.
        oversize: by which share a bucket has more room than the average one needs; by default, 0.3.
        buckets: the bands of rows and the parts of columns that have a bucket each. By default, the
            planner chooses them.
    """

    name = "nn.block_matmul"
    values = operand_def(TensorType)
    dense = operand_def(TensorType)
    rows = operand_def(TensorType)
    columns = operand_def(TensorType)
    size = prop_def(INTEGER)
    transposed = opt_prop_def(UnitAttr)
    dense_last = opt_prop_def(UnitAttr)
    capacity = opt_prop_def(INTEGER)
    density = opt_prop_def(NUMBER)
    oversize = opt_prop_def(NUMBER)
    buckets = opt_prop_def(INTEGERS)
    assembly_format = (
        "$values `,` $dense `at` $rows `,` $columns `size` $size (`transposed` $transposed^)?"
        " (`dense_last` $dense_last^)? (`capacity` $capacity^)? (`density` $density^)?"
        " (`oversize` $oversize^)? (`buckets` $buckets^)?" + CHAIN
    )

    def __init__(
        self,
        values: SSAValue,
        dense: SSAValue,
        rows: SSAValue,
        columns: SSAValue,
        size: int,
        *,
        transposed: bool = False,
        dense_last: bool = False,
        capacity: int | None = None,
        density: float | None = None,
        oversize: float | None = None,
        buckets: tuple[int, int] | None = None,
    ):
        given = flags(transposed=transposed, dense_last=dense_last)
        if capacity is not None:
            given["capacity"] = integer(capacity)
        if density is not None:
            given["density"] = number(density)
        if oversize is not None:
            given["oversize"] = number(oversize)
        if buckets is not None:
            given["buckets"] = integers(buckets)
        super().__init__([values, dense, rows, columns], {"size": integer(size), **given})

    @property
    def block(self) -> tuple[int, int]:
        """The rows of the result that a block has a part in, and the terms that it adds to them."""
        _, height, width = shape_of(self.values)
        return (width, height) if self.transposed is not None else (height, width)

    @property
    def terms(self) -> int:
        """The terms of each element of the product: k."""
        return shape_of(self.dense)[-1 if self.dense_last is not None else 0]

    @property
    def grid(self) -> tuple[int, int]:
        """The rows and columns of blocks of the matrix that the list of blocks is of."""
        (high, wide), m, k = self.block, self.size.value.data, self.terms
        return (k // wide, m // high) if self.transposed is not None else (m // high, k // wide)

    @property
    def most_blocks(self) -> int | None:
        """The number of blocks that patterns are planned for; None if the pattern is given."""
        if self.capacity is not None:
            return self.capacity.value.data
        if self.density is None:
            return None
        high, wide = self.grid
        return floor(self.density.value.data * high * wide + 0.5)

    @property
    def room_more(self) -> float:
        """The share by which a bucket has more room than the average one needs."""
        return OVERSIZE if self.oversize is None else float(self.oversize.value.data)

    @property
    def columns_shape(self) -> Shape:
        """The axes of the dense matrix that the result keeps: n..."""
        shape = shape_of(self.dense)
        return shape[:-1] if self.dense_last is not None else shape[1:]

    def infer(self) -> TensorType[Attribute]:
        """[m, n...], or [n..., m]."""
        values, dense, m = shape_of(self.values), shape_of(self.dense), self.size.value.data
        if len(values) != 3:
            raise Unmet(f"values of shape {list(values)}; need [blocks, height, width]", "values")
        if not dense:
            raise Unmet("a dense operand of rank 0; need one axis or more", "dense")
        if m < 0:
            raise Unmet(f"size {m}; need 0 or more", "size")
        result = same_element(self.values, self.dense)
        named = (("rows", self.rows), ("columns", self.columns))
        for name, indices in named:
            element = element_of(indices)
            if not isinstance(element, IntegerType) or element.width.data < 8:
                raise Unmet(f"{name} of {element}; need integers of 8 bits or more", name)
        for name, indices in named:
            if shape_of(indices) != values[:1]:
                raise Unmet(
                    f"{name} of shape {list(shape_of(indices))}; need one for each of the "
                    f"{values[0]} blocks",
                    name,
                )
        sizes = zip(("size", "dense"), ("rows", "terms"), (m, self.terms), self.block, strict=True)
        for name, what, n, b in sizes:
            if not b or n % b:
                raise Unmet(f"{n} {what} in blocks of {b}; need a positive divisor", name)
            if values[0] and not n:
                raise Unmet(f"{values[0]} blocks of a matrix without {what}; need none", name)
        self._check_capacity()
        other = self.columns_shape
        shape = (*other, m) if self.dense_last is not None else (m, *other)
        return tensor(shape, result)

    def _check_capacity(self) -> None:
        """Raise Unmet for a capacity, an oversize or buckets that cannot be."""
        if self.capacity is not None and self.density is not None:
            raise Unmet("a capacity and a density; need one of them", "density")
        if self.capacity is not None and not 0 <= self.capacity.value.data <= MOST_POSITIONS:
            need = f"need 0 to {MOST_POSITIONS:,}"
            raise Unmet(f"capacity {self.capacity.value.data}; {need}", "capacity")
        if self.density is not None and not 0 <= self.density.value.data <= 1:
            raise Unmet(f"density {self.density.value.data}; need 0.0 to 1.0", "density")
        if not 0 <= self.room_more <= MOST_OVERSIZE:
            raise Unmet(f"oversize {self.room_more}; need 0 to {MOST_OVERSIZE:g}", "oversize")
        if self.buckets is None:
            return
        given, grid = values_of(self.buckets), self.grid
        if len(given) != 2 or any(n < 1 or size % n for n, size in zip(given, grid, strict=True)):
            raise Unmet(f"buckets {list(given)}; need divisors of {list(grid)}", "buckets")

    @classmethod
    def sample(cls, wanted: Wanted) -> BlockMatMulOp:
        """A random product. A given operand is the dense matrix or the values."""
        random, sizes, first = wanted.random, wanted.sizes, wanted.first
        elements = wanted.elements
        floats = [each for each in elements if isinstance(each, AnyFloat)]
        numbers = floats or [f32, f32, f16, i32]
        element = random.choice(numbers) if first is None else first.element_type
        sides = [n for n in sizes or SIDES if 0 < n <= max(SIDES)] or [1]
        height, width = random.choice(sides), random.choice(sides)
        transposed, last = random.random() < 0.5, random.random() < 0.5
        high, wide = (width, height) if transposed else (height, width)
        blocks = random.choice([0, 1, 2, 3, 5])
        other = [random.choice(sizes or SIDES) for _ in range(random.choice([0, 1, 1, 2]))]
        dense = tensor([*other, wide * 2] if last else [wide * 2, *other], element)
        values = tensor([blocks, height, width], element)
        if first is not None and len(shape_of(first)) == 3 and random.random() < 0.5:
            values, (blocks, *sides_of) = first, shape_of(first)
            high, wide = reversed(sides_of) if transposed else sides_of
            dense = tensor([*other, wide * 2] if last else [wide * 2, *other], element)
        elif first is not None:
            dense = first
        whole = [each for each in (i32, i64) if not elements or each in elements]
        indices = tensor([blocks], random.choice(whole or [i32]))
        args = Block(arg_types=[values, dense, indices, indices]).args
        size = high * random.choice([1, 2, 3])
        return cls(*args, size=size, transposed=transposed, dense_last=last)

    def core_structure(self) -> Structure:
        """n..., the row of blocks, and the row in it; blocks, columns and terms are merged."""
        m, k, other = self.size.value.data, self.terms, self.columns_shape
        (height, width), blocks = self.block, shape_of(self.values)[0]
        rank = len(other)
        dims = (
            *(Dim(f"n{i}" if rank > 1 else "n", n) for i, n in enumerate(other)),
            Dim("row", m // height),
            Dim("y", height),
            Dim("block", blocks, "reduction"),
            Dim("column", k // width, "reduction"),
            Dim("x", width, "reduction"),
        )
        row, y, block, column, x = range(rank, rank + 5)

        def access(*at: int) -> AccessMap:
            return AccessMap(tuple(axis_map(dims[d].size, dims, [(d, 1)]) for d in at))

        def dense(*own: int) -> AccessMap:
            others = range(rank)
            return access(*others, *own) if self.dense_last is not None else access(*own, *others)

        inner, at = (
            ((x, y), (column, row)) if self.transposed is not None else ((y, x), (row, column))
        )
        relations = tuple(
            Relation(axis_map(dims[d].size, dims, [(d, 1)]), operand)
            for operand, d in enumerate(at, 2)
        )
        operands = (access(block, *inner), dense(column, x), access(block), access(block))
        return Structure(Space(dims, operands, (dense(row, y),), relations), Body("mul", "sum"))
