"""The sums whose partial sums may be kept in 16 bits, and their parts in training."""

from __future__ import annotations

from dataclasses import replace
from math import expm1, log1p
from typing import Literal

import numpy as np
from xdsl.dialects.builtin import Float16Type, UnitAttr, f32
from xdsl.ir import Operation, SSAValue

from ...backends.target import Target
from ...dialects import nn
from ...dialects.abele import BodyAttr
from ...dialects.nn.contraction import ContractionOp
from ...dialects.nn.group import GROUP
from ...dialects.structured import Narrow, Structured
from ...ir.edit import Edit
from ...ir.phases import FORWARD, UPDATE, Phases
from ...ir.upstream import ModuleOp
from ...ir.well_known import MOST_TERMS
from ...ir.xdsl.walk import operations

Role = Literal["forward", "input_gradient", "weight_gradient"]

HALF = "float16"

UNIT_ROUNDOFF = float(np.finfo(np.float16).eps) / 2


def is_sum_of_halves(op: Operation) -> bool:
    """Whether an operation sums float16, or products of float16 into float16.

    Sums of products that are stored as float32 need its range: quantised numbers are multiplied
    without their scales, and two products of 8-bit integers may be too large for float16. A sum of
    numbers may read a float32 copy of float16.
    """
    if isinstance(op, nn.PoolOp | nn.ReduceOp):
        return op.combiner.data == "sum" and _is_half(_narrow_source(op))
    return _is_product_of_halves(op)


def _is_product_of_halves(op: Operation) -> bool:
    if not isinstance(op, ContractionOp | nn.ComputeOp):
        return False
    return op.structure().body.is_product and _is_half(op.operands[0]) and _is_half(op.results[0])


def _is_half(value: SSAValue) -> bool:
    return isinstance(nn.element_of(value), Float16Type)


def _narrow_source(op: nn.PoolOp | nn.ReduceOp) -> SSAValue:
    """What a reduction reads; the operand of a cast to float32 in its place."""
    read = op.operands[0]
    cast = read.owner
    if isinstance(cast, nn.CastOp) and nn.element_of(read) == f32 and GROUP not in cast.attributes:
        return cast.operand
    return read


def is_narrow(op: Operation) -> bool:
    """Whether an operation keeps its partial sums in 16 bits."""
    return isinstance(op, Structured) and op.structure().body.narrow is not None


def write_narrow(op: Operation, *, narrow: bool) -> None:
    """Let a sum keep its partial sums in 16 bits, or in 32."""
    if isinstance(op, nn.ComputeOp):
        op.properties["body"] = BodyAttr(replace(op.body.data, narrow=Narrow() if narrow else None))
    elif narrow:
        op.properties["narrow_partials"] = UnitAttr()
    else:
        op.properties.pop("narrow_partials", None)


def read_halves(op: Operation, edit: Edit) -> None:
    """Let a sum of numbers read float16 and not its float32 copy. The result keeps its type."""
    if not isinstance(op, nn.PoolOp | nn.ReduceOp):
        return
    read, source = op.operands[0], _narrow_source(op)
    if read is not source:
        edit.set_operand(op, 0, source)
        if isinstance(read.owner, Operation) and read.first_use is None:
            edit.erase(read.owner)


def fits_halves(op: Operation) -> bool:
    """Whether float16 has the range of a sum: its result is float16.

    A mean is often computed from a float32 sum, which may be too large for float16.
    """
    return _is_half(op.results[0])


def error_of_halves(op: Operation, target: Target) -> float:
    """The bound of the error that partial sums of 16 bits add, in units of the sum of all absolute
    terms.

    The units add the products of one pass exactly enough for 32 bits, and round the partial sum
    once a pass. One more rounding follows where parts of the sum are merged. A target without such
    units rounds after each product. Sums of no products are rounded where a part of at most
    MOST_TERMS terms ends.
    """
    assert isinstance(op, Structured)
    space, body = op.structure().space, op.structure().body
    terms = 1
    for d in space.of_kind("reduction"):
        terms *= space.dims[d].size
    at_once = target.terms_of_a_pass(HALF) if body.is_product else MOST_TERMS
    roundings = -(-terms // at_once) + 1
    return expm1(roundings * log1p(UNIT_ROUNDOFF))


def roles(module: ModuleOp) -> dict[Operation, Role]:
    """The part in training of each sum of float16; forward without training.

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
            if _is_product_of_halves(reader):
                return True
            seen.add(reader)
            if phases.phase(reader) != UPDATE:
                waiting.append(reader)
    return False
