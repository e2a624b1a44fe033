"""Multiply a value by several weights at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..backends.target import Target
from ..dialects import nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..dialects.settable import changing_states
from ..ir.edit import Edit, source_at
from ..ir.provenance import at, fused
from ..ir.rewriting import may_rewrite
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .planner.alone import cycles_alone
from .plans.planned import asked_target

PLAN = "plan"
"""The attribute of an operation that is planned already."""

SEGMENTS = "operandSegmentSizes"
"""The property that counts the operands of each kind."""

MARGIN = 2
"""How many times cheaper than products by themselves one product must be.

The price of each product has the arrival of the value that they share, and that of one product
leaves out its slices. Chosen by trial: a step of GPT-2-small (ratios of 2.3 and 2.7) takes fewer
cycles with one product, and BERT-base for 128 tokens (1.6) more.
"""


@dataclass(frozen=True)
class MergeProducts(ModulePass):
    """Multiply a value by several weights at once, where that is clearly cheaper. nn -> nn.

    Products of one value with matrices that never change become one product with the matrices side
    by side, of which slices take their places. If each of them has a bias, the biases are added at
    once too. fold-constants joins the matrices, also those that are cast to a narrower type first.
    The planner prices the product of all, and each by itself. A matrix with other readers stays,
    because a second copy would take memory.

        %0 = nn.matmul %x, %q     %w = nn.concat %q, %k axis 1
        %1 = nn.matmul %x, %k     %2 = nn.matmul %x, %w
                                  %0 = nn.slice %2 from [0, 0] step [1, 1] size [1, 768]
                                  %1 = nn.slice %2 from [0, 768] step [1, 1] size [1, 768]

    Attributes:
        target: as for plan-splits.
        rows: of the value, for which the products are priced; 0 for those that it has. Programs
            that share weights make the same choice by the same number.
    """

    name = "merge-products"
    takes = NN
    skips_other_levels = True

    target: str = ""
    rows: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        found = products_of_a_value(op)
        if not found:
            return
        target = asked_target(op, self.target)
        for products in found:
            if _pays(products, self.rows, target) and may_rewrite():
                _merge(products)


@dataclass(frozen=True, eq=False)
class Product:
    """A product with a matrix that never changes.

    Attributes:
        bias: what is added to it, or None. nn.gemm may add it itself.
        sum: the operation that adds the bias, or None.
    """

    op: nn.MatMulOp | nn.GemmOp
    bias: SSAValue | None
    sum: nn.AddOp | None

    @property
    def last(self) -> nn.MatMulOp | nn.GemmOp | nn.AddOp:
        """The operation with the result."""
        return self.op if self.sum is None else self.sum


_Key = tuple[type, SSAValue, Block | None, tuple[tuple[str, Attribute], ...], Attribute, bool, bool]


def products_of_a_value(module: ModuleOp) -> list[list[Product]]:
    """The products that may be merged: lists of two or more, each of one value and one block."""
    known = _Known(module)
    found: dict[_Key, list[Product]] = {}
    for op in module.walk():
        if not isinstance(op, nn.MatMulOp | nn.GemmOp) or {GROUP, PLAN} & op.attributes.keys():
            continue
        if 0 in nn.shape_of(op.result) or not known.alone(op.rhs):
            continue
        if len(nn.shape_of(op.rhs)) != 2:
            continue
        each = _with_bias(op, known)
        if each is None:
            continue
        same = tuple(sorted((name, p) for name, p in op.properties.items() if name != SEGMENTS))
        element = nn.element_of(op.rhs)
        how = each.bias is None, each.sum is None
        key = (type(op), op.lhs, op.parent, same, element, *how)
        found.setdefault(key, []).append(each)
    return [each for each in found.values() if len(each) > 1]


class _Known:
    """Which values the compiler knows."""

    def __init__(self, module: ModuleOp) -> None:
        # A pipeline of stages leaves loads behind that nothing reads.
        loads = [
            op.state.string_value()
            for op in module.walk()
            if isinstance(op, nn.LoadOp) and op.result.uses
        ]
        self._changing = changing_states(module)
        self._several = {name for name in loads if loads.count(name) > 1}

    def alone(self, value: SSAValue) -> bool:
        """Whether a value is known, and is read once."""
        op = value.owner
        if isinstance(op, nn.CastOp):
            return value.has_one_use() and self.alone(op.operand)
        if isinstance(op, nn.LoadOp):
            name = op.state.string_value()
            if name in self._changing or name in self._several:
                return False
        elif not isinstance(op, nn.ConstantOp):
            return False
        return value.has_one_use()


def _with_bias(op: nn.MatMulOp | nn.GemmOp, known: _Known) -> Product | None:
    """A product, with the bias that is added to it, if that is a vector of its columns; None if
    nn.gemm itself adds something else."""
    if isinstance(op, nn.GemmOp) and op.bias is not None:
        own = nn.shape_of(op.bias) == nn.shape_of(op.result)[-1:] and known.alone(op.bias)
        return Product(op, op.bias, None) if own else None
    user = op.result.get_user_of_unique_use()
    if isinstance(user, nn.AddOp) and user.parent is op.parent and GROUP not in user.attributes:
        bias = user.rhs if user.lhs is op.result else user.lhs
        columns = nn.shape_of(op.result)[-1:]
        same = user.result.type == op.result.type
        if same and nn.shape_of(bias) == columns and known.alone(bias):
            return Product(op, bias, user)
    return Product(op, None, None)


def _pays(products: Sequence[Product], rows: int, target: Target) -> bool:
    """Whether one product is clearly cheaper than several."""
    first = products[0].op
    value = _with_rows(first, rows) if rows else first.lhs.type
    apart = sum(_cycles(each.op, value, each.op.rhs.type, target) for each in products)
    return MARGIN * _cycles(first, value, _joined_type(products), target) < apart


def _with_rows(op: nn.MatMulOp | nn.GemmOp, rows: int) -> Attribute:
    """The type of a product's value, with another number of rows."""
    shape = [*nn.shape_of(op.lhs)]
    if len(shape) > 1:
        shape[-1 if op.transpose_lhs is not None else -2] = rows
    return nn.tensor(tuple(shape), nn.element_of(op.lhs))


def _joined_type(products: Sequence[Product]) -> Attribute:
    """The type of all matrices side by side."""
    first = products[0].op
    axis = _columns(first)
    shape = [*nn.shape_of(first.rhs)]
    shape[axis] = sum(nn.shape_of(each.op.rhs)[axis] for each in products)
    return nn.tensor(tuple(shape), nn.element_of(first.rhs))


def _columns(op: nn.MatMulOp | nn.GemmOp) -> int:
    """The axis of the matrix that is the last one of the product."""
    return 0 if op.transpose_rhs is not None else 1


def _cycles(
    op: nn.MatMulOp | nn.GemmOp, value: Attribute, matrix: Attribute, target: Target
) -> float:
    """The cycles of a product with operands of other types in place of its own, without a bias."""
    block = Block(arg_types=[value, matrix])
    other = nn.MatMulOp(
        *block.args,
        transpose_lhs=op.transpose_lhs is not None,
        transpose_rhs=op.transpose_rhs is not None,
        into_i32=isinstance(op, nn.MatMulOp) and op.into_i32 is not None,
    )
    block.add_op(other)
    dtypes = [numpy_dtype(nn.element_of(v)) for v in (*other.operands, other.result)]
    return cycles_alone(other.structure(), dtypes, (True, False), target)


def _product(
    op: nn.MatMulOp | nn.GemmOp, rhs: SSAValue, bias: SSAValue | None
) -> nn.MatMulOp | nn.GemmOp:
    """A product like another one, with another matrix.

    Args:
        bias: what it adds itself, or None.
    """
    turned = {
        "transpose_lhs": op.transpose_lhs is not None,
        "transpose_rhs": op.transpose_rhs is not None,
    }
    if isinstance(op, nn.MatMulOp):
        made = nn.MatMulOp(op.lhs, rhs, **turned, into_i32=op.into_i32 is not None)
    else:
        made = nn.GemmOp(op.lhs, rhs, bias, **turned)
    made.properties |= op.properties
    return made


def _chain(value: SSAValue) -> list[Operation]:
    """The operations that make a known value, the first one first: a load or a constant, and
    casts."""
    found: list[Operation] = []
    op = value.owner
    while isinstance(op, nn.CastOp):
        found.append(op)
        op = op.operand.owner
    assert isinstance(op, Operation)
    return [op, *reversed(found)]


def _merge(products: Sequence[Product]) -> None:
    """Replace products by slices of one."""
    first = products[0].op
    with Edit(source_at("multiply by several weights at once", _merge), first) as edit:
        point = InsertPoint.before(first)

        def insert(op: Operation) -> SSAValue:
            edit.insert(op, point)
            return op.results[0]

        def joined(values: Sequence[SSAValue], axis: int, step: str) -> SSAValue:
            # A load or a constant may stand behind the first product.
            mapping: dict[SSAValue, SSAValue] = {}
            for op in (op for each in values for op in _chain(each)):
                _ = insert(op.clone(mapping))
            copies = [mapping[each] for each in values]
            made = nn.ConcatOp(copies, axis)
            made.location = at(
                fused([o for v in copies if isinstance(o := v.owner, Operation)]), step
            )
            return insert(made)

        matrix = joined([each.op.rhs for each in products], _columns(first), "merged")
        biases = [each.bias for each in products if each.bias is not None]
        bias = joined(biases, 0, "merged") if biases else None
        adds = products[0].sum is None
        whole = _product(first, matrix, bias if adds else None)
        whole.location = fused([each.op for each in products])
        value = insert(whole)
        if bias is not None and not adds:
            total = nn.AddOp(value, bias)
            total.location = fused([each.last for each in products])
            value = insert(total)
        start = 0
        read = [
            op
            for each in products
            for v in (each.op.rhs, each.bias)
            if v is not None
            for op in reversed(_chain(v))
        ]
        for each in products:
            shape = nn.shape_of(each.last.result)
            starts = [*([0] * (len(shape) - 1)), start]
            part = nn.SliceOp(value, starts, [1] * len(shape), shape)
            part.location = at(each.last, "part")
            edit.insert(part, InsertPoint.before(each.last))
            start += shape[-1]
            edit.replace(each.last, [part.result])
            if each.sum is not None:
                edit.erase(each.op)
        for op in read:
            edit.erase(op)
