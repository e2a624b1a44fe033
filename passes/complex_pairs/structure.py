"""Operations on complex numbers that move them, make them, compare them, or merge them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from xdsl.ir import Attribute, SSAValue

from ...dialects import stablehlo
from ...dialects.source_types import element_of, is_complex, part_type, shape_of, tensor
from . import moving
from .splitting import Made, Pair, Rule, Splitting, flat, partwise
from .terms import Term

# Making them, and taking them apart


def _constant(op: stablehlo.ConstantOp, new: Splitting) -> Sequence[Made]:
    array = op.array
    real, imag = (new.add(stablehlo.ConstantOp(each)) for each in (np.real(array), np.imag(array)))
    return [(real, imag)]


def _complex(op: stablehlo.ComplexOp, new: Splitting) -> Sequence[Made]:
    return [(op.lhs, op.rhs)]


def _real(op: stablehlo.RealOp, new: Splitting) -> Sequence[Made]:
    return [new.pair(op.operand)[0]]


def _imag(op: stablehlo.ImagOp, new: Splitting) -> Sequence[Made]:
    return [new.pair(op.operand)[1]]


def _iota(op: stablehlo.IotaOp, new: Splitting) -> Sequence[Made]:
    real = new.add(stablehlo.IotaOp(part_type(op.output), op.axis))
    return [(real, new.number(0.0, real))]


def _convert(op: stablehlo.ConvertOp, new: Splitting) -> Sequence[Made]:
    """The parts in another element type. Real numbers have imaginary parts of 0."""
    element = element_of(part_type(op.result) if is_complex(op.result) else op.result)
    if not is_complex(op.operand):
        real = _converted(new, op.operand, element)
        return [(real, new.number(0.0, real))]
    parts = new.pair(op.operand)
    if not is_complex(op.result):
        return [_converted(new, parts[0], element)]
    real, imag = (_converted(new, each, element) for each in parts)
    return [(real, imag)]


def _converted(new: Splitting, value: SSAValue, element: Attribute) -> SSAValue:
    if element_of(value) == element:
        return value
    return new.add(stablehlo.ConvertOp(value, element))


def _bits(op: stablehlo.BitcastConvertOp, new: Splitting) -> Sequence[Made]:
    """The bits of both parts, which lie one after the other along one more axis."""
    value = op.operand
    if is_complex(value):
        value = _joined(new, new.pair(value))
    if not is_complex(op.result):
        return [_seen_as(new, value, op.result)]
    shape = (*shape_of(op.result), 2)
    whole = _seen_as(new, value, part_type(op.result), shape)
    return [_parted(new, whole)]


def _seen_as(
    new: Splitting, value: SSAValue, like: SSAValue | Attribute, shape: Sequence[int] | None = None
) -> SSAValue:
    made = tensor(shape_of(like) if shape is None else shape, element_of(like))
    if value.type == made:
        return value
    return new.add(stablehlo.BitcastConvertOp.create(operands=[value], result_types=[made]))


def _joined(new: Splitting, parts: Pair) -> SSAValue:
    """Both parts along one more axis at the end."""
    shape = shape_of(parts[0])
    rows = [moving.reshape(new, each, (*shape, 1)) for each in parts]
    return moving.concatenate(new, rows, len(shape))


def _parted(new: Splitting, value: SSAValue) -> Pair:
    """The parts that lie along the last axis."""
    *shape, _ = shape_of(value)
    rows = [moving.box(new, value, len(shape), i, i + 1) for i in range(2)]
    real, imag = (moving.reshape(new, each, shape) for each in rows)
    return real, imag


# Comparisons


def _compare(op: stablehlo.CompareOp, new: Splitting) -> Sequence[Made]:
    """Whether both parts are equal, or the order of real parts and, if equal, of imaginary ones."""
    direction, kind = op.comparison_direction.data, op.compare_type

    def compared(part: int, asked: str) -> Term:
        a, b = (new.pair(each)[part] for each in (op.lhs, op.rhs))
        type_ = None if kind is None else kind.data
        return Term(new, new.add(stablehlo.CompareOp(a, b, asked, type_)))

    if direction in ("EQ", "NE"):
        first, second = compared(0, direction), compared(1, direction)
        return [(first & second if direction == "EQ" else first | second).value]
    strict = direction[:1] + "T"
    return [(compared(0, strict) | (compared(0, "EQ") & compared(1, direction))).value]


# Sums of products


def _product(op: stablehlo.DotGeneralOp, new: Splitting) -> Sequence[Made]:
    """Four products of parts."""
    lhs, rhs = (new.pair(each) for each in op.operands)
    type_ = part_type(op.result)

    def of(a: SSAValue, b: SSAValue) -> Term:
        return Term(new, new.again(op, [a, b], [type_]).results[0])

    real = of(lhs[0], rhs[0]) - of(lhs[1], rhs[1])
    imag = of(lhs[0], rhs[1]) + of(lhs[1], rhs[0])
    return [(real.value, imag.value)]


# Regions


def _sort(op: stablehlo.SortOp, new: Splitting) -> Sequence[Made]:
    """A sort of more tensors. Its region takes two elements of each, one after the other."""
    block = op.comparator.block
    arguments = tuple(block.args)
    for first, second in zip(arguments[::2], arguments[1::2], strict=True):
        if is_complex(first):
            kind, at = part_type(first), second.index + 1
            a, b, c, d = (block.insert_arg(kind, at + i) for i in range(4))
            new.pairs[first], new.pairs[second] = (a, c), (b, d)
    return flat(op, new)


_PARTWISE = (
    "add broadcast broadcast_in_dim concatenate dynamic_broadcast_in_dim dynamic_gather "
    "dynamic_pad dynamic_reshape dynamic_slice dynamic_update_slice gather negate pad "
    "real_dynamic_slice reshape reverse select slice subtract transpose"
).split()

_FLAT = (
    "all_gather all_to_all case collective_broadcast collective_permute composite if map "
    "optimization_barrier reduce reduce_window return scatter while"
).split()

RULES: Mapping[str, Rule] = {
    **{f"stablehlo.{name}": partwise for name in _PARTWISE},
    **{f"stablehlo.{name}": flat for name in _FLAT},
    "func.call": flat,
    "func.return": flat,
    "stablehlo.bitcast_convert": _bits,
    "stablehlo.compare": _compare,
    "stablehlo.complex": _complex,
    "stablehlo.constant": _constant,
    "stablehlo.convert": _convert,
    "stablehlo.convolution": _product,
    "stablehlo.dot": _product,
    "stablehlo.dot_general": _product,
    "stablehlo.imag": _imag,
    "stablehlo.iota": _iota,
    "stablehlo.real": _real,
    "stablehlo.sort": _sort,
}
"""What replaces each operation that moves or merges complex numbers, by name."""
