"""The layers of Caffe in NumPy, written from its documentation, and not from the importer.

A network is a list of layers, each a dictionary. `text_of` writes it as .prototxt, and `evaluated`
computes it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import ceil, floor
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
Layer = dict[str, Any]
Blobs = Mapping[str, Sequence[Array]]


class Word(str):
    """A value that the text has without quotes, such as MAX."""


def layer(type_: str, name: str, bottom: Any = (), top: Any = None, **more: Any) -> Layer:
    """A layer. One bottom, and one top of the layer's name, may be given as texts."""
    bottoms = [bottom] if isinstance(bottom, str) else list(bottom)
    tops = [name] if top is None else [top] if isinstance(top, str) else list(top)
    return {"name": name, "type": type_, "bottom": bottoms, "top": tops, **more}


def text_of(layers: Sequence[Layer], name: str = "net") -> str:
    """The .prototxt of a network."""
    return f'name: "{name}"\n' + "".join(_field("layer", each, "") for each in layers)


def _field(name: str, value: Any, indent: str) -> str:
    if isinstance(value, list):
        return "".join(_field(name, each, indent) for each in value)
    if isinstance(value, dict):
        inner = "".join(_field(key, each, indent + "  ") for key, each in value.items())
        return f"{indent}{name} {{\n{inner}{indent}}}\n"
    if isinstance(value, bool):
        return f"{indent}{name}: {str(value).lower()}\n"
    quoted = isinstance(value, str) and not isinstance(value, Word)
    return f'{indent}{name}: "{value}"\n' if quoted else f"{indent}{name}: {value}\n"


def evaluated(
    layers: Sequence[Layer], inputs: Mapping[str, Array], blobs: Blobs
) -> dict[str, Array]:
    """All values of a network, in float64."""
    values = {name: np.asarray(each, np.float64) for name, each in inputs.items()}
    for each in layers:
        if each["type"] in ("Input", "Data"):
            continue
        weights = [np.asarray(b, np.float64) for b in blobs.get(each["name"], ())]
        bottoms = [values[name] for name in each["bottom"]]
        tops = LAYERS[each["type"]](each, bottoms, weights)
        values.update(zip(each["top"], tops, strict=False))
    return values


def _pair(settings: Layer, name: str, default: int) -> tuple[int, int]:
    short = name.removesuffix("_size")
    if f"{short}_h" in settings or f"{short}_w" in settings:
        return settings.get(f"{short}_h", default), settings.get(f"{short}_w", default)
    found = settings.get(name, default)
    return tuple(found) if isinstance(found, list) else (found, found)


def _convolution(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s = each["convolution_param"]
    (kh, kw), (sh, sw) = _pair(s, "kernel_size", 1), _pair(s, "stride", 1)
    (ph, pw), (dh, dw) = _pair(s, "pad", 0), _pair(s, "dilation", 1)
    groups, outputs = s.get("group", 1), s["num_output"]
    tops = []
    for x in bottoms:
        x = np.pad(x, [(0, 0), (0, 0), (ph, ph), (pw, pw)])
        n, c, h, w = x.shape
        oh, ow = (h - dh * (kh - 1) - 1) // sh + 1, (w - dw * (kw - 1) - 1) // sw + 1
        y = np.zeros((n, outputs, oh, ow))
        for g in range(groups):
            inside = slice(g * c // groups, (g + 1) * c // groups)
            outside = slice(g * outputs // groups, (g + 1) * outputs // groups)
            for i in range(kh):
                for j in range(kw):
                    part = x[:, inside, i * dh :, j * dw :][:, :, ::sh, ::sw][:, :, :oh, :ow]
                    y[:, outside] += np.einsum("nchw,oc->nohw", part, weights[0][outside, :, i, j])
        if s.get("bias_term", True):
            y += weights[1].reshape(1, -1, 1, 1)
        tops.append(y)
    return tops


def _deconvolution(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s, (x,) = each["convolution_param"], bottoms
    (kh, kw), (sh, sw), (ph, pw) = (_pair(s, k, d) for k, d in PAIRS)
    groups, outputs = s.get("group", 1), s["num_output"]
    n, c, h, w = x.shape
    y = np.zeros((n, outputs, (h - 1) * sh + kh, (w - 1) * sw + kw))
    for g in range(groups):
        inside = slice(g * c // groups, (g + 1) * c // groups)
        outside = slice(g * outputs // groups, (g + 1) * outputs // groups)
        for i in range(kh):
            for j in range(kw):
                y[:, outside, i : i + (h - 1) * sh + 1 : sh, j : j + (w - 1) * sw + 1 : sw] += (
                    np.einsum("nchw,co->nohw", x[:, inside], weights[0][inside, :, i, j])
                )
    y = y[:, :, ph : y.shape[2] - ph, pw : y.shape[3] - pw]
    return [y + weights[1].reshape(1, -1, 1, 1) if s.get("bias_term", True) else y]


PAIRS = (("kernel_size", 1), ("stride", 1), ("pad", 0))


def _pooling(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s, (x,) = each["pooling_param"], bottoms
    n, c, h, w = x.shape
    (kh, kw), (sh, sw), (ph, pw) = (_pair(s, k, d) for k, d in PAIRS)
    if s.get("global_pooling"):
        kh, kw = h, w
    rounded = floor if s.get("round_mode") == "FLOOR" else ceil
    oh, ow = rounded((h + 2 * ph - kh) / sh) + 1, rounded((w + 2 * pw - kw) / sw) + 1
    if ph or pw:
        oh -= (oh - 1) * sh >= h + ph
        ow -= (ow - 1) * sw >= w + pw
    y = np.zeros((n, c, oh, ow))
    for i in range(oh):
        for j in range(ow):
            top, left = i * sh - ph, j * sw - pw
            bottom, right = min(top + kh, h + ph), min(left + kw, w + pw)
            size = (bottom - top) * (right - left)
            part = x[:, :, max(top, 0) : min(bottom, h), max(left, 0) : min(right, w)]
            if s.get("pool", "MAX") == "MAX":
                y[:, :, i, j] = part.max((2, 3))
            elif s["pool"] == "STOCHASTIC":
                y[:, :, i, j] = (part**2).sum((2, 3)) / np.maximum(part.sum((2, 3)), 1e-38)
            else:
                y[:, :, i, j] = part.sum((2, 3)) / size
    return [y]


def _lrn(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s, (x,) = each.get("lrn_param", {}), bottoms
    size, alpha, beta = s.get("local_size", 5), s.get("alpha", 1.0), s.get("beta", 0.75)
    half = size // 2
    total = np.zeros_like(x)
    if s.get("norm_region") == "WITHIN_CHANNEL":
        settings = {"pool": "AVE", "kernel_size": size, "pad": half}
        (mean,) = _pooling({"pooling_param": settings}, [x * x], [])
        return [x * (1 + alpha * mean) ** -beta]
    for i in range(x.shape[1]):
        total[:, i] = (x[:, max(i - half, 0) : i + half + 1] ** 2).sum(1)
    return [x * (s.get("k", 1.0) + alpha / size * total) ** -beta]


def _inner_product(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s, (x,) = each["inner_product_param"], bottoms
    axis = s.get("axis", 1)
    flat = x.reshape(*x.shape[:axis], -1)
    y = flat @ (weights[0] if s.get("transpose") else weights[0].T)
    return [y + weights[1] if s.get("bias_term", True) else y]


def _batch_norm(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    (x,), eps = bottoms, each.get("batch_norm_param", {}).get("eps", 1e-5)
    share = 1 / weights[2][0] if weights[2][0] else 0.0
    along = (1, -1, *[1] * (x.ndim - 2))
    mean, variance = ((w * share).reshape(along) for w in weights[:2])
    return [(x - mean) / np.sqrt(variance + eps)]


def _scale(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s, x = each.get("scale_param", {}), bottoms[0]
    axis = s.get("axis", 1)
    factor = bottoms[1] if len(bottoms) > 1 else weights.pop(0)
    after = [1] * (x.ndim - axis - factor.ndim)
    y = x * factor.reshape(*factor.shape, *after)
    return [y + weights[0].reshape(*weights[0].shape, *after) if s.get("bias_term") else y]


def _power(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s = each.get("power_param", {})
    return [(s.get("shift", 0) + s.get("scale", 1) * bottoms[0]) ** s.get("power", 1)]


def _prelu(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    (x,) = bottoms
    slope = weights[0].reshape(1, -1, *[1] * (x.ndim - 2))
    return [np.maximum(x, 0) + slope * np.minimum(x, 0)]


def _eltwise(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s = each.get("eltwise_param", {})
    if s.get("operation") == "PROD":
        return [np.prod(bottoms, 0)]
    if s.get("operation") == "MAX":
        return [np.max(bottoms, 0)]
    factors = s.get("coeff", [1.0] * len(bottoms))
    return [sum(f * b for f, b in zip(factors, bottoms, strict=True))]


def _softmax(x: Array, axis: int = 1) -> Array:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def _softmax_loss(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    x, labels = bottoms
    s = each.get("loss_param", {})
    p = np.moveaxis(_softmax(x), 1, -1).reshape(-1, x.shape[1])
    labels = labels.astype(int).ravel()
    counts = labels != s.get("ignore_label", -999)
    losses = -np.log(p[np.arange(len(labels))[counts], labels[counts]])
    by = {"FULL": labels.size, "VALID": counts.sum(), "BATCH_SIZE": x.shape[0], "NONE": 1}
    return [losses.sum() / max(by[s.get("normalization", "VALID")], 1), _softmax(x)]


def _accuracy(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    x, labels = bottoms
    k = each.get("accuracy_param", {}).get("top_k", 1)
    order = np.argsort(-x, 1, kind="stable")[:, :k]
    return [np.mean((order == labels.astype(int).reshape(-1, 1)).any(1))]


def _sigmoid_loss(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    x, t = bottoms
    p = 1 / (1 + np.exp(-x))
    return [-(t * np.log(p) + (1 - t) * np.log(1 - p)).sum() / len(x)]


def _hinge(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    x, labels = bottoms
    sign = np.ones_like(x)
    sign[np.arange(len(x)), labels.astype(int).ravel()] = -1
    losses = np.maximum(0, 1 + sign * x)
    power = 2 if each.get("hinge_loss_param", {}).get("norm") == "L2" else 1
    return [(losses**power).sum() / len(x)]


def _contrastive(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    a, b, same = bottoms
    margin = each.get("contrastive_loss_param", {}).get("margin", 1.0)
    d = np.sqrt(((a - b) ** 2).sum(1))
    return [np.where(same.ravel() > 0, d**2, np.maximum(margin - d, 0) ** 2).sum() / len(a) / 2]


def _mvn(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    (x,) = bottoms
    axes = (1, 2, 3) if each.get("mvn_param", {}).get("across_channels") else (2, 3)
    centred = x - x.mean(axes, keepdims=True)
    return [centred / (np.sqrt((centred**2).mean(axes, keepdims=True)) + 1e-9)]


def _slice(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    s = each.get("slice_param", {})
    return np.split(bottoms[0], s.get("slice_point", len(each["top"])), s.get("axis", 1))


def _crop(each: Layer, bottoms: list[Array], weights: list[Array]) -> list[Array]:
    x, like = bottoms
    i, j = each["crop_param"]["offset"]
    return [x[:, :, i : i + like.shape[2], j : j + like.shape[3]]]


def _of(function: Callable[[Array], Array]) -> Callable[..., list[Array]]:
    return lambda each, bottoms, weights: [function(bottoms[0])]


LAYERS: dict[str, Callable[[Layer, list[Array], list[Array]], Sequence[Array]]] = {
    "Convolution": _convolution,
    "Deconvolution": _deconvolution,
    "Pooling": _pooling,
    "LRN": _lrn,
    "InnerProduct": _inner_product,
    "BatchNorm": _batch_norm,
    "Scale": _scale,
    "Power": _power,
    "PReLU": _prelu,
    "Eltwise": _eltwise,
    "Softmax": _of(_softmax),
    "SoftmaxWithLoss": _softmax_loss,
    "Accuracy": _accuracy,
    "SigmoidCrossEntropyLoss": _sigmoid_loss,
    "HingeLoss": _hinge,
    "ContrastiveLoss": _contrastive,
    "EuclideanLoss": lambda e, b, w: [((b[0] - b[1]) ** 2).sum() / len(b[0]) / 2],
    "MVN": _mvn,
    "Slice": _slice,
    "Crop": _crop,
    "ReLU": lambda e, b, w: [
        np.where(b[0] > 0, b[0], b[0] * e.get("relu_param", {}).get("negative_slope", 0))
    ],
    "Sigmoid": _of(lambda x: 1 / (1 + np.exp(-x))),
    "TanH": _of(np.tanh),
    "AbsVal": _of(np.abs),
    "BNLL": _of(lambda x: np.log(1 + np.exp(x))),
    "Dropout": _of(lambda x: x),
    "Flatten": _of(lambda x: x.reshape(len(x), -1)),
    "Concat": lambda e, b, w: [np.concatenate(b, e.get("concat_param", {}).get("axis", 1))],
    "Split": lambda e, b, w: [b[0]] * len(e["top"]),
    "Reshape": lambda e, b, w: [b[0].reshape(len(b[0]), e["reshape_param"]["shape"]["dim"][1], -1)],
    "Exp": lambda e, b, w: [
        e["exp_param"]["base"] ** (e["exp_param"]["shift"] + e["exp_param"]["scale"] * b[0])
    ],
    "Reduction": lambda e, b, w: [(b[0] ** 2).sum((1, 2, 3)) * e["reduction_param"]["coeff"]],
}
"""The layers by type: what returns the tops of a layer, from its bottoms and its weights."""
