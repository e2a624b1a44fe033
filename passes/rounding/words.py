"""The two numbers of a step from which stochastic roundings draw their random words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from xdsl.dialects.builtin import ArrayAttr, StringAttr, f32
from xdsl.dialects.func import CallOp, FuncOp
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import control, nn
from ...dialects.random_states import FIRST_SEED, ROUNDING_SEED, ROUNDING_STEP
from ...dialects.settable import listed_names
from ...ir.blob import Blob
from ...ir.edit import Edit, source_at
from ...ir.provenance import named
from ...ir.upstream import InsertPoint, ModuleOp
from ...ir.well_known import ENTRY, UPDATED
from ...ir.xdsl.walk import operations

Pair = tuple[SSAValue, SSAValue]

NO_RUN = float((1 << 24) - 1)
"""The number of the run in what a program computes outside a loop that counts the runs."""

LAST_RUN = NO_RUN - 1
"""The run that run 0 follows, with another seed."""

NEXT_SEED = 1_000_003.0
"""What is then added to the seed: more than the iterations of most loops, which add to it too."""


@dataclass
class Words:
    """The numbers of each block of a module, made where they are first asked for.

    They are the number of the run and a seed, which are states of the program, as whole numbers of
    f32. A loop adds the number of the iteration to the seed, and a function gets that of its call.
    The iterations of a `control.while` have no number; they share those of the block around the
    loop.
    """

    module: ModuleOp
    found: dict[Block, Pair] = field(default_factory=dict[Block, Pair])

    def of(self, block: Block, edit: Edit) -> Pair:
        """The number of the run and the seed that operations of a block read."""
        holder = _holder(block)
        if holder not in self.found:
            parent = holder.parent_op()
            if isinstance(parent, control.RepeatOp) and parent.runs is None:
                self.found[holder] = self._of_iteration(holder, parent, edit)
            elif isinstance(parent, FuncOp) and parent.sym_name.data != ENTRY:
                self._give(holder, parent, edit)
            else:
                front = _Front(edit, holder)
                is_counted = holder is self._counting()
                read = (ROUNDING_SEED, ROUNDING_STEP) if is_counted else (FIRST_SEED,)
                seed = front.load(read[0])
                step = front.load(ROUNDING_STEP) if is_counted else front.constant(NO_RUN)
                self.found[holder] = step, seed
                self._declare(read, edit)
        return self.found[holder]

    def count(self) -> None:
        """Let each run have a number of its own, if anything rounds stochastically."""
        if not self.found:
            return
        block = self._counting()
        end = block.last_op
        assert end is not None
        with Edit(source_at("count runs", Words.count), end) as edit:
            step, seed = self.of(block, edit)
            front = _Front(edit, block, end)
            # A gate and a maximum choose and round nothing, so that the states stay exact numbers.
            more = nn.ShiftOp(step, 1.0)
            negative = nn.ScaleOp(more.result, -1.0)
            left = nn.ShiftOp(negative.result, NO_RUN)
            counted = nn.GateOp(left.result, more.result)
            self._insert_group(front, more, negative, left, counted)
            front.insert(nn.StoreOp(counted.result, ROUNDING_STEP))
            other = front(nn.ShiftOp(seed, NEXT_SEED))
            is_last = nn.ShiftOp(step, 1.0 - LAST_RUN)
            gated = nn.GateOp(is_last.result, other)
            chosen = nn.MaxOp(gated.result, seed)
            self._insert_group(front, is_last, gated, chosen)
            front.insert(nn.StoreOp(chosen.result, ROUNDING_SEED))
        listed = listed_names(self.module, UPDATED)
        if listed is not None:
            names = dict.fromkeys((*listed, ROUNDING_STEP, ROUNDING_SEED))
            self.module.attributes[UPDATED] = ArrayAttr(map(StringAttr, names))

    def _insert_group(self, front: _Front, *members: Operation) -> None:
        number = nn.free_number(operations(self.module))
        for op in members:
            front.insert(op)
        nn.join(number, members)

    def _of_iteration(self, block: Block, loop: control.RepeatOp, edit: Edit) -> Pair:
        outer = loop.parent
        assert outer is not None
        step, seed = self.of(outer, edit)
        number = loop.iteration_number
        if number is None:
            number = block.insert_arg(control.ITERATION_NUMBER, len(block.args))
            edit.modified(loop)
        front = _Front(edit, block)
        own = front(nn.ScaleOp(front(nn.CastOp(number, f32)), float(_iterations(outer))))
        return step, front(nn.AddOp(own, seed))

    def _give(self, block: Block, function: FuncOp, edit: Edit) -> None:
        """Let a function take the numbers, and its calls give them."""
        scalar = nn.tensor((), f32)
        step, seed = (block.insert_arg(scalar, len(block.args)) for _ in range(2))
        self.found[block] = step, seed
        function.update_function_type()
        edit.modified(function)
        calls = [op for op in self.module.walk() if isinstance(op, CallOp)]
        own = [op for op in calls if op.callee.string_value() == function.sym_name.data]
        for i, call in enumerate(own):
            assert call.parent is not None
            step, seed = self.of(call.parent, edit)
            front = _Front(edit, call.parent, call)
            given = front(nn.ShiftOp(seed, float(i * _iterations(call.parent))))
            call.operands = [*call.operands, step, given]
            edit.modified(call)

    def _counting(self) -> Block:
        """The block that counts runs: the body of a loop whose iterations are runs, or @main's."""
        for op in self.module.walk():
            if isinstance(op, control.RepeatOp) and op.runs is not None:
                return op.body.block
        main = next(
            op
            for op in self.module.body.block.ops
            if isinstance(op, FuncOp) and op.sym_name.data == ENTRY
        )
        return main.body.block

    def _declare(self, names: Sequence[str], edit: Edit) -> None:
        known = {op.sym_name.data for op in self.module.ops if isinstance(op, nn.StateOp)}
        for name in reversed(names):
            if name not in known:
                state = nn.StateOp(name, Blob(np.zeros((), np.float32)))
                state.location = named(name)
                first = self.module.body.block.first_op
                assert first is not None
                edit.insert(state, InsertPoint.before(first))


def _holder(block: Block) -> Block:
    """The block around an operation whose numbers it shares: that of a loop, or of a function."""
    parent = block.parent_op()
    if parent is None or isinstance(parent, FuncOp | control.RepeatOp):
        return block
    assert parent.parent is not None
    return _holder(parent.parent)


def _iterations(block: Block) -> int:
    """How often a block runs in one call of its function, or in one run."""
    count, holder = 1, _holder(block)
    while isinstance(loop := holder.parent_op(), control.RepeatOp) and loop.runs is None:
        count *= max(loop.iterations, 1)
        assert loop.parent is not None
        holder = _holder(loop.parent)
    return count


class _Front:
    """Inserts operations, by default at the front of a block."""

    def __init__(self, edit: Edit, block: Block, before: Operation | None = None) -> None:
        self.edit, self.before = edit, before or block.first_op

    def __call__(self, op: Operation) -> SSAValue:
        return self.insert(op).results[0]

    def insert(self, op: Operation) -> Operation:
        """Insert an operation."""
        op.location = named("rounding")
        assert self.before is not None
        self.edit.insert(op, InsertPoint.before(self.before))
        return op

    def load(self, state: str) -> SSAValue:
        """A load of a number that is a state."""
        return self(nn.LoadOp(state, nn.tensor((), f32)))

    def constant(self, value: float) -> SSAValue:
        """A number as a constant."""
        return self(nn.ConstantOp(Blob(np.array(value, np.float32))))
