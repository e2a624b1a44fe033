"""Compute operations on constants once, at compile time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from math import prod

import numpy as np
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
from ..dialects import nn
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
"""How many times the bytes of its operands a folded result may have.

Chosen by judgement, not measured: a broadcast is cheaper to compute than to keep on every tile.
"""

MAX_FREE_BYTES = 1 << 16
"""Bytes up to which a result is folded however small its operands are.

Chosen by judgement, not measured: spread over the tiles, 64 KiB are a few bytes of each.
"""

MOST_POINTS = 1 << 32
"""Points of an operation's space up to which it is folded: some ten seconds of the reference."""

MOST_COUNTED = 1 << 31
"""Numbers from here on are not counted, but read."""

MOST_BYTES = 1 << 48
"""Bytes up to which NumPy describes an array that repeats one element."""


@dataclass(frozen=True)
class FoldConstants(ModulePass):
    """Replace operations on constants by constants. nn -> nn.

    The reference computes the value in float64 and rounds it once. A state that no operation stores
    to counts as a constant, but its load stays a load. An operation whose results would be more
    than 4 times as large as its operands, and larger than 64 KiB, is left to the machine, unless
    all elements of its result are equal: the host stores one of them, and the tiles keep the result
    like a weight. A constant of integers that grow evenly along each axis becomes an nn.iota where
    functions of elements alone read it: they count for themselves. So do sums and differences of
    such numbers. An operation with an index that is out of range stays, and is a fault of the run.
    So does one of more than 2^32 points, which would keep the compiler busy.
    """

    name = "fold-constants"
    takes = NN
    skips_other_levels = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Fold in the order of the program; then replace, users first."""
        known = _loads(op)
        folded: list[Operation] = []
        counts = _Counts(known)
        for each in op.walk():
            if isinstance(each, nn.ConstantOp):
                known[each.result] = each.value.array
            elif isinstance(each, nn.IotaOp):
                # It stays: whoever reads it counts for itself, and a constant would take room on
                # every tile. What follows from it and from constants is one.
                counts.found[each.result] = each
                if _bytes(each.result) <= MAX_FREE_BYTES:
                    known[each.result] = operation_value(each, [])
            elif is_evaluable(each) and all(v in known for v in each.operands):
                operands = [known[v] for v in each.operands]
                one = _of_one_number(each, operands)
                if one is None and (_grows(each, operands) or _takes_long(each)):
                    counts.add(each)
                    continue
                try:
                    results = [one] if one is not None else evaluate_pure(each, operands)
                except IndexFault:
                    # The run raises it, if it gets there: the operation may be in a branch.
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
    """Whether the results are far larger than the operands; their types decide."""
    bytes_made = sum(_bytes(result) for result in op.results)
    return bytes_made > max(MAX_GROWTH * sum(a.nbytes for a in operands), MAX_FREE_BYTES)


def _takes_long(op: Operation) -> bool:
    """Whether the reference would walk through too many points. Those of a lookup are not walked
    through."""
    if not isinstance(op, Structured):
        return False
    space = op.structure().space
    return not space.relations and space.points > MOST_POINTS


def _of_one_number(op: Operation, operands: Sequence[Array]) -> Array | None:
    """The result of an operation whose operands each repeat one number, if it does so too.

    It takes no memory for further elements. None if the result has one element, or if the structure
    of the operation does not tell.
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
    """Whether an operation computes each element of its result from one element per operand, and
    from nothing else, such as where the element is."""
    space = structure.space
    is_parallel = len(space.of_kind("parallel")) == len(space.dims)
    looks_around = space.relations or space.positions
    return is_parallel and not looks_around and _stays_inside(space)


def _stays_inside(space: Space) -> bool:
    """Whether operands are read at their own elements only, never beside them."""
    return all(
        axis.outside == "none" and axis.divisor == 1
        for access in space.operands
        for axis in access.axes
    )


@dataclass
class _Counts:
    """The values that are evenly growing numbers. known: the arrays of constants.

    found: the nn.iota that each of them is, or could be; None where there is none. made: those of
    sums and differences, to put in their place.
    """

    known: Mapping[SSAValue, Array]
    found: dict[SSAValue, nn.IotaOp | None] = field(
        default_factory=dict[SSAValue, "nn.IotaOp | None"]
    )
    made: dict[Operation, nn.IotaOp] = field(default_factory=dict[Operation, nn.IotaOp])

    def of(self, value: SSAValue) -> nn.IotaOp | None:
        """The nn.iota that a value could be; also one without steps, of one number alone."""
        if value not in self.found:
            array = self.known.get(value)
            self.found[value] = None if array is None else _iota(value, array)
        return self.found[value]

    def add(self, op: Operation) -> None:
        """Note what a sum or a difference of numbers that grow evenly is."""
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
"""The functions of numbers that grow evenly whose results do so too: the sign of each operand."""


def _count(op: Operation, iota: nn.IotaOp) -> None:
    """Put an nn.iota in the place of an operation."""
    with Edit(source_at("count instead of reading a table", _count), op) as edit:
        locate(iota, op)
        edit.insert(iota, InsertPoint.before(op))
        edit.replace(op, [iota.result])


def _table(op: nn.ConstantOp | nn.LoadOp, array: Array) -> nn.IotaOp | None:
    """The nn.iota that a table is; None if it is none, or if somebody has to read a tensor."""
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
    """The nn.iota of some numbers; None if there is none. value: of the type that it has."""
    # Most constants differ in the first numbers along an axis.
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
    """Replace a folded operation; its folded users are gone, so the uses left are real ones."""
    with Edit(source_at(f"fold {op.name}", _replace), op) as edit:
        values: list[SSAValue | None] = []
        for result in op.results:
            if result.first_use is None:
                values.append(None)
                continue
            array = known[result]
            blob = ctx.blobs.add(array) if isinstance(ctx, AbeleContext) else Blob(array)
            constant = nn.ConstantOp(blob)
            locate(constant, op)
            edit.insert(constant, InsertPoint.before(op))
            values.append(constant.result)
        edit.replace(op, values)
