"""What abele's planner makes of an operator, and what its plan costs.

The operator is one of nn, alone in a program; its operands are spread over all tiles in linear
order, as a program's inputs are, and its plan is the one that the planner finds fastest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Block, Operation, SSAValue

from ....backends.target import Target
from ....dialects import nn
from ....dialects.dtypes import element_type, numpy_dtype
from ....dialects.structured import Structured
from ....ir.geometry.layout import linear_layout
from ....passes.planner.problem import Choice, Problem
from ....passes.planner.search import fastest
from .cases import Convolution, Product
from .words import Unclear


def product(case: Product, target: Target) -> dict[str, float]:
    """A matrix product."""
    batch = (case.batch,) if case.batch > 1 else ()
    lhs, rhs = _values(case.operand, (*batch, case.m, case.k), (*batch, case.k, case.n))
    return predicted_cycles(_problem(nn.MatMulOp(lhs, rhs)), target)


def convolution(case: Convolution, target: Target) -> dict[str, float]:
    """A convolution."""
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
    return predicted_cycles(_problem(op), target)


def predicted_cycles(problem: Problem, target: Target) -> dict[str, float]:
    """The cycles of an operator's best plan, by phase."""
    # No plan depends on a fitted constant, so that both predictions are of one plan.
    choice = _best(problem, target.uncalibrated())
    return {
        "compute": choice.compute_cycles,
        "exchange": choice.exchange_cycles,
        "sync": choice.sync_cycles,
    }


def _best(problem: Problem, target: Target) -> Choice:
    have = tuple(
        linear_layout(access.shape, dtype.itemsize, target.tiles)
        for access, dtype in zip(
            problem.structure.space.operands, problem.operand_dtypes, strict=True
        )
    )
    return fastest(problem, have, target, target.usable_bytes_per_tile)


def _values(dtype: str, *shapes: tuple[int, ...]) -> Sequence[SSAValue]:
    """Values of these shapes, that nobody computes. Raises Unclear for a type that nn lacks."""
    try:
        kind = element_type(np.dtype(dtype))
    except (TypeError, ValueError):
        raise Unclear(f"dtype {dtype}: no element type of nn") from None
    return Block(arg_types=[TensorType(kind, shape) for shape in shapes]).args


def _problem(op: Operation) -> Problem:
    assert isinstance(op, Structured)
    structure = op.structure()
    dtypes = tuple(numpy_dtype(nn.element_of(value)) for value in op.operands)
    result = numpy_dtype(nn.element_of(op.results[0]))
    return Problem(structure, dtypes, result, (False,) * len(dtypes))
