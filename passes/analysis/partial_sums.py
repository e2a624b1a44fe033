"""The sums of products whose partial sums may be kept in 16 bits, and their parts in training."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, log1p
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import Float16Type, UnitAttr
from xdsl.ir import Operation

from ...backends.target import Target
from ...dialects import nn
from ...dialects.abele import BodyAttr
from ...dialects.nn.contraction import ContractionOp
from ...dialects.structured import Narrow, Structured
from ...ir.phases import FORWARD, UPDATE, Phases
from ...ir.upstream import ModuleOp
from ...ir.xdsl.walk import operations

Role = Literal["forward", "input_gradient", "weight_gradient"]

HALF = "float16"

UNIT_ROUNDOFF = float(np.finfo(np.float16).eps) / 2


def is_sum_of_halves(op: Operation) -> bool:
    """Whether an operation sums products of float16 into float16.

    Sums that are stored as float32 need its range: quantised numbers are multiplied without their
    scales, and two products of 8-bit integers may be too large for float16.
    """
    if not isinstance(op, ContractionOp | nn.ComputeOp):
        return False
    stored = (op.operands[0], op.results[0])
    is_product = op.structure().body.is_product
    return is_product and all(isinstance(nn.element_of(v), Float16Type) for v in stored)


def is_narrow(op: Operation) -> bool:
    """Whether an operation keeps its partial sums in 16 bits."""
    return isinstance(op, Structured) and op.structure().body.narrow is not None


def write_narrow(op: Operation, *, narrow: bool) -> None:
    """Let a sum of products keep its partial sums in 16 bits, or in 32."""
    if isinstance(op, nn.ComputeOp):
        op.properties["body"] = BodyAttr(replace(op.body.data, narrow=Narrow() if narrow else None))
    elif narrow:
        op.properties["narrow_partials"] = UnitAttr()
    else:
        op.properties.pop("narrow_partials", None)


def error_of_halves(op: Operation, target: Target) -> float:
    """The bound of the error that partial sums of 16 bits add, in units of the sum of all absolute
    products.

    The units add the products of one pass exactly enough for 32 bits, and round the partial sum
    once a pass. One more rounding follows where parts of the sum are merged. A target without such
    units rounds after each product.
    """
    assert isinstance(op, Structured)
    space = op.structure().space
    products = 1
    for d in space.of_kind("reduction"):
        products *= space.dims[d].size
    roundings = -(-products // target.terms_of_a_pass(HALF)) + 1
    return expm1(roundings * log1p(UNIT_ROUNDOFF))


def roles(module: ModuleOp) -> dict[Operation, Role]:
    """The part in training of each sum of products of float16; forward without training.

    A gradient of weights is one that reaches updates only: no further sum of products reads what is
    made of it.
    """
    phases = Phases.of(module)
    found: dict[Operation, Role] = {}
    for op in operations(module):
        if is_sum_of_halves(op):
            if phases.phase(op) == FORWARD:
                found[op] = "forward"
            else:
                found[op] = "input_gradient" if _feeds_a_sum(op, phases) else "weight_gradient"
    return found


def _feeds_a_sum(op: Operation, phases: Phases) -> bool:
    """Whether another sum of products reads what is made of an operation's result."""
    seen = {op}
    waiting = [op]
    while waiting:
        readers = {use.operation for result in waiting.pop().results for use in result.uses}
        for reader in readers - seen:
            if is_sum_of_halves(reader):
                return True
            seen.add(reader)
            if phases.phase(reader) != UPDATE:
                waiting.append(reader)
    return False
