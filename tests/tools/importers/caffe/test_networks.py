"""Networks in the manner of published ones compute what NumPy and their ONNX form do."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from abele.ir.text import print_module
from abele.tools import compile_model
from abele.tools.testing.hostile.caffe_files import caffemodel

from .networks import alexnet, googlenet, resnet, squeezenet, weights_of
from .numpy_layers import Array, Layer, evaluated, layer, text_of
from .test_layers import agree, floats

NETWORKS = {"googlenet": googlenet, "squeezenet": squeezenet, "resnet": resnet}


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_agree_with_numpy(tmp_path: Path, name: str):
    net, image = NETWORKS[name](), floats(2, 3, 33, 31)
    agree(tmp_path, net, {"data": image}, weights_of(net, image))


def onnx_of(layers: list[Layer], image: Array, blobs: dict[str, list[Array]]) -> onnx.ModelProto:
    """AlexNet's layers as nodes of ONNX, with the same names."""
    nodes, present = [], {"data": "data"}
    weights: list[onnx.TensorProto] = []
    for each in layers:
        name, type_ = each["name"], each["type"]
        given = [present[each["bottom"][0]]]
        for part, array in zip(("weight", "bias"), blobs.get(name, ()), strict=False):
            weights.append(numpy_helper.from_array(array, f"{name}.{part}"))
            given.append(f"{name}.{part}")
        if type_ == "Dropout":
            continue
        settings = next((v for k, v in each.items() if k.endswith("_param")), {})
        attributes = {}
        if type_ == "InnerProduct":
            flat = f"{name}/flat"
            nodes.append(helper.make_node("Flatten", given[:1], [flat], flat))
            given[0], attributes = flat, {"transB": 1}
        elif type_ == "LRN":
            attributes = {"size": 5, "alpha": settings["alpha"], "beta": settings["beta"]}
        elif type_ in ("Convolution", "Pooling"):
            attributes = {
                "kernel_shape": [settings["kernel_size"]] * 2,
                "strides": [settings.get("stride", 1)] * 2,
                "pads": [settings.get("pad", 0)] * 4,
            }
            attributes |= {"group": settings["group"]} if "group" in settings else {}
        kinds = {"Convolution": "Conv", "Pooling": "MaxPool", "InnerProduct": "Gemm"}
        operator = {**kinds, "ReLU": "Relu", "LRN": "LRN"}[type_]
        nodes.append(helper.make_node(operator, given, [f"{name}/top"], name, **attributes))
        present[each["top"][0]] = f"{name}/top"
    nodes[-1].output[0] = layers[-1]["name"]
    graph = helper.make_graph(
        nodes,
        "alexnet",
        [helper.make_tensor_value_info("data", onnx.TensorProto.FLOAT, image.shape)],
        [helper.make_empty_tensor_value_info(layers[-1]["name"])],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)])


def test_alexnet_is_the_same_program_by_caffe_and_by_onnx(tmp_path: Path):
    """All bytes at exchange are equal, but for the places in the files."""
    net, image = alexnet(2, 10), floats(1, 3, 67, 67)
    blobs = weights_of(net, image)
    path = tmp_path / "net.prototxt"
    shape = {"shape": {"dim": list(image.shape)}}
    path.write_text(text_of([layer("Input", "data", input_param=shape), *net]))
    types = {each["name"]: each["type"] for each in net}
    path.with_suffix(".caffemodel").write_bytes(
        caffemodel((name, types[name], arrays) for name, arrays in blobs.items())
    )
    models = [path, onnx_of(net, image, blobs)]
    programs = [compile_model(each, "tiny:32", cache=False) for each in models]
    texts = [print_module(each.module_at("exchange"), locations=False) for each in programs]
    assert texts[0] == texts[1]
    found = programs[0].run({"data": image})["fc8"]
    wanted = evaluated(net, {"data": image}, blobs)["fc8"]
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)
