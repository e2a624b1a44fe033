"""Branches and loops."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region, SSAValue

from ...dialects import control, nn, stablehlo
from .conversion import Lower, ToNn
from .integers import dtype_of, unsigned


def _if(op: stablehlo.IfOp, new: ToNn) -> Sequence[SSAValue]:
    """One of two regions. A condition that is known leaves only its region."""
    condition = new.value(op.pred)
    known = new.known(condition)
    if known is not None:
        return new.lower_block((op.true_branch if known else op.false_branch).block, ())
    return _branched(new, condition, op, [op.true_branch, op.false_branch])


def _branched(
    new: ToNn, condition: SSAValue, op: stablehlo.IfOp | stablehlo.CaseOp, regions: list[Region]
) -> list[SSAValue]:
    then, otherwise = (new.region(each).filled(lambda v: control.YieldOp(*v)) for each in regions)
    types = [each.type for each in op.made]
    return new.add_control(control.IfOp(condition, types, then, otherwise))


def _case(op: stablehlo.CaseOp, new: ToNn) -> Sequence[SSAValue]:
    """One of several regions: one of the first half of them, or of the second, and so on."""
    index, last = new.value(op.index), len(op.branches) - 1
    known = new.known(index)
    if known is not None:
        chosen = int(known) if 0 <= int(known) <= last else last
        return new.lower_block(op.branches[chosen].block, ())
    # A number below 0 becomes a large one, which leads to the last region.
    return _chosen(op, new, new.bits(index, unsigned(32)), 0, last + 1)


def _chosen(
    op: stablehlo.CaseOp, new: ToNn, index: SSAValue, first: int, end: int
) -> list[SSAValue]:
    """One of the regions from a first one to before an end."""
    if end - first == 1:
        return new.lower_block(op.branches[first].block, ())
    middle = (first + end) // 2
    is_below = new.add(nn.LessOp(index, new.number(middle, index)))
    halves: list[Region] = []
    for part in ((first, middle), (middle, end)):
        with new.into(Block()) as block:
            block.add_op(control.YieldOp(*_chosen(op, new, index, *part)))
        halves.append(Region(block))
    return new.add_control(control.IfOp(is_below, [each.type for each in op.made], *halves))


@dataclass(frozen=True)
class _Count:
    """A loop that a counter ends.

    Attributes:
        index: of the counter among the carried values.
        first: its first value.
        step: what each iteration adds to it.
        iterations: the number of iterations.
    """

    index: int
    first: int
    step: int
    iterations: int


def _while(op: stablehlo.WhileOp, new: ToNn) -> Sequence[SSAValue]:
    """A loop, which carries only the values that iterations change.

    If a counter ends the loop, and its first value, its step and its limit are known, the loop
    becomes one of a known number of iterations, and the counter is not carried either.
    """
    initial = new.operands(op)
    end = op.body.block.last_op
    assert end is not None
    fixed = {
        i
        for i, (value, argument) in enumerate(zip(end.operands, op.body.block.args, strict=True))
        if value is argument
    }
    counted = _count(op, new, fixed)
    if counted is not None:
        return _repeated(op, new, initial, fixed, counted)
    if len(fixed) == len(initial):
        # The condition is the same in each iteration. One value is carried all the same.
        fixed.discard(0)
    carried = [i for i in range(len(initial)) if i not in fixed]

    def every(given: Sequence[SSAValue]) -> list[SSAValue]:
        """All values of the old region, from those that are carried."""
        found = dict(zip(carried, given, strict=True))
        return [found.get(i, value) for i, value in enumerate(initial)]

    types = [initial[i].type for i in carried]
    test = new.region(op.cond, types).filled(lambda v: control.ConditionOp(v[0]), every)
    body = new.region(op.body, types).filled(
        lambda values: control.YieldOp(*(values[i] for i in carried)), every
    )
    made = control.WhileOp([initial[i] for i in carried], test, body)
    return every(new.add_control(made))


def _repeated(
    op: stablehlo.WhileOp, new: ToNn, initial: list[SSAValue], fixed: set[int], count: _Count
) -> list[SSAValue]:
    """A loop with a known number of iterations."""
    carried = [i for i in range(len(initial)) if i not in fixed and i != count.index]
    counter = initial[count.index]

    def every(given: Sequence[SSAValue]) -> list[SSAValue]:
        found = dict(zip(carried, given, strict=False))
        new.ranges[given[-1]] = 0, max(count.iterations - 1, 0)
        number = new.cast(given[-1], nn.element_of(counter))
        if count.step != 1:
            number = new.add(nn.MulOp(number, new.number(count.step, number)))
        if count.first:
            number = new.add(nn.AddOp(number, new.number(count.first, number)))
        found[count.index] = number
        return [found.get(i, value) for i, value in enumerate(initial)]

    types = [*(initial[i].type for i in carried), control.ITERATION_NUMBER]
    body = new.region(op.body, types).filled(
        lambda values: control.YieldOp(*(values[i] for i in carried)), every
    )
    loop = control.RepeatOp(count.iterations, [initial[i] for i in carried], body)
    found = dict(zip(carried, new.add_control(loop), strict=True))
    found[count.index] = new.number(count.first + count.iterations * count.step, counter)
    return [found.get(i, value) for i, value in enumerate(initial)]


def _count(op: stablehlo.WhileOp, new: ToNn, fixed: set[int]) -> _Count | None:
    """The counter that ends a loop: it is below a limit, and each iteration adds a number to it.

    None for a loop that ends otherwise.
    """
    end, last = op.cond.block.last_op, op.body.block.last_op
    assert end is not None
    assert last is not None
    test = end.operands[0].owner
    if not isinstance(test, stablehlo.CompareOp):
        return None
    sides = list(test.operands)
    direction = test.comparison_direction.data
    if direction in ("GT", "GE"):
        sides.reverse()
    counter, limit = sides
    if direction not in ("LT", "GT", "LE", "GE") or not isinstance(counter, BlockArgument):
        return None
    if counter.owner is not op.cond.block or not isinstance(nn.element_of(counter), IntegerType):
        return None
    index = counter.index
    first = new.known(new.value(op.operand[index]))
    most = _number(limit, op, op.cond.block, new, fixed)
    step = _step(last.operands[index], op.body.block.args[index], op, new, fixed)
    if first is None or most is None or step is None or nn.shape_of(counter):
        return None
    beyond = most + (direction in ("LE", "GE"))
    iterations = max(0, -(-(beyond - int(first)) // step))
    largest = int(first) + iterations * step
    # A counter that would wrap never ends the loop, and iterations are numbered by i32.
    dtype = dtype_of(new.value(op.operand[index]))
    if dtype.kind not in "iu":
        return None
    bits = 8 * dtype.itemsize - (dtype.kind == "i")
    if largest >= 1 << bits or iterations >= control.MOST_NUMBERED:
        return None
    return _Count(index, int(first), step, iterations)


def _step(
    following: SSAValue, argument: BlockArgument, op: stablehlo.WhileOp, new: ToNn, fixed: set[int]
) -> int | None:
    """The positive number that an iteration adds to a value; None if it does something else."""
    made = following.owner
    if not isinstance(made, Operation) or made.name != "stablehlo.add":
        return None
    others = [each for each in made.operands if each is not argument]
    if len(others) != 1:
        return None
    step = _number(others[0], op, op.body.block, new, fixed)
    return step if step is not None and step > 0 else None


def _number(
    value: SSAValue, op: stablehlo.WhileOp, block: Block, new: ToNn, fixed: set[int]
) -> int | None:
    """A whole number that a region reads, if it is known."""
    if isinstance(value, BlockArgument) and value.owner is block:
        if value.index not in fixed:
            return None
        value = op.operand[value.index]
    if isinstance(value, OpResult) and isinstance(value.op, stablehlo.ConstantOp):
        array = value.op.array
    elif op.is_ancestor(value.owner):
        # What a region computes is not lowered yet.
        return None
    else:
        array = new.known(new.value(value))
    return int(array) if array is not None and not array.ndim else None


TABLE: Mapping[str, Lower] = {
    "stablehlo.if": _if,
    "stablehlo.case": _case,
    "stablehlo.while": _while,
}
"""What lowers each operation, by name."""
