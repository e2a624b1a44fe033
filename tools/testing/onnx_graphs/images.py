"""Facts about operators on images that ONNX's schemas do not contain: valid sizes and modes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Parameter, Shape

SCALES = (1.0, 2.0, 3.0, 1.5, 2.5, 0.5, 0.25, 0.75)
"""Scale factors whose coordinates are exact in float32, in which onnxruntime computes."""


def _scales(draw: Draw, axes: list[int]) -> list[float]:
    """A scale factor for each axis that leaves at least one element."""
    return [float(draw.one_of(*(s for s in SCALES if s * draw.shape[a] >= 1))) for a in axes]


def _resize(draw: Draw) -> Form:
    if 0 in draw.shape:
        raise ValueError("an empty image")
    modes = ["nearest"]
    # onnxruntime interpolates images of two axes, and of four if the last two are resized.
    if draw.rank in (2, 4) and draw.types["T1" if "T1" in draw.types else "T"] == "tensor(float)":
        modes += ["linear", "cubic"] if draw.rank == 4 and draw.opset >= 11 else ["linear"]
    mode = draw.one_of(*modes)
    inner = [draw.rank - 2, draw.rank - 1]
    axes = list(range(draw.rank)) if mode == "nearest" else inner
    chosen = dict(zip(axes, _scales(draw, axes), strict=True))
    scales = [chosen.get(i, 1.0) for i in range(draw.rank)]
    found: dict[str, Parameter] = {"mode": mode, "scales": np.array(scales, np.float32)}
    if draw.opset < 11:
        return Form(parameters=found)
    coordinates = draw.one_of(
        None,
        "half_pixel",
        "pytorch_half_pixel",
        "align_corners",
        "asymmetric",
        "tf_crop_and_resize",
    )
    if mode == "nearest" and coordinates not in (None, "half_pixel", "asymmetric"):
        # Other coordinates are rounded differently in float32, and a rounding may decide.
        coordinates = None
    is_whole = all(n * s == int(n * s) for n, s in zip(draw.shape, scales, strict=True))
    if coordinates in ("align_corners", "tf_crop_and_resize") and not is_whole:
        # onnxruntime counts whole elements here, where the standard does not round the length.
        coordinates = None
    if mode == "cubic" and coordinates == "tf_crop_and_resize":
        # onnxruntime does not extrapolate cubic images.
        coordinates = None
    is_crop = coordinates == "tf_crop_and_resize"
    # onnxruntime crops no axis of which the size does not change.
    low = [draw.one_of(0.0, 0.0, 0.25, -0.25) if s != 1 else 0.0 for s in scales]
    high = [draw.one_of(1.0, 1.0, 0.75, 1.25) if s != 1 else 1.0 for s in scales]
    found |= {
        "coordinate_transformation_mode": coordinates,
        "nearest_mode": draw.one_of(
            None, "round_prefer_floor", "round_prefer_ceil", "floor", "ceil"
        ),
        "cubic_coeff_a": draw.one_of(None, -0.5),
        "exclude_outside": draw.one_of(None, 1) if mode == "cubic" else None,
        "extrapolation_value": draw.one_of(None, 1.5),
        "roi": np.array([*low, *high] if is_crop else [], np.float32),
        "sizes": None,
        "antialias": None,
        "axes": None,
        "keep_aspect_ratio_policy": None,
    }
    if draw.opset >= 18 and mode != "nearest" and not is_crop:
        found["antialias"] = draw.one_of(None, 1)
    if draw.chance(0.3) and (is_whole or mode != "nearest"):
        sizes = [int(n * s) for n, s in zip(draw.shape, scales, strict=True)]
        found |= {"sizes": sizes, "scales": np.array([], np.float32)}
        found["scales"] = None if draw.opset >= 13 else found["scales"]
    elif draw.opset >= 18 and draw.chance(0.3) and not is_crop:
        found |= {"axes": axes, "scales": np.array([scales[a] for a in axes], np.float32)}
    return Form(parameters=found)


def _upsample(draw: Draw) -> Form:
    if 0 in draw.shape:
        raise ValueError("an empty image")
    inner = [draw.one_of(1.0, 2.0, 3.0) for _ in range(2)]
    scales = [1.0] * (draw.rank - 2) + inner
    given: Parameter = np.array(scales, np.float32) if draw.opset >= 9 else scales
    return Form(parameters={"mode": draw.one_of(None, "nearest", "linear"), "scales": given})


def _grid_sample(draw: Draw) -> Form:
    """Sampling positions in and around an image.

    onnxruntime has no cubic interpolation along three axes.
    """
    if "tensor(double)" in draw.types.values():
        # onnxruntime's results with cubic curves differ from onnx's and abele's.
        raise ValueError("an image of float64")
    if 0 in draw.shape:
        raise ValueError("an empty image")
    old = draw.opset < 20
    modes = ("bilinear", "nearest", "bicubic") if old else ("linear", "nearest", "cubic")
    parameters = {
        "mode": draw.one_of(None, *modes) if draw.rank == 4 else draw.one_of(None, *modes[:2]),
        "padding_mode": draw.one_of(None, "zeros", "border", "reflection"),
        "align_corners": draw.one_of(None, 0, 1),
    }
    places = [draw.one_of(1, 2, 3) for _ in range(draw.rank - 2)]
    return Form([(draw.shape[0], *places, draw.rank - 2)], parameters)


def _affine_grid(draw: Draw) -> Form:
    """A grid of at least two elements along each axis, whose ends are the image's corners."""
    if "tensor(float)" not in draw.types.values():
        # onnxruntime rounds every coordinate to the type of the map.
        raise ValueError("a map of another type than float32")
    if draw.shape[1:] not in ((2, 3), (3, 4)):
        raise ValueError("no affine map")
    sizes = [draw.one_of(2, 3, 5) for _ in range(draw.shape[1])]
    parameters = {
        "size": [draw.shape[0], draw.one_of(1, 3), *sizes],
        "align_corners": draw.one_of(None, 0, 1),
    }
    return Form(parameters=parameters)


def _affine_map(draw: Draw) -> Shape:
    """The shape of affine maps of two or three axes."""
    return (draw.one_of(1, 2, 3), *draw.one_of((2, 3), (3, 4)))


def _roi_align(draw: Draw) -> Form:
    """Averages over regions of an image. The corners of each region are in order."""
    if 0 in draw.shape:
        raise ValueError("an empty image")
    count = draw.one_of(1, 2, 4)
    corners = [[draw.random.uniform(-2, 12) for _ in range(4)] for _ in range(count)]
    rois = [[*np.minimum(c[:2], c[2:]), *np.maximum(c[:2], c[2:])] for c in corners]
    parameters = {
        "rois": np.array(rois),
        "batch_indices": np.array([draw.random.randrange(draw.shape[0]) for _ in range(count)]),
        "mode": draw.one_of(None, "avg"),
        "coordinate_transformation_mode": draw.one_of(None, "half_pixel", "output_half_pixel"),
        "output_height": draw.one_of(None, 1, 2, 3),
        "output_width": draw.one_of(None, 1, 2, 3),
        "sampling_ratio": draw.one_of(1, 2, 3),
        "spatial_scale": draw.one_of(None, 1.0, 0.5),
    }
    return Form(parameters=parameters)


def _deform_conv(draw: Draw) -> Form:
    """A convolution with a small kernel whose elements each have an offset."""
    if 0 in draw.shape:
        raise ValueError("an empty image")
    n, c, *image = draw.shape
    kernel = [draw.random.randint(1, min(2, size)) for size in image]
    stride, low = [draw.one_of(1, 2) for _ in image], [draw.one_of(0, 1) for _ in image]
    high = [draw.one_of(0, 1) for _ in image]
    out = [
        (size + lo + hi - k) // s + 1
        for size, lo, hi, k, s in zip(image, low, high, kernel, stride, strict=True)
    ]
    group, offset_group = (draw.one_of(*(d for d in (1, 2, 3) if c % d == 0)) for _ in range(2))
    made, window = group * draw.one_of(1, 2), int(np.prod(kernel))
    parameters = {
        "kernel_shape": kernel,
        "strides": stride,
        "pads": [*low, *high],
        "dilations": None,
        "group": group,
        "offset_group": offset_group,
    }
    offsets = (n, offset_group * window * 2, *out)
    mask = (n, offset_group * window, *out)
    return Form([(made, c // group, *kernel), offsets, (made,), mask], parameters)


IMAGES: dict[str, Callable[[Draw], Form]] = {
    "Resize": _resize,
    "Upsample": _upsample,
    "GridSample": _grid_sample,
    "AffineGrid": _affine_grid,
    "RoiAlign": _roi_align,
    "DeformConv": _deform_conv,
}
"""Valid combinations of shapes and parameters of these operators."""

IMAGE_RANKS: dict[str, tuple[int, int]] = {
    "Resize": (1, 4),
    "Upsample": (4, 4),
    "GridSample": (4, 5),
    "AffineGrid": (3, 3),
    "RoiAlign": (4, 4),
    "DeformConv": (4, 4),
}
"""The least and the greatest number of axes of the first operand of these operators."""

IMAGE_SHAPES: dict[str, Callable[[Draw], Shape]] = {"AffineGrid": _affine_map}
"""Shapes for the first operand of those that accept few shapes."""
