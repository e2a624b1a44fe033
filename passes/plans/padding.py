"""Which reduction dimensions may be cut into parts that need padding."""

from __future__ import annotations

from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Structure
from ...ir.geometry.space import can_split_unevenly


def can_pad(structure: Structure, dim: int) -> bool:
    """Whether the parts of a reduction dimension may be padded without changing the result.

    Every operand that has the dimension is padded with the combiner's identity element, so the
    body's function must map that element to itself. Indices do not count: those of padding name an
    element as others do, to which whatever the other operands hold is added. If the body reads a
    position that has the dimension, it ignores the padding anyway, which is outside.
    """
    combiner, space = structure.body.combiner, structure.space
    touches = [dim in access.dims() for access in space.operands]
    indices = {relation.operand for relation in space.relations}
    computes = any(touched and i not in indices for i, touched in enumerate(touches))
    return (
        combiner is not None
        and any(touches)
        and (_ignores(structure, dim) or (computes and _carries_identity(structure)))
        and can_split_unevenly(space, dim)
        and all(
            not 0 <= axis.offset + a * space.dims[dim].size < axis.size
            for axis in space.axes
            for d, a in axis.terms
            if d == dim
        )
        and all(
            access.fill == structure.body.identity or _ignores(structure, dim)
            for access, touched in zip(space.operands, touches, strict=True)
            if touched and any(axis.outside == "fill" for axis in access.axes)
        )
    )


def _ignores(structure: Structure, dim: int) -> bool:
    """Whether points outside a dimension contribute nothing: they are outside a position."""
    return any(dim in each.access.dims() for each in structure.space.positions)


def _carries_identity(structure: Structure) -> bool:
    """Whether the function of a body maps what its combiner ignores to itself."""
    body = structure.body
    combiner = body.tuple_combiner
    if combiner is None:
        return body.combiner in FUNCTIONS[body.function].carries_identity_of
    return body.function == "identity" and combiner.fill is not None
