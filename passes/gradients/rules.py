"""The gradient rule of each operation class; other operations are differentiated by their space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.structured import Movement, Structured
from ...ir.blob import Blob
from .codelets import of_codelet
from .emit import Emitter
from .errors import NoGradient
from .iteration_rows import narrowed
from .structured import differentiated
from .summaries import summarized
from .triangular import cholesky, triangular_solve

Gradients = Sequence[SSAValue | None]
"""The gradients of an operation's results; None for a result without one."""

Rule = Callable[[Emitter, Operation, Gradients, Sequence[int]], dict[int, SSAValue]]
"""Computes the gradients of the wanted operands. Raises NoGradient if the operation has none."""


def passed_back(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradients of the wanted operands of an operation, by index. A missing index means 0.

    Raises NoGradient if the operation has none.
    """
    if isinstance(op, nn.CodeletOp):
        return of_codelet(emit, op, gradients, wanted)
    rule = RULES.get(type(op))
    if rule is not None:
        return rule(emit, op, gradients, wanted)
    if isinstance(op, Structured) and op.structure().body.member_kinds:
        return summarized(emit, op, gradients) if 0 in wanted else {}
    if len(gradients) != 1:
        raise NoGradient("has several results, and no rule for them")
    gradient = _only(gradients)
    if isinstance(op, Structured):
        result = op.results[0]
        if isinstance(op, nn.ComputeOp) and wanted:
            # The operation may sum narrow elements in a wide type.
            like = op.operands[wanted[0]]
            gradient, result = narrowed(emit, gradient, like), narrowed(emit, result, like)
        found = differentiated(emit, op.structure(), op.operands, result, gradient, wanted)
        return {k: narrowed(emit, value, op.operands[k]) for k, value in found.items()}
    if isinstance(op, Movement):
        return _moved(emit, op, gradient, wanted)
    raise NoGradient("has no gradient")


def has_rule(op: Operation) -> bool:
    """Whether an operation has a rule of its own and need not be decomposed."""
    return type(op) in RULES


def _moved(
    emit: Emitter, op: Operation, gradient: SSAValue, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The transposes of an operation's moves, applied to its gradient."""
    assert isinstance(op, Movement)
    found: dict[int, SSAValue] = {}
    for k, move in enumerate(op.moves()):
        if k in wanted:
            (source,), (target,) = move.operands, move.results
            shape = nn.shape_of(op.operands[k])
            found[k] = emit.transpose(move, source, shape, "identity", (), [(gradient, target)], 0)
    return found


def _only(gradients: Gradients) -> SSAValue:
    (gradient,) = gradients
    assert gradient is not None
    return gradient


# Movements and reshapes whose transposes have names


def _reshape(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    return {0: emit.reshaped(_only(gradients), nn.shape_of(op.operands[0]))}


def _transpose(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.TransposeOp)
    order = nn.values_of(op.permutation)
    inverse = [order.index(i) for i in range(len(order))]
    return {0: emit(nn.TransposeOp(_only(gradients), inverse))}


def _concat(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.ConcatOp)
    gradient, start, found = _only(gradients), 0, dict[int, SSAValue]()
    for k, part in enumerate(op.parts):
        shape = nn.shape_of(part)
        starts = [start if i == op.along else 0 for i in range(len(shape))]
        if k in wanted:
            found[k] = emit(nn.SliceOp(gradient, starts, [1] * len(shape), shape))
        start += shape[op.along]
    return found


def _slice(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.SliceOp)
    gradient, starts = _only(gradients), nn.values_of(op.starts)
    if any(step != 1 for step in nn.values_of(op.steps)):
        return _moved(emit, op, gradient, wanted)
    shape = nn.shape_of(op.operand)
    high = [n - start - m for n, start, m in zip(shape, starts, nn.shape_of(gradient), strict=True)]
    return {0: emit(nn.PadOp(gradient, starts, high))}


def _pad(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.PadOp)
    gradient = _only(gradients)
    if op.mode.data != "constant":
        return _moved(emit, op, gradient, wanted)
    low, high = ([-n for n in nn.values_of(each)] for each in (op.low, op.high))
    return {0: emit(nn.PadOp(gradient, low, high))}


def _cast(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    return {0: emit(nn.CastOp(_only(gradients), nn.element_of(op.operands[0])))}


def _bitcast(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    raise NoGradient("looks at the bits of numbers")


# Sums of products


def _conv(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """By the operation's space; `nn.conv` and its gradients are the candidate operations."""
    assert isinstance(op, nn.ConvOp)
    gradient = _only(gradients)
    stride, dilation, low = op.lists
    named: dict[int, Sequence[nn.ChainableOp]] = {}
    if 0 in wanted:
        image = nn.ConvInputGradOp(
            gradient,
            op.weight,
            nn.shape_of(op.image)[2:],
            stride=stride,
            dilation=dilation,
            pad_low=low,
            groups=op.group_count,
        )
        named[0] = [image]
    if 1 in wanted:
        weight = nn.ConvWeightGradOp(
            op.image,
            gradient,
            nn.shape_of(op.weight)[2:],
            stride=stride,
            dilation=dilation,
            pad_low=low,
            groups=op.group_count,
        )
        named[1] = [weight]
    return differentiated(emit, op.structure(), op.operands, op.result, gradient, wanted, named)


def _matmul(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.MatMulOp)
    gradient = _only(gradients)
    left, right = op.transpose_lhs is not None, op.transpose_rhs is not None
    named: dict[int, Sequence[nn.ChainableOp]] = {}
    if 0 in wanted:
        if left:
            made = nn.MatMulOp(op.rhs, gradient, transpose_lhs=right, transpose_rhs=True)
        else:
            made = nn.MatMulOp(gradient, op.rhs, transpose_rhs=not right)
        named[0] = [made]
    if 1 in wanted:
        if right:
            made = nn.MatMulOp(gradient, op.lhs, transpose_lhs=True, transpose_rhs=left)
        else:
            made = nn.MatMulOp(op.lhs, gradient, transpose_lhs=not left)
        named[1] = [made]
    return differentiated(emit, op.structure(), op.operands, op.result, gradient, wanted, named)


# Lookups: a gather and a scatter are each other's transposes


def _block_matmul(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradient of the dense matrix is a product with the transposed blocks, so it may have
    buckets too."""
    assert isinstance(op, nn.BlockMatMulOp)
    gradient = _only(gradients)
    rest = [k for k in wanted if k != 1]
    found = differentiated(emit, op.structure(), op.operands, op.result, gradient, rest)
    if 1 in wanted:
        turned, last = op.transposed is None, op.dense_last is not None
        made = nn.BlockMatMulOp(
            *(op.values, gradient, op.rows, op.columns, op.terms),
            transposed=turned,
            dense_last=last,
        )
        found[1] = emit(made)
    return found


def _gather(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.GatherOp)
    size = nn.shape_of(op.table)[op.table_axis]
    scatter = nn.ScatterOp(_only(gradients), op.indices, "sum", op.table_axis, size)
    return {0: emit(scatter)}


def _gather_along(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.GatherAlongOp)
    shape, axis = nn.shape_of(op.table), op.table_axis
    made = emit(nn.ScatterAlongOp(_only(gradients), op.indices, "sum", axis, shape[axis]))
    # Clear the rows of the table that the indices do not reach.
    high = [n - m for n, m in zip(shape, nn.shape_of(made), strict=True)]
    return {0: emit(nn.PadOp(made, [0] * len(shape), high)) if any(high) else made}


def _scatter(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.ScatterOp | nn.ScatterAlongOp)
    gather = nn.GatherOp if isinstance(op, nn.ScatterOp) else nn.GatherAlongOp

    def looked_up(value: SSAValue) -> SSAValue:
        return emit(gather(value, op.indices, op.table_axis))

    gradient, combiner = _only(gradients), op.combiner.data
    if combiner == "sum":
        return {0: looked_up(gradient)}
    size = op.size.value.data

    def merged(combiner: str, updates: SSAValue, _: SSAValue | None) -> SSAValue:
        return emit(type(op)(updates, op.indices, combiner, op.table_axis, size))

    merge = _Merge(emit, op.result, gradient, op.updates, None, merged, looked_up)
    return {0: merge.passed(combiner)[0]}


@dataclass(frozen=True)
class _Merge:
    """The gradient of a lookup that merges updates into the rows of a table.

    Attributes:
        result: the resulting table.
        gradient: its gradient.
        table: the table before the updates; None if it begins with the combiner's identity.
        merged: merges updates by a combiner, beginning with an optional table.
        looked_up: the rows of a table that the indices name.
    """

    emit: Emitter
    result: SSAValue
    gradient: SSAValue
    updates: SSAValue
    table: SSAValue | None
    merged: Callable[[str, SSAValue, SSAValue | None], SSAValue]
    looked_up: Callable[[SSAValue], SSAValue]

    def passed(self, combiner: str) -> list[SSAValue]:
        """The gradient of the updates, then that of the table, if there is one."""
        return self._of_product() if combiner == "prod" else self._of_extreme()

    def _of_extreme(self) -> list[SSAValue]:
        """Split the gradient of an element equally among the updates and the old element that equal
        it.
        """
        emit, result, updates, table = self.emit, self.result, self.updates, self.table
        there, one = self.looked_up(result), emit.constant(1.0, self.gradient)
        own = None if table is None else emit(nn.MatchOp(table, result, one))
        count = self.merged("sum", emit(nn.MatchOp(updates, there, one)), own)
        share = emit(nn.DivOp(self.gradient, count))
        found = [emit(nn.MatchOp(updates, there, self.looked_up(share)))]
        return found if table is None else [*found, emit(nn.MatchOp(table, result, share))]

    def _of_product(self) -> list[SSAValue]:
        """Multiply the gradient by the product of the other factors of the same element.

        The product of the others is 0 if one of them is 0, so factors are counted and divided
        without zeros.
        """
        emit, table = self.emit, self.table
        zero, one = emit.zero(self.gradient), emit.constant(1.0, self.gradient)
        factors = [self.updates] if table is None else [self.updates, table]
        # For each factor, 1 where it is 0, and the factor with zeros replaced by 1.
        zeros = [emit(nn.MatchOp(each, zero, one)) for each in factors]
        others = [emit(nn.SelectOp(emit(nn.EqualOp(each, zero)), one, each)) for each in factors]
        product = self.merged("prod", others[0], others[1] if table is not None else None)
        count = self.merged("sum", zeros[0], zeros[1] if table is not None else None)
        found: list[SSAValue] = []
        where: tuple[Callable[[SSAValue], SSAValue], ...] = (self.looked_up, lambda value: value)
        for own, factor, seen in zip(zeros, others, where, strict=False):
            rest = emit(nn.DivOp(seen(product), factor))
            left = emit(nn.MatchOp(emit(nn.SubOp(seen(count), own)), zero, rest))
            found.append(emit(nn.MulOp(seen(self.gradient), left)))
        return found


def _update(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """Updates get the gradient of the rows that they were merged into; a replaced element gets
    0."""
    assert isinstance(op, nn.UpdateOp)
    gradient, combiner, axis = _only(gradients), op.combiner.data, op.table_axis
    shape = nn.shape_of(op.updates)
    indices, places = op.indices, nn.shape_of(op.indices)

    def rows(table: SSAValue) -> SSAValue:
        if all(n == 1 for i, n in enumerate(places) if i != axis):
            found = emit(nn.GatherOp(table, emit.reshaped(indices, (places[axis],)), axis))
            # The indices may be the same for all elements of a row.
            return emit.expanded(found, shape)
        return emit(nn.GatherAlongOp(table, emit.expanded(indices, shape), axis))

    def merged(combiner: str, updates: SSAValue, table: SSAValue | None) -> SSAValue:
        assert table is not None
        return emit(nn.UpdateOp(updates, indices, table, combiner, axis))

    if combiner not in ("sum", "last"):
        merge = _Merge(emit, op.result, gradient, op.updates, op.table, merged, rows)
        both = zip((0, 2), merge.passed(combiner), strict=True)
        return {k: each for k, each in both if k in wanted}
    found = {0: rows(gradient)} if 0 in wanted else {}
    if combiner == "sum":
        return {**found, 2: gradient}
    if found and shape[axis] > 1:
        # Of several updates of one element, only the last one gets its gradient.
        place = emit(nn.IotaOp(nn.tensor(shape, i32), [d == axis for d in range(len(shape))]))
        start = emit(nn.ConstantOp(np.full(nn.shape_of(op.table), -1, np.int32)))
        last = emit(nn.UpdateOp(place, indices, start, "max", axis))
        counts = emit(nn.EqualOp(rows(last), place))
        found[0] = emit(nn.SelectOp(counts, found[0], emit.zeros_like(found[0])))
    if 2 in wanted:
        zeros = emit.zeros_like(op.updates)
        found[2] = emit(nn.UpdateOp(zeros, op.indices, gradient, "last", axis))
    return found


# Sequences


def _scan(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.ScanOp)
    return {0: SCANS[op.combiner.data](emit, op, _only(gradients))}


def _scan_of_sums(emit: Emitter, op: nn.ScanOp, gradient: SSAValue) -> SSAValue:
    exclusive, reverse = op.exclusive is not None, op.reverse is None
    axis = op.axis.value.data
    return emit(nn.ScanOp(gradient, "sum", axis, exclusive=exclusive, reverse=reverse))


def _scan_of_extremes(emit: Emitter, op: nn.ScanOp, gradient: SSAValue) -> SSAValue:
    """Scatter each gradient to the first element that reached the maximum or minimum."""
    x, axis, reverse = op.operand, op.axis.value.data, op.reverse is not None
    shape = nn.shape_of(x)
    size = shape[axis]
    if 0 in shape:
        return gradient
    before = emit(nn.ScanOp(x, op.combiner.data, axis, exclusive=True, reverse=reverse))
    compare = nn.GreaterOp if op.combiner.data == "max" else nn.LessOp
    # Places are numbered in the order of the scan, so the latest new extreme has the largest
    # number.
    start, step = (size - 1, -1) if reverse else (0, 1)
    steps = [step if d == axis else 0 for d in range(len(shape))]
    place = emit(nn.IotaOp(nn.tensor(shape, i32), steps, start))
    first = emit(nn.ConstantOp(Blob(np.zeros((), np.int32))))
    new = emit(nn.SelectOp(emit(compare(x, before)), place, first))
    found = emit(nn.ScanOp(new, "max", axis, reverse=reverse))
    if op.exclusive is not None:
        found = _shifted(emit, found, axis, 1, reverse=reverse)
        gradient = _shifted(
            emit, _shifted(emit, gradient, axis, -1, reverse=reverse), axis, 1, reverse=reverse
        )
    if reverse:
        last = emit(nn.ConstantOp(Blob(np.array(size - 1, np.int32))))
        found = emit(nn.SubOp(last, found))
    return emit(nn.ScatterAlongOp(gradient, found, "sum", axis, size))


def _scan_of_products(emit: Emitter, op: nn.ScanOp, gradient: SSAValue) -> SSAValue:
    """The product before an element, times the sum of gradients times the products after it.

    The sums s[i] = g[i] + x[i + 1] * s[i + 1] are made in steps that double their lengths. Nothing
    is divided, so that elements may be 0.
    """
    x, axis, reverse = op.operand, op.axis.value.data, op.reverse is not None
    size = nn.shape_of(x)[axis]

    def ahead(value: SSAValue, by: int) -> SSAValue:
        return _shifted(emit, value, axis, -by, reverse=reverse)

    total = gradient if op.exclusive is None else ahead(gradient, 1)
    factor, length = ahead(x, 1), 1
    while length < size:
        total = emit(nn.AddOp(total, emit(nn.MulOp(factor, ahead(total, length)))))
        length *= 2
        if length < size:
            factor = emit(nn.MulOp(factor, ahead(factor, length // 2)))
    before = emit(nn.ScanOp(x, "prod", axis, exclusive=True, reverse=reverse))
    return emit(nn.MulOp(before, total))


def _shifted(emit: Emitter, value: SSAValue, axis: int, by: int, *, reverse: bool) -> SSAValue:
    """A value shifted along an axis in the order of a scan, with zeros at the beginning."""
    by = -by if reverse else by
    rank = len(nn.shape_of(value))
    low = [by if d == axis else 0 for d in range(rank)]
    return emit(nn.PadOp(value, low, [-n for n in low]))


SCANS: dict[str, Callable[[Emitter, nn.ScanOp, SSAValue], SSAValue]] = {
    "sum": _scan_of_sums,
    "max": _scan_of_extremes,
    "min": _scan_of_extremes,
    "prod": _scan_of_products,
}
"""The rule of a scan, by combiner."""


def _sort(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.SortOp)
    axis = op.axis.value.data
    order = emit(nn.SortIndicesOp(op.operand, axis, descending=op.descending is not None))
    size = nn.shape_of(op.operand)[axis]
    return {0: emit(nn.ScatterAlongOp(_only(gradients), order, "sum", axis, size))}


# Composites that are differentiated as a whole


def _softmax(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The formula y * (g - sum of g * y), which needs neither the operand nor its maximum."""
    assert isinstance(op, nn.SoftmaxOp)
    gradient, y = _wide(emit, _only(gradients)), _wide(emit, op.result)
    total = emit(nn.ReduceOp(emit(nn.MulOp(gradient, y)), "sum", [op.along], keep_dims=True))
    found = emit(nn.MulOp(y, emit(nn.SubOp(gradient, total))))
    return {0: _as(emit, found, op.operand)}


def _log_softmax(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The formula g - exp(y) * sum of g."""
    assert isinstance(op, nn.LogSoftmaxOp)
    gradient, y = _wide(emit, _only(gradients)), _wide(emit, op.result)
    total = emit(nn.ReduceOp(gradient, "sum", [op.along], keep_dims=True))
    found = emit(nn.SubOp(gradient, emit(nn.MulOp(emit(nn.ExpOp(y)), total))))
    return {0: _as(emit, found, op.operand)}


def _wide(emit: Emitter, value: SSAValue) -> SSAValue:
    return _cast_to(emit, value, nn.wide_element(nn.element_of(value)))


def _as(emit: Emitter, value: SSAValue, like: SSAValue) -> SSAValue:
    return _cast_to(emit, value, nn.element_of(like))


def _cast_to(emit: Emitter, value: SSAValue, element: object) -> SSAValue:
    assert isinstance(element, AnyFloat)
    return value if nn.element_of(value) == element else emit(nn.CastOp(value, element))


def _ctc_loss(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.CtcLossOp)
    blank = op.blank.value.data
    found = emit(nn.CtcLossGradOp(op.logs, op.labels, op.frames, op.counts, blank=blank))
    gradient = emit.reshaped(_only(gradients), (1, *nn.shape_of(op.result), 1))
    return {0: emit(nn.MulOp(found, gradient))}


def _ctc_loss_grad(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    raise NoGradient("is a gradient, of which none is known")


def _ctc_beam(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    raise NoGradient("is a search; nn.ctc_loss of the labels that it finds has a gradient")


RULES: dict[type[Operation], Rule] = {
    nn.ReshapeOp: _reshape,
    nn.TransposeOp: _transpose,
    nn.ConcatOp: _concat,
    nn.SliceOp: _slice,
    nn.PadOp: _pad,
    nn.CastOp: _cast,
    nn.BitCastOp: _bitcast,
    nn.ConvOp: _conv,
    nn.MatMulOp: _matmul,
    nn.BlockMatMulOp: _block_matmul,
    nn.GatherOp: _gather,
    nn.GatherAlongOp: _gather_along,
    nn.ScatterOp: _scatter,
    nn.ScatterAlongOp: _scatter,
    nn.UpdateOp: _update,
    nn.ScanOp: _scan,
    nn.SortOp: _sort,
    nn.SoftmaxOp: _softmax,
    nn.LogSoftmaxOp: _log_softmax,
    nn.CholeskyOp: cholesky,
    nn.TriangularSolveOp: triangular_solve,
    nn.CtcLossOp: _ctc_loss,
    nn.CtcLossGradOp: _ctc_loss_grad,
    nn.CtcBeamOp: _ctc_beam,
}
"""Rules of operations whose gradient is a named operation, or does not follow from a space and a
body.
"""
