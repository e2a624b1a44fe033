"""Which stage of a pipeline an operation belongs to, as attributes say it.

An operation of one micro-batch has the attribute `stage`. The module lists the chip of each stage.
A step of training has as many backward stages as forward ones: backward stage 2e + 1 - s belongs to
forward stage s of 0..e, on the same chip.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Block, Operation

from ...dialects import control
from ...ir.geometry.tiles import MOST_CHIPS
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.upstream import ModuleOp

STAGE = "stage"
"""The attribute of an operation that is the number of its stage."""

STAGES = "abele.stages"
"""The attribute of a module that lists the chip of each stage."""


def numbers(values: Sequence[int]) -> ArrayAttr[Attribute]:
    """Numbers as an attribute."""
    return ArrayAttr(IntegerAttr(each, i64) for each in values)


def read_numbers(attribute: Attribute | None) -> tuple[int, ...] | None:
    """The numbers of an attribute; None if it is no list of whole numbers."""
    if not isinstance(attribute, ArrayAttr):
        return None
    items = cast("ArrayAttr[Attribute]", attribute).data
    if not all(isinstance(each, IntegerAttr) for each in items):
        return None
    return tuple(each.value.data for each in items if isinstance(each, IntegerAttr))


def stage_of(op: Operation) -> int | None:
    """The stage of an operation; None if it has none. Raises InputError."""
    given = op.attributes.get(STAGE)
    if given is None:
        return None
    if not isinstance(given, IntegerAttr) or not 0 <= given.value.data < MOST_CHIPS:
        raise InputError(f"{op.name} at {place(op)}: {STAGE} = {given}; need 0 to {MOST_CHIPS - 1}")
    return given.value.data


def set_stage(op: Operation, stage: int) -> None:
    """Write the stage of an operation."""
    op.attributes[STAGE] = IntegerAttr(stage, i64)


def stage_chips(module: ModuleOp, stages: int) -> tuple[int, ...]:
    """The chip of each stage; stage s is on chip s if the module does not say where.

    Raises InputError.
    """
    given = module.attributes.get(STAGES)
    if given is None:
        return tuple(range(stages))
    chips = read_numbers(given)
    if chips is None or not all(0 <= chip < MOST_CHIPS for chip in chips) or len(chips) < stages:
        raise InputError(
            f"{STAGES} = {given}; need the chips of {stages} stages, as a list of numbers from 0 "
            f"to {MOST_CHIPS - 1}"
        )
    return chips


def loop_over_micro_batches(main: FuncOp) -> control.RepeatOp | None:
    """The loop over the micro-batches of a batch; None if there is none."""
    found = (op for op in main.body.block.ops if isinstance(op, control.RepeatOp))
    return next((op for op in found if op.over_micro_batches), None)


def operations_of(block: Block) -> Iterator[Operation]:
    """The operations of a block that may have a stage: all but its last one."""
    yield from (op for op in block.ops if op is not block.last_op)
