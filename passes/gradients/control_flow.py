"""Gradients through loops, branches and calls.

The gradient of a region is a region. It computes again what the region computed, and then walks
back. What a loop's turn needs of the turn that it walks back through is kept in tables, one row per
turn, which the loop writes and the loop back reads from the end: the values that the walk back
reads, or, to be computed again from, only what the turn began with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import StringAttr
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects import control, nn
from ...ir.blob import Blob
from ...ir.edit import Edit
from ...ir.phases import BACKWARD
from ...ir.provenance import at
from ...ir.support.unused_names import UnusedNames
from ...ir.upstream import InsertPoint, ModuleOp
from .emit import Emitter
from .errors import NoGradient
from .rules import Gradients
from .turns import narrowed, nothing_at, row_of, widened, with_row, zeros
from .way import is_float, needed, reached, read_by

Passed = list[tuple[SSAValue, SSAValue]]
"""Values, each with a gradient that is passed back to it."""

Walk = Callable[
    [Emitter, Block, Sequence[SSAValue], Passed],
    dict[SSAValue, SSAValue],
]
"""Walks back through a block, from gradients that are given of some of its values.

Returns the gradients of wanted values, of those that have one.
"""


@dataclass
class Flow:
    """What the gradients of a program share.

    module: the program. again: whether loops keep only what a turn begins with, and compute the
    rest again. functions: for each function that is called, the one that walks back through it, and
    which of its operands get a gradient.
    """

    module: ModuleOp
    again: bool = False
    functions: dict[str, tuple[str, tuple[int, ...]]] = field(
        default_factory=dict[str, "tuple[str, tuple[int, ...]]"]
    )


@dataclass(frozen=True)
class Through:
    """An operation with regions, or a call, that gradients pass through.

    flow: what the gradients of the program share. walk: walks back through its regions. emit:
    inserts what passes the gradients. gradients: those of its results. known: the values of its
    block that gradients are wanted of, or lead to.
    """

    flow: Flow
    walk: Walk
    emit: Emitter
    op: Operation
    gradients: Gradients
    known: Collection[SSAValue]

    def passed(self) -> Passed:
        """What the operation passes back. Raises NoGradient."""
        rule = RULES.get(type(self.op))
        if rule is None:
            raise NoGradient("has no gradient")
        return rule(self)

    def captured(self) -> list[SSAValue]:
        """The known values from around the operation that its regions read."""
        inner = (v for each in self.op.walk() if each is not self.op for v in each.operands)
        return [v for v in dict.fromkeys(inner) if v in self.known and is_float(v)]


def _yields(block: Block) -> Sequence[SSAValue]:
    last = block.last_op
    assert isinstance(last, control.YieldOp | ReturnOp)
    return last.operands


def _copied(
    emit: Emitter, source: Block, end: Operation, values: dict[SSAValue, SSAValue]
) -> list[Operation]:
    """Compute what a block computes before another operation too, and return what does.

    values: what the arguments of the block are there. Its other values are added.
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
    """Erase the operations of a block whose results nothing reads, but for one."""
    for op in reversed(tuple(block.ops)):
        used = any(result.first_use is not None for result in op.results)
        if not used and op is not block.last_op and op is not spare:
            edit.erase(op)


# Loops


def _repeat(through: Through) -> Passed:
    op = through.op
    assert isinstance(op, control.RepeatOp)
    if op.turns == 0:
        pairs = zip(op.initial, through.gradients, strict=True)
        return [(value, each) for value, each in pairs if each is not None]
    outside = through.captured()
    carried = _carried(op, outside, through)
    back = _LoopBack(through.flow, through.walk, through.emit, op, outside, carried)
    return back.run(through.gradients)


def _carried(op: control.RepeatOp, outside: Sequence[SSAValue], through: Through) -> list[int]:
    """Which of the values that a loop carries have a gradient that leads to what is wanted."""
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
    """The making of the loop that walks back through one.

    outside: values from around the loop that get a gradient. carried: which of the values that it
    carries do.
    """

    flow: Flow
    walk: Walk
    emit: Emitter
    op: control.RepeatOp
    outside: Sequence[SSAValue]
    carried: Sequence[int]

    def run(self, gradients: Gradients) -> Passed:
        """Build the loop, and return what it passes back."""
        op, emit, own = self.op, self.emit, self.op.body.block
        start = list(op.initial)
        body = Block(arg_types=[start[i].type for i in self.carried])
        turn = body.insert_arg(control.TURN, len(body.args))
        # What the turn begins with; in the end, rows of tables take its place.
        begun = [body.insert_arg(v.type, len(body.args)) for v in start]
        end = control.YieldOp()
        body.add_op(end)
        inner = Emitter(emit.edit, end, op, emit.step)
        number = self._number(inner, turn)
        inside: dict[SSAValue, SSAValue] = dict(zip(own.args, begun, strict=False))
        if op.turn_number is not None:
            inside[op.turn_number] = number.result
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
            total = body.insert_arg(each.type, turn.index)
            passed.append(inner.add([total, each]))
        end.operands = passed
        self._keep(body, begun, number, {copy: v for v, copy in inside.items()}, copies, inner.made)
        emit.source = self.op
        begin: list[SSAValue] = []
        for i in self.carried:
            gradient = gradients[i]
            begin.append(zeros(emit, start[i]) if gradient is None else gradient)
        begin += [nothing_at(emit, value) for value in held]
        loop = control.RepeatOp(self.op.turns, begin, Region(body))
        emit.insert(loop)
        sources = [*(start[i] for i in self.carried), *held]
        results = zip(sources, loop.outputs, strict=True)
        return [(value, narrowed(emit, result, value)) for value, result in results]

    def _number(self, emit: Emitter, turn: SSAValue) -> nn.SubOp:
        """The number of the turn that is walked back through: the last one first."""
        last = emit(nn.ConstantOp(Blob(np.array(self.op.turns - 1, np.int32))))
        number = nn.SubOp(last, turn)
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
        """Let the loop keep what the walk back reads, and read it there.

        originals: for each value that is computed again, that of the loop.
        """
        edit = self.emit.edit
        _drop_unused(edit, body, number)
        places: dict[SSAValue, BlockArgument] = {}

        def read(value: SSAValue, copy: SSAValue) -> None:
            type_ = nn.tensor((self.op.turns, *nn.shape_of(value)), nn.element_of(value))
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
        """Let the loop keep some values of its body, and return the tables of them."""
        if not values:
            return ()
        op, block = self.op, self.op.body.block
        end = block.last_op
        assert isinstance(end, control.YieldOp)
        turn = op.turn_number or block.insert_arg(control.TURN, len(block.args))
        outer = Emitter(self.emit.edit, op, op, "kept")
        inner = Emitter(self.emit.edit, end, op, "kept")
        initial, yielded = list(op.initial), list(end.operands)
        for value in values:
            table = zeros(outer, value, (op.turns,))
            place = block.insert_arg(table.type, turn.index)
            initial.append(table)
            yielded.append(with_row(inner, place, value, turn))
        end.operands = yielded
        made = control.RepeatOp(op.turns, initial, op.detach_region(op.body))
        made.location = op.location
        self.emit.edit.insert(made, InsertPoint.before(op))
        self.emit.edit.replace(op, made.outputs[: len(op.outputs)])
        self.op = made
        return made.outputs[len(made.outputs) - len(values) :]


def _read_by(
    made: Iterable[Operation], copies: Sequence[Operation], begun: Sequence[SSAValue]
) -> list[SSAValue]:
    """The values that gradients read of copied operations, and that differ from turn to turn.

    Instead of a reshaped value, what it has its elements from. What depends only on the number of
    the turn and on values from around the loop is computed again: it is often a row of a table.
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
    """The same branch is taken again, and computes again; the other one passes zeros back."""
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
    """Remove all operations of a block that is in no program."""
    for op in reversed(tuple(block.ops)):
        op.detach()
        op.erase()


# Calls


def _call(through: Through) -> Passed:
    """A call of the function that walks back, which computes again what it needs."""
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
    """The function that a call calls, with its body; None if there is none."""
    name = op.callee.string_value()
    for each in module.body.block.ops:
        if isinstance(each, FuncOp) and each.sym_name.data == name and not each.is_declaration:
            return each
    return None


def _function_back(through: Through, function: FuncOp) -> tuple[str, tuple[int, ...]]:
    """A function from operands and gradients of float results to gradients of float operands.

    Returns its name, and which operands get one.
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
    # A program that has gradients already has functions of such names.
    symbols = (op.properties.get("sym_name") for op in module.body.block.ops)
    taken = {each.data for each in symbols if isinstance(each, StringAttr)}
    name = UnusedNames(taken).unused(f"{function.sym_name.data}.{BACKWARD}")
    made = FuncOp(name, (types, [operands[i].type for i in wanted]), Region(body))
    made.location = at(function, BACKWARD)
    emit.edit.insert(made, InsertPoint.after(function))
    return name, wanted


def _while(through: Through) -> Passed:
    raise NoGradient(
        "repeats until a condition holds, so it is not known how many turns must be kept"
    )


Rule = Callable[[Through], Passed]

RULES: dict[type[Operation], Rule] = {
    control.RepeatOp: _repeat,
    control.IfOp: _if,
    CallOp: _call,
    control.WhileOp: _while,
}
"""What passes gradients to values that are not its operands, or through a function."""
