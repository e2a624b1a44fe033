"""ATen operators that resample images."""

from __future__ import annotations

from math import floor

import numpy as np

from ....dialects import nn
from ..building import Value
from .aten_node import AtenNode, Importer, Results

SCALES = {1: ("scales",), 2: ("scales_h", "scales_w"), 3: ("scales_d", "scales_h", "scales_w")}
"""The arguments with factors of single axes, by the number of spatial axes."""


def _factors(node: AtenNode, rank: int) -> list[float]:
    """The factor of each spatial axis; [] if only sizes are given."""
    if node.has("scale_factors"):
        return node.numbers("scale_factors")
    names = SCALES[rank]
    return [node.number(name) for name in names] if all(map(node.has, names)) else []


def _resize(rank: int, mode: str, nearest: str = "floor") -> Importer:
    """A resize of the spatial axes.

    Args:
        nearest: which element is nearest: floor, or round_prefer_ceil around centres of elements.
    """

    def importer(node: AtenNode) -> Results:
        value = node["self"] if node.has("self") else node["input"]
        shape = nn.shape_of(value)
        if len(shape) != rank + 2:
            raise node.bad(f"image of shape {list(shape)}; need {rank} spatial axes")
        factors, sizes = _factors(node, rank), node.integers("output_size", [])
        made = [floor(n * s) for n, s in zip(shape[2:], factors, strict=False)]
        by_factors = bool(factors) and (not sizes or sizes == made)
        if not by_factors and len(sizes) != rank:
            raise node.bad(f"output_size {sizes}, factors {factors}; need {rank} of either")
        coordinates = "half_pixel"
        if mode == "nearest":
            coordinates = "asymmetric" if nearest == "floor" else "half_pixel"
        elif node.flag("align_corners", False):
            coordinates, by_factors = "align_corners", False
            sizes = sizes or made
        scales: Value | None = None
        target: Value | None = None
        if by_factors:
            scales = node.known(np.array([1.0, 1.0, *factors], np.float32))
        else:
            target = node.integers_known([*shape[:2], *sizes])
        return node.apply(
            "Resize",
            value,
            None,
            scales,
            target,
            mode=mode,
            coordinate_transformation_mode=coordinates,
            nearest_mode=nearest,
        )

    return importer


INTERPOLATIONS = ("linear", "nearest", "cubic")
OUTSIDE = ("zeros", "border", "reflection")
"""How a grid is sampled, and what lies outside, by torch's numbers."""


def _grid_sample(node: AtenNode) -> Results:
    mode, outside = node.integer("interpolation_mode"), node.integer("padding_mode")
    if mode not in range(3) or outside not in range(3):
        raise node.bad(f"interpolation_mode {mode}, padding_mode {outside}; need 0, 1 or 2")
    return node.apply(
        "GridSample",
        node["input"],
        node["grid"],
        mode=INTERPOLATIONS[mode],
        padding_mode=OUTSIDE[outside],
        align_corners=int(node.flag("align_corners", False)),
    )


def _affine_grid(node: AtenNode) -> Results:
    return node.apply(
        "AffineGrid",
        node["theta"],
        node.integers_known(node.integers("size")),
        align_corners=int(node.flag("align_corners", False)),
    )


IMAGES: dict[str, Importer] = {
    **{f"upsample_nearest{n}d": _resize(n, "nearest") for n in (1, 2, 3)},
    **{
        f"_upsample_nearest_exact{n}d": _resize(n, "nearest", "round_prefer_ceil")
        for n in (1, 2, 3)
    },
    "upsample_linear1d": _resize(1, "linear"),
    "upsample_bilinear2d": _resize(2, "linear"),
    "upsample_trilinear3d": _resize(3, "linear"),
    "upsample_bicubic2d": _resize(2, "cubic"),
    **dict.fromkeys(("grid_sampler", "grid_sampler_2d", "grid_sampler_3d"), _grid_sample),
    "affine_grid_generator": _affine_grid,
}
"""The importers of resizing and sampling."""
