"""Hold the float32 values inside a program in 16 bits."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import copysign, isfinite
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import bf16, f16, f32
from xdsl.ir import Attribute, Block, Operation, OpResult, SSAValue

from ..backends.codelets.conversion import converted, float_limits
from ..dialects import control, nn
from ..dialects.dtypes import numpy_dtype
from ..dialects.levels import NN
from ..dialects.scalar_functions import CODES, FUNCTIONS
from ..dialects.settable import changing_states, listed_names
from ..dialects.structured import Composite, Movement, Reinterpretation, Structured
from ..ir.blob import Blob
from ..ir.context import AbeleContext
from ..ir.edit import Edit, source_at
from ..ir.number_attr import float_attr
from ..ir.phases import UPDATE, Phases
from ..ir.provenance import at, locate, origin_names
from ..ir.rewriting import may_rewrite
from ..ir.support.errors import InputError
from ..ir.upstream import Context, ModuleOp, ModulePass, Rewriter
from ..ir.well_known import ENTRY, TRAINED, UPDATED
from .analysis.wide_values import fixed_values, is_float32, wide_operations

ELEMENTS: dict[str, Attribute] = {"f16": f16, "bf16": bf16}
"""The types that may replace float32."""


@dataclass(frozen=True)
class NarrowFloats(ModulePass):
    """Hold the float32 values inside the program in 16 bits. nn -> nn, each rounding a cast.

    It belongs before decompose, so that composites are decomposed as in a model of the narrow type.
    The inputs and outputs of the program, and states that it stores to, keep their types. Weights
    and constants get casts, which fold-constants folds. Finite numbers in them beyond the range of
    the narrow type, such as those of masks, become its largest finite number. Plans that operations
    already have are kept.

    Sums stay float32. So do casts of integers to float32 that the narrow type does not hold exactly
    (f16 holds those up to 2048, bf16 up to 256), floats that are seen as bits or codes or come from
    bits, squares, powers and products that only sums read, values computed only from such values (a
    mean, a deviation, a random number), and values that are the same in every run, up to their use.
    Elementwise operations that read such a value compute in float32, and round their result.
    Results of branches, loops and functions are rounded too, except what a loop only collects: the
    sum of all iterations, or a table with a row of each.

    `keep` names nodes whose operations compute in float32 too, such as one that overflows.

    A step of training updates its weights in float32, so that small updates are not lost; the
    weights and what the optimiser keeps stay float32 (master weights). With `states=narrow` they
    become narrow too, and so do the updates. With `states=unseen`, a state that the host neither
    reads nor sets, such as the cache of a decoder, becomes narrow if each reader casts it, if only
    narrow values are stored, and if the narrow type holds its first value. No value changes by
    that, and the program casts no state.

        %1 = nn.relu %x : tensor<4xf32>

        %0 = nn.cast %x : tensor<4xf16>
        %1 = nn.relu %0 : tensor<4xf16>
        %2 = nn.cast %1 : tensor<4xf32>

    Attributes:
        to: the narrower type.
        states: whether states with axes that a program changes stay wide, or become narrow:
            those that only the program sees, or all.
        keep: patterns of the names of nodes whose operations compute in float32.
    """

    name = "narrow-floats"
    takes = NN
    rounds = True
    wide_sums = True

    to: Literal["f16", "bf16"] = "f16"
    states: Literal["wide", "unseen", "narrow"] = "wide"
    keep: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Run on a module: rewrite operations one by one, and functions with their calls.

        The program is valid after each rewrite. Raises InputError for a pattern that is none, or
        that no node matches.
        """
        narrowing = _Narrowing(op, ELEMENTS[self.to], ctx)
        dtype = numpy_dtype(narrowing.element)
        wide = wide_operations(op, fixed_values(op, narrowing.stored), dtype)
        wide |= {each for each in op.walk() if _needs_float32(each)} | _kept(op, self.keep)
        wide |= {each for loop in op.walk() for each in _collected(loop).values()}
        # The values of the other states are found before any state changes its type.
        _ = narrowing.stored
        if self.states != "narrow":
            phases = Phases.of(op)
            wide |= {each for each in op.walk() if phases.phase(each) == UPDATE}
        else:
            _narrow_states(narrowing, _changing(op))
        for each in tuple(op.walk()):
            rewrite_of = _REWRITES.get(type(each), _narrow_operation)
            if each not in wide and may_rewrite():
                source = source_at(f"narrow {each.name}", _narrow_operation)
                with Edit(source, each) as edit:
                    rewrite_of(narrowing, each, edit)
        if self.states == "unseen":
            _narrow_states(narrowing, _narrow_already(narrowing))


@dataclass
class _Narrowing:
    """The casts made so far in the module.

    Attributes:
        casts: the cast of each float32 value to the narrow type.
        widened: the casts of narrow results back to float32, for operations that read float32;
            unused ones are removed in the end.
    """

    module: ModuleOp
    element: Attribute
    context: Context
    casts: dict[SSAValue, nn.CastOp] = field(default_factory=dict[SSAValue, nn.CastOp])
    widened: set[Operation] = field(default_factory=set[Operation])

    @cached_property
    def stored(self) -> dict[SSAValue, NDArray[Any]]:
        """The arrays of constants, and of loads from states that never change."""
        ops, changing = tuple(self.module.walk()), changing_states(self.module)
        states = {
            op.sym_name.data: op.value
            for op in ops
            if isinstance(op, nn.StateOp) and op.sym_name.data not in changing
        }
        found: dict[SSAValue, NDArray[Any]] = {}
        for op in ops:
            if isinstance(op, nn.ConstantOp):
                found[op.result] = op.value.array
            elif isinstance(op, nn.LoadOp) and op.state.string_value() in states:
                found[op.result] = states[op.state.string_value()].array
        return found

    @cached_property
    def calls(self) -> dict[str, list[func.CallOp]]:
        """The calls of each function."""
        found: dict[str, list[func.CallOp]] = {}
        for op in self.module.walk():
            if isinstance(op, func.CallOp):
                found.setdefault(op.callee.string_value(), []).append(op)
        return found

    def give(self, op: Operation, index: int, edit: Edit) -> None:
        """Replace a float32 operand of an operation by its value in the narrow type."""
        value = op.operands[index]
        op.operands[index] = self._narrow(value, op, edit)
        if value.owner in self.widened and value.first_use is None:
            assert isinstance(value.owner, Operation)
            self.widened.discard(value.owner)
            edit.erase(value.owner)

    def _narrow(self, value: SSAValue, user: Operation, edit: Edit) -> SSAValue:
        """A float32 value cast to the narrow type. The cast follows its definition, so every user
        may read it.
        """
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
        """The narrow value that a value was widened from; the value itself if it was not."""
        cast = value.owner
        if isinstance(cast, nn.CastOp) and is_float32(value):
            return cast.operand if nn.element_of(cast.operand) == self.element else value
        return value

    def retype(self, value: SSAValue, edit: Edit) -> None:
        """Make a float32 value narrow, and widen it for its present readers."""
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
                edit.set_operand(use.operation, use.index, wide.result)

    def _insert(self, op: Operation, value: SSAValue) -> None:
        """Insert an operation after the definition of a value.

        For a block argument, that is the start of the block, after casts inserted there before.
        """
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
        """The value, or a new constant with its finite numbers limited to the range of the narrow
        type.

        Rounding would turn them into infinities, and differences of infinities into NaN.
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


def _changing(module: ModuleOp) -> list[nn.StateOp]:
    """The float32 states that a program may change. Counters are left out."""
    changing = changing_states(module)
    return [
        op
        for op in module.body.block.ops
        if isinstance(op, nn.StateOp)
        and op.sym_name.data in changing
        and nn.element_of(op.elements) == f32
        and nn.shape_of(op.elements)
    ]


def _narrow_already(narrowing: _Narrowing) -> list[nn.StateOp]:
    """The states of which each reader takes a narrow cast, and that have only narrow values.

    The host must not see them: it reads and sets listed states in the types of the model.
    """
    module = narrowing.module
    seen = {name for each in (UPDATED, TRAINED) for name in listed_names(module, each) or ()}
    for op in module.walk():
        if isinstance(op, nn.LoadOp):
            cast = narrowing.casts.get(op.result)
            is_narrow = all(use.operation is cast for use in op.result.uses)
        elif isinstance(op, nn.StoreOp):
            is_narrow = op.stored.owner in narrowing.widened
        else:
            continue
        if not is_narrow:
            seen.add(op.state.string_value())
    dtype = numpy_dtype(narrowing.element)
    return [
        op
        for op in _changing(module)
        if op.sym_name.data not in seen and _holds(dtype, op.value.array)
    ]


def _holds(dtype: np.dtype[Any], values: NDArray[Any]) -> bool:
    """Whether a narrow type has all these float32 values. A program may round others in its own
    way: by words, or to the largest number."""
    return np.array_equal(converted(converted(values, dtype), values.dtype), values, equal_nan=True)


def _narrow_states(narrowing: _Narrowing, states: Sequence[nn.StateOp]) -> None:
    """Let the program keep states in the narrow type."""
    module, context = narrowing.module, narrowing.context
    dtype = numpy_dtype(narrowing.element)
    for state in states:
        if not may_rewrite():
            continue
        name = state.sym_name.data
        with Edit(source_at("narrow a state", _narrow_states), state) as edit:
            held = state.value.array.astype(dtype)
            blob = context.blobs.add(held) if isinstance(context, AbeleContext) else Blob(held)
            made = nn.StateOp(name, blob)
            state.properties.update(made.properties)
            edit.modified(state)
            for op in [*module.walk()]:
                if isinstance(op, nn.LoadOp) and op.state.string_value() == name:
                    edit.modified(op)
                    narrowing.retype(op.result, edit)
                elif isinstance(op, nn.StoreOp) and op.state.string_value() == name:
                    edit.modified(op)
                    narrowing.give(op, 0, edit)


def _kept(module: ModuleOp, patterns: Sequence[str]) -> set[Operation]:
    """The operations whose nodes have names that match a pattern. Raises InputError."""
    found: set[Operation] = set()
    for pattern in patterns:
        try:
            matches = re.compile(pattern).search
        except re.error as error:
            raise InputError(f"narrow-floats: keep {pattern!r}: {error}; need a pattern") from None
        kept = {op for op in module.walk() if any(map(matches, origin_names(op)))}
        if not kept:
            raise InputError(f"narrow-floats: keep {pattern!r}: no operation has such a name")
        found |= kept
    return found


def _needs_float32(op: Operation) -> bool:
    """Whether an operation rounds float32 numbers itself, or reads or gives their codes, or is a
    codelet that names their type.

    It cannot round narrow numbers, and a narrow type does not hold all codes.
    """
    if not isinstance(op, Structured):
        return False
    body = op.structure().body
    if body.signature is not None:
        return "f32" in body.signature.types.values()
    known = FUNCTIONS.get(body.function)
    if known is not None and known.rounds:
        return True
    return any(name in CODES for name in (body.function, *(s.function for s in body.then)))


_COLLECTING = (nn.AddOp, nn.UpdateOp)
"""The operations by which loops collect: they add to a sum, or write a row of a table."""


def _collected(op: Operation) -> dict[int, Operation]:
    """The float32 values that a loop only collects, by place, with the operation that collects.

    The loop yields the result of this operation, and nothing else reads the result or the value.
    """
    if not isinstance(op, control.RepeatOp):
        return {}
    block = op.body.block
    found: dict[int, Operation] = {}
    for i in _float32_places(op.operands):
        uses, last = list(block.args[i].uses), block.last_op
        if len(uses) != 1 or last is None:
            continue
        made = uses[0].operation
        is_yielded = isinstance(made, _COLLECTING) and last.operands[i] in made.results
        if is_yielded and len(list(made.results[0].uses)) == 1:
            found[i] = made
    return found


def _float32_places(values: Iterable[SSAValue]) -> list[int]:
    return [i for i, value in enumerate(values) if is_float32(value)]


def _narrow_operation(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let an operation compute in the narrow type. An operation of unknown meaning is left
    unchanged.
    """
    if not isinstance(op, Structured | Movement | Reinterpretation | Composite):
        return
    if isinstance(op, Structured) and op.structure().body.function == "bitcast":
        # A bitcast needs float32 bits. Other wide operations read rounded floats, or round their
        # results.
        return
    kept = op.wide_operands if isinstance(op, Composite) else ()
    operands = [i for i in _float32_places(op.operands) if i not in kept]
    results = _float32_places(op.results)
    if not (operands or results):
        return
    edit.modified(op)
    for i in operands:
        narrowing.give(op, i, edit)
    for i in results:
        narrowing.retype(op.results[i], edit)
    if isinstance(op, Structured | Movement):
        _saturate_numbers(op, float_limits(numpy_dtype(narrowing.element)).largest)


def _saturate_numbers(op: Structured | Movement, largest: float) -> None:
    """Limit the numbers in properties that may be result elements, as is done for constants."""
    assert isinstance(op, Operation)
    for name in op.result_numbers:
        number = nn.number_of(op.properties[name])
        if isfinite(number) and abs(number) > largest:
            op.properties[name] = float_attr(copysign(largest, number))


def _narrow_cast(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let a cast give the narrow type, or read the value that its operand was widened from."""
    assert isinstance(op, nn.CastOp)
    if narrowing.source(op.result) is not op.result:
        return
    if narrowing.source(op.operand) is not op.operand:
        edit.modified(op)
        narrowing.give(op, 0, edit)
    if is_float32(op.result):
        edit.modified(op)
        narrowing.retype(op.result, edit)


def _narrow_loop(narrowing: _Narrowing, op: Operation, edit: Edit) -> None:
    """Let a loop carry narrow values, except those that it only collects."""
    kept = _collected(op)
    places = [i for i in _float32_places(op.operands) if i not in kept]
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
    """Let both branches yield narrow values."""
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
    """Let a function and its calls pass narrow values. The entry function is left unchanged."""
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
"""The rewrites of operations that need more than narrow operands and results."""
