"""What happens to each value of a program if one of its operands is multiplied by a factor.

A value of degree d is multiplied by factor**d: a product with the operand has degree 1, its square
2, its reciprocal -1, and what does not depend on it 0. Bodies and access maps say so; operators are
not known by name. Rounding keeps to it to the bit if the factor is a power of two, as long as
nothing under- or overflows, so a value whose last digits are at stake has no degree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from ....backends.codelets.scalar import is_floating
from ....backends.reference import tensor_kind
from ....dialects.scalar_functions import FUNCTIONS, Degree
from ....dialects.structured import Movement, Reinterpretation, Structure, Structured
from ....ir.geometry.space import Space

NOTHING = Fraction(0)


def _alike(degrees: Sequence[Fraction]) -> Degree:
    return degrees[0] if len(set(degrees)) == 1 else None


def degrees_of(main: FuncOp, operand: SSAValue) -> dict[SSAValue, Degree]:
    """The degree in an operand of every value of a function of nn that is in no region.

    The function's composites must have been decomposed; what control flow makes of the operand has
    no degree.
    """
    block = main.body.block
    known: dict[SSAValue, Degree] = {each: NOTHING for each in block.args}
    known[operand] = Fraction(1)
    for op in block.ops:
        degrees = [known[v] for v in op.operands]
        known.update(dict.fromkeys(op.results, _degree(op, degrees, known)))
    return known


def _degree(op: Operation, degrees: Sequence[Degree], known: Mapping[SSAValue, Degree]) -> Degree:
    inner = {v for region in op.regions for each in region.walk() for v in each.operands}
    if all(d == NOTHING for d in (*degrees, *(known[v] for v in inner if v in known))):
        return NOTHING
    some = [d for d in degrees if d is not None]
    if len(some) != len(degrees) or op.regions:
        return None
    if isinstance(op, Reinterpretation):
        return some[0]
    if isinstance(op, Movement):
        scaled = all(map(_is_filled_alike, op.moves(), some))
        return _alike(some) if scaled else None
    if not isinstance(op, Structured):
        return None
    result = _of_structure(op.structure(), some)
    kept = is_floating(tensor_kind(op.results[0].type)[1])
    return result if kept or result == NOTHING else None


def _of_structure(structure: Structure, degrees: Sequence[Fraction]) -> Degree:
    space, body = structure.space, structure.body
    if sum(FUNCTIONS[s.function].rescales for s in body.then) > 1 or body.combiner == "prod":
        return None
    for access, degree in zip(space.operands, degrees, strict=True):
        outside = any(axis.outside == "fill" for axis in access.axes)
        if degree != NOTHING and outside and not _is_scaled(access.fill):
            return None
    given = list(degrees)
    taken, given = given[: body.own_arity], given[body.own_arity :]
    value = _of_function(body.function, body.parameters, taken)
    for stage in body.then:
        taken, given = given[: stage.extras], given[stage.extras :]
        if value is None:
            return None
        taken.insert(stage.at, value)
        value = _of_function(stage.function, stage.parameters, taken)
    return value


def _of_function(
    function: str, parameters: tuple[float, ...], degrees: Sequence[Fraction]
) -> Degree:
    if all(d == NOTHING for d in degrees):
        return NOTHING
    rule = FUNCTIONS[function].degree
    return None if rule is None else rule(parameters, degrees)


def _is_filled_alike(move: Space, degree: Fraction) -> bool:
    (access,) = move.operands
    outside = any(axis.outside == "fill" for axis in access.axes)
    return degree == NOTHING or not outside or _is_scaled(access.fill)


def _is_scaled(fill: float) -> bool:
    """Whether a number stays what it is if it is multiplied."""
    return fill == 0 or bool(np.isinf(fill))
