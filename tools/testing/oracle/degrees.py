"""Degrees: the scaling of each value of a program when one operand is multiplied by a factor.

A value of degree d is multiplied by factor**d. A product with the operand has degree 1, its square
2, its reciprocal -1, and a value that does not depend on the operand 0. Degrees come from bodies
and access maps, not from the names of operators. If the factor is a power of two and nothing
underflows or overflows, rounded values scale exactly, to the last bit. A value that does not scale
exactly has no degree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ....backends.reference import tensor_kind
from ....dialects.scalar_functions import FUNCTIONS, Degree
from ....dialects.structured import Movement, Reinterpretation, Structure, Structured
from ....ir.geometry.space import Space
from ....ir.support.number_kinds import is_floating

INDEPENDENT = Fraction(0)
"""The degree of a value that does not depend on the operand."""


def _common_degree(degrees: Sequence[Fraction]) -> Degree:
    return degrees[0] if len(set(degrees)) == 1 else None


def degrees_of(main: FuncOp, operand: SSAValue) -> dict[SSAValue, Degree]:
    """The degree of every value of an nn function in one operand.

    The function's composites must have been decomposed. Values in regions are left out, and a
    result of control flow that depends on the operand has no degree.
    """
    block = main.body.block
    known: dict[SSAValue, Degree] = {each: INDEPENDENT for each in block.args}
    known[operand] = Fraction(1)
    for op in block.ops:
        degrees = [known[v] for v in op.operands]
        known.update(dict.fromkeys(op.results, _degree(op, degrees, known)))
    return known


def _degree(op: Operation, degrees: Sequence[Degree], known: Mapping[SSAValue, Degree]) -> Degree:
    inner = {v for region in op.regions for each in region.walk() for v in each.operands}
    if all(d == INDEPENDENT for d in (*degrees, *(known[v] for v in inner if v in known))):
        return INDEPENDENT
    some = [d for d in degrees if d is not None]
    if len(some) != len(degrees) or op.regions:
        return None
    if isinstance(op, Reinterpretation):
        return some[0]
    if isinstance(op, Movement):
        scaled = all(map(_padding_scales, op.moves(), some))
        return _common_degree(some) if scaled else None
    if not isinstance(op, Structured):
        return None
    result = _structure_degree(op.structure(), some)
    kept = is_floating(tensor_kind(op.results[0].type)[1])
    return result if kept or result == INDEPENDENT else None


def _structure_degree(structure: Structure, degrees: Sequence[Fraction]) -> Degree:
    space, body = structure.space, structure.body
    if body.member_kinds:
        # The largest value scales with the operand, but its index does not.
        return None
    merged = body.combiner if body.along is None else body.along.name
    if sum(FUNCTIONS[s.function].rescales for s in body.then) > 1 or merged == "prod":
        return None
    for access, degree in zip(space.operands, degrees, strict=True):
        outside = any(axis.may_fill for axis in access.axes)
        if degree != INDEPENDENT and outside and not _is_scaled(access.fill):
            return None
    own, arity = structure.own_operands, body.function_arity
    if any(degree != INDEPENDENT for degree in degrees[arity : own - body.updates]):
        # Scaled indices name other rows.
        return None
    if body.updates and (degrees[own - 1] != degrees[0] or body.function != "identity"):
        # The updated tensor must scale as the updates do.
        return None
    taken, given = list(degrees[:arity]), list(degrees[own:])
    value = _function_degree(body.function, body.parameters, taken)
    if body.along is not None and body.along.name == "sort_indices":
        value = INDEPENDENT
    values: list[Degree] = [value]
    for stage in body.then:
        further: list[Degree] = [*given[: stage.extras]]
        given = given[stage.extras :]
        arguments = [each for each in stage.arguments(values, further) if each is not None]
        if stage.element or len(arguments) < FUNCTIONS[stage.function].arity:
            return None
        values.append(_function_degree(stage.function, stage.parameters, arguments))
    return values[-1]


def _function_degree(
    function: str, parameters: tuple[float, ...], degrees: Sequence[Fraction]
) -> Degree:
    if all(d == INDEPENDENT for d in degrees):
        return INDEPENDENT
    rule = FUNCTIONS[function].degree
    return None if rule is None else rule(parameters, degrees)


def _padding_scales(move: Space, degree: Fraction) -> bool:
    """Whether the padding of a movement scales as its operand does."""
    (access,) = move.operands
    outside = any(axis.may_fill for axis in access.axes)
    return degree == INDEPENDENT or not outside or _is_scaled(access.fill)


def _is_scaled(fill: float) -> bool:
    """Whether a positive factor leaves a number unchanged: 0 or an infinity."""
    return fill == 0 or bool(np.isinf(fill))
