"""Gradients through loops, branches and calls.

The gradient of a region is a region: it computes the values of the original region again, and then
walks back through them. The gradient of a loop is a loop that visits the iterations from the last
to the first. The original loop keeps values for it in tables with one row per iteration: either all
values that the walk back reads, or only the initial values of each iteration, from which the others
are computed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects import control, nn
from ...dialects.placement import keep_placement
from ...ir.blob import Blob
from ...ir.edit import Edit
from ...ir.phases import BACKWARD
from ...ir.provenance import at
from ...ir.support.unused_names import UnusedNames
from ...ir.upstream import InsertPoint, ModuleOp
from .emit import Emitter
from .errors import NoGradient
from .iteration_rows import narrowed, nothing_at, row_of, widened, with_row, zeros
from .rules import Gradients
from .way import is_float, needed, reached, read_by

Passed = list[tuple[SSAValue, SSAValue]]
"""(value, gradient) pairs: gradients that are passed back to values."""

Walk = Callable[
    [Emitter, Block, Sequence[SSAValue], Passed],
    dict[SSAValue, SSAValue],
]
"""Walks back through a block, given gradients of some of its values.

Returns the gradients of those wanted values that have one.
"""


@dataclass
class Flow:
    """State that the gradients of one program share.

    Attributes:
        module: the program.
        again: whether loops keep only the initial values of each iteration, and compute the others
            again.
        functions: for each called function, the name of the function that walks back through it,
            and the indices of the operands that get a gradient.
    """

    module: ModuleOp
    again: bool = False
    functions: dict[str, tuple[str, tuple[int, ...]]] = field(
        default_factory=dict[str, "tuple[str, tuple[int, ...]]"]
    )


@dataclass(frozen=True)
class Through:
    """An operation with regions, or a call, through which gradients pass.

    Attributes:
        flow: the state of the whole program.
        walk: walks back through the operation's regions.
        emit: inserts the operations that compute gradients.
        gradients: of the operation's results.
        known: the values outside the operation whose gradients are wanted or needed.
    """

    flow: Flow
    walk: Walk
    emit: Emitter
    op: Operation
    gradients: Gradients
    known: Collection[SSAValue]

    def passed(self) -> Passed:
        """The gradients that the operation passes back. Raises NoGradient."""
        rule = RULES.get(type(self.op))
        if rule is None:
            raise NoGradient("has no gradient")
        return rule(self)

    def captured(self) -> list[SSAValue]:
        """The known float values defined outside the operation that its regions read."""
        inner = (v for each in self.op.walk() if each is not self.op for v in each.operands)
        return [v for v in dict.fromkeys(inner) if v in self.known and is_float(v)]


def _yields(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    assert isinstance(last, control.YieldOp | ReturnOp)
    return last.operands


def _copied(
    emit: Emitter, source: Block, end: Operation, values: dict[SSAValue, SSAValue]
) -> list[Operation]:
    """Copy the operations of a block, except the last one, to before `end`. Returns the copies.

    The caller gives the block's arguments; this function adds the results.

    Args:
        values: maps each value of the block to its copy.
    """
    copies: list[Operation] = []
    for op in source.ops:
        if op is not source.last_op:
            copy = op.clone(values)
            copy.location = at(op, BACKWARD)
            emit.edit.insert(copy, InsertPoint.before(end))
            copies.append(copy)
    return copies


def _drop_unused(edit: Edit, block: Block, spare: Operation | None = None) -> None:
    """Erase the operations of a block whose results have no uses. `spare` and the last operation
    stay.
    """
    for op in reversed(tuple(block.ops)):
        used = any(result.first_use is not None for result in op.results)
        if not used and op is not block.last_op and op is not spare:
            edit.erase(op)


# Loops


def _repeat(through: Through) -> Passed:
    op = through.op
    assert isinstance(op, control.RepeatOp)
    if op.iterations == 0:
        pairs = zip(op.initial, through.gradients, strict=True)
        return [(value, each) for value, each in pairs if each is not None]
    outside = through.captured()
    carried = _carried(op, outside, through)
    back = _LoopBack(through.flow, through.walk, through.emit, op, outside, carried)
    return back.run(through.gradients)


def _carried(op: control.RepeatOp, outside: Sequence[SSAValue], through: Through) -> list[int]:
    """The indices of the carried values through which gradients flow.

    Such a value depends on a wanted value, and the loop's gradients depend on it.
    """
    block, gradients, known = op.body.block, through.gradients, through.known
    own, yields = block.args[: len(op.initial)], _yields(block)
    floats = [i for i, value in enumerate(own) if is_float(value)]
    moved = {i for i in floats if op.initial[i] in known}
    active = {i for i in floats if gradients[i] is not None}
    while True:
        found = reached(block, [*(own[i] for i in moved), *outside])
        more = {i for i in floats if yields[i] in found} - moved
        if not more:
            break
        moved |= more
    while True:
        found = needed(block, [yields[i] for i in active])
        more = {i for i in floats if own[i] in found} - active
        if not more:
            break
        active |= more
    return sorted(moved & active)


@dataclass
class _LoopBack:
    """Builds the loop that walks back through a loop.

    Attributes:
        outside: the values from outside the loop that get a gradient.
        carried: the indices of the carried values that get one.
    """

    flow: Flow
    walk: Walk
    emit: Emitter
    op: control.RepeatOp
    outside: Sequence[SSAValue]
    carried: Sequence[int]

    def run(self, gradients: Gradients) -> Passed:
        """Build the loop, and return the gradients that it passes back."""
        op, emit, own = self.op, self.emit, self.op.body.block
        start = list(op.initial)
        body = Block(arg_types=[start[i].type for i in self.carried])
        iteration = body.insert_arg(control.ITERATION_NUMBER, len(body.args))
        # The initial values of the iteration. Rows of tables replace them in the end.
        begun = [body.insert_arg(v.type, len(body.args)) for v in start]
        end = control.YieldOp()
        body.add_op(end)
        inner = Emitter(emit.edit, end, op, emit.step)
        number = self._number(inner, iteration)
        inside: dict[SSAValue, SSAValue] = dict(zip(own.args, begun, strict=False))
        if op.iteration_number is not None:
            inside[op.iteration_number] = number.result
        copies = _copied(emit, own, end, inside)
        inner.made.clear()
        yields = [inside.get(v, v) for v in _yields(own)]
        given: Passed = [(yields[i], body.args[k]) for k, i in enumerate(self.carried)]
        found = self.walk(inner, body, [*(begun[i] for i in self.carried), *self.outside], given)
        inner.source = op
        passed = [
            found[begun[i]] if begun[i] in found else zeros(inner, begun[i]) for i in self.carried
        ]
        held = [v for v in self.outside if v in found]
        for value in held:
            each = widened(inner, found[value])
            total = body.insert_arg(each.type, iteration.index)
            passed.append(inner.add([total, each]))
        end.operands = passed
        self._keep(body, begun, number, {copy: v for v, copy in inside.items()}, copies, inner.made)
        emit.source = self.op
        begin: list[SSAValue] = []
        for i in self.carried:
            gradient = gradients[i]
            begin.append(zeros(emit, start[i]) if gradient is None else gradient)
        begin += [nothing_at(emit, value) for value in held]
        loop = control.RepeatOp(self.op.iterations, begin, Region(body))
        emit.insert(loop)
        sources = [*(start[i] for i in self.carried), *held]
        results = zip(sources, loop.outputs, strict=True)
        return [(value, narrowed(emit, result, value)) for value, result in results]

    def _number(self, emit: Emitter, iteration: SSAValue) -> nn.SubOp:
        """The number of the original iteration that an iteration walks back through, from the last
        to 0.
        """
        last = emit(nn.ConstantOp(Blob(np.array(self.op.iterations - 1, np.int32))))
        number = nn.SubOp(last, iteration)
        emit.insert(number)
        return number

    def _keep(
        self,
        body: Block,
        begun: Sequence[BlockArgument],
        number: nn.SubOp,
        originals: Mapping[SSAValue, SSAValue],
        copies: Sequence[Operation],
        made: Iterable[Operation],
    ) -> None:
        """Let the original loop keep the values that the walk back needs, and read them from
        tables.

        Args:
            body: the walk back's body.
            begun: its copies of the iteration's initial values.
            number: the number of the original iteration.
            originals: for each copied value, the original.
            copies: the copied operations.
            made: the operations that compute gradients.
        """
        edit = self.emit.edit
        _drop_unused(edit, body, number)
        places: dict[SSAValue, BlockArgument] = {}

        def read(value: SSAValue, copy: SSAValue) -> None:
            type_ = nn.tensor((self.op.iterations, *nn.shape_of(value)), nn.element_of(value))
            place = places[value] = body.insert_arg(type_, len(body.args))
            after = number.next_op
            assert after is not None
            reading = Emitter(edit, after, self.op, self.emit.step)
            copy.replace_all_uses_with(row_of(reading, place, number.result))

        if not self.flow.again:
            alive = [op for op in copies if op.parent is body]
            for copy in _read_by([op for op in made if op.parent is body], alive, begun):
                if copy in originals and copy not in begun:
                    read(originals[copy], copy)
            _drop_unused(edit, body, number)
        for value, copy in zip(self.op.body.block.args, begun, strict=False):
            if copy.first_use is not None:
                read(value, copy)
        for place, table in zip(places.values(), self._tables([*places]), strict=True):
            place.replace_all_uses_with(table)
            body.erase_arg(place)
        for copy in begun:
            body.erase_arg(copy)
        _drop_unused(edit, body)

    def _tables(self, values: Sequence[SSAValue]) -> Sequence[SSAValue]:
        """Let the loop write some values of its body into tables, one row per iteration; returns
        the tables.
        """
        if not values:
            return ()
        op, block = self.op, self.op.body.block
        end = block.last_op
        assert isinstance(end, control.YieldOp)
        iteration = op.iteration_number or block.insert_arg(
            control.ITERATION_NUMBER, len(block.args)
        )
        outer = Emitter(self.emit.edit, op, op, "kept")
        inner = Emitter(self.emit.edit, end, op, "kept")
        initial, yielded = list(op.initial), list(end.operands)
        for value in values:
            table = zeros(outer, value, (op.iterations,))
            place = block.insert_arg(table.type, iteration.index)
            initial.append(table)
            yielded.append(with_row(inner, place, value, iteration))
        end.operands = yielded
        made = control.RepeatOp(op.iterations, initial, op.detach_region(op.body))
        made.location = op.location
        self.emit.edit.insert(made, InsertPoint.before(op))
        self.emit.edit.replace(op, made.outputs[: len(op.outputs)])
        self.op = made
        return made.outputs[len(made.outputs) - len(values) :]


def _read_by(
    made: Iterable[Operation], copies: Sequence[Operation], begun: Sequence[SSAValue]
) -> list[SSAValue]:
    """The results of copied operations that gradients read and that depend on the iteration's
    values.

    For a reshaped value, the value before the reshape. Values that depend only on the iteration
    number and on values outside the loop are left out: computing them again is cheap, often a row
    of a table.
    """
    changing = set(begun)
    own: set[SSAValue] = set()
    for op in copies:
        own.update(op.results)
        if any(v in changing for v in read_by(op)):
            changing.update(op.results)
    found: dict[SSAValue, None] = {}
    for op in made:
        for value in read_by(op):
            while isinstance(value, OpResult) and isinstance(value.op, nn.ReshapeOp):
                if value not in own:
                    break
                value = value.op.operand
            if value in own and value in changing:
                found[value] = None
    return list(found)


# Branches


def _if(through: Through) -> Passed:
    """An if whose taken branch computes its values again and walks back; missing gradients are
    zeros.
    """
    op, emit = through.op, through.emit
    assert isinstance(op, control.IfOp)
    outside = through.captured()
    bodies: list[tuple[Block, Emitter, dict[SSAValue, SSAValue]]] = []
    for region in (op.then, op.otherwise):
        body, end = Block(), control.YieldOp()
        inside: dict[SSAValue, SSAValue] = {}
        body.add_op(end)
        _copied(emit, region.block, end, inside)
        inner = Emitter(emit.edit, end, op, emit.step)
        given: Passed = [
            (inside.get(value, value), gradient)
            for value, gradient in zip(_yields(region.block), through.gradients, strict=True)
            if gradient is not None and is_float(value)
        ]
        bodies.append((body, inner, through.walk(inner, body, outside, given)))
    held = [v for v in outside if any(v in found for _, _, found in bodies)]
    if not held:
        for body, _, _ in bodies:
            _erase(body)
        return []
    for body, inner, found in bodies:
        inner.source = op
        end = body.last_op
        assert end is not None
        end.operands = [found[v] if v in found else zeros(inner, v) for v in held]
        _drop_unused(emit.edit, body)
    emit.source = op
    made = control.IfOp(
        op.predicate, [v.type for v in held], *(Region(body) for body, _, _ in bodies)
    )
    emit.insert(made)
    return list(zip(held, made.outputs, strict=True))


def _erase(block: Block) -> None:
    """Remove all operations of a block that is not part of a program."""
    for op in reversed(tuple(block.ops)):
        op.detach()
        op.erase()


# Calls


def _call(through: Through) -> Passed:
    """A call of the function that walks back through the called function."""
    flow, emit, op = through.flow, through.emit, through.op
    assert isinstance(op, CallOp)
    name = op.callee.string_value()
    if name not in flow.functions:
        function = function_of(flow.module, op)
        if function is None:
            raise NoGradient(f"calls @{name}, which has no body")
        flow.functions[name] = _function_back(through, function)
    back, wanted = flow.functions[name]
    if not wanted:
        return []
    given = [
        each if each is not None else zeros(emit, result)
        for each, result in zip(through.gradients, op.results, strict=True)
        if is_float(result)
    ]
    types = [op.operands[i].type for i in wanted]
    call = CallOp(back, [*op.operands, *given], types)
    emit.insert(call)
    pairs = [(op.operands[i], result) for i, result in zip(wanted, call.results, strict=True)]
    return [(value, gradient) for value, gradient in pairs if value in through.known]


def function_of(module: ModuleOp, op: CallOp) -> FuncOp | None:
    """The function that a call names; None if it has no body."""
    name = op.callee.string_value()
    for each in module.body.block.ops:
        if isinstance(each, FuncOp) and each.sym_name.data == name and not each.is_declaration:
            return each
    return None


def _function_back(through: Through, function: FuncOp) -> tuple[str, tuple[int, ...]]:
    """A function from operands and gradients of float results to gradients of float operands.

    Returns its name, and the indices of the operands that get a gradient.
    """
    own, emit, module = function.body.block, through.emit, through.flow.module
    results = _yields(own)
    types = [*own.arg_types, *(v.type for v in results if is_float(v))]
    body, end = Block(arg_types=types), ReturnOp()
    inside: dict[SSAValue, SSAValue] = dict(zip(own.args, body.args, strict=False))
    body.add_op(end)
    _copied(emit, own, end, inside)
    inner = Emitter(emit.edit, end, function, emit.step)
    floats = [inside.get(v, v) for v in results if is_float(v)]
    given: Passed = list(zip(floats, body.args[len(own.args) :], strict=True))
    operands = body.args[: len(own.args)]
    found = through.walk(inner, body, [v for v in operands if is_float(v)], given)
    wanted = tuple(i for i, v in enumerate(operands) if v in found)
    end.operands = [found[operands[i]] for i in wanted]
    _drop_unused(emit.edit, body)
    # A program that already has gradients has functions of such names.
    symbols = (op.properties.get("sym_name") for op in module.body.block.ops)
    taken = {each.data for each in symbols if isinstance(each, StringAttr)}
    name = UnusedNames(taken).unused(f"{function.sym_name.data}.{BACKWARD}")
    made = FuncOp(name, (types, [operands[i].type for i in wanted]), Region(body))
    made.location = at(function, BACKWARD)
    keep_placement(function, made)
    emit.edit.insert(made, InsertPoint.after(function))
    return name, wanted


def _while(through: Through) -> Passed:
    raise NoGradient(
        "repeats until a condition holds, so it is not known how many iterations must be kept"
    )


Rule = Callable[[Through], Passed]

RULES: dict[type[Operation], Rule] = {
    control.RepeatOp: _repeat,
    control.IfOp: _if,
    CallOp: _call,
    control.WhileOp: _while,
}
"""Rules for operations that pass gradients to values other than operands, or through a function."""
