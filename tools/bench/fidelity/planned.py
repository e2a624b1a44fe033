"""Predictions from the planner: the cycles of the fastest plan of one operator.

The operator is one of nn, alone in a program. Its operands have the layouts that suit it, with one
copy of each element, as a program's inputs have.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod

import numpy as np
from xdsl.dialects.builtin import TensorType, UnitAttr
from xdsl.ir import Block, SSAValue

from ....backends.prices import cost
from ....backends.target import Target
from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....passes.planner.choice import Choice
from ....passes.planner.limits import PROPORTION
from ....passes.planner.problem import Problem
from ....passes.planner.question import unplaced
from ....passes.planner.serial import plans
from . import timed, units
from .cases import Convolution, Product
from .units import Unclear

REARRANGING = 1.25
"""Cycles to rearrange a tile's elements, over those to copy them one at a time. Source: poplibs
lib/poplin/ConvModel.cpp, for operands that are not in the order in which a convolution reads
them."""


def product(case: Product, target: Target) -> dict[str, float]:
    """The cycles by phase of a matrix product of a library.

    The library (poplibs, fully connected layers) streams the second operand, unless streaming the
    first one is faster even with new layouts of both operands and the result.
    """
    batch = (case.batch,) if case.batch > 1 else ()
    lhs, rhs = _values(case.operand, (*batch, case.m, case.k), (*batch, case.k, case.n))
    problem = _problem(nn.MatMulOp(lhs, rhs), case)
    found = predicted_cycles(problem, target)
    plan = _best(problem, target.uncalibrated()).plan
    if plan.method != "amp":
        return found
    tensors = (*problem.structure.space.operands, *problem.structure.space.results)
    each = np.dtype(case.operand).itemsize
    share = -(-sum(prod(access.shape) for access in tensors) * each // prod(plan.split))
    found["compute"] += share * REARRANGING / min(target.copy.memcpy_bytes_per_cycle, each)
    found["exchange"] += float(cost.least_exchange_cycles(share, share, target))
    found["sync"] += len(tensors) * cost.sync_cycles(target)
    native = replace(problem, terms=replace(problem.terms, method="swapped"))
    return min(found, predicted_cycles(native, target), key=lambda phases: sum(phases.values()))


def convolution(case: Convolution, target: Target) -> dict[str, float]:
    """The cycles by phase of a convolution."""
    image, weight = _values(
        case.operand,
        (case.batch, case.in_channels, *case.image),
        (case.out_channels, case.in_channels // case.groups, *case.kernel),
    )
    op = nn.ConvOp(
        image,
        weight,
        stride=case.stride,
        dilation=case.dilation,
        pad_low=[low for low, _ in case.pads],
        pad_high=[high for _, high in case.pads],
        groups=case.groups,
    )
    return predicted_cycles(_problem(op, case), target)


def predicted_cycles(problem: Problem, target: Target) -> dict[str, float]:
    """The cycles of an operator's best plan, by phase.

    Exchanges of a plan in several steps, and those of too many messages, are priced by their bound,
    even where timetables price the others.
    """
    # Plans do not depend on fitted constants, so both predictions are of the same plan.
    choice = _best(problem, target.uncalibrated())
    exchange = None
    if target.exchange.timetables and not choice.plan.steps:
        sizes = [dtype.itemsize for dtype in problem.operand_dtypes]
        exchange = timed.of_plan(
            problem.structure, choice.plan, sizes, problem.left_itemsize, target
        )
    return {
        "compute": choice.compute_cycles,
        "exchange": choice.exchange_cycles if exchange is None else exchange,
        "sync": choice.sync_cycles,
    }


def _best(problem: Problem, target: Target) -> Choice:
    usable = target.usable_bytes_per_tile
    terms = replace(problem.terms, temporary_bytes=int(PROPORTION * usable))
    return plans(unplaced(replace(problem, terms=terms), target, usable))[0]


def _values(dtype: str, *shapes: tuple[int, ...]) -> Sequence[SSAValue]:
    """Values with these shapes, without a producer. Raises Unclear for a type that nn lacks."""
    try:
        kind = element_type(np.dtype(dtype))
    except (TypeError, ValueError):
        raise Unclear(f"dtype {dtype}: no element type of nn") from None
    return Block(arg_types=[TensorType(kind, shape) for shape in shapes]).args


def _problem(op: nn.MatMulOp | nn.ConvOp, case: Product | Convolution) -> Problem:
    if case.partials == case.operand and units.element_bytes(case.operand) == 2:
        op.narrow_partials = UnitAttr()
    structure = op.structure()
    dtypes = tuple(numpy_dtype(nn.element_of(value)) for value in op.operands)
    result = numpy_dtype(nn.element_of(op.results[0]))
    count = len(dtypes)
    return Problem(structure, dtypes, result, (False,) * count, free=(True,) * count)
