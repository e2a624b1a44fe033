"""Compute operations on constants once, at compile time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
from xdsl.dialects.func import CallOp, ReturnOp
from xdsl.ir import Operation, SSAValue

from ..backends.codelets.conversion import Array, converted
from ..backends.faults import IndexFault
from ..backends.reference import (
    evaluate_pure,
    is_evaluable,
    operation_value,
    structure_value,
    tensor_kind,
)
from ..dialects import control, nn
from ..dialects.levels import NN
from ..dialects.settable import changing_states
from ..dialects.structured import Movement, Reinterpretation, Structure, Structured
from ..ir.blob import Blob, repeats_one_element
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.geometry.space import AccessMap, Space
from ..ir.provenance import locate
from ..ir.rewriting import may_rewrite
from ..ir.support.number_kinds import is_whole
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass, VerifyException
from .plans.coordinates import can_read, reading

MAX_GROWTH = 4
"""The largest ratio of a folded result's bytes to the bytes of its operands.

Chosen by judgement, not measured: a broadcast is cheaper to compute than to keep on every tile.
"""

MAX_FREE_BYTES = 1 << 16
"""Bytes up to which a result is folded, however small its operands are.

Chosen by judgement, not measured: spread over the tiles, 64 KiB are a few bytes per tile.
"""

MOST_POINTS = 1 << 32
"""The most points of an operation's space up to which it is folded: the reference takes about ten
seconds for these.
"""

MOST_COUNTED = 1 << 31
"""Integers of this size or more are not replaced by an nn.iota."""

MOST_BYTES = 1 << 48
"""Bytes up to which NumPy describes an array that repeats one element."""


HANDING_ON = (CallOp, ReturnOp, control.RepeatOp, control.WhileOp, control.YieldOp)
"""Operations that copy what they take."""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace operations on constants by constants. nn -> nn.

    The reference computes the value in float64 and rounds it once. A state that no operation stores
    to counts as a constant, but its load stays a load. An operation whose results would be more
    than 4 times as large as its operands, and larger than 64 KiB, is left to the machine, unless
    all elements of its result are equal: the host stores one of them, and the tiles keep the result
    like a weight. If only loops, calls and returns take that result, they would copy it, so it
    becomes an nn.expand of one element. A constant of integers that grow evenly along each axis
    becomes an nn.iota if only elementwise functions read it, because they compute such numbers
    themselves. So do sums and differences of such constants. An operation with an index out of
    range stays, and faults in the run. An operation of more than 2^32 points stays too, because
    folding it would take too long.
    """

    name = "fold-constants"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module: fold in program order, then replace, users first."""
        known = _loads(op)
        folded: list[Operation] = []
        counts = _Counts(known)
        for each in op.walk():
            if isinstance(each, nn.ConstantOp):
                known[each.result] = each.value.array
            elif isinstance(each, nn.IotaOp):
                # Not folded: its readers compute the numbers themselves, and a constant would take
                # room on every tile. Values computed from it and from constants are constant too.
                counts.found[each.result] = each
                if _bytes(each.result) <= MAX_FREE_BYTES:
                    known[each.result] = operation_value(each, [])
            elif is_evaluable(each) and all(v in known for v in each.operands):
                operands = [known[v] for v in each.operands]
                one = _of_one_number(each, operands)
                if isinstance(each, nn.ExpandOp) and operands[0].size == 1:
                    if one is not None and _is_handed_on(each.results[0], one):
                        continue
                if one is None and (_grows(each, operands) or _takes_long(each)):
                    counts.add(each)
                    continue
                try:
                    results = [one] if one is not None else evaluate_pure(each, operands)
                except IndexFault:
                    # The run raises the fault, if it gets there: the operation may be in a branch.
                    continue
                known.update(zip(each.results, results, strict=True))
                folded.append(each)
            else:
                counts.add(each)
        for each in reversed(folded):
            if may_rewrite():
                _replace(each, known, ctx)
        for each, iota in counts.made.items():
            if may_rewrite():
                _count(each, iota)
        for each in tuple(op.walk()):
            if isinstance(each, nn.ConstantOp | nn.LoadOp):
                table = (
                    each.value.array if isinstance(each, nn.ConstantOp) else known.get(each.result)
                )
                iota = None if table is None else _table(each, table)
                if iota is not None and may_rewrite():
                    _count(each, iota)


def _loads(module: ModuleOp) -> dict[SSAValue, Array]:
    """The values of loads from states that never change."""
    ops = list(module.walk())
    changing = changing_states(module)
    states = {
        op.sym_name.data: op
        for op in ops
        if isinstance(op, nn.StateOp) and op.sym_name.data not in changing
    }
    loads = [op for op in ops if isinstance(op, nn.LoadOp)]
    return {
        load.result: states[load.state.string_value()].value.array
        for load in loads
        if load.state.string_value() in states
    }


def _grows(op: Operation, operands: Sequence[Array]) -> bool:
    """Whether the results are far larger than the operands, by their types."""
    bytes_made = sum(_bytes(result) for result in op.results)
    return bytes_made > max(MAX_GROWTH * sum(a.nbytes for a in operands), MAX_FREE_BYTES)


def _is_handed_on(value: SSAValue, array: Array) -> bool:
    """Whether a large value that repeats one element is copied to wherever it is read."""
    large = array.nbytes > MAX_FREE_BYTES and repeats_one_element(array)
    return large and all(isinstance(use.operation, HANDING_ON) for use in value.uses)


def _takes_long(op: Operation) -> bool:
    """Whether the reference would visit too many points. A lookup visits only the points it
    names."""
    if not isinstance(op, Structured):
        return False
    space = op.structure().space
    return not space.relations and space.points > MOST_POINTS


def _of_one_number(op: Operation, operands: Sequence[Array]) -> Array | None:
    """The result of an operation whose operands each repeat one number, as an array that repeats
    one too.

    The array stores one element only. None if the result has a single element, or if the structure
    does not show that all elements are equal.
    """
    if not operands or len(op.results) != 1 or not all(map(_repeats, operands)):
        return None
    shape, dtype = tensor_kind(op.results[0].type)
    if prod(shape) < 2 or prod(shape) * dtype.itemsize > MOST_BYTES:
        return None
    numbers = [each[(0,) * each.ndim].reshape(()) for each in operands]
    if isinstance(op, Reinterpretation):
        return np.broadcast_to(numbers[0], shape)
    if isinstance(op, Movement):
        inside = all(_stays_inside(move) for move in op.moves())
        alike = all(each.tobytes() == numbers[0].tobytes() for each in numbers)
        return np.broadcast_to(numbers[0], shape) if inside and alike else None
    if not isinstance(op, Structured) or not _is_pointwise(op.structure()):
        return None
    body = op.structure().body
    maps = (AccessMap(()),) * len(op.operands)
    at_one_point = Structure(Space((), maps, (AccessMap(()),)), body)
    value = structure_value(at_one_point, numbers, dtype, ())
    return np.broadcast_to(converted(value, dtype), shape)


def _repeats(array: Array) -> bool:
    return array.size == 1 or repeats_one_element(array)


def _is_pointwise(structure: Structure) -> bool:
    """Whether each result element is computed from one element per operand and nothing else.

    A body that reads positions does not qualify, nor does a codelet, whose space has the dimensions
    that its signature names.
    """
    space = structure.space
    is_parallel = len(space.of_kind("parallel")) == len(space.dims)
    looks_around = space.relations or space.positions or structure.body.signature
    return is_parallel and not looks_around and _stays_inside(space)


def _stays_inside(space: Space) -> bool:
    """Whether every index that the operands are read at lies inside them."""
    return all(
        axis.outside == "none" and axis.divisor == 1
        for access in space.operands
        for axis in access.axes
    )


@dataclass
class _Counts:
    """The values that are integers which grow evenly along each axis.

    Attributes:
        known: the arrays of constants.
        found: for each value, an equal nn.iota, or None if there is none.
        made: the nn.iota that replaces each sum or difference.
    """

    known: Mapping[SSAValue, Array]
    found: dict[SSAValue, nn.IotaOp | None] = field(
        default_factory=dict[SSAValue, "nn.IotaOp | None"]
    )
    made: dict[Operation, nn.IotaOp] = field(default_factory=dict[Operation, nn.IotaOp])

    def of(self, value: SSAValue) -> nn.IotaOp | None:
        """The nn.iota that equals a value, or None. It may have no steps, if the value repeats one
        number.
        """
        if value not in self.found:
            array = self.known.get(value)
            self.found[value] = None if array is None else _iota(value, array)
        return self.found[value]

    def add(self, op: Operation) -> None:
        """Record the nn.iota that equals a sum, a difference, a negation or a cast of such
        values."""
        signs = SIGNS.get(type(op))
        if signs is None or not isinstance(op, Structured):
            return
        read = reading(op.structure(), op.operands, op.results[0], self.of)
        if len(read.absorbed) != len(signs):
            return
        total, start = dict[int, int](), 0
        for sign, position in zip(signs, read.structure.space.coordinates, strict=True):
            (axis,) = position.access.axes
            start += sign * (position.first + axis.offset)
            for d, step in axis.terms:
                total[d] = total.get(d, 0) + sign * step
        type_ = nn.tensor_of(op.results[0])
        steps = [total.get(d, 0) for d in range(len(type_.get_shape()))]
        try:
            iota = nn.IotaOp(type_, steps, start)
        except VerifyException:
            return
        self.found[op.results[0]] = self.made[op] = iota


SIGNS: Mapping[type[Operation], tuple[int, ...]] = {
    nn.AddOp: (1, 1),
    nn.SubOp: (1, -1),
    nn.NegOp: (-1,),
    nn.CastOp: (1,),
}
"""Operations that preserve even growth, with the sign of each operand."""


def _count(op: Operation, iota: nn.IotaOp) -> None:
    """Replace an operation by an nn.iota."""
    with Edit(source_at("count instead of reading a table", _count), op) as edit:
        locate(iota, op)
        edit.insert(iota, InsertPoint.before(op))
        edit.replace(op, [iota.result])


def _table(op: nn.ConstantOp | nn.LoadOp, array: Array) -> nn.IotaOp | None:
    """The nn.iota that may replace a constant; None if there is none, or if a reader needs a
    tensor.
    """
    value = op.results[0]
    iota = None if value.first_use is None or array.size < 2 else _iota(value, array)
    if iota is None or not any(nn.values_of(iota.steps)):
        return None

    def find(operand: SSAValue) -> nn.IotaOp | None:
        return iota if operand is value else None

    for use in value.uses:
        reader = use.operation
        if not isinstance(reader, Structured) or not can_read(reader):
            return None
        read = reading(reader.structure(), reader.operands, reader.results[0], find)
        if use.index not in read.absorbed:
            return None
    return iota


def _iota(value: SSAValue, array: Array) -> nn.IotaOp | None:
    """The nn.iota that equals an array; None if there is none.

    Args:
        value: has the type of the result.
    """
    # Check a corner first: most constants already differ from an nn.iota there.
    corner = array[tuple(slice(0, 3) for _ in array.shape)]
    if not _is_even(corner) or not _is_even(array):
        return None
    first = (0,) * array.ndim
    steps = [
        int(array[(*first[:i], 1, *first[i + 1 :])]) - int(array[first]) if n > 1 else 0
        for i, n in enumerate(array.shape)
    ]
    try:
        return nn.IotaOp(nn.tensor_of(value), steps, int(array[first]))
    except VerifyException:
        return None


def _is_even(array: Array) -> bool:
    """Whether an array holds integers that grow evenly along each axis."""
    if not is_whole(array.dtype) or not array.size:
        return False
    wide = array.astype(np.float64)
    if not (np.abs(wide) < MOST_COUNTED).all():
        return False
    steps = (np.diff(wide, axis=i) for i in range(array.ndim))
    return all(not each.size or bool((each == each.flat[0]).all()) for each in steps)


def _bytes(value: SSAValue) -> int:
    shape, dtype = tensor_kind(value.type)
    return prod(shape) * dtype.itemsize


def _replace(op: Operation, known: dict[SSAValue, Array], ctx: Context) -> None:
    """Replace a folded operation. Its folded users are gone, so the remaining uses need the
    constant.
    """
    with Edit(source_at(f"fold {op.name}", _replace), op) as edit:
        values: list[SSAValue | None] = []
        for result in op.results:
            if result.first_use is None:
                values.append(None)
                continue
            array, shape = known[result], None
            if _is_handed_on(result, array):
                array, shape = np.array(array[(0,) * array.ndim]), array.shape
            blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
            constant = nn.ConstantOp(blob)
            locate(constant, op)
            edit.insert(constant, InsertPoint.before(op))
            values.append(constant.result)
            if shape is not None:
                expanded = nn.ExpandOp(constant.result, shape)
                locate(expanded, op)
                edit.insert(expanded, InsertPoint.before(op))
                values[-1] = expanded.results[0]
        edit.replace(op, values)
