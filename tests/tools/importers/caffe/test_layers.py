"""Each layer computes what it computes in Caffe, after a second implementation in NumPy."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from abele.backends.reference import run_reference
from abele.ir.context import AbeleContext
from abele.ir.support.errors import InputError
from abele.tools.importers.caffe.reader import read_caffe
from abele.tools.importers.front_end import Reading
from abele.tools.testing.hostile.caffe_files import caffemodel

from .numpy_layers import Array, Layer, Word, evaluated, layer, text_of


def floats(*shape: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def computed(
    folder: Path, layers: list[Layer], inputs: dict[str, Array], blobs: dict[str, list[Array]]
) -> dict[str, Array]:
    """The outputs of a network, as its operations of nn compute them."""
    path = folder / "net.prototxt"
    given = [
        layer("Input", name, input_param={"shape": {"dim": list(array.shape)}})
        for name, array in inputs.items()
    ]
    path.write_text(text_of([*given, *layers]))
    types = {each["name"]: each["type"] for each in layers}
    if blobs:
        weights = caffemodel((name, types[name], arrays) for name, arrays in blobs.items())
        path.with_suffix(".caffemodel").write_bytes(weights)
    module = read_caffe(path, Reading(AbeleContext(), str(path)))
    return dict(run_reference(module, inputs).outputs)


def agree(
    folder: Path,
    layers: list[Layer],
    inputs: dict[str, Array],
    blobs: dict[str, list[Array]] | None = None,
) -> None:
    found = computed(folder, layers, inputs, blobs or {})
    wanted = evaluated(layers, inputs, blobs or {})
    assert found
    for name, array in found.items():
        assert array.shape == np.shape(wanted[name]), name
        np.testing.assert_allclose(array, wanted[name], rtol=2e-5, atol=2e-6, err_msg=name)


def one(type_: str, **settings: Any) -> list[Layer]:
    return [layer(type_, "y", "x", **settings)]


IMAGE = floats(2, 4, 7, 6)


@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3},
        {"kernel_size": 3, "pad": 1, "stride": 2, "group": 2},
        {"kernel_h": 1, "kernel_w": 3, "pad_w": 1, "stride_h": 2, "bias_term": False},
        {"kernel_size": [2, 3], "dilation": 2, "pad": [1, 2]},
    ],
)
def test_convolutions(tmp_path: Path, settings: dict[str, Any]):
    kernel = [settings.get("kernel_size", 0), settings.get("kernel_size", 0)]
    if "kernel_h" in settings:
        kernel = [1, 3]
    if isinstance(settings.get("kernel_size"), list):
        kernel = settings["kernel_size"]
    weights = [floats(6, 4 // settings.get("group", 1), *kernel, seed=1)]
    weights += [floats(6, seed=2)] * settings.get("bias_term", True)
    net = one("Convolution", convolution_param={"num_output": 6, **settings})
    agree(tmp_path, net, {"x": IMAGE}, {"y": weights})


@pytest.mark.parametrize("group", [1, 2])
def test_deconvolutions(tmp_path: Path, group: int):
    settings = {"num_output": 6, "kernel_size": 3, "stride": 2, "pad": 1, "group": group}
    weights = [floats(4, 6 // group, 3, 3, seed=1), floats(6, seed=2)]
    net = one("Deconvolution", convolution_param=settings)
    agree(tmp_path, net, {"x": IMAGE}, {"y": weights})


def test_a_convolution_of_two_bottoms_uses_its_weights_twice(tmp_path: Path):
    net = [
        layer(
            "Convolution",
            "c",
            ["x", "z"],
            ["a", "b"],
            convolution_param={
                "num_output": 3,
                "kernel_size": 2,
            },
        )
    ]
    weights = [floats(3, 4, 2, 2, seed=1), floats(3, seed=2)]
    agree(tmp_path, net, {"x": IMAGE, "z": floats(2, 4, 5, 5, seed=3)}, {"c": weights})


@pytest.mark.parametrize("pool", ["MAX", "AVE"])
@pytest.mark.parametrize(
    "settings",
    [
        {"kernel_size": 3, "stride": 2},
        {"kernel_size": 2, "stride": 2, "pad": 1},
        {"kernel_size": 3, "stride": 2, "pad": 1},
        {"kernel_size": 3, "stride": 2, "round_mode": Word("FLOOR")},
        {"kernel_h": 2, "kernel_w": 4, "stride_h": 3, "stride_w": 1, "pad_w": 2},
        {"kernel_size": 5, "stride": 4, "pad": 2},
        {"global_pooling": True},
    ],
)
def test_pools_round_up_and_clip_the_last_window(tmp_path: Path, pool: str, settings: Layer):
    agree(tmp_path, one("Pooling", pooling_param={"pool": Word(pool), **settings}), {"x": IMAGE})


@pytest.mark.parametrize("settings", [{"kernel_size": 3, "stride": 2}, {"global_pooling": True}])
def test_stochastic_pools_are_weighted_means_in_the_test_phase(tmp_path: Path, settings: Layer):
    image = np.maximum(IMAGE, 0)
    image[0, 1] = 0
    net = one("Pooling", pooling_param={"pool": Word("STOCHASTIC"), **settings})
    agree(tmp_path, net, {"x": image})


@pytest.mark.parametrize(
    ("settings", "training", "message"),
    [
        ({"kernel_size": 2}, True, "pooling of a random element is not supported"),
        ({"kernel_size": 2, "pad": 1}, False, r"pad.*\[1, 1\] with STOCHASTIC; need 0"),
    ],
)
def test_stochastic_pools_have_no_padding_and_are_not_trained(
    tmp_path: Path, settings: Layer, training: bool, message: str
):
    path = tmp_path / "net.prototxt"
    given = layer("Input", "x", input_param={"shape": {"dim": [1, 1, 4, 4]}})
    net = one("Pooling", pooling_param={"pool": Word("STOCHASTIC"), **settings})
    path.write_text(text_of([given, *net]))
    with pytest.raises(InputError, match=message):
        read_caffe(path, Reading(AbeleContext(), str(path), training=training))


@pytest.mark.parametrize("region", ["ACROSS_CHANNELS", "WITHIN_CHANNEL"])
def test_local_response_normalisation(tmp_path: Path, region: str):
    settings = {"local_size": 3, "alpha": 0.5, "beta": 0.6, "norm_region": Word(region)}
    agree(tmp_path, one("LRN", lrn_param=settings), {"x": IMAGE})


@pytest.mark.parametrize("settings", [{}, {"axis": 2}, {"transpose": True}, {"bias_term": False}])
def test_inner_products(tmp_path: Path, settings: Layer):
    inner = 42 if "axis" in settings else 168
    shape = (inner, 5) if "transpose" in settings else (5, inner)
    weights = [floats(*shape, seed=1)] + [floats(5, seed=2)] * settings.get("bias_term", True)
    net = one("InnerProduct", inner_product_param={"num_output": 5, **settings})
    agree(tmp_path, net, {"x": IMAGE}, {"y": weights})


def test_a_batch_norm_divides_its_sums_by_the_factor(tmp_path: Path):
    sums = [floats(4, seed=1), np.abs(floats(4, seed=2)) + 1, np.array([2.5], np.float32)]
    net = [
        layer("BatchNorm", "bn", "x", "y", batch_norm_param={"eps": 0.01}),
        layer("Scale", "s", "y", "y", scale_param={"bias_term": True}),
    ]
    agree(tmp_path, net, {"x": IMAGE}, {"bn": sums, "s": [floats(4, seed=3), floats(4, seed=4)]})
    agree(tmp_path, net[:1], {"x": IMAGE}, {"bn": [*sums[:2], np.zeros(1, np.float32)]})


def test_a_scale_by_a_second_bottom_lies_along_its_axis(tmp_path: Path):
    net = [layer("Scale", "y", ["x", "z"], scale_param={"axis": 0})]
    agree(tmp_path, net, {"x": IMAGE, "z": floats(2, 4, seed=1)})


@pytest.mark.parametrize(
    "net",
    [
        one("ReLU", relu_param={"negative_slope": 0.1}),
        one("Sigmoid"),
        one("TanH"),
        one("AbsVal"),
        one("BNLL"),
        one("Dropout"),
        one("Flatten"),
        one("Softmax"),
        one("MVN", mvn_param={"across_channels": True}),
        one("Power", power_param={"power": 2, "scale": 0.5, "shift": 0.1}),
        one("Power", power_param={"power": 3, "shift": 0.1}),
        one("Exp", exp_param={"base": 2, "scale": 0.5, "shift": 1}),
        one("Reshape", reshape_param={"shape": {"dim": [0, 12, -1]}}),
        one("Reduction", reduction_param={"operation": Word("SUMSQ"), "axis": 1, "coeff": 0.5}),
        [layer("Slice", "s", "x", ["a", "b", "c"], slice_param={"axis": 2, "slice_point": [1, 4]})],
        [layer("Slice", "s", "x", ["a", "b"])],
        [layer("Split", "s", "x", ["a", "b"]), layer("ReLU", "r", "a")],
    ],
    ids=lambda net: net[0]["type"],
)
def test_layers_of_one_bottom(tmp_path: Path, net: list[Layer]):
    agree(tmp_path, net, {"x": IMAGE})


def test_a_prelu_has_a_slope_for_each_channel(tmp_path: Path):
    agree(tmp_path, one("PReLU"), {"x": IMAGE}, {"y": [floats(4, seed=1)]})


@pytest.mark.parametrize(
    "settings",
    [{}, {"operation": Word("PROD")}, {"operation": Word("MAX")}, {"coeff": [0.5, -1.0]}],
)
def test_eltwise(tmp_path: Path, settings: Layer):
    net = [layer("Eltwise", "y", ["x", "z"], eltwise_param=settings)]
    agree(tmp_path, net, {"x": IMAGE, "z": floats(2, 4, 7, 6, seed=1)})


def test_concat_and_crop(tmp_path: Path):
    z = floats(2, 4, 3, 4, seed=1)
    agree(
        tmp_path,
        [
            layer("Crop", "c", ["x", "z"], crop_param={"offset": [2, 1]}),
            layer("Concat", "y", ["c", "z"]),
        ],
        {"x": IMAGE, "z": z},
    )


LABELS = np.array([[2, 0, 1], [1, 3, 3]], np.int32)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"normalization": Word("BATCH_SIZE")},
        {"normalization": Word("NONE")},
        {"ignore_label": 3},
        {"ignore_label": 3, "normalization": Word("FULL")},
    ],
)
def test_a_softmax_loss_over_positions(tmp_path: Path, settings: Layer):
    net = [layer("SoftmaxWithLoss", "loss", ["x", "t"], ["loss", "p"], loss_param=settings)]
    agree(tmp_path, net, {"x": floats(2, 4, 3), "t": LABELS})


def test_losses_and_accuracy(tmp_path: Path):
    scores, other = floats(6, 5), floats(6, 5, seed=1)
    labels = np.array([0, 4, 1, 1, 2, 3], np.int32)
    flags = (other > 0).astype(np.float32)
    for net, inputs in (
        ([layer("Accuracy", "a", ["x", "t"], accuracy_param={"top_k": 2})], labels),
        ([layer("HingeLoss", "h", ["x", "t"], hinge_loss_param={"norm": Word("L2")})], labels),
        ([layer("EuclideanLoss", "e", ["x", "t"])], other),
        ([layer("SigmoidCrossEntropyLoss", "s", ["x", "t"])], flags),
    ):
        agree(tmp_path, net, {"x": scores, "t": inputs})
    same = np.array([1, 0, 1, 0, 0, 1], np.float32)
    margin = {"margin": 2.0}
    net = [layer("ContrastiveLoss", "c", ["x", "z", "t"], contrastive_loss_param=margin)]
    agree(tmp_path, net, {"x": scores, "z": other, "t": same})
