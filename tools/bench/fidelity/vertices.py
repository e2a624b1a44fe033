"""Predicted cycles of a library's vertex on one tile: contractions, element-wise work, streams."""

from __future__ import annotations

import numpy as np

from ....backends.prices import cost
from ....backends.prices.contractions.amp import amp_cycles
from ....backends.prices.contractions.contraction import Contraction
from ....backends.target import Target
from .cases import Elementwise, Triad, Vertex


def vertex(case: Vertex, target: Target) -> dict[str, float]:
    """The vertex of the convolution units; infinite if the machine has none for its types."""
    contraction = Contraction.of(
        case.field,
        case.in_channels,
        case.out_channels,
        case.kernel,
        case.groups,
        case.operand,
        case.partials,
    )
    return {"compute": float(amp_cycles(contraction, target))}


def elementwise(case: Elementwise, target: Target) -> dict[str, float]:
    """A vector codelet, and the cycles of reading the counter if the measurement includes them."""
    if case.function == "scaled_add":
        cycles = cost.scaled_add_cycles(case.elements, case.dtype, target)
    elif case.function == "reduce":
        outputs = np.maximum(case.elements // case.depth, 1)
        cycles = cost.reduce_cycles(outputs, case.depth, case.dtype, target)
    else:
        cycles = cost.elementwise_cycles(
            case.elements,
            case.operands,
            case.function,
            case.dtype,
            target,
            in_place=case.in_place,
        )
    found = {"compute": float(cycles)}
    if case.bracketed:
        found["counter"] = float(target.measuring.counter_cycles)
        found["fitted"] = float(target.fitted.bracket_cycles)
    return found


def triad(case: Triad, target: Target) -> dict[str, float]:
    """One of many repetitions, each of which begins with a sync."""
    cycles = cost.streamed_add_cycles(case.elements, case.dtype, target)
    return {"compute": float(cycles), "sync": float(cost.sync_cycles(target))}
