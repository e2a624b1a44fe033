"""Multiply quantised tensors without their scales, in the units for floats of 16 or 8 bits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import floor, log2, prod

import numpy as np
from xdsl.dialects.builtin import f16, f32
from xdsl.ir import Attribute, Operation, OpResult, SSAValue

from ..backends.codelets.conversion import float_limits
from ..backends.target import Target
from ..backends.target.dtype_kinds import lacks
from ..dialects import nn
from ..dialects.dtypes import QUARTERS, numpy_dtype
from ..dialects.levels import NN
from ..dialects.nn.group import GROUP
from ..dialects.settable import changing_states
from ..ir.edit import Edit, source_at
from ..ir.provenance import at
from ..ir.rewriting import may_rewrite
from ..ir.support.arrays import Array
from ..ir.support.number_formats import SCALES
from ..ir.support.number_kinds import bit_width, is_whole
from ..ir.upstream import Context, InsertPoint, ModuleOp, ModulePass
from .plans.planned import asked_target

FLOATS = (f32, f16)
"""The element types of products that are rewritten."""

PLAN = "plan"
"""The attribute of an operation that is planned already."""

LEAST_SCALE = 2 * SCALES.start
"""The least exponent of the scale of a product of 8-bit floats."""

CARRIERS = (nn.ReshapeOp, nn.TransposeOp, nn.SliceOp, nn.PoolOp)
"""Operations whose results are elements of their operand; of nn.pool, only the maximum."""


@dataclass(frozen=True)
class MultiplyQuantised(ModulePass):
    """Multiply quantised tensors without their scales, as floats of 16 or 8 bits. nn -> nn.

    A quantised element stands for (q - zero point) * scale. Where a contraction of floats reads two
    such tensors, and each scale is the same for all terms of a sum, it becomes the contraction of
    what the scales are multiplied with, times both scales. These numbers are integers below 256 or
    8-bit floats, which float16 holds exactly. So the units for float16 multiply them, and sums are
    float32, as they were.

    If the target has units for 8-bit floats, these multiply f8E4M3FNUZ and f8E5M2FNUZ. They add up
    in float16, so the products have a scale with which no sum is too large for it.

    A tensor that is quantised again as it was before, with nothing but moves and maxima between, is
    not rounded a second time.

        %2 = nn.cast %q : tensor<4x8xi8> -> f32          %2 = nn.cast %q : tensor<4x8xi8> -> f32
        %3 = nn.mul %2, %s                               %3 = nn.cast %2 : f16
        %5 = nn.cast %w : tensor<8x2xi8> -> f32          %5 = nn.cast %w : tensor<8x2xi8> -> f32
        %6 = nn.mul %5, %t : tensor<8x2xf32>, [1, 2]     %6 = nn.cast %5 : f16
        %7 = nn.matmul %3, %6 : tensor<4x2xf32>          %7 = nn.matmul %3, %6 : tensor<4x2xf32>
                                                         %8 = nn.mul %s, %t
                                                         %9 = nn.mul %7, %8

    Attributes:
        target: as for plan-splits.
    """

    name = "multiply-quantised"
    takes = NN
    rounds = True
    skips_other_levels = True

    target: str = ""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module."""
        contractions = [each for each in op.walk() if isinstance(each, nn.CONTRACTIONS)]
        if not contractions:
            return
        rewriting = _Rewriting(op, asked_target(op, self.target))
        for each in contractions:
            if not may_rewrite():
                break
            rewriting.rewrite(each)
        rewriting.share()


@dataclass(frozen=True)
class _Factor:
    """An operand of a contraction: units times a scale.

    Attributes:
        units: floats that float16 holds exactly.
        scale: None for 1.
    """

    units: SSAValue
    scale: SSAValue | None


@dataclass
class _Rewriting:
    """What is known about the module, and what has been made so far.

    Attributes:
        narrow: for each tensor of units, the same numbers as float16.
    """

    module: ModuleOp
    target: Target
    narrow: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])

    def __post_init__(self) -> None:
        self._changing = changing_states(self.module)
        self._states = {
            op.sym_name.data: op for op in self.module.body.block.ops if isinstance(op, nn.StateOp)
        }

    def rewrite(self, op: Operation) -> None:
        """Rewrite a contraction, if it multiplies quantised tensors."""
        if {GROUP, PLAN} & op.attributes.keys() or not isinstance(op, nn.CONTRACTIONS):
            return
        element = nn.element_of(op.result)
        if element not in FLOATS or any(nn.element_of(v) not in FLOATS for v in op.operands):
            return
        factors = [_factor(value) for value in op.operands]
        shapes: list[list[int]] = []
        for i, factor in enumerate(factors):
            shape = None if factor is None else _on_result(op, i, factor.scale)
            if shape is None:
                return
            shapes.append(shape)
        found = [each for each in factors if each is not None]
        with Edit(source_at("multiply without scales", self.rewrite), op) as edit:
            step = _Steps(op, edit)
            product = self._of_quarters(op, found, step)
            total = _scaled(*(product or self._of_halves(op, found, step)), found, shapes, step)
            if nn.element_of(total) != element:
                total = step("cast", nn.CastOp(total, element))
            last = total.owner
            assert isinstance(last, Operation)
            last.location = op.location
            read = dict.fromkeys(op.operands)
            edit.replace(op, [total])
            for value in read:
                _erase_unread(value, edit)

    def _of_quarters(
        self, op: nn.ContractionOp, factors: list[_Factor], step: _Steps
    ) -> tuple[SSAValue, float] | None:
        """The contraction of 8-bit floats, and what it is to be multiplied with besides the scales.

        None if the operands are no 8-bit floats, or the target has no units for them.
        """
        values: list[SSAValue] = []
        most = float(max(_terms(op), 1))
        for factor in factors:
            source = _quantised(factor.units)
            if source is None or nn.element_of(source) not in QUARTERS:
                return None
            dtype = numpy_dtype(nn.element_of(source))
            if lacks(dtype.name, self.target):
                return None
            values.append(source)
            most *= float_limits(dtype).largest
        # The units add up in float16. So no sum can be too large for it, and the numbers that it
        # does not hold are below a millionth of the largest sum.
        exponent = max(floor(log2(float_limits(np.dtype(np.float16)).largest / most)), LEAST_SCALE)
        product = _clone(op, values, f16)
        product.properties["scale"] = nn.integer(exponent)
        return step("widen", nn.CastOp(step("product", product), f32)), 2.0**-exponent

    def _of_halves(
        self, op: nn.ContractionOp, factors: list[_Factor], step: _Steps
    ) -> tuple[SSAValue, float]:
        """The contraction of float16, and what it is to be multiplied with besides the scales."""
        product = _clone(op, [self._as_f16(each.units, step.edit) for each in factors], f32)
        product.properties.pop("narrow_partials", None)
        return step("product", product), 1.0

    def _as_f16(self, units: SSAValue, edit: Edit) -> SSAValue:
        """Units as float16, which all readers share."""
        if nn.element_of(units) == f16:
            return units
        if units not in self.narrow:
            again = self._before(units)
            if again is not None:
                source, moves = again
                value = self._as_f16(source, edit)
                for move in moves:
                    moved = move.clone({move.operands[0]: value})
                    moved.results[0]._type = nn.tensor(  # pyright: ignore[reportPrivateUsage]
                        nn.shape_of(move.results[0]), f16
                    )
                    edit.insert(moved, InsertPoint.after(move))
                    value = moved.results[0]
                self.narrow[units] = value
            else:
                assert isinstance(units, OpResult)
                cast = nn.CastOp(units, f16)
                cast.location = at(units.op, "narrow")
                edit.insert(cast, InsertPoint.after(units.op))
                self.narrow[units] = cast.result
        return self.narrow[units]

    def _before(self, units: SSAValue) -> tuple[SSAValue, list[Operation]] | None:
        """The units that a tensor had when it was quantised before, and the moves since then.

        None if it was not, or with another scale or zero point.
        """
        rounded = _requantised(units)
        if rounded is None:
            return None
        value, scale, zero, element = rounded
        if not self._is_positive(scale):
            return None
        moves: list[Operation] = []
        while isinstance(value.owner, CARRIERS):
            if isinstance(value.owner, nn.PoolOp) and value.owner.combiner.data != "max":
                return None
            moves.insert(0, value.owner)
            value = value.owner.operands[0]
        factor = _factor(value)
        if factor is None or factor.scale is not scale:
            return None
        own = _of_eight_bits(factor.units)
        if own is None or own[1] != zero or nn.element_of(own[0]) != element:
            return None
        return factor.units, moves

    def _is_positive(self, scale: SSAValue) -> bool:
        """Whether a scale is known to be a positive number, which products with 8-bit integers
        neither overflow nor lose digits with."""
        array, limits = self._array(scale), np.finfo(np.float32)
        return array is not None and bool(
            ((array >= limits.tiny) & (array <= limits.max / 256)).all()
        )

    def _array(self, value: SSAValue) -> Array | None:
        """The array of a constant, or of a state that never changes."""
        op = value.owner
        if isinstance(op, nn.ConstantOp):
            return op.value.array
        if isinstance(op, nn.CastOp) and nn.element_of(op.operand) == f32:
            return self._array(op.operand)
        if not isinstance(op, nn.LoadOp):
            return None
        name = op.state.string_value()
        known = name in self._states and name not in self._changing
        return self._states[name].value.array if known else None

    def share(self) -> None:
        """Let other readers of units read float16 too, so that no tile stores both."""
        for units, value in self.narrow.items():
            cast = value.owner
            if not isinstance(cast, nn.CastOp) or cast.operand is not units:
                continue
            others = [use for use in units.uses if use.operation is not cast]
            if not others or not may_rewrite():
                continue
            with Edit(source_at("widen what float16 holds", self.share), cast) as edit:
                wide = nn.CastOp(value, nn.element_of(units))
                wide.location = at(cast, "widen")
                edit.insert(wide, InsertPoint.after(cast))
                for use in others:
                    edit.set_operand(use.operation, use.index, wide.result)


@dataclass(frozen=True)
class _Steps:
    """Inserts operations before the one that they replace."""

    whole: Operation
    edit: Edit

    def __call__(self, name: str, op: nn.PureTensorOp) -> SSAValue:
        """Insert an operation as a named step, and return its result."""
        op.location = at(self.whole, name)
        self.edit.insert(op, InsertPoint.before(self.whole))
        return op.result


def _clone(op: nn.ContractionOp, values: list[SSAValue], element: Attribute) -> nn.ContractionOp:
    """A contraction with other operands, and with a result of another element type."""
    made = op.clone()
    made.operands = values
    made.result._type = nn.tensor(nn.shape_of(op.result), element)  # pyright: ignore[reportPrivateUsage]
    return made


def _factor(value: SSAValue) -> _Factor | None:
    """A tensor as units times a scale; None if it is not dequantised."""
    if _of_eight_bits(value) is not None:
        return _Factor(value, None)
    op = value.owner
    if isinstance(op, nn.CastOp) and nn.element_of(op.operand) == f32:
        # What narrow-floats narrows need not be rounded.
        return _factor(op.operand)
    if not isinstance(op, nn.MulOp):
        return None
    for units, scale in ((op.lhs, op.rhs), (op.rhs, op.lhs)):
        if _of_eight_bits(units) is not None and nn.shape_of(units) == nn.shape_of(value):
            return _Factor(units, scale)
    return None


Zero = SSAValue | None


def _of_eight_bits(units: SSAValue) -> tuple[SSAValue, Zero] | None:
    """The elements of 8 bits that units come from, and their zero point; None if they do not."""
    op = units.owner
    zero: Zero = None
    if isinstance(op, nn.SubOp):
        zero = _quantised(op.rhs)
        if zero is None or not is_whole(numpy_dtype(nn.element_of(zero))):
            return None
        units = op.lhs
    source = _quantised(units)
    if source is None or (zero is not None and nn.element_of(source) != nn.element_of(zero)):
        return None
    return source, zero


def _quantised(value: SSAValue) -> SSAValue | None:
    """The elements of 8 bits that a value is the cast of; None if it is not."""
    op = value.owner
    if not isinstance(op, nn.CastOp) or nn.element_of(value) not in FLOATS:
        return None
    return op.operand if _is_small(nn.element_of(op.operand)) else None


def _is_small(element: Attribute) -> bool:
    if element in QUARTERS:
        return True
    dtype = numpy_dtype(element)
    return is_whole(dtype) and bit_width(dtype) == 8


def _requantised(units: SSAValue) -> tuple[SSAValue, SSAValue, Zero, Attribute] | None:
    """What units were rounded from: the tensor, scale, zero point and element type.

    None if they do not come from a division by a scale that was rounded, shifted by the zero point
    that they are shifted back by, and limited.
    """
    own = _of_eight_bits(units)
    if own is None:
        return None
    stored, zero = own
    cast = stored.owner
    clip = cast.operand.owner if isinstance(cast, nn.CastOp) else None
    value = clip.operand if isinstance(clip, nn.ClipOp) else None
    if value is None:
        return None
    if zero is not None:
        shifted = value.owner
        if not isinstance(shifted, nn.AddOp) or _quantised(shifted.rhs) is not zero:
            return None
        value = shifted.lhs
    rounded = value.owner
    divided = rounded.operand.owner if isinstance(rounded, nn.RoundOp) else None
    if not isinstance(divided, nn.DivOp) or nn.element_of(divided.lhs) != f32:
        return None
    return divided.lhs, divided.rhs, zero, nn.element_of(stored)


def _on_result(op: nn.ContractionOp, index: int, scale: SSAValue | None) -> list[int] | None:
    """The shape in which the scale of an operand is multiplied with the result.

    None if the scale differs between terms of a sum.

    Args:
        index: of the operand.
    """
    if scale is None:
        return []
    shape = nn.shape_of(scale)
    if prod(shape) == 1:
        return []
    operand, rank = nn.shape_of(op.operands[index]), len(nn.shape_of(op.result))
    first = len(operand) - len(shape)
    axes = [first + i for i, n in enumerate(shape) if n != 1]
    own = dict(_result_axes(op, index))
    if len(axes) != 1 or axes[0] not in own:
        return None
    found = own[axes[0]]
    return [operand[axes[0]] if i == found else 1 for i in range(rank)]


def _result_axes(op: nn.ContractionOp, index: int) -> Iterator[tuple[int, int]]:
    """The axes of an operand along which the result has the same elements, with its axes."""
    rank = len(nn.shape_of(op.result))
    if isinstance(op, nn.ConvOp):
        yield 0, index
    elif isinstance(op, nn.ConvInputGradOp):
        yield from ((0, 0),) if index == 0 else ((1, 1),) if op.group_count == 1 else ()
    elif isinstance(op, nn.MatMulOp):
        own = len(nn.shape_of(op.operands[index]))
        turned = op.transpose_lhs if index == 0 else op.transpose_rhs
        kept = -2 if (index == 0) == (turned is None) else -1
        yield own + kept, rank - 2 + index


def _terms(op: nn.ContractionOp) -> int:
    """The number of products in a sum."""
    space = op.structure().space
    return prod(space.dims[d].size for d in space.of_kind("reduction"))


def _scaled(
    total: SSAValue,
    number: float,
    factors: list[_Factor],
    shapes: list[list[int]],
    step: _Steps,
) -> SSAValue:
    """A sum of products times a number and the scales of its factors.

    Args:
        shapes: of the scales, where they are multiplied with the sum.
    """
    scale: SSAValue | None = None
    for factor, shape in zip(factors, shapes, strict=True):
        if factor.scale is None:
            continue
        own = _wide(factor.scale, step)
        if list(nn.shape_of(own)) != shape:
            own = step("reshape", nn.ReshapeOp(own, shape))
        scale = own if scale is None else step("scales", nn.MulOp(scale, own))
    if number != 1.0 and scale is not None:
        scale = step("scales", nn.ScaleOp(scale, number))
    elif number != 1.0:
        return step("scaled", nn.ScaleOp(total, number))
    return total if scale is None else step("scaled", nn.MulOp(total, scale))


def _wide(scale: SSAValue, step: _Steps) -> SSAValue:
    """A scale as float32: what it was before it was narrowed, if it was."""
    if nn.element_of(scale) == f32:
        return scale
    op = scale.owner
    if isinstance(op, nn.CastOp) and nn.element_of(op.operand) == f32:
        return op.operand
    return step("widen", nn.CastOp(scale, f32))


def _erase_unread(value: SSAValue, edit: Edit) -> None:
    """Erase a product with a scale that nothing reads any more."""
    op = value.owner
    if isinstance(op, nn.MulOp) and value.first_use is None:
        edit.erase(op)
