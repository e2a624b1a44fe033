"""Reductions over whole axes of a tensor: the shapes of results, and access maps."""

from __future__ import annotations

from collections.abc import Sequence

from ...ir.geometry.space import AccessMap, AxisMap, Dim
from ...ir.upstream import VerifyException
from .base import Shape, axis_map


def shape_without(shape: Shape, axes: Sequence[int], *, keep: bool) -> Shape:
    """A shape without some axes, or with size 1 for them.

    Raises VerifyException unless the axes are increasing axes of the shape.
    """
    if list(axes) != sorted(set(axes)) or any(not 0 <= a < len(shape) for a in axes):
        raise VerifyException(
            f"axes {list(axes)} of rank {len(shape)}; need increasing axes from 0 to "
            f"{len(shape) - 1}"
        )
    return tuple(1 if i in axes else n for i, n in enumerate(shape) if keep or i not in axes)


def whole_axes_maps(
    shape: Shape, axes: Sequence[int], *, keep: bool
) -> tuple[tuple[Dim, ...], AccessMap, AccessMap]:
    """One dimension per axis, of which some are reduced, and the maps of the operand and a result.

    Args:
        keep: whether these axes stay in the result, with size 1.
    """
    dims = tuple(
        Dim(f"d{i}", n, "reduction" if i in axes else "parallel") for i, n in enumerate(shape)
    )
    read = tuple(axis_map(n, dims, [(i, 1)]) for i, n in enumerate(shape))
    written = tuple(
        AxisMap(1) if i in axes else read[i] for i in range(len(shape)) if keep or i not in axes
    )
    return dims, AccessMap(read), AccessMap(written)
