"""Mistakes in programs for several chips: pipelines, sums over replicas, syncs and layouts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

import numpy as np
from xdsl.dialects.builtin import AnyFloat, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue

from ....dialects import control, nn, partition
from ....dialects.abele import ChipGroupsAttr, LayoutAttr, PlanAttr
from ....dialects.blob_attr import BlobAttr
from ....dialects.partition import partition_type
from ....dialects.steps import SYNC_ZONES, Sync
from ....dialects.structured import Structured
from ....dialects.variable import Variable
from ....ir.blob import Blob
from ....ir.geometry.chip_groups import ChipGroups
from ....ir.geometry.grid import Cut
from ....ir.geometry.layout import Layout
from ....ir.support.arrays import Array
from ....ir.upstream import ModuleOp
from .result_class import Break, ResultClass, set_property

# Stashes


def _short_stash(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if isinstance(op, control.RepeatOp):
            yield from _read_early(op)
        for name, value in op.properties.items():
            if isinstance(value, BlobAttr) and _is_ring(value.array):
                shorter = value.array.copy()
                shorter[-2] = 0
                yield partial(set_property, op, name, BlobAttr(Blob(shorter)))


def _is_ring(array: Array) -> bool:
    """Whether an array says which slot of a table comes after each slot: 1, 2, ..., 0."""
    n = len(array) if array.ndim == 1 and array.dtype == np.int32 else 0
    return n > 1 and np.array_equal(array, np.roll(np.arange(n), -1))


def _read_early(loop: control.RepeatOp) -> Iterator[Break]:
    """The values that wait for one iteration: those that a loop only carries to another place."""
    block = loop.body.block
    end = block.last_op
    assert isinstance(end, control.YieldOp)
    for waiting, latest in zip(block.args, end.values, strict=False):
        is_carried = isinstance(latest, BlockArgument) and latest.block is block
        if is_carried and latest is not waiting and waiting.type == latest.type and waiting.uses:
            yield partial(waiting.replace_all_uses_with, latest)


# Sums and weights


def _add_twice(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if not isinstance(op, nn.AddOp | partition.ComputeOp) or not _adds(op):
            continue
        total, addend = op.operands
        for one, other in ((total, addend), (addend, total)):
            if isinstance(_before_relayouts(one), BlockArgument) and one.type == op.result.type:
                yield partial(_add_again, op, other)


def _adds(op: nn.AddOp | partition.ComputeOp) -> bool:
    """Whether an operation adds two floats, and does nothing else."""
    assert isinstance(op, Structured)
    body, value = op.structure().body, op.results[0]
    tensor = partition_type(value).tensor if isinstance(op, partition.ComputeOp) else value.type
    is_float = isinstance(nn.tensor_of(tensor).element_type, AnyFloat)
    alone = body.function == "add" and not (body.combiner or body.then)
    return is_float and alone and len(op.operands) == 2


def _before_relayouts(value: SSAValue) -> SSAValue:
    while isinstance(value.owner, partition.RelayoutOp) and len(value.owner.inputs) == 1:
        value = value.owner.inputs[0]
    return value


def _add_again(op: nn.AddOp | partition.ComputeOp, addend: SSAValue) -> None:
    block, again = op.parent, op.clone()
    assert block is not None
    block.insert_op_after(again, op)
    op.result.replace_uses_with_if(again.results[0], lambda use: use.operation is not again)
    for i, value in enumerate(op.operands):
        again.operands[i] = value if value is addend else op.result


def _stale(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if isinstance(op, control.RepeatOp):
            for old, new in zip(op.initial, op.outputs, strict=True):
                if new.uses and old.type == new.type:
                    yield partial(new.replace_all_uses_with, old)
        elif isinstance(op, nn.StoreOp):
            load = nn.LoadOp(op.state.string_value(), nn.tensor_of(op.stored))
            yield partial(_store_stale, op, load)
        elif isinstance(op, partition.StoreOp):
            laid = partition.LoadOp(op.state.string_value(), partition_type(op.value))
            yield partial(_store_stale, op, laid)


def _store_stale(op: Operation, load: Operation) -> None:
    block = op.parent
    assert block is not None
    block.insert_op_before(load, op)
    op.operands[0] = load.results[0]


# Syncs and layouts


def _wrong_group(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        if isinstance(op, Sync) and op.zone.data == SYNC_ZONES[-1]:
            yield partial(_leave_out_a_chip, op)


def _leave_out_a_chip(op: Sync) -> None:
    """Let the last chip of a sync's first group meet nobody, or each chip, if no group is named."""
    if op.chips is None:
        set_property(op, "zone", StringAttr(SYNC_ZONES[0]))
        return
    (*group, _), *others = op.chips.groups
    if not group:
        raise ValueError("a group of one chip")
    set_property(op, "groups", ChipGroupsAttr(ChipGroups.of([group, *others])))


def _straddle(module: ModuleOp) -> Iterator[Break]:
    for op in module.walk():
        plan = op.attributes.get("plan") or op.properties.get("plan")
        if isinstance(plan, PlanAttr) and plan.data.across:
            in_a_row = PlanAttr(replace(plan.data, across=(), apart=0))
            place = op.properties if "plan" in op.properties else op.attributes
            yield partial(place.__setitem__, "plan", in_a_row)
        if isinstance(op, Variable) and op.placed.apart:
            yield partial(set_property, op, "layout", LayoutAttr(_in_a_row(op.placed)))


def _in_a_row(layout: Layout) -> Layout:
    """The layout with cells on neighbouring tiles, wherever chips begin."""
    grid = tuple(Cut(cut.size, cut.parts, cut.grain) for cut in layout.grid)
    return Layout(grid, layout.access, layout.first_tile)


CHIP_CLASSES = (
    ResultClass("left-short-stash", "a stash of a pipeline has a slot too few", _short_stash),
    ResultClass("left-add-twice", "a part is added twice to a sum that is carried", _add_twice),
    ResultClass("left-stale", "a state or a loop's result keeps its old value", _stale),
    ResultClass("left-wrong-group", "a chip misses a sync with others", _wrong_group),
    ResultClass("left-straddle", "cells of several chips lie in a row of tiles", _straddle),
)
"""Classes of mistakes of programs for several chips."""
