"""Operators: what computes, what moves and what only views its operand in another shape.

A structured operator becomes computes, with a relayout for each operand that lies otherwise than
its plan needs:

    %2 = nn.matmul %0, %1 {plan = <split [2, 1, 2] ...>}

becomes, if the last of the split dimensions is merged,

    %3 = partition.relayout(%0)                 // role in0
    %4 = partition.relayout(%1)                 // role in1
    %5 = partition.compute(%3, %4) ...          // partials
    %6 = partition.relayout(%5)                 // role gather
    %2 = partition.compute(%6) ...              // combines the partials
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from ...backends.prices.workload import left_dtypes
from ...backends.target import Target
from ...dialects import partition
from ...dialects.abele import Plan
from ...dialects.dtypes import element_type, numpy_dtype
from ...dialects.partition import laid_out, partition_type
from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Movement, Narrow, Structure, Structured
from ...ir.geometry.layout import canonical
from ...ir.provenance import place
from ...ir.support.errors import InputError
from ...ir.support.number_formats import Overflow
from ...ir.well_known import MOST_TERMS
from ..plans.derive import combining, compute_layouts, final_layout, leaves_partials, refined
from ..plans.fused import operator_name
from ..plans.planned import plan_of
from ..plans.rounded_partials import (
    at_place,
    begins_with_rounding,
    keeping_rounding,
    rounding_operands,
)
from ..plans.steps import PlanStep, adding, move_into, part_shape, passes_of, takes_steps
from .conversion import ToPartition
from .types import tensor_of

Values: TypeAlias = "Sequence[tuple[str, SSAValue]]"
"""Operands, each with the role that a relayout of it has in locations."""

Tensors: TypeAlias = "Sequence[TensorType[Attribute]]"
"""The types of results, at nn."""


ROUNDINGS = frozenset(name for name, each in FUNCTIONS.items() if each.rounds)
"""The functions that round to a narrower type. The last of their constants is an Overflow."""


def convert_structured(op: Operation, new: ToPartition) -> None:
    """A structured operator becomes computes, as its plan says."""
    assert isinstance(op, Structured)
    values = [(f"in{i}", value) for i, value in enumerate(new.operands(op))]
    try:
        tensors = [tensor_of(result) for result in op.results]
        structure = _as_machine_rounds(op.structure(), values, new.types.homes.target)
        results = _operator(new, values, structure, plan_of(op), tensors)
    except ValueError as error:
        raise InputError(f"{operator_name(op)} at {place(op)}: {error}") from None
    new.become(op, results)


def _as_machine_rounds(structure: Structure, values: Values, target: Target) -> Structure:
    """A structure whose narrow sums are rounded as often as the machine's units do it.

    A sum that becomes too large is what a rounding in the chain makes of it. A sum of no products
    is rounded only where a part of it is stored.
    """
    body = structure.body
    if body.narrow is None and not body.is_scaled_product:
        return structure
    dtype = numpy_dtype(partition_type(values[0][1]).tensor.element_type)
    rules = [each.parameters[-1] for each in body.then if each.function in ROUNDINGS]
    overflow = Overflow(int(rules[0])) if rules else Overflow.INFINITY
    terms = target.terms_of_a_pass(dtype.name) if body.is_product else MOST_TERMS
    narrow = Narrow(min(terms, MOST_TERMS), overflow)
    return replace(structure, body=replace(body, narrow=narrow))


def convert_movement(op: Operation, new: ToPartition) -> None:
    """A movement becomes a relayout, with one move for each operand.

    `%1 = nn.transpose %0 [1, 0]` becomes `%1 = partition.relayout(%0) moves [...]`.
    """
    assert isinstance(op, Movement)
    (result,) = op.results
    type_ = new.types.moved(result, plan_of(op))
    moved = partition.RelayoutOp(new.operands(op), op.moves(), type_)
    new.add(moved)
    new.become(op, [moved.result])


def convert_reinterpretation(op: Operation, new: ToPartition) -> None:
    """Another shape of the same elements: `nn.reshape` becomes `partition.reshape`."""
    (value,), (result,) = new.operands(op), op.results
    shaped = partition.ReshapeOp(value, tensor_of(result))
    new.add(shaped)
    new.become(op, [shaped.result])


# Steps over parallel dimensions


def _operator(
    new: ToPartition, values: Values, structure: Structure, plan: Plan, tensors: Tensors
) -> Sequence[SSAValue]:
    """Convert an operator: each step over a parallel dimension makes a part of the results."""
    if not takes_steps(plan):
        return _one_part(new, [PlanStep(structure, plan, ())], values, tensors)
    passes = tuple(passes_of(structure, plan))
    if len(passes) == 1:
        return _one_part(new, passes[0], values, tensors)
    shapes = [part_shape(structure, plan, i) for i in range(len(tensors))]
    made = [TensorType(t.element_type, n) for t, n in zip(tensors, shapes, strict=True)]
    parts = [_one_part(new, steps, values, made, f"part{i}") for i, steps in enumerate(passes)]
    starts = [steps[0].starts for steps in passes]
    every = zip(zip(*parts, strict=True), zip(*starts, strict=True), tensors, strict=True)
    return [
        _joined(new, some, at, structure, plan, i, tensor)
        for i, (some, at, tensor) in enumerate(every)
    ]


def _joined(
    new: ToPartition,
    parts: Sequence[SSAValue],
    starts: Sequence[tuple[int, ...]],
    structure: Structure,
    plan: Plan,
    result: int,
    tensor: TensorType[Attribute],
) -> SSAValue:
    """One result of an operator, joined from its parts.

    Args:
        starts: where each part begins in the result.
        result: the number of the result.
        tensor: its type.
    """
    element, whole = tensor.element_type, structure.space.results[result].shape
    part = part_shape(structure, plan, result)
    moves = [move_into(part, start, whole) for start in starts]
    layout = final_layout(structure, plan, result)
    joined = partition.RelayoutOp(parts, moves, laid_out(TensorType(element, whole), layout))
    new.add(joined, "join")
    if whole == tensor.get_shape():
        return joined.result
    shaped = partition.ReshapeOp(joined.result, tensor)
    new.add(shaped, "join")
    return shaped.result


# Steps over merged dimensions, and partials


def _one_part(
    new: ToPartition, steps: Sequence[PlanStep], values: Values, tensors: Tensors, *path: str
) -> Sequence[SSAValue]:
    """Convert steps that accumulate: each adds to the result of the step before it.

    Args:
        path: which part of the operator this is, for locations.
    """
    left = _accumulated(new, steps, values, tensors, path)
    structure, plan = steps[-1].structure, steps[-1].plan
    if not leaves_partials(structure, plan):
        return left
    rest = values[structure.own_operands :]
    combine, further = combining(structure, plan)
    names = ["gather"] if len(left) == 1 else [f"gather{i}" for i in range(len(left))]
    gathered = list(zip(names, left, strict=True))
    return _operator(new, [*gathered, *rest], combine, further, tensors)


def _accumulated(
    new: ToPartition,
    steps: Sequence[PlanStep],
    values: Values,
    tensors: Tensors,
    path: tuple[str, ...],
) -> Sequence[SSAValue]:
    """What the last step leaves: the results, or the partials of a merged dimension that is cut."""
    dtypes = [numpy_dtype(partition_type(value).tensor.element_type) for _, value in values]
    result = numpy_dtype(tensors[0].element_type)
    between = [element_type(dtype) for dtype in left_dtypes(steps[0].structure, dtypes, result)]
    left: Sequence[SSAValue] = ()
    rounds = begins_with_rounding(steps[0].structure)
    for i, step in enumerate(steps):
        partial = leaves_partials(step.structure, step.plan)
        ends = step is steps[-1] and not partial
        operands = list(_laid_out_operands(new, values, step))
        cut, cells = refined(step.structure, step.plan)
        own = step.structure.own_operands
        if left:
            operands[own:own] = left
            cut = adding(cut, chain=ends)
        elif not ends:
            cut = cut.partial
        operands = operands[: len(cut.space.operands)]
        if rounds and not ends:
            cut = keeping_rounding(cut, step.structure)
            numbers = [values[at] for at in rounding_operands(step.structure)]
            for (role, value), access in zip(
                numbers, cut.space.operands[len(operands) :], strict=True
            ):
                layout = canonical(cells.layout(cut.space.dims, access))
                operands.append(new.in_layout(value, layout, role))
        if rounds:
            cut = at_place(cut, step.structure, i)
        made: Tensors = tensors
        if not ends:
            shapes = [access.shape for access in cut.space.results]
            # A single result keeps the tensor's own shape; its map may view the tensor in another
            # shape.
            shapes = shapes if partial else [tensors[0].get_shape()] * len(shapes)
            made = [TensorType(e, n) for e, n in zip(between, shapes, strict=True)]
        plan = step.plan
        more = len(cells.split) - len(plan.workers)
        workers = plan.workers + (1,) * more if plan.workers else ()
        compute = replace(cells, method=plan.method, workers=workers)
        number = (f"step{i}",) if len(steps) > 1 else ()
        op = partition.ComputeOp(operands, cut, compute, *made)
        new.add(op, *path, *number, *(("partials",) if partial else ()))
        left = op.results
    return left


def _laid_out_operands(new: ToPartition, values: Values, step: PlanStep) -> Iterator[SSAValue]:
    """The operands of a step, in the layouts that its plan needs."""
    layouts = compute_layouts(step.structure, step.plan)
    # The operands of the chain are not read before the last step.
    for (role, value), layout in zip(values, layouts, strict=False):
        yield new.in_layout(value, layout, role)
