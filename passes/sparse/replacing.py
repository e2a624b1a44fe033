"""Writes the product of buckets in the place of another product."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

import numpy as np
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.dtypes import numpy_dtype
from ...dialects.structured import Structure
from ...ir.blob import Blob
from ...ir.context import AbeleContext
from ...ir.edit import Edit, source_at
from ...ir.provenance import at
from ...ir.support.arrays import Array
from ...ir.upstream import Context, InsertPoint
from ..planner.sparse_products import InBuckets
from .candidates import Candidate


def replace_product(op: Operation, best: InBuckets, found: Candidate, ctx: Context) -> None:
    """Replace a product by that of the buckets."""
    with Edit(source_at(f"multiply {op.name} without zeros", replace_product), op) as edit:
        made = InPlace(op, best, edit, ctx)
        rows, columns = (
            made.constant(name, array)
            for name, array in zip(("rows", "columns"), best.buckets.indices(), strict=True)
        )
        dense = found.dense
        assert dense is not None
        if found.windows is not None:
            dense = made.windows(dense, found.windows)
        edit.replace(op, [made.product([made.values(), dense, rows, columns])])


@dataclass(frozen=True, eq=False)
class InPlace:
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

    def windows(self, dense: SSAValue, windows: Structure) -> SSAValue:
        """The dense matrix of a convolution: for each point of the image, the terms of its window.

        Args:
            dense: the image.
        """
        (result,) = windows.space.results
        element = nn.element_of(dense)
        made = self("windows", nn.ComputeOp([dense], windows, nn.tensor(result.shape, element)))
        n, *others = self.best.product.others
        terms = prod(result.shape[1 : -len(others)])
        return self("terms", nn.ReshapeOp(made, (n, terms, *others)))

    def product(self, operands: Sequence[SSAValue]) -> SSAValue:
        """The product, with its rows in the order of the matrix."""
        (result,), structure = self.op.results, self.best.structure
        order, element = self.best.buckets.order(), nn.element_of(result)
        if order is None:
            return self("", nn.ComputeOp(operands, structure, nn.tensor_of(result)))
        product = self.best.product
        (access,) = structure.space.results
        dealt = self("dealt", nn.ComputeOp(operands, structure, nn.tensor(access.shape, element)))
        dealt = self("blocks", nn.ReshapeOp(dealt, product.dealt(self.best.buckets)))
        taken = self("order", nn.TakeOp(dealt, order, product.before))
        return self("", nn.ReshapeOp(taken, nn.shape_of(result)))
