"""Convolutions as products of matrices: their weights as a matrix, and the windows of an image."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...dialects import nn
from ...dialects.nn.base import axis_map, spatial_names
from ...dialects.structured import Body, Structure
from ...ir.geometry.space import AccessMap, Dim, Space, identity_map
from ...ir.support.arrays import Array


def as_matrix(weight: Array) -> Array:
    """The weights [O, C, kernel...] of a convolution as a matrix: outputs by channels of taps."""
    rank = weight.ndim - 2
    turned = weight.transpose(0, *range(2, rank + 2), 1)
    return turned.reshape(len(weight), -1)


def as_weight(matrix: Array, shape: Sequence[int]) -> Array:
    """The weights of this shape [O, C, kernel...], of which `as_matrix` makes a matrix."""
    outputs, channels, *kernel = shape
    rank = len(kernel)
    return matrix.reshape(outputs, *kernel, channels).transpose(0, rank + 1, *range(1, rank + 1))


def windows_of(op: nn.ConvOp) -> Structure | None:
    """The windows of a convolution's image: [N, kernel..., C, positions...].

    None if each window is a point of the image, in the same place.
    """
    n, c, *image = nn.shape_of(op.image)
    kernel, out = nn.shape_of(op.weight)[2:], nn.shape_of(op.result)[2:]
    stride, dilation, low = op.lists
    if not any(np.subtract(kernel, 1)) and tuple(out) == tuple(image) and not any(low):
        return None
    names, rank = spatial_names(len(out)), len(out)
    dims = (
        Dim("n", n),
        *(Dim(f"k{name}", size) for name, size in zip(names, kernel, strict=True)),
        Dim("c", c),
        *map(Dim, names, out),
    )
    positions = [
        axis_map(
            image[i],
            dims,
            [(rank + 2 + i, stride[i]), (1 + i, dilation[i])],
            -low[i],
            outside="fill",
        )
        for i in range(rank)
    ]
    own = (axis_map(n, dims, [(0, 1)]), axis_map(c, dims, [(rank + 1, 1)]), *positions)
    result = identity_map(tuple(range(len(dims))), tuple(dim.size for dim in dims))
    return Structure(Space(dims, (AccessMap(own),), (result,)), Body("identity"))
