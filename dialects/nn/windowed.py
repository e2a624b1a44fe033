"""Windows that move over spatial axes: their properties, positions and access maps."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from typing import TypedDict, Unpack

from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation, prop_def

from ...ir.geometry.space import AccessMap, AxisMap, Dim
from ...ir.upstream import VerifyException
from ..structured import Body
from .base import (
    INTEGERS,
    Shape,
    axis_map,
    integers,
    need_at_least,
    need_length,
    spatial_names,
    values_of,
)


def window_lists(
    rank: int,
    stride: Sequence[int] | None,
    dilation: Sequence[int] | None,
    **padding: Sequence[int] | None,
) -> dict[str, Attribute]:
    """The properties stride and dilation, 1 where None, and paddings, 0 where None."""
    ones = {"stride": stride, "dilation": dilation}
    return {
        **{name: integers([1] * rank if v is None else v) for name, v in ones.items()},
        **{name: integers([0] * rank if v is None else v) for name, v in padding.items()},
    }


class WindowLists(TypedDict, total=False):
    """How a window moves, one entry per spatial axis: see Windowed. Left out, a stride or dilation
    is 1 and padding 0."""

    stride: Sequence[int] | None
    dilation: Sequence[int] | None
    pad_low: Sequence[int] | None
    pad_high: Sequence[int] | None


def window_properties(window: Sequence[int], **lists: Unpack[WindowLists]) -> dict[str, Attribute]:
    """The properties of Windowed."""
    found = window_lists(
        len(window),
        lists.get("stride"),
        lists.get("dilation"),
        pad_low=lists.get("pad_low"),
        pad_high=lists.get("pad_high"),
    )
    return {"window": integers(window), **found}


def window_reach(window: int, dilation: int) -> int:
    """The distance from the first to the last element under a window, counting both."""
    return dilation * (window - 1) + 1


def pooled_size(size: int, low: int, high: int, reach: int, stride: int, *, ceil: bool) -> int:
    """The number of positions of a window on a padded axis.

    Args:
        reach: the elements that the window spans.
        ceil: one more window may overhang the end. The last window still begins in the image or in
            the padding before it.
    """
    room = size + low + high - reach
    if not ceil:
        return room // stride + 1
    positions = -(-room // stride) + 1
    return positions - 1 if (positions - 1) * stride >= size + low else positions


def positions_of(
    what: str,
    sizes: Sequence[int],
    window: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    low: Sequence[int],
    high: Sequence[int],
    *,
    ceil: bool = False,
) -> tuple[int, ...]:
    """Positions of a window on each spatial axis.

    Raises VerifyException if it does not fit on an axis.

    Args:
        what: its name in messages.
    """
    out: list[int] = []
    lists = zip(sizes, window, stride, dilation, low, high, strict=True)
    for i, (n, k, s, d, lo, hi) in enumerate(lists):
        reach, padded = window_reach(k, d), n + lo + hi
        if padded < reach:
            raise VerifyException(
                f"spatial axis {i}: a {what} of {reach} on {padded} elements, padding included; "
                "need at least as many"
            )
        out.append(pooled_size(n, lo, hi, reach, s, ceil=ceil))
    return tuple(out)


def windowed_axes(
    sizes: Sequence[int],
    dims: Sequence[Dim],
    positions: Sequence[int],
    offsets: Sequence[int],
    stride: Sequence[int],
    dilation: Sequence[int],
    low: Sequence[int],
) -> tuple[AxisMap, ...]:
    """The maps of spatial axes that a window reads; elements outside are padding.

    Args:
        positions, offsets: for each axis, the index in dims of the window's position, and of the
            element under the window.
    """
    return tuple(
        axis_map(size, dims, [(p, s), (k, d)], -lo, outside="fill")
        for size, p, k, s, d, lo in zip(
            sizes, positions, offsets, stride, dilation, low, strict=True
        )
    )


class Windowed(IRDLOperation, ABC):
    """The properties of a window that moves over spatial axes, one entry per axis.

    Attributes:
        window: size of the window, 1 or more.
        stride: elements from one position to the next, 1 or more.
        dilation: elements from one element of the window to the next, 1 or more.
        pad_low: padding before the first element, 0 or more.
        pad_high: padding after the last element, 0 or more.
    """

    window = prop_def(INTEGERS)
    stride = prop_def(INTEGERS)
    dilation = prop_def(INTEGERS)
    pad_low = prop_def(INTEGERS)
    pad_high = prop_def(INTEGERS)

    def parameters(self) -> tuple[tuple[int, ...], ...]:
        """Window, stride, dilation, padding before and padding after, one entry per axis."""
        return (
            values_of(self.window),
            values_of(self.stride),
            values_of(self.dilation),
            values_of(self.pad_low),
            values_of(self.pad_high),
        )

    @property
    def overhangs(self) -> bool:
        """Whether a last window may reach over the end of the padded image."""
        return False

    def shape_over(self, image: Shape) -> tuple[int, ...]:
        """[N, C, positions of the window...] for an image [N, C, ...].

        Raises VerifyException for an image without spatial axes, lists of another length or with
        numbers that are too small, and a window that does not fit.
        """
        if len(image) < 3:
            raise VerifyException(f"image of shape {list(image)}; need batch, channels and more")
        lists = self.parameters()
        names = ("window", "stride", "dilation", "pad_low", "pad_high")
        for name, values, least in zip(names, lists, (1, 1, 1, 0, 0), strict=True):
            need_length(name, values, len(image) - 2)
            need_at_least(name, values, least)
        window, stride, dilation, low, high = lists
        places = positions_of(
            "window", image[2:], window, stride, dilation, low, high, ceil=self.overhangs
        )
        return (*image[:2], *places)

    def window_maps(
        self, image: Shape, result: Shape, body: Body
    ) -> tuple[tuple[Dim, ...], AccessMap, AccessMap]:
        """The dimensions, and the maps of the image and of a result that has its channels.

        Dimensions are n, c, positions..., and the window's axes, which are reduced. Padding is the
        element that the body's combiner ignores.
        """
        n, c, *sizes = image
        places = result[2:]
        names, rank = spatial_names(len(places)), len(places)
        window, stride, dilation, low, _ = self.parameters()
        dims = (
            Dim("n", n),
            Dim("c", c),
            *(Dim(name, size) for name, size in zip(names, places, strict=True)),
            *(Dim(f"k{name}", size, "reduction") for name, size in zip(names, window, strict=True)),
        )
        spatial = windowed_axes(
            sizes, dims, range(2, 2 + rank), range(2 + rank, 2 + 2 * rank), stride, dilation, low
        )
        first = (axis_map(n, dims, [(0, 1)]), axis_map(c, dims, [(1, 1)]))
        fills = any(axis.may_fill for axis in spatial)
        written = (axis_map(size, dims, [(2 + i, 1)]) for i, size in enumerate(places))
        return (
            dims,
            AccessMap((*first, *spatial), body.identity if fills else 0.0),
            AccessMap((*first, *written)),
        )
