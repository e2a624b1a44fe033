"""float32 inside a program, held in 16 bits."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import copysign, isfinite, prod
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import FloatAttr, ModuleOp, TensorType, bf16, f16, f32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.hints import isa

from ..backends.codelets.scalar import float_limits
from ..backends.reference import is_evaluable
from ..dialects import control, nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.scalar_functions import FUNCTIONS
from ..dialects.structured import Composite, Movement, Reinterpretation, Structured
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.number_attr import float_attr
from ..ir.provenance import at, locate
from ..ir.rewriting import may_rewrite

ENTRY = "main"

ELEMENTS: dict[str, Attribute] = {"f16": f16, "bf16": bf16}
"""The types that may take the place of float32."""

AS_THEY_ARE: dict[type[Operation], tuple[int, ...]] = {nn.BatchNormOp: (1, 2, 3, 4)}
"""Operands whose type is not the result's: one number a channel, folded in float32. A variance may
be beyond float16 where the deviation is not."""

LIMITS: dict[type[Operation], tuple[str, ...]] = {
    nn.ClipOp: ("low", "high"),
    nn.PadOp: ("value",),
    nn.ShiftOp: ("amount",),
}
"""Numbers that results may be: as constants, they saturate. A factor of any size may give a result
of another, so factors stay."""


@dataclass(frozen=True)
class NarrowFloats(ModulePass):
    """Hold in 16 bits what is float32 inside the program. nn -> nn, each rounding a cast.

    It stands before decompose, as for a model that came in that type. What the program takes and
    gives, and states that it stores to, stay as they are. Weights and constants become casts of
    what they were, which fold-constants folds; finite ones beyond the type's range, masks for
    example, become its last finite number. Plans that are there already are kept.

    Sums stay float32, and so do squares, powers and products that only they read, what is computed
    of sums alone (a mean, a deviation), and what is the same in every run until it is used.
    Elementwise operations that read such a value are computed in float32. Whole numbers that are
    held as float32 are exact up to 2048 (f16) or 256 (bf16) afterwards.

    to: the narrower type.

        %1 = nn.relu %x : tensor<4xf32>

        %0 = nn.cast %x : tensor<4xf16>
        %1 = nn.relu %0 : tensor<4xf16>
        %2 = nn.cast %1 : tensor<4xf32>
    """

    name = "narrow-floats"
    takes = NN
    rounds = True

    to: Literal["f16", "bf16"] = "f16"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """A rewrite an operation, or a function with its calls; after each the program is valid."""
        narrowing = _Narrowing(op, ELEMENTS[self.to], ctx)
        wide = _wide(op, narrowing.fixed)
        for each in tuple(op.walk()):
            rewrite_of = _REWRITES.get(type(each), _narrow_operation)
            if each not in wide and may_rewrite():
                source = source_at(f"narrow {each.name}", _narrow_operation)
                with Edit(source, each) as edit:
                    rewrite_of(narrowing, each, edit)


# What stays wide


def _wide(module: ModuleOp, fixed: Collection[SSAValue]) -> set[Operation]:
    """The operations that are computed in float32: see NarrowFloats.

    Of those that read a wide value some hand one on, which their users read as it is; the others'
    results are rounded, so that one sum does not widen all that comes after it.
    """
    ops = [op for op in module.walk() if _gives_wide(op)]
    computed = {op for op in ops if _is_sum(op)}
    handing = set(computed)
    before = -1
    while len(handing) + len(computed) > before:
        before = len(handing) + len(computed)
        for op in ops:
            if op in computed and op in handing:
                continue
            sources = [v for v in op.operands if _is_float32(v) and v not in fixed]
            wide = [isinstance(v, OpResult) and v.op in handing for v in sources] or [False]
            if all(wide) if _is_no_larger(op) else _is_pointwise(op) and any(wide):
                computed.add(op)
                if all(wide):
                    handing.add(op)
        for op in reversed(ops):
            uses = list(op.results[0].uses)
            if uses and (op in computed or _may_be_far(op)) and op not in handing:
                if all(use.operation in computed for use in uses):
                    computed.add(op)
                    handing.add(op)
    return computed | {v.op for v in fixed if isinstance(v, OpResult)}


def _is_float32(value: SSAValue) -> bool:
    return isa(value.type, TensorType) and value.type.element_type == f32


def _gives_wide(op: Operation) -> bool:
    return len(op.results) == 1 and _is_float32(op.results[0])


def _is_sum(op: Operation) -> bool:
    """Whether an operation adds up elements as they are; products have an accumulator."""
    if not isinstance(op, Structured):
        return False
    body = op.structure().body
    return body.combiner == "sum" and body.own_arity == 1


def _is_pointwise(op: Operation) -> bool:
    return isinstance(op, Structured) and op.structure().body.combiner is None


def _is_no_larger(op: Operation) -> bool:
    """Whether an operation moves elements, and does not repeat them."""
    if not isinstance(op, Movement | Reinterpretation):
        return False
    return _elements(op.results) <= _elements(op.operands)


def _may_be_far(op: Operation) -> bool:
    """Whether what only sums read should be given to them as it is.

    As importers and composites do, results that may be far from their operands stay float32.
    """
    if isinstance(op, nn.CastOp) or _is_no_larger(op):
        return True
    if not _is_pointwise(op):
        return False
    assert isinstance(op, Structured)
    body = op.structure().body
    return any(FUNCTIONS[name].far for name in (body.function, *(s.function for s in body.then)))


def _elements(values: Iterable[SSAValue]) -> int:
    return sum(prod(nn.shape_of(value)) for value in values)


# What becomes narrow


@dataclass
class _Narrowing:
    """The casts made so far, of a module that is narrowed.

    casts: from float32 values to what holds them in the narrow type. widened: from narrow results
    back to float32, for who has to read that; none without a use is left.
    """

    module: ModuleOp
    element: Attribute
    context: Context
    casts: dict[SSAValue, nn.CastOp] = field(default_factory=dict[SSAValue, nn.CastOp])
    widened: set[Operation] = field(default_factory=set[Operation])

    @cached_property
    def stored(self) -> dict[SSAValue, NDArray[Any]]:
        """The arrays of constants, and of loads from states that no operation stores to."""
        ops = tuple(self.module.walk())
        states = {op.sym_name.data: op.value for op in ops if isinstance(op, nn.StateOp)}
        for op in ops:
            if isinstance(op, nn.StoreOp):
                states.pop(op.state.string_value(), None)
        found: dict[SSAValue, NDArray[Any]] = {}
        for op in ops:
            if isinstance(op, nn.ConstantOp):
                found[op.result] = op.value.array
            elif isinstance(op, nn.LoadOp) and op.state.string_value() in states:
                found[op.result] = states[op.state.string_value()].array
        return found

    @cached_property
    def fixed(self) -> set[SSAValue]:
        """Values that are the same in every run, but for what is made of far smaller ones."""
        fixed = set(self.stored)
        for op in self.module.walk():
            if op.operands and is_evaluable(op) and fixed.issuperset(op.operands):
                if _elements(op.results) <= _elements(op.operands):
                    fixed.update(op.results)
        return fixed

    @cached_property
    def calls(self) -> dict[str, list[func.CallOp]]:
        """The calls of each function."""
        found: dict[str, list[func.CallOp]] = {}
        for op in self.module.walk():
            if isinstance(op, func.CallOp):
                found.setdefault(op.callee.string_value(), []).append(op)
        return found

    def give(self, op: Operation, index: int, edit: Edit) -> None:
        """Let an operation read a float32 operand in the narrow type."""
        value = op.operands[index]
        op.operands[index] = self._narrow(value, op, edit)
        if value.owner in self.widened and value.first_use is None:
            assert isinstance(value.owner, Operation)
            self.widened.discard(value.owner)
            edit.erase(value.owner)

    def _narrow(self, value: SSAValue, user: Operation, edit: Edit) -> SSAValue:
        """A float32 value in the narrow type, made where it is, so that all may read it."""
        source = self.source(value)
        if source is not value:
            return source
        if value not in self.casts:
            cast = nn.CastOp(self._saturated(value, edit), self.element)
            made_by = value.op if isinstance(value, OpResult) else user
            self.casts[value] = cast
            self._insert(cast, cast.operand)
            locate(cast, made_by if value in self.stored else at(made_by, "narrow"))
            edit.inserted(cast)
        return self.casts[value].result

    def source(self, value: SSAValue) -> SSAValue:
        """What a value is in the narrow type, if it was made of that; else itself."""
        cast = value.owner
        if isinstance(cast, nn.CastOp) and _is_float32(value):
            return cast.operand if nn.element_of(cast.operand) == self.element else value
        return value

    def retype(self, value: SSAValue, edit: Edit) -> None:
        """Make a float32 value a narrow one, and widen it for who reads it now."""
        cast = self.casts.pop(value, None)
        narrow = Rewriter.replace_value_with_new_type(
            value, nn.tensor(nn.shape_of(value), self.element)
        )
        readers = [use for use in narrow.uses if use.operation is not cast]
        if cast is not None:
            edit.replace(cast, [narrow])
        if readers:
            wide = nn.CastOp(narrow, f32)
            self.widened.add(wide)
            self._insert(wide, narrow)
            made_by = narrow.owner if isinstance(narrow, OpResult) else edit.root
            assert isinstance(made_by, Operation)
            locate(wide, at(made_by, "widen"))
            edit.inserted(wide)
            for use in readers:
                edit.read(use.operation, use.index, wide.result)

    def _insert(self, op: Operation, value: SSAValue) -> None:
        """Put an operation where a value is made; behind those put there before, in a block."""
        if isinstance(value, OpResult):
            block = value.op.parent
            assert block is not None
            block.insert_op_after(op, value.op)
            return
        block = value.owner
        assert isinstance(block, Block)
        ours = {*self.widened, *self.casts.values()}
        first = next(each for each in block.ops if each is op or each not in ours)
        block.insert_op_before(op, first)

    def _saturated(self, value: SSAValue, edit: Edit) -> SSAValue:
        """A value, or a constant in which its finite numbers are within the narrow type's range.

        Rounding would make infinities of them, whose differences are no numbers.
        """
        array = self.stored.get(value)
        largest = float_limits(numpy_dtype(self.element)).largest
        if array is None or not array.size or (-largest <= array.min() and array.max() <= largest):
            return value
        held = np.where(np.isfinite(array), np.clip(array, -largest, largest), array)
        if np.array_equal(held, array, equal_nan=True):
            return value
        assert isinstance(value, OpResult)
        context = self.context
        blob = context.blobs.add(held) if isinstance(context, AbeleContext) else Blob(held)
        constant = nn.ConstantOp(blob)
        self._insert(constant, value)
        locate(constant, value.op)
        edit.inserted(constant)
        return constant.result


def _float32_places(values: Iterable[SSAValue]) -> list[int]:
    return [i for i, value in enumerate(values) if _is_float32(value)]


def _narrow_operation(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let an operation compute in the narrow type; one that says nothing of itself stays."""
    if not isinstance(op, Structured | Movement | Reinterpretation | Composite):
        return
    kept = AS_THEY_ARE.get(type(op), ())
    operands = [i for i in _float32_places(op.operands) if i not in kept]
    results = _float32_places(op.results)
    if not (operands or results):
        return
    edit.modified(op)
    for i in operands:
        narrowing.give(op, i, edit)
    for i in results:
        narrowing.retype(op.results[i], edit)
    largest = float_limits(numpy_dtype(narrowing.element)).largest
    for name in LIMITS.get(type(op), ()):
        number = op.properties[name]
        assert isinstance(number, FloatAttr)
        if isfinite(number.value.data) and abs(number.value.data) > largest:
            op.properties[name] = float_attr(copysign(largest, number.value.data))


def _narrow_cast(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let a cast give the narrow type, or read what its operand was widened from."""
    assert isinstance(op, nn.CastOp)
    if narrowing.source(op.result) is not op.result:
        return
    if narrowing.source(op.operand) is not op.operand:
        edit.modified(op)
        narrowing.give(op, 0, edit)
    if _is_float32(op.result):
        edit.modified(op)
        narrowing.retype(op.result, edit)


def _narrow_loop(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let a loop carry narrow values."""
    places = _float32_places(op.operands)
    if not places:
        return
    edit.modified(op)
    for i in places:
        narrowing.give(op, i, edit)
        for region in op.regions:
            narrowing.retype(region.block.args[i], edit)
        narrowing.retype(op.results[i], edit)
    _narrow_yields(narrowing, op, places, edit)


def _narrow_branch(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let both branches give narrow values."""
    places = _float32_places(op.results)
    if not places:
        return
    edit.modified(op)
    for i in places:
        narrowing.retype(op.results[i], edit)
    _narrow_yields(narrowing, op, places, edit)


def _narrow_yields(narrowing: _Narrowing, op: Operation, places: Sequence[int], edit: Edit) -> None:
    for region in op.regions:
        last = region.block.last_op
        if isinstance(last, control.YieldOp):
            edit.modified(last)
            for i in places:
                narrowing.give(last, i, edit)


def _narrow_function(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let a function take and give narrow values, and whoever calls it; the entry stays."""
    assert isinstance(op, func.FuncOp)
    if op.sym_name.data == ENTRY or op.is_declaration:
        return
    last = op.get_return_op()
    assert last is not None
    taken, given = _float32_places(op.args), _float32_places(last.operands)
    if not (taken or given):
        return
    for each in (op, last):
        edit.modified(each)
    for i in taken:
        narrowing.retype(op.args[i], edit)
    for i in given:
        narrowing.give(last, i, edit)
    op.update_function_type()
    for call in narrowing.calls.get(op.sym_name.data, ()):
        edit.modified(call)
        for i in taken:
            narrowing.give(call, i, edit)
        for i in given:
            narrowing.retype(call.results[i], edit)


_Rewrite = Callable[[_Narrowing, Operation, Edit], None]

_REWRITES: dict[type[Operation], _Rewrite] = {
    func.FuncOp: _narrow_function,
    control.RepeatOp: _narrow_loop,
    control.WhileOp: _narrow_loop,
    control.IfOp: _narrow_branch,
    nn.CastOp: _narrow_cast,
}
"""How operations become narrow that are more than a function of their operands."""
