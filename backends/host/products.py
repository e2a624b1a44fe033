"""Sums of products as one compiled call for all tiles of a shape class.

Where an operand is equal on a group of tiles, their products are computed as one product, and the
operand is read once, from the first tile. This changes no bit: terms are added in the order of the
inner axes, whatever other results the product has (`ordered`).
"""

from __future__ import annotations

from dataclasses import replace

from ..codelets.calls import Array, Call, Scratch
from ..codelets.cells import Cells
from ..codelets.contraction import (
    Roles,
    adding_dtype,
    contraction,
    is_short,
    roles,
    sums_of,
    swaps_sides,
)
from .bound_products import Groups, Products, View
from .cells import HostCells
from .chains import FLOAT_DTYPES
from .kernels.tables import ROUNDINGS
from .load import has_kernels

FLOAT32 = FLOAT_DTYPES[0]
"""The dtype in which products are added."""


def host_contraction(cells: Cells, scratch: Scratch) -> list[Call]:
    """Like codelets.contraction, with matrix products of floats as one compiled call."""
    groups = roles(cells)
    if groups is not None and groups.inner:
        dtype = adding_dtype([a.dtype for a in cells.operands], cells.result.dtype)
        if dtype == FLOAT32 and not is_short(cells, groups, dtype):
            return _product_calls(cells, groups, scratch) or contraction(cells, scratch)
    return contraction(cells, scratch)


def _product_calls(cells: Cells, groups: Roles, scratch: Scratch) -> list[Call]:
    """The call of matrix products; [] if there are no kernels for these dtypes, or none at all."""
    if any(a.dtype not in FLOAT_DTYPES for a in (*cells.operands, cells.result)):
        return []
    if not has_kernels("products"):
        return []
    is_swapped = swaps_sides(cells, groups)
    sums = sums_of(cells)
    if sums.dtype is not None and cells.words is not None:
        # NumPy draws the words of sums that round by words.
        return []
    rounding = 0 if sums.dtype is None else ROUNDINGS[sums.overflow.name]

    def viewed(seen: tuple[Array, ...], roles_: Roles | None) -> View | None:
        """The products of operands in these views; None if their sums would have other terms."""
        if roles_ is None or set(roles_.inner) != set(groups.inner):
            return None
        left, right = roles_.left, roles_.right
        if is_swapped:
            seen, left, right = seen[::-1], right, left
        axes = roles_.batch, left, right, groups.inner
        return Groups(*axes, sums.terms, rounding), (*seen, cells.result)

    def with_roles(seen: tuple[Array, ...]) -> View | None:
        return viewed(seen, roles(replace(cells, operands=seen)))

    each = viewed(cells.operands, groups)
    assert each is not None
    once = None
    stamps = cells.stamps[:2] or (None, None)
    if isinstance(cells, HostCells):
        read = with_roles(cells.operands_read) if cells.equal else None
        if read is not None:
            each = read
            cells.read_once.update(i for i in cells.equal if i < len(cells.operands))
        if cells.first_replicas and None not in stamps:
            once = with_roles(cells.first_replicas[:2])
    call = Products(each, once, stamps[::-1] if is_swapped else stamps, scratch)
    return [(call, ())]
