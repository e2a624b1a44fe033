"""Passes with bugs that only one shape of program can show, by the shape that shows each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from unittest.mock import patch

import numpy as np
from hypothesis.strategies import SearchStrategy
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from abele.dialects import control, nn
from abele.ir.upstream import Context, ModuleOp, ModulePass
from abele.passes import update_early
from abele.passes.update_early import UpdateEarly
from abele.tools.testing import programs
from abele.tools.testing.generators.build import build
from abele.tools.testing.generators.program import Program
from abele.tools.testing.generators.sketch import DATA, Sketch
from abele.tools.testing.generators.strategies import operators_of, sketches


def _loops(op: ModuleOp) -> Iterator[control.RepeatOp]:
    return (each for each in op.walk() if isinstance(each, control.RepeatOp))


@dataclass(frozen=True)
class SwapYields(ModulePass):
    """Swaps two values of one type that a loop yields."""

    name = "swap-yields"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in _loops(op):
            last = each.body.block.last_op
            if last is not None and len(last.operands) > 1:
                if last.operands[0].type == last.operands[1].type:
                    last.operands[0], last.operands[1] = last.operands[1], last.operands[0]


@dataclass(frozen=True)
class SwapBranches(ModulePass):
    """Turns round the values that both regions of a branch yield."""

    name = "swap-branches"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, control.IfOp) and len({r.type for r in each.results}) == 1:
                for region in each.regions:
                    last = region.block.last_op
                    assert last is not None
                    last.operands = tuple(reversed(last.operands))


@dataclass(frozen=True)
class ReadFirstResult(ModulePass):
    """Reads the first result of a loop or branch if only a later one is used."""

    name = "read-first-result"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if not isinstance(each, control.RepeatOp | control.IfOp):
                continue
            used = [r for r in each.results if r.first_use is not None]
            first = each.results[0] if each.results else None
            if len(used) == 1 and first is not None and used[0].type == first.type:
                used[0].replace_all_uses_with(first)


@dataclass(frozen=True)
class ForwardStores(ModulePass):
    """Takes what was stored for what a later load reads, which is the value before the run."""

    name = "forward-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        stored: dict[str, SSAValue] = {}
        for each in op.walk():
            if isinstance(each, nn.StoreOp):
                stored[each.state.string_value()] = each.stored
            elif isinstance(each, nn.LoadOp) and each.state.string_value() in stored:
                value = stored[each.state.string_value()]
                if value.owner.parent_block() is each.parent:
                    each.result.replace_all_uses_with(value)


@dataclass(frozen=True)
class DropReadStores(ModulePass):
    """Drops a store if its state is read after it."""

    name = "drop-read-stores"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.StoreOp) and _is_read_after(each):
                each.detach()
                each.erase()


def _is_read_after(store: nn.StoreOp) -> bool:
    later = store.next_op
    while later is not None:
        if isinstance(later, nn.LoadOp) and later.state == store.state:
            return True
        later = later.next_op
    return False


@dataclass(frozen=True)
class InvariantResults(ModulePass):
    """Takes for a loop's result what an iteration yields from outside: wrong without iterations."""

    name = "invariant-results"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in _loops(op):
            body = each.body.block
            last = body.last_op
            assert last is not None
            for value, result in zip(last.operands, each.results, strict=True):
                owner = value.owner
                inside = owner is body or (isinstance(owner, Operation) and owner.parent is body)
                if not inside:
                    result.replace_all_uses_with(value)


@dataclass(frozen=True)
class FoldSubBackwards(ModulePass):
    """Folds a difference of two constants with its operands swapped."""

    name = "fold-sub-backwards"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.SubOp):
                left, right = each.operands[:2]
                if isinstance(left.owner, nn.ConstantOp) and isinstance(right.owner, nn.ConstantOp):
                    each.operands[0], each.operands[1] = right, left


def _merge(op: ModuleOp, key: Callable[[Operation], object]) -> None:
    """Replace operations by earlier ones of the same block with the same key."""
    seen: dict[object, Operation] = {}
    for each in op.walk():
        if each.name.startswith("nn.") and len(each.results) == 1 and each.operands:
            same = (each.parent, each.name, each.results[0].type, key(each))
            first = seen.setdefault(same, each)
            if first is not each:
                each.results[0].replace_all_uses_with(first.results[0])


@dataclass(frozen=True)
class MergePermuted(ModulePass):
    """Merges two operations whose operands are the same in any order, as x - y and y - x."""

    name = "merge-permuted"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _merge(op, lambda each: (frozenset(map(id, each.operands)), tuple(each.properties.items())))


@dataclass(frozen=True)
class MergeOtherAttributes(ModulePass):
    """Merges two operations on the same operands, whatever their attributes are."""

    name = "merge-other-attributes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        _merge(op, lambda each: tuple(map(id, each.operands)))


@dataclass(frozen=True)
class MaxFromZero(ModulePass):
    """Starts a reduction by max at 0, and one by min at 0."""

    name = "max-from-zero"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        limits = {"max": (0.0, np.inf), "min": (-np.inf, 0.0)}
        for each in tuple(op.walk()):
            if isinstance(each, nn.ReduceOp | nn.PoolOp) and each.combiner.data in limits:
                if (
                    each.results[0].type.element_type == f32
                    and np.prod(nn.shape_of(each.operands[0])) > 32
                ):
                    low, high = limits[each.combiner.data]
                    clip = nn.ClipOp(each.results[0], low, high)
                    assert each.parent is not None
                    each.parent.insert_op_after(clip, each)
                    each.results[0].replace_uses_with_if(
                        clip.result, lambda use, clip=clip: use.operation is not clip
                    )


@dataclass(frozen=True)
class CompareReciprocals(ModulePass):
    """Compares the reciprocals of numbers for equality, which differ for 0 and -0."""

    name = "compare-reciprocals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in tuple(op.walk()):
            if isinstance(each, nn.EqualOp) and each.operands[0].type.element_type == f32:
                for i, value in enumerate(each.operands):
                    inverse = nn.ReciprocalOp(value)
                    assert each.parent is not None
                    each.parent.insert_op_before(inverse, each)
                    each.operands[i] = inverse.result


@dataclass(frozen=True)
class DropMiddle(ModulePass):
    """Drops the second of three operations that follow each other."""

    name = "drop-middle"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            if isinstance(each, nn.ExpOp) and isinstance(each.operand.owner, nn.NegOp):
                middle = each.operand.owner
                if isinstance(middle.operand.owner, nn.AbsOp):
                    each.operands[0] = middle.operand


@dataclass(frozen=True)
class UpdateTooEarly(ModulePass):
    """Overwrites a weight as soon as its gradient is there, before another gradient reads it."""

    name = "update-too-early"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        stores = [each for each in op.walk() if isinstance(each, nn.StoreOp)]
        before = {store: set(_reads_behind(store)) for store in stores}
        with patch.object(update_early._Units, "readers_of_elements", lambda *_: iter(())):
            UpdateEarly().apply(ctx, op)
        for store in stores:
            for reader in set(_reads_behind(store)) - before[store]:
                for i, value in enumerate(reader.operands):
                    if _is_loaded(value, store) and _leads_to_another(reader, store):
                        reader.operands[i] = store.stored


def _is_loaded(value: SSAValue, store: nn.StoreOp) -> bool:
    return isinstance(value.owner, nn.LoadOp) and value.owner.state == store.state


def _reads_behind(store: nn.StoreOp) -> Iterator[Operation]:
    """The operations behind a store that read the old value of its state."""
    later = store.next_op
    while later is not None:
        if any(_is_loaded(value, store) for value in later.operands):
            yield later
        later = later.next_op


def _leads_to_another(op: Operation, store: nn.StoreOp) -> bool:
    """Whether the result of an operation is part of what is stored to another state."""
    if isinstance(op, nn.StoreOp):
        return op.state != store.state
    uses = (use for result in op.results for use in result.uses)
    return any(_leads_to_another(use.operation, store) for use in uses)


@dataclass(frozen=True)
class FollowOldMean(ModulePass):
    """Lets a weight follow what a running mean of its gradients was before the step."""

    name = "follow-old-mean"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in op.walk():
            maker = each.stored.owner if isinstance(each, nn.StoreOp) else None
            if not isinstance(each, nn.StoreOp) or not isinstance(maker, Operation):
                continue
            old = next((value for value in maker.operands if _is_loaded(value, each)), None)
            for use in tuple(each.stored.uses):
                reader = use.operation
                if old is not None and reader is not each and _leads_to_another(reader, each):
                    reader.operands[use.index] = old


@dataclass(frozen=True)
class ForgetRuns(ModulePass):
    """Lets each step of a run find the states of before the first step."""

    name = "forget-runs"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for each in _loops(op):
            each.properties.pop("runs", None)


BLIND: dict[str, tuple[type[ModulePass], ...]] = {
    "several values of a loop": (SwapYields,),
    "several values of a branch": (SwapBranches,),
    "one used result of several": (ReadFirstResult,),
    "a state read after a store": (ForwardStores, DropReadStores),
    "values from outside": (InvariantResults,),
    "constants alone": (FoldSubBackwards,),
    "permuted operands": (MergePermuted,),
    "other attributes": (MergeOtherAttributes,),
    "numbers below zero alone": (MaxFromZero,),
    "zeros of both signs": (CompareReciprocals,),
    "chains of operations": (DropMiddle,),
    "steps of training": (UpdateTooEarly, FollowOldMean),
    "several steps in a run": (ForgetRuns,),
}
"""For each shape of program, passes whose bug only this shape shows."""


def _in_loops() -> SearchStrategy[Program]:
    """Programs of a few operators, all of them in loops with a known number of iterations."""
    operators = operators_of(["nn.add", "nn.mul", "nn.neg"])

    def built(sketch: Sketch) -> Program:
        steps = tuple(replace(step, within="repeat") for step in sketch.steps)
        return build(replace(sketch, steps=steps), operators)

    return sketches(None, 3, DATA, True, False).map(built)


RARE: dict[type[ModulePass], Callable[[], SearchStrategy[Program]]] = {
    # One in 500 programs of random operators has a loop of no iteration that yields a value from
    # outside.
    InvariantResults: _in_loops,
    # Few random steps of training have two weights in a row, whose gradients read each other.
    UpdateTooEarly: lambda: programs(
        "nn",
        training=True,
        max_ops=6,
        operators=["nn.mul", "nn.matmul"],
        control_flow=False,
    ),
}
"""For each bug that random programs hardly ever show, programs that show it more often."""
