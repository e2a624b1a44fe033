"""Finds a codelet or layout that is to blame for a wrong result instead of the pass.

A pass that chooses other codelets or layouts also exposes their mistakes. The output of such a pass
is right if it gives the expected results on whole tensors. Then each operation runs by itself, on
memory of its own, and the first one with a wrong result names the codelet or the layout.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ....backends.codelets.numerics import kind_of, run_vertices
from ....backends.evaluate.blocks import Blocks, copy_blocks, read_blocks, write_blocks
from ....backends.evaluate.partition import stacked_blocks
from ....backends.op_check import mismatch, moved_tensor, worst_of_vertices
from ....dialects import partition
from ....dialects.abele import LayoutAttr, Plan, PlanAttr
from ....dialects.levels import NN
from ....dialects.steps import Copy, Vertices
from ....dialects.structured import Structure
from ....ir.geometry.layout import Layout, raw_layout
from ....ir.geometry.space import Space
from ....ir.support.errors import one_line
from ...driver.arrays import Array
from ..generators.program import Program
from ..oracle.oracles import difference
from ..oracle.relations import expected_of
from ..oracle.whole_tensors import ExecutedOp, Tensor, run_on_whole_tensors

Fault = str
"""A fault of a codelet or a layout in words; "" if there is none."""


def culprit(before: Program, compiled: Callable[[Program], Program]) -> Fault:
    """The codelet or layout to blame for the wrong results of a program after a pass.

    Returns "" if the pass is to blame, if no operation is wrong by itself, or if the program cannot
    be run in this way.

    Args:
        compiled: runs the pass.
    """
    steps: list[ExecutedOp | Tensor] = []
    # This only adds to a message. Whatever is raised here, the failure itself has to be shown.
    try:
        after = compiled(before)
        if after.level == NN:
            return ""
        with np.errstate(all="ignore"):
            done = run_on_whole_tensors(after, steps.append)
        if difference(expected_of(before.source_program()), done) is not None:
            return ""
        faults = (_fault_of(each) for each in steps)
        return next((fault for fault in faults if fault), "")
    except Exception:
        return ""


def _fault_of(step: ExecutedOp | Tensor) -> Fault:
    if isinstance(step, Tensor):
        return _layout_fault(step)
    for each in step.operands:
        fault = _layout_fault(each)
        if fault:
            return fault
    op = step.op
    if isinstance(op, Vertices | partition.ComputeOp):
        return _compute_fault(op.structure(), op.plan.data, step)
    if isinstance(op, Copy):
        return _copy_fault(op.spaces, step)
    moves = None if op.moves is None else [each.data for each in op.moves]
    return _copy_fault(moves, step)


def _held(tensor: Tensor, layout: Layout) -> Blocks:
    """The blocks of a layout, filled with a tensor."""
    blocks = stacked_blocks(layout, tensor.type)
    write_blocks(tensor.values, blocks)
    return blocks


def _layout_fault(tensor: Tensor) -> Fault:
    """The fault of a tensor's layout: elements that change between writing and reading."""
    right = tensor.values.reshape(tensor.layout.shape)
    found = read_blocks(_held(tensor, tensor.layout))
    wrong = np.argwhere(_differs(found, right) & _holds(tensor.layout))
    if not len(wrong):
        return ""
    at = tuple(int(i) for i in wrong[0])
    return (
        f"the layout {LayoutAttr(tensor.layout)}: element {list(at)} of a tensor is {right[at]!s} "
        f"when it is written and {found[at]!s} when it is read back"
    )


def _holds(layout: Layout) -> Array:
    """Whether any block holds each element. The blocks of an operand may leave out elements."""
    axes: list[Array] = []
    for i, axis in enumerate(layout.access.axes):
        starts, counts = layout.starts(i).ravel(), layout.counts(i).ravel()
        within = np.arange(int(counts.max(initial=0)))
        reached = axis.resolve(
            (starts[:, None] + within * layout.steps[i])[within < counts[:, None]]
        )
        axes.append(np.isin(np.arange(axis.size), reached))
    holds = np.ones(layout.shape, bool)
    for i, axis in enumerate(axes):
        holds &= np.expand_dims(axis, tuple(range(1, holds.ndim - i)))
    return holds


def _differs(found: Array, right: Array) -> Array:
    return (found != right) & ~((found != found) & (right != right))


def _compute_fault(structure: Structure, plan: Plan, step: ExecutedOp) -> Fault:
    """The fault of a vertex set with a wrong result on right operands.

    The codelet is to blame if it is wrong even with one vertex that computes everything. Otherwise
    the split of the work and its operands is to blame.
    """
    layouts = [each.layout for each in (*step.operands, *step.results)]
    split = _wrongly_computed(structure, plan.stacked, layouts, step)
    if not split:
        return ""
    whole = Plan((1,) * len(structure.space.dims), method=plan.method)
    access = (*structure.space.operands, *structure.space.results)
    dims = structure.space.dims
    one_tile = [raw_layout(dims, each, whole.split, whole.order, 0) for each in access]
    body = structure.body
    names = [body.function, *([body.combiner] if body.combiner else [])]
    names += [f"along {body.along.name}"] if body.along else []
    names += [each.function for each in body.then]
    dtype = step.results[0].values.dtype.name
    codelet = f"codelet '{kind_of(body)}' of {', '.join(map(repr, names))} on {dtype}"
    if _wrongly_computed(structure, whole, one_tile, step):
        return f"the {codelet}: {split}"
    return f"the split {PlanAttr(plan)} or its layouts, not the {codelet}: {split}"


def _wrongly_computed(
    structure: Structure, plan: Plan, layouts: list[Layout], step: ExecutedOp
) -> Fault:
    """The first wrong element of a vertex set with a plan and layouts, in words; "" if none is."""
    count = len(step.operands)
    held, last = layouts[:count], layouts[count:]
    operands = [_held(each, layout) for each, layout in zip(step.operands, held, strict=True)]
    results = [stacked_blocks(at, each.type) for at, each in zip(last, step.results, strict=True)]
    try:
        placed = [each.placed for each in operands]
        run_vertices(structure, plan, placed, *(each.placed for each in results))
    except Exception as error:
        return f"raised {one_line(error)}"
    pairs = zip(step.operands, held, strict=True)
    dense = [each.values.reshape(layout.shape) for each, layout in pairs]
    for i, result in enumerate(results):
        worst = worst_of_vertices(structure, dense, read_blocks(result), i)
        if worst.ratio > 1:
            return f"element {worst}" + (f" of result {i}" if len(results) > 1 else "")
    return ""


def _copy_fault(moves: Sequence[Space] | None, step: ExecutedOp) -> Fault:
    """The fault of a copy that moves right operands to wrong places."""
    sources = [_held(each, each.layout) for each in step.operands]
    target = stacked_blocks(step.result.layout, step.result.type)
    where = ", ".join(str(LayoutAttr(each.layout)) for each in step.operands)
    where = f"copies from {where or 'nothing'} to layout {LayoutAttr(step.result.layout)}"
    try:
        copy_blocks(sources, moves, target)
    except Exception as error:
        return f"{where}: raised {one_line(error)}"
    dense = [each.values.reshape(each.layout.shape) for each in step.operands]
    found = mismatch(target, moved_tensor(dense, moves, target))
    if found is None:
        return ""
    tile_number = step.result.layout.tiles.of(found.tile)
    return (
        f"{where}: element {list(found.index)} on tile {tile_number} is {found.actual!r}; need "
        f"{found.expected!r}"
    )
