"""Operations that reach elements by index: rows looked up in a table, and rows that updates go to.

The table's row is a dimension of the iteration space, and a relation says that it equals the index.
It is merged in a gather and kept in a scatter, so each is the other's transpose.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from math import prod

from xdsl.dialects.builtin import IntegerType, StringAttr, TensorType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import irdl_op_definition, operand_def, prop_def

from ...ir.geometry.space import AccessMap, Dim, Kind, Relation, Space
from ...ir.unmet import Unmet, need_one_of
from ...ir.upstream import VerifyException
from ..scalar_functions import ARITHMETIC, UPDATES
from ..structured import Body, Structure
from .base import (
    INTEGER,
    Shape,
    axis_map,
    element_of,
    integer,
    normal_axis,
    shape_of,
    tensor,
)
from .chain import CHAIN, ChainableOp


class IndexedOp(ChainableOp, ABC):
    """An operation on the rows of a table that an operand of indices names.

    Attributes:
        axis: the axis of the table that indices are of, counted from 0. An axis of n elements has
            the indices 0..n-1, and -n..-1, which count from its end. Any other index is a fault of
            the run.
    """

    indices = operand_def(TensorType)
    axis = prop_def(INTEGER)

    @property
    def table_axis(self) -> int:
        """The axis of the table that indices are of."""
        return self.axis.value.data

    def check_indices(self, rank: int) -> None:
        """Raise VerifyException unless indices are integers, and the table has the axis."""
        element = element_of(self.indices)
        if not isinstance(element, IntegerType) or element.width.data < 8:
            raise Unmet(f"indices of {element}; need integers of 8 bits or more", "indices")
        if not 0 <= self.table_axis < rank:
            raise Unmet(f"axis {self.table_axis} of rank {rank}; need 0..{rank - 1}", "axis")
        if not self.table_shape()[self.table_axis] and prod(shape_of(self.indices)):
            raise VerifyException(
                f"indices of shape {list(shape_of(self.indices))} of axis {self.table_axis}, which "
                "has no elements; need no indices"
            )

    @abstractmethod
    def table_shape(self) -> Shape:
        """The shape of the table: a gather's operand, or a scatter's result."""

    @abstractmethod
    def rows_shape(self) -> Shape:
        """The shape of the rows: a gather's result, or a scatter's updates."""


def _rows_of_gather(table: Shape, indices: Shape, axis: int) -> Shape:
    """The shape of a gather's result: the table's shape, with the indices' axes instead of
    `axis`."""
    return (*table[:axis], *indices, *table[axis + 1 :])


def _structure(op: IndexedOp, body: Body, *, gathers: bool, along: bool) -> Structure:
    """The structure of a lookup: a dimension per axis of the rows, and one for the table's row.

    Args:
        along: whether the indices have the axes of the rows, instead of axes of their own.
    """
    table, rows, indices = op.table_shape(), op.rows_shape(), shape_of(op.indices)
    axis, rank, count = op.table_axis, len(rows), 1 if along else len(indices)
    own = range(axis, axis + count)

    def kind(d: int) -> Kind:
        return "reduction" if not gathers and d in own else "parallel"

    dims = (
        *(Dim(f"d{d}", n, kind(d)) for d, n in enumerate(rows)),
        Dim("row", table[axis], "reduction" if gathers else "parallel"),
    )
    others = [d for d in range(rank) if d not in own]
    of_table = [*others[:axis], rank, *others[axis:]]
    table_map = AccessMap(
        tuple(axis_map(n, dims, [(d, 1)]) for n, d in zip(table, of_table, strict=True))
    )
    rows_map = AccessMap(tuple(axis_map(n, dims, [(d, 1)]) for d, n in enumerate(rows)))
    index_dims = range(rank) if along else own
    index_map = AccessMap(
        tuple(axis_map(n, dims, [(d, 1)]) for d, n in zip(index_dims, indices, strict=True))
    )
    source, target = (table_map, rows_map) if gathers else (rows_map, table_map)
    relation = Relation(axis_map(table[axis], dims, [(rank, 1)]), 1)
    return Structure(Space(dims, (source, index_map), (target,), (relation,)), body)


class _Gather(IndexedOp, ABC):
    """An operation that looks rows up in a table."""

    table = operand_def(TensorType)
    indices = operand_def(TensorType)
    axis = prop_def(INTEGER)
    assembly_format = "$table `,` $indices `axis` $axis" + CHAIN

    def __init__(self, table: SSAValue, indices: SSAValue, axis: int):
        axis = normal_axis(axis, len(shape_of(table)))
        super().__init__([table, indices], {"axis": integer(axis)})

    def table_shape(self) -> Shape:
        """The shape of the table."""
        return shape_of(self.table)


class _Scatter(IndexedOp, ABC):
    """An operation that merges updates into the rows of a table."""

    updates = operand_def(TensorType)
    indices = operand_def(TensorType)
    combiner = prop_def(StringAttr)
    axis = prop_def(INTEGER)
    size = prop_def(INTEGER)
    assembly_format = "$combiner $updates `,` $indices `axis` $axis `size` $size" + CHAIN

    def __init__(self, updates: SSAValue, indices: SSAValue, combiner: str, axis: int, size: int):
        properties = {"combiner": StringAttr(combiner), "axis": integer(axis)}
        super().__init__([updates, indices], {**properties, "size": integer(size)})

    def rows_shape(self) -> Shape:
        """The shape of the updates."""
        return shape_of(self.updates)

    def check(self) -> None:
        """Raise VerifyException unless the updates are numbers and the size is not negative."""
        need_one_of("combiner", self.combiner.data, ARITHMETIC)
        if self.size.value.data < 0:
            raise Unmet(f"size {self.size.value.data}; need 0 or more", "size")
        element = element_of(self.updates)
        if isinstance(element, IntegerType) and element.width.data == 1:
            raise VerifyException(f"updates of {element}; need numbers")


@irdl_op_definition
class GatherOp(_Gather):
    """The rows of a table that indices name, one after another.

    table: of any shape. indices: integers of any shape. axis: of the table. The axes of the indices
    take the place of that axis in the result. Negative indices count from the end. An index that
    the axis does not have is a fault.

    Example: %2 = nn.gather %0, %1 axis 0 : (tensor<100x16xf32>, tensor<3xi64>) -> tensor<3x16xf32>
    """

    name = "nn.gather"

    def rows_shape(self) -> Shape:
        """The shape of the result."""
        return _rows_of_gather(shape_of(self.table), shape_of(self.indices), self.table_axis)

    def infer(self) -> TensorType[Attribute]:
        """The table's shape with the indices' axes in the place of the axis."""
        self.check_indices(len(shape_of(self.table)))
        return tensor(self.rows_shape(), element_of(self.table))

    def core_structure(self) -> Structure:
        """One dimension per axis of the result, and a merged one for the row."""
        return _structure(self, Body("identity", "pick"), gathers=True, along=False)


@irdl_op_definition
class GatherAlongOp(_Gather):
    """The element of a table that each index names along an axis.

    table: of any shape. indices: integers, of the table's rank, and on every other axis no longer
    than the table. axis: of the table. The result has the shape of the indices. Negative indices
    count from the end. An index that the axis does not have is a fault.

        result[i, j] = table[indices[i, j], j], for axis 0

    Example: %2 = nn.gather_along %0, %1 axis 0 : (tensor<9x4xf32>, tensor<3x4xi64>)
    -> tensor<3x4xf32>
    """

    name = "nn.gather_along"

    def rows_shape(self) -> Shape:
        """The shape of the result."""
        return shape_of(self.indices)

    def infer(self) -> TensorType[Attribute]:
        """The shape of the indices."""
        table, indices = shape_of(self.table), shape_of(self.indices)
        self.check_indices(len(table))
        if len(table) != len(indices):
            raise Unmet(f"indices of rank {len(indices)}; need {len(table)}", "indices rank")
        for i, (n, m) in enumerate(zip(indices, table, strict=True)):
            if i != self.table_axis and n > m:
                raise Unmet(f"axis {i} of the indices: {n}; need at most {m}", f"indices {i}")
        return tensor(indices, element_of(self.table))

    def core_structure(self) -> Structure:
        """One dimension per axis of the result, and a merged one for the row."""
        return _structure(self, Body("identity", "pick"), gathers=True, along=True)


@irdl_op_definition
class ScatterOp(_Scatter):
    """A table whose rows merge the updates that indices send to them.

    combiner: sum, max, min or prod. updates: of the shape that a gather of these indices gives.
    indices: integers of any shape. axis: of the table; size: its length. A row without an update is
    the combiner's identity. Negative indices count from the end. An index that the axis does not
    have is a fault.

    Example: %2 = nn.scatter "sum" %0, %1 axis 0 size 100 : (tensor<3x16xf32>, tensor<3xi64>)
    -> tensor<100x16xf32>
    """

    name = "nn.scatter"

    def table_shape(self) -> Shape:
        """The shape of the result."""
        axis, updates = self.table_axis, shape_of(self.updates)
        rank = len(shape_of(self.indices))
        return (*updates[:axis], self.size.value.data, *updates[axis + rank :])

    def infer(self) -> TensorType[Attribute]:
        """The shape of the updates, with the size in the place of the indices' axes."""
        updates, indices, axis = shape_of(self.updates), shape_of(self.indices), self.table_axis
        self.check()
        self.check_indices(len(updates) - len(indices) + 1)
        if updates[axis : axis + len(indices)] != indices:
            raise Unmet(
                f"updates of shape {list(updates)}; need the axes of the indices, "
                f"{list(indices)}, from axis {axis} on",
                "updates",
            )
        return tensor(self.table_shape(), element_of(self.updates))

    def core_structure(self) -> Structure:
        """One dimension per axis of the updates, those of the indices merged, and the row."""
        body = Body("identity", self.combiner.data)
        return _structure(self, body, gathers=False, along=False)


@irdl_op_definition
class ScatterAlongOp(_Scatter):
    """A table whose elements merge the updates that indices send to them along an axis.

    combiner: sum, max, min or prod. updates: of any shape. indices: integers of the same shape.
    axis: of the table; size: its length. Every other axis is as long as the updates. An element
    without an update is the combiner's identity. Negative indices count from the end. An index that
    the axis does not have is a fault.

        result[indices[i, j], j] merges updates[i, j], for axis 0

    Example: %2 = nn.scatter_along "sum" %0, %1 axis 0 size 9 : (tensor<3x4xf32>, tensor<3x4xi64>)
    -> tensor<9x4xf32>
    """

    name = "nn.scatter_along"

    def table_shape(self) -> Shape:
        """The shape of the result."""
        axis, updates = self.table_axis, shape_of(self.updates)
        return (*updates[:axis], self.size.value.data, *updates[axis + 1 :])

    def infer(self) -> TensorType[Attribute]:
        """The shape of the updates with the size in the place of the axis."""
        updates, indices = shape_of(self.updates), shape_of(self.indices)
        self.check()
        self.check_indices(len(updates))
        if updates != indices:
            raise Unmet(f"indices of {list(indices)}; need {list(updates)}", "indices")
        return tensor(self.table_shape(), element_of(self.updates))

    def core_structure(self) -> Structure:
        """One dimension per axis of the updates, that of the indices merged, and the row."""
        body = Body("identity", self.combiner.data)
        return _structure(self, body, gathers=False, along=True)


@irdl_op_definition
class UpdateOp(IndexedOp):
    """A table of which some elements are replaced by updates, or merged with them.

        result = table; result[indices[i, j], j] merges updates[i, j], for axis 0

    If nothing reads the table later, the result is written over it, and costs no more than the
    updates.

    Example: %3 = nn.update "last" %0, %1 into %2 axis 0 : (tensor<3x4xf32>, tensor<3x1xi64>,
    tensor<9x4xf32>) -> tensor<9x4xf32>

    If several updates name one element, last takes the one that comes last. Negative indices count
    from the end. An index that the axis does not have is a fault.

    Attributes:
        combiner: last, which replaces, sum, max, min or prod.
        table: of any shape.
        updates: of the table's shape, but for any number along the axis.
        indices: integers of the table's rank; on each axis as long as the updates, or 1, if they do
            not depend on it.
        axis: of the table.
    """

    name = "nn.update"
    updates = operand_def(TensorType)
    indices = operand_def(TensorType)
    table = operand_def(TensorType)
    combiner = prop_def(StringAttr)
    axis = prop_def(INTEGER)
    assembly_format = "$combiner $updates `,` $indices `into` $table `axis` $axis" + CHAIN

    def __init__(
        self, updates: SSAValue, indices: SSAValue, table: SSAValue, combiner: str, axis: int
    ):
        axis = normal_axis(axis, len(shape_of(table)))
        properties = {"combiner": StringAttr(combiner), "axis": integer(axis)}
        super().__init__([updates, indices, table], properties)

    def table_shape(self) -> Shape:
        """The shape of the table."""
        return shape_of(self.table)

    def rows_shape(self) -> Shape:
        """The shape of the updates."""
        return shape_of(self.updates)

    def infer(self) -> TensorType[Attribute]:
        """The type of the table."""
        combiner, element = self.combiner.data, element_of(self.table)
        need_one_of("combiner", combiner, UPDATES)
        if combiner != "last" and isinstance(element, IntegerType) and element.width.data == 1:
            raise VerifyException(f"{combiner} of {element}; need numbers")
        if element_of(self.updates) != element:
            raise Unmet(f"updates of {element_of(self.updates)}; need {element}", "updates element")
        table, updates, indices = self.table_shape(), self.rows_shape(), shape_of(self.indices)
        self.check_indices(len(table))
        for what, given in (("updates", updates), ("indices", indices)):
            if len(given) != len(table):
                raise Unmet(f"{what} of rank {len(given)}; need {len(table)}", f"{what} rank")
        for i, (n, m, k) in enumerate(zip(table, updates, indices, strict=True)):
            if m != n and i != self.table_axis:
                raise Unmet(f"axis {i} of the updates: {m}; need {n}", f"updates {i}")
            if k not in (1, m):
                raise Unmet(f"axis {i} of the indices: {k}; need 1 or {m}", f"indices {i}")
        return tensor(table, element_of(self.table))

    def core_structure(self) -> Structure:
        """One dimension per axis of the updates, of which that of the axis is merged, and the
        row."""
        axis, table, updates = self.table_axis, self.table_shape(), self.rows_shape()
        rank = len(table)
        dims = (
            *(
                Dim(f"d{d}", n, "reduction" if d == axis else "parallel")
                for d, n in enumerate(updates)
            ),
            Dim("row", table[axis]),
        )

        def of(shape: Shape, at_axis: int) -> AccessMap:
            """The map of a tensor; axes of one element are broadcast."""
            along = [at_axis if d == axis else d for d in range(rank)]
            terms = ([(d, 1)] if n > 1 else [] for n, d in zip(shape, along, strict=True))
            return AccessMap(tuple(map(axis_map, shape, (dims,) * rank, terms)))

        table_map = of(table, rank)
        relation = Relation(axis_map(table[axis], dims, [(rank, 1)]), 1)
        operands = (of(updates, axis), of(shape_of(self.indices), axis), table_map)
        space = Space(dims, operands, (table_map,), (relation,))
        return Structure(space, Body("identity", self.combiner.data, resumes=True))
