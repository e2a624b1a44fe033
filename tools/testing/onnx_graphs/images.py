"""Facts about operators on images that ONNX's schemas do not contain: valid sizes and modes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .draw import Draw, Form, Parameter

SCALES = (1.0, 2.0, 3.0, 1.5, 2.5, 0.5, 0.25, 0.75)
"""Factors of sizes. Their coordinates are exact in float32, in which onnxruntime computes them."""


def _scales(draw: Draw, axes: list[int]) -> list[float]:
    """A factor for each axis that leaves one element or more."""
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


IMAGES: dict[str, Callable[[Draw], Form]] = {
    "Resize": _resize,
    "Upsample": _upsample,
}
"""Valid combinations of shapes and parameters of these operators."""

IMAGE_RANKS: dict[str, tuple[int, int]] = {"Resize": (1, 4), "Upsample": (4, 4)}
"""The least and the greatest number of axes of the first operand of these operators."""
