"""Whether the parts of a reduction dimension may be padded."""

from __future__ import annotations

from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Structure
from ...ir.geometry.space import can_split_unevenly


def can_pad(structure: Structure, dim: int) -> bool:
    """Whether the parts of a reduction dimension may be padded without changing the result.

    Every operand that has the dimension is padded with the combiner's identity element, so the
    body's function must map that element to itself. Index operands are an exception: padding may
    name any element, because the identity is merged into it. If the body reads a position that has
    the dimension, the padding lies outside the position's tensor and contributes nothing.
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
            if touched and any(axis.may_fill for axis in access.axes)
        )
    )


def _ignores(structure: Structure, dim: int) -> bool:
    """Whether points past the end of a dimension contribute nothing, because a position excludes
    them.
    """
    return any(dim in each.access.dims() for each in structure.space.positions)


def _carries_identity(structure: Structure) -> bool:
    """Whether a body's function maps the combiner's identity element to itself."""
    body = structure.body
    combiner = body.tuple_combiner
    if combiner is None:
        return body.combiner in FUNCTIONS[body.function].carries_identity_of
    return body.function == "identity" and combiner.fill is not None
