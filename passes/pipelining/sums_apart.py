"""Gives each stage a sum of its own, where several stages add to one.

A weight that two stages read, such as a table of embeddings that also makes logits, has a gradient
of two parts. The later stage joins them for each micro-batch and adds the whole to a sum. So what
the earlier stage makes would wait for it: a tensor of the size of the weight for each micro-batch
in between. Instead, each stage adds its part to a sum of its own. The sums are added once, behind
the loop. The parts of three stages are split off one after the other.

    stage 5   %d = the gradient of logits             %d = the gradient of logits
                                                      %s = nn.add %sum, %d
    stage 9   %u = nn.update "sum" %rows into %d      %t = nn.update "sum" %rows into %other
              %s = nn.add %sum, %u
              yield %s                                yield %s, %t
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects import control, nn
from ...ir.edit import Edit, source_at
from ...ir.upstream import InsertPoint
from ..gradients.emit import Emitter
from .outline import STEP
from .stages import set_stage, stage_of


@dataclass(frozen=True)
class _Sum:
    """A sum that a loop carries, to which two stages add.

    Attributes:
        index: among the carried values.
        total: what adds to it.
        casts: what the parts pass through before, the last one first.
        joined: what joins the parts.
        early: which operand of it the earlier stage makes.
    """

    index: int
    total: nn.AddOp
    casts: tuple[nn.CastOp, ...]
    joined: nn.AddOp | nn.UpdateOp
    early: int


def sum_apart(loop: control.RepeatOp, stages: Mapping[Operation, int]) -> None:
    """Give stages sums of their own in a loop over micro-batches.

    New operations have their stage as an attribute.

    Args:
        stages: of the operations of the loop.
    """
    found = _sums(loop, stages)
    if not found:
        return
    block = loop.body.block
    last, number = block.last_op, loop.iteration_number
    assert isinstance(last, control.YieldOp)
    with Edit(source_at("sum apart what stages make", sum_apart), loop) as edit:
        outside, count = Emitter(edit, loop, loop, STEP), len(loop.initial)
        initial, yielded = list(loop.initial), list(last.values)
        for each in found:
            sum_ = block.args[each.index]
            zero = outside.zero(sum_)
            initial.append(outside.expanded(zero, nn.shape_of(sum_)))
            place = len(block.args) if number is None else number.index
            other = block.insert_arg(sum_.type, place)
            early, late = _split(each, Emitter(edit, each.total, each.total, STEP), sum_, other)
            yielded[each.index] = early.results[0]
            yielded.append(late.results[0])
        last.operands = yielded
        later = [_stage(each.joined) for each in found]
        for each in found:
            for op in (each.total, *each.casts, each.joined):
                edit.erase(op)
        made = control.RepeatOp(loop.iterations, initial, loop.detach_region(loop.body))
        made.location, made.attributes = loop.location, dict(loop.attributes)
        edit.insert(made, InsertPoint.before(loop))
        results: list[SSAValue] = list(made.outputs[:count])
        for each, stage, other in zip(found, later, made.outputs[count:], strict=True):
            whole = outside.insert(nn.AddOp(results[each.index], other))
            # The weight is on the chip of the later stage, which mirrors its first reader's.
            set_stage(whole, stage)
            results[each.index] = whole.results[0]
        edit.replace(loop, results)
    # The part of the earlier stage may itself have parts of two stages.
    sum_apart(made, stages)


def _split(
    each: _Sum, emit: Emitter, sum_: SSAValue, other: SSAValue
) -> tuple[Operation, Operation]:
    """What adds the part of the earlier stage to a sum, and that of the later stage to another."""
    joined = each.joined

    def widened(value: SSAValue, like: Operation) -> SSAValue:
        for cast in reversed(each.casts):
            value = emit(nn.CastOp(value, nn.element_of(cast.results[0])))
            set_stage(emit.made[-1], _stage(like))
        return value

    early = joined.operands[each.early]
    first = emit.insert(nn.AddOp(sum_, widened(early, _maker(early))))
    if isinstance(joined, nn.UpdateOp):
        rows = widened(joined.updates, joined)
        second: Operation = nn.UpdateOp(rows, joined.indices, other, "sum", joined.axis.value.data)
    else:
        second = nn.AddOp(other, widened(joined.operands[1 - each.early], joined))
    emit.insert(second)
    set_stage(first, _stage(_maker(early)))
    set_stage(second, _stage(joined))
    return first, second


def _sums(loop: control.RepeatOp, stages: Mapping[Operation, int]) -> list[_Sum]:
    """The sums of a loop to which two stages add."""
    last = loop.body.block.last_op
    assert isinstance(last, control.YieldOp)
    found: list[_Sum] = []
    for i, value in enumerate(last.values):
        total = value.owner
        if not isinstance(total, nn.AddOp) or not _is_read_once(total):
            continue
        sum_ = loop.body.block.args[i]
        parts = [each for each in total.operands if each is not sum_]
        if len(parts) != 1 or len(tuple(sum_.uses)) != 1:
            continue
        casts: list[nn.CastOp] = []
        joined = parts[0].owner
        while isinstance(joined, nn.CastOp) and _is_read_once(joined):
            casts.append(joined)
            joined = joined.operands[0].owner
        early = _early(joined, stages)
        if early is not None and isinstance(joined, nn.AddOp | nn.UpdateOp):
            found.append(_Sum(i, total, tuple(casts), joined, early))
    return found


def _early(joined: object, stages: Mapping[Operation, int]) -> int | None:
    """Which operand of an operation that joins two parts of a gradient an earlier stage makes; None
    if there is none that nothing else reads."""
    if isinstance(joined, nn.UpdateOp) and joined.combiner.data == "sum":
        candidates = [len(joined.operands) - 1]
    elif isinstance(joined, nn.AddOp):
        candidates = [0, 1]
    else:
        return None
    if joined not in stages or not _is_read_once(joined):
        return None
    for i in candidates:
        maker = joined.operands[i].owner
        if joined.operands[i].type != joined.results[0].type or maker not in stages:
            continue
        if isinstance(maker, Operation) and _is_read_once(maker):
            if stages[maker] < stages[joined]:
                return i
    return None


def _is_read_once(op: Operation) -> bool:
    return len(op.results) == 1 and len(tuple(op.results[0].uses)) == 1


def _maker(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def _stage(op: Operation) -> int:
    found = stage_of(op)
    assert found is not None
    return found
