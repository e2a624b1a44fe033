"""The rules of operations: what each passes back, by class; other operations follow their space."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

import numpy as np
from xdsl.dialects.builtin import AnyFloat, i32
from xdsl.ir import Operation, SSAValue

from ...dialects import nn
from ...dialects.combiners import Extreme
from ...dialects.structured import Body, Movement, Structure, Structured
from ...ir.blob import Blob
from ...ir.geometry.space import Space
from .emit import Emitter
from .errors import NoGradient
from .structured import differentiated
from .turns import narrowed

Gradients = Sequence[SSAValue | None]
"""Of the results of an operation; None where nothing is passed back."""

Rule = Callable[[Emitter, Operation, Gradients, Sequence[int]], dict[int, SSAValue]]
"""The gradients of the wanted operands. Raises NoGradient if the operation has none."""


def passed_back(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The gradients of the wanted operands of an operation, by index; one left out is 0.

    Raises NoGradient if the operation has none.
    """
    rule = RULES.get(type(op))
    if rule is not None:
        return rule(emit, op, gradients, wanted)
    if len(gradients) != 1:
        raise NoGradient("has several results, and no rule for them")
    gradient = _only(gradients)
    if isinstance(op, Structured):
        result = op.results[0]
        if isinstance(op, nn.ComputeOp) and wanted:
            # It may sum narrow elements in wide ones.
            like = op.operands[wanted[0]]
            gradient, result = narrowed(emit, gradient, like), narrowed(emit, result, like)
        return differentiated(emit, op.structure(), op.operands, result, gradient, wanted)
    if isinstance(op, Movement):
        return _moved(emit, op, gradient, wanted)
    raise NoGradient("has no gradient")


def has_rule(op: Operation) -> bool:
    """Whether an operation is differentiated as a whole, and not by its parts."""
    return type(op) in RULES


def _moved(
    emit: Emitter, op: Operation, gradient: SSAValue, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The transposes of moves."""
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
    """The space decides; these are the operations that it is expected to be."""
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
    # Rows of the table that the indices do not reach.
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
    if combiner == "prod":
        return {0: _product_of_updates(emit, op, gradient, looked_up)}
    # A row shares its gradient among the updates that equal it.
    there = looked_up(op.result)
    one = emit.constant(1.0, gradient)
    equal = emit(nn.MatchOp(op.updates, there, one))
    size = op.size.value.data
    count = emit(type(op)(equal, op.indices, "sum", op.table_axis, size))
    share = looked_up(emit(nn.DivOp(gradient, count)))
    return {0: emit(nn.MatchOp(op.updates, there, share))}


def _product_of_updates(
    emit: Emitter,
    op: nn.ScatterOp | nn.ScatterAlongOp,
    gradient: SSAValue,
    looked_up: Callable[[SSAValue], SSAValue],
) -> SSAValue:
    """Each update gets the product of the others of its row, which is 0 if one of them is 0."""
    zero, one = emit.zero(gradient), emit.constant(1.0, gradient)
    own, size = emit(nn.MatchOp(op.updates, zero, one)), op.size.value.data
    whole = emit(nn.SelectOp(emit(nn.EqualOp(op.updates, zero)), one, op.updates))
    product = emit(type(op)(whole, op.indices, "prod", op.table_axis, size))
    zeros = looked_up(emit(type(op)(own, op.indices, "sum", op.table_axis, size)))
    others = emit(nn.DivOp(looked_up(product), whole))
    # A zero among the others.
    left = emit(nn.MatchOp(emit(nn.SubOp(zeros, own)), zero, others))
    return emit(nn.MulOp(looked_up(gradient), left))


def _update(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """Updates pass back the rows that they were merged into; a replaced element passes nothing."""
    assert isinstance(op, nn.UpdateOp)
    gradient, combiner, axis = _only(gradients), op.combiner.data, op.table_axis
    if combiner not in ("sum", "last"):
        raise NoGradient(f"merges updates by {combiner}, which has no rule")
    shape = nn.shape_of(op.updates)
    indices, places = op.indices, nn.shape_of(op.indices)

    def rows(table: SSAValue) -> SSAValue:
        if all(n == 1 for i, n in enumerate(places) if i != axis):
            return emit(nn.GatherOp(table, emit.reshaped(indices, (places[axis],)), axis))
        return emit(nn.GatherAlongOp(table, emit.expanded(indices, shape), axis))

    found = {0: rows(gradient)} if 0 in wanted else {}
    if combiner == "sum":
        return {**found, 2: gradient}
    if found and shape[axis] > 1:
        # Of several updates of one element, only the last one counts.
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
    """All goes to the first element that reached the maximum or minimum: it is scattered there."""
    x, axis, reverse = op.operand, op.axis.value.data, op.reverse is not None
    shape = nn.shape_of(x)
    size = shape[axis]
    if 0 in shape:
        return gradient
    before = emit(nn.ScanOp(x, op.combiner.data, axis, exclusive=True, reverse=reverse))
    compare = nn.GreaterOp if op.combiner.data == "max" else nn.LessOp
    # Places count in the order of the scan, so that the last one that is new is the largest.
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
    """A value moved along an axis in the order of a scan, with zeros where nothing comes from."""
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
"""What a scan passes back, by its combiner."""


def _sort(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.SortOp)
    axis = op.axis.value.data
    order = emit(nn.SortIndicesOp(op.operand, axis, descending=op.descending is not None))
    size = nn.shape_of(op.operand)[axis]
    return {0: emit(nn.ScatterAlongOp(_only(gradients), order, "sum", axis, size))}


# Reductions of several values


def _summarize(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    assert isinstance(op, nn.SummarizeOp)
    combiner, x = op.combiner.data, op.operands[0]
    shape, axes = nn.shape_of(x), nn.values_of(op.axes)
    kept = [1 if i in axes else n for i, n in enumerate(shape)]

    def spread(value: SSAValue) -> SSAValue:
        return emit.reshaped(value, kept)

    first, second = gradients[0], gradients[1]
    if combiner == "moments":
        # mean' = 1 / n, variance' = 2 (x - mean) / n
        count = max(prod(shape[i] for i in axes), 1)
        found: list[SSAValue] = []
        if first is not None:
            found.append(emit(nn.ScaleOp(spread(first), 1.0 / count)))
        if second is not None:
            deviation = emit(nn.SubOp(x, spread(op.results[0])))
            factor = emit(nn.ScaleOp(spread(second), 2.0 / count))
            found.append(emit(nn.MulOp(deviation, factor)))
        return {0: emit.expanded(emit.add(found), shape)}
    if combiner == "exp_sum":
        # sum' = exp(x - max); max' is that of the sum, taken away where x is the largest.
        largest, total = (spread(value) for value in op.results)
        found = []
        owed = None if first is None else spread(first)
        if second is not None:
            power = emit(nn.ExpOp(emit(nn.SubOp(x, largest))))
            found.append(emit(nn.MulOp(power, spread(second))))
            lost = emit(nn.NegOp(emit(nn.MulOp(total, spread(second)))))
            owed = lost if owed is None else emit(nn.AddOp(owed, lost))
        assert owed is not None
        tied = emit(nn.MatchOp(x, largest, emit.constant(1.0, x)))
        count = emit(nn.ReduceOp(tied, "sum", axes, keep_dims=True))
        found.append(emit(nn.MatchOp(x, largest, emit(nn.DivOp(owed, count)))))
        return {0: emit.expanded(emit.add(found), shape)}
    return _extreme(emit, op, gradients, wanted)


def _extreme(
    emit: Emitter, op: Operation, gradients: Gradients, wanted: Sequence[int]
) -> dict[int, SSAValue]:
    """The value of an extreme passes back what a maximum or minimum does; its index nothing."""
    assert isinstance(op, nn.CombiningOp)
    kind, gradient = op.kind, gradients[0]
    if not isinstance(kind, Extreme) or gradient is None:
        raise NoGradient(f"summarizes by {kind.name}, which has no rule here")
    own = op.structure().space
    body = Body("identity", "max" if kind.largest else "min")
    space = Space(own.dims, own.operands, own.results[:1])
    return differentiated(
        emit, Structure(space, body), op.operands, op.results[0], gradient, wanted
    )


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
    nn.GatherOp: _gather,
    nn.GatherAlongOp: _gather_along,
    nn.ScatterOp: _scatter,
    nn.ScatterAlongOp: _scatter,
    nn.UpdateOp: _update,
    nn.ScanOp: _scan,
    nn.SortOp: _sort,
    nn.SummarizeOp: _summarize,
    nn.SummarizeWindowsOp: _extreme,
    nn.SoftmaxOp: _softmax,
    nn.LogSoftmaxOp: _log_softmax,
}
"""Rules of operations whose gradient has a name, or does not follow from a space and a body."""
