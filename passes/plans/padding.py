"""Which reduction dimensions may be cut into parts that need padding."""

from __future__ import annotations

from ...dialects.scalar_functions import FUNCTIONS
from ...dialects.structured import Structure
from ...ir.geometry.space import can_split_unevenly


def can_pad(structure: Structure, dim: int) -> bool:
    """Whether the parts of a reduction dimension may be padded without changing the result.

    Every operand that has the dimension is padded with the combiner's identity element, so the
    body's function must map that element to itself.
    """
    combiner, space = structure.body.combiner, structure.space
    touches = [dim in access.dims() for access in space.operands]
    return (
        combiner is not None
        and any(touches)
        and combiner in FUNCTIONS[structure.body.function].carries_identity_of
        and can_split_unevenly(space, dim)
        and all(
            not 0 <= axis.offset + a * space.dims[dim].size < axis.size
            for axis in space.axes
            for d, a in axis.terms
            if d == dim
        )
        and all(
            access.fill == structure.body.identity
            for access, touched in zip(space.operands, touches, strict=True)
            if touched and any(axis.outside == "fill" for axis in access.axes)
        )
    )
