"""Lets generated programs compute micro-batches, one after the other, as pipelines do."""

from __future__ import annotations

from random import Random

import numpy as np
from xdsl.dialects.func import FuncOp, ReturnOp

from ....dialects import nn
from ....ir.support.errors import InputError
from ....passes.cut_batch import CutBatch
from ....passes.gradients.program import entry_of
from ...driver.program import signature
from .program import Program
from .values import values_of

CUT = 0.3
"""How often a program for several chips computes micro-batches, where results have samples."""

USED = {nn.GatherOp, nn.ReshapeOp, nn.UpdateOp}
"""Operators that such a program has, to take its micro-batches from a batch."""

COUNTS = (2, 3, 4, 5, 6, 6, 8)


def in_micro_batches(program: Program) -> Program:
    """A program of nn that computes what the given one does for several micro-batches; the program
    itself if it has control flow already, or no result with samples.

    Its results are those of one number of samples. The seed of its sketch decides whether it does,
    how many micro-batches there are, and which results are left.
    """
    sketch, found = program.sketch, program.clone()
    assert sketch is not None
    if any(step.within for step in sketch.steps):
        return program
    main, end = _entry(found)
    random = Random(f"{sketch.seed} micro-batches")
    sizes = sorted({n for v in end.operands for n in nn.shape_of(v)[:1] if n})
    if not sizes or random.random() >= CUT:
        return program
    size, count = random.choice(sizes), random.choice(COUNTS)
    end.operands = [v for v in end.operands if nn.shape_of(v)[:1] == (size,)]
    main.attributes.pop("result_names", None)
    main.update_function_type()
    try:
        CutBatch(count).apply(found.context, found.module)
    except InputError:
        # A loop or a function stores, or carries what it stores.
        return program
    inputs = dict(program.inputs)
    for each in signature(found.module).inputs:
        old = inputs[each.name]
        if old.shape == each.shape:
            continue
        if old.dtype.kind in "iub":
            # Integers may be indices, which have a range.
            inputs[each.name] = np.concatenate([old] * count)
        else:
            inputs[each.name] = values_of(
                each.shape, each.dtype, random.randrange(1 << 30), sketch.data
            )
    return Program(
        found.module,
        program.context,
        inputs,
        program.target,
        sketch=sketch,
        plans=program.plans,
    )


def _entry(program: Program) -> tuple[FuncOp, ReturnOp]:
    """The entry function of a program, and its end."""
    main = entry_of(program.module)
    assert main is not None
    end = main.body.block.last_op
    assert isinstance(end, ReturnOp)
    return main, end
