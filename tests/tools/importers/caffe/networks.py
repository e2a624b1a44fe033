"""Networks in the manner of published ones, small enough for tests."""

from __future__ import annotations

from typing import Any

import numpy as np

from .numpy_layers import Array, Layer, Word, evaluated, layer

MAX = {"pool": Word("MAX")}
AVERAGE = {"pool": Word("AVE")}


def convolution(name: str, bottom: str, outputs: int, size: int, **more: Any) -> Layer:
    settings = {"num_output": outputs, "kernel_size": size, **more}
    return layer("Convolution", name, bottom, convolution_param=settings)


def relu(name: str) -> Layer:
    """In place."""
    return layer("ReLU", f"{name}/relu", name, name)


def pool(name: str, bottom: str, **settings: Any) -> Layer:
    return layer("Pooling", name, bottom, pooling_param=settings)


def inner(name: str, bottom: str, outputs: int) -> Layer:
    return layer("InnerProduct", name, bottom, inner_product_param={"num_output": outputs})


def alexnet(width: int, classes: int) -> list[Layer]:
    """The layers of AlexNet up to the scores. The published one has width 32 and 1000 classes."""
    norm = {"local_size": 5, "alpha": 0.0001, "beta": 0.75}
    three = {"kernel_size": 3, "stride": 2}
    w = width
    return [
        convolution("conv1", "data", 3 * w, 11, stride=4),
        relu("conv1"),
        layer("LRN", "norm1", "conv1", lrn_param=norm),
        pool("pool1", "norm1", **MAX, **three),
        convolution("conv2", "pool1", 8 * w, 5, pad=2, group=2),
        relu("conv2"),
        layer("LRN", "norm2", "conv2", lrn_param=norm),
        pool("pool2", "norm2", **MAX, **three),
        convolution("conv3", "pool2", 12 * w, 3, pad=1),
        relu("conv3"),
        convolution("conv4", "conv3", 12 * w, 3, pad=1, group=2),
        relu("conv4"),
        convolution("conv5", "conv4", 8 * w, 3, pad=1, group=2),
        relu("conv5"),
        pool("pool5", "conv5", **MAX, **three),
        inner("fc6", "pool5", 128 * w),
        relu("fc6"),
        layer("Dropout", "drop6", "fc6", "fc6"),
        inner("fc7", "fc6", 128 * w),
        relu("fc7"),
        layer("Dropout", "drop7", "fc7", "fc7"),
        inner("fc8", "fc7", classes),
    ]


def inception(bottom: str, name: str, sizes: tuple[int, ...]) -> list[Layer]:
    """A block of GoogLeNet: four ways, side by side."""
    one, three_in, three, five_in, five, after_pool = sizes
    ways = [f"{name}/1x1", f"{name}/3x3", f"{name}/5x5", f"{name}/pool_proj"]
    return [
        convolution(ways[0], bottom, one, 1),
        relu(ways[0]),
        convolution(f"{name}/3x3_reduce", bottom, three_in, 1),
        relu(f"{name}/3x3_reduce"),
        convolution(ways[1], f"{name}/3x3_reduce", three, 3, pad=1),
        relu(ways[1]),
        convolution(f"{name}/5x5_reduce", bottom, five_in, 1),
        relu(f"{name}/5x5_reduce"),
        convolution(ways[2], f"{name}/5x5_reduce", five, 5, pad=2),
        relu(ways[2]),
        pool(f"{name}/pool", bottom, **MAX, kernel_size=3, stride=1, pad=1),
        convolution(ways[3], f"{name}/pool", after_pool, 1),
        relu(ways[3]),
        layer("Concat", f"{name}/output", ways),
    ]


def googlenet() -> list[Layer]:
    return [
        convolution("conv1", "data", 8, 7, pad=3, stride=2),
        relu("conv1"),
        pool("pool1", "conv1", **MAX, kernel_size=3, stride=2),
        layer("LRN", "norm1", "pool1", lrn_param={"local_size": 5, "alpha": 0.0001}),
        *inception("norm1", "3a", (4, 6, 8, 2, 4, 4)),
        *inception("3a/output", "3b", (6, 4, 4, 2, 2, 4)),
        pool("pool5", "3b/output", **AVERAGE, global_pooling=True),
        layer("Dropout", "drop", "pool5", "pool5", dropout_param={"dropout_ratio": 0.4}),
        inner("fc", "pool5", 5),
        layer("Softmax", "prob", "fc"),
    ]


def squeezenet() -> list[Layer]:
    """Two fire modules, a pooling that rounds up, and a convolution for the scores."""

    def fire(bottom: str, name: str, squeezed: int, expanded: int) -> list[Layer]:
        inner_, ways = f"{name}/squeeze", [f"{name}/expand1x1", f"{name}/expand3x3"]
        return [
            convolution(inner_, bottom, squeezed, 1),
            relu(inner_),
            convolution(ways[0], inner_, expanded, 1),
            relu(ways[0]),
            convolution(ways[1], inner_, expanded, 3, pad=1),
            relu(ways[1]),
            layer("Concat", f"{name}/concat", ways),
        ]

    return [
        convolution("conv1", "data", 8, 3, stride=2),
        relu("conv1"),
        pool("pool1", "conv1", **MAX, kernel_size=3, stride=2),
        *fire("pool1", "fire2", 4, 8),
        *fire("fire2/concat", "fire3", 4, 8),
        convolution("conv10", "fire3/concat", 6, 1, pad=1),
        relu("conv10"),
        pool("pool10", "conv10", **AVERAGE, global_pooling=True),
        layer("Softmax", "prob", "pool10"),
    ]


def resnet() -> list[Layer]:
    """A stem and two blocks, with BatchNorm and Scale in place."""

    def normed(name: str, bottom: str, outputs: int, size: int, **more: Any) -> list[Layer]:
        return [
            convolution(name, bottom, outputs, size, bias_term=False, **more),
            layer("BatchNorm", f"bn_{name}", name, name),
            layer("Scale", f"scale_{name}", name, name, scale_param={"bias_term": True}),
        ]

    def block(name: str, bottom: str, outputs: int, stride: int) -> list[Layer]:
        side = normed(f"{name}_branch1", bottom, outputs, 1, stride=stride) if stride > 1 else []
        return [
            *side,
            *normed(f"{name}_2a", bottom, outputs, 3, pad=1, stride=stride),
            relu(f"{name}_2a"),
            *normed(f"{name}_2b", f"{name}_2a", outputs, 3, pad=1),
            layer("Eltwise", name, [f"{name}_branch1" if side else bottom, f"{name}_2b"]),
            relu(name),
        ]

    return [
        *normed("conv1", "data", 8, 7, pad=3, stride=2),
        relu("conv1"),
        pool("pool1", "conv1", **MAX, kernel_size=3, stride=2),
        *block("res2a", "pool1", 8, 1),
        *block("res3a", "res2a", 12, 2),
        pool("pool5", "res3a", **AVERAGE, global_pooling=True),
        inner("fc", "pool5", 5),
        layer("Softmax", "prob", "fc"),
    ]


def weights_of(layers: list[Layer], image: Array) -> dict[str, list[Array]]:
    """Random weights for a network, by layer. Shapes follow from those of the values."""
    random = np.random.default_rng(3)
    blobs: dict[str, list[Array]] = {}

    def drawn(*shape: int) -> Array:
        inside = int(np.prod(shape[1:])) or 1
        return (random.standard_normal(shape) * (2 / inside) ** 0.5).astype(np.float32)

    values = {"data": image}
    for each in layers:
        below = values[each["bottom"][0]]
        settings = each.get("convolution_param") or each.get("inner_product_param")
        name = each["name"]
        if each["type"] == "Convolution":
            inside = below.shape[1] // settings.get("group", 1)
            kernel = [settings["kernel_size"]] * 2
            blobs[name] = [drawn(settings["num_output"], inside, *kernel)]
        elif each["type"] == "InnerProduct":
            blobs[name] = [drawn(settings["num_output"], below[0].size)]
        elif each["type"] in ("BatchNorm", "Scale"):
            count = below.shape[1]
            noise = random.standard_normal((2, count)).astype(np.float32) * 0.2
            one = np.full(1, 3.0, np.float32)
            blobs[name] = [noise[0] + (each["type"] == "Scale"), noise[1]]
            if each["type"] == "BatchNorm":
                blobs[name] = [noise[0], np.exp(noise[1]) * 3, one]
        if settings is not None and settings.get("bias_term", True):
            blobs[name].append(drawn(settings["num_output"], 100)[:, 0])
        values |= evaluated([each], values, blobs)
    return blobs
