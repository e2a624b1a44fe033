"""The light networks compute what onnxruntime says, and their weights make a test of it."""

import numpy as np
import onnx
import onnxruntime
import pytest
from lengths import large
from onnx import numpy_helper

from abele.ir.errors import InputError
from abele.tools.importers import light_networks

# Of the largest output: what five runtimes agree to on these networks is 6e-4.
TOLERANCE = 2e-3

QUICK = "squeezenet"

# Their operators are those of the other networks: tests/tools/test_networks.py compares them.
LARGE = ("vgg19", "zfnet512", "inception_v1", "densenet121")


def marks(name):
    slow = [] if name == QUICK else [pytest.mark.slow]
    return [*slow, pytest.mark.large] if name in LARGE else slow


NAMES = [pytest.param(name, marks=marks(name)) for name in light_networks.light_names()]


@pytest.fixture
def fresh_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("ABELE_CACHE", str(tmp_path))
    return tmp_path


def by_onnxruntime(model, feeds):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options)
    return [session.run(None, feed)[0] for feed in feeds]


def by_light(model, feed):
    """The model's output by the evaluator that calibrates it."""
    values = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer} | feed
    for node in model.graph.node:
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        operands = [values[key] for key in node.input]
        if node.op_type in light_networks.PRODUCTS:
            result = light_networks.PRODUCTS[node.op_type](operands[0], operands[1], attributes)
            if len(operands) > 2:
                result = result + operands[2].reshape(1, -1, *[1] * (result.ndim - 2))
        elif node.op_type == "BatchNormalization":
            value, *rest = operands
            scale, shift, mean, variance = (each.reshape(1, -1, 1, 1) for each in rest)
            deviation = np.sqrt(variance + attributes.get("epsilon", 1e-5))
            result = ((value - mean) / deviation * scale + shift).astype(np.float32)
        elif node.op_type == "Reshape":
            result = operands[0].reshape(operands[1])
        else:
            result = light_networks.EVALUATE[node.op_type](operands, attributes)
        values[node.output[0]] = result
    return values[model.graph.output[0].name]


def with_two_channels_swapped(model):
    """A copy in which two output channels of the middle convolution's weights change places."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    convolutions = [node for node in changed.graph.node if node.op_type == "Conv"]
    weight = convolutions[len(convolutions) // 2].input[1]
    (tensor,) = (t for t in changed.graph.initializer if t.name == weight)
    values = numpy_helper.to_array(tensor).copy()
    values[[0, 1]] = values[[1, 0]]
    tensor.CopyFrom(numpy_helper.from_array(values, weight))
    return changed


@pytest.mark.parametrize(
    "name", [name if name in ("squeezenet", "shufflenet") else large(name) for name in NAMES]
)
def test_network_is_a_test_worth_passing(name):
    model = light_networks.seeded(name)
    onnx.checker.check_model(model)
    feeds = [light_networks.light_input(name, seed) for seed in range(2)]
    outputs = by_onnxruntime(model, feeds)
    assert all(np.isfinite(output).all() for output in outputs)

    difference = np.abs(by_light(model, feeds[0]) - outputs[0]).max()
    assert difference < TOLERANCE * np.abs(outputs[0]).max()

    assert len({int(output.argmax()) for output in outputs}) > 1

    (swapped,) = by_onnxruntime(with_two_channels_swapped(model), feeds[:1])
    assert np.abs(swapped - outputs[0]).max() > 10 * TOLERANCE * np.abs(outputs[0]).max()


def test_same_seed_gives_the_same_bits_with_and_without_the_cache(fresh_cache):
    first = light_networks.seeded(QUICK)
    (file,) = fresh_cache.iterdir()
    assert file.stat().st_size < 1_000_000
    cached = light_networks.seeded(QUICK)
    file.write_bytes(b"half a file")
    again = light_networks.seeded(QUICK)
    assert first == cached == again
    assert light_networks.seeded(QUICK, 1) != first


def test_an_unwritable_cache_is_not_an_error(tmp_path, monkeypatch):
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    monkeypatch.setenv("ABELE_CACHE", str(blocked / "folder"))
    assert light_networks.seeded(QUICK).graph.node


def test_constants_become_initializers_that_are_not_inputs():
    model = light_networks.seeded(QUICK)
    assert not [node for node in model.graph.node if node.op_type == "ConstantOfShape"]
    assert [each.name for each in model.graph.input] == list(light_networks.light_input(QUICK))


def test_input_is_seeded():
    ((key, image),) = light_networks.light_input(QUICK, 3).items()
    assert image.shape == (1, 3, 224, 224)
    assert image.dtype == np.float32
    assert np.array_equal(image, light_networks.light_input(QUICK, 3)[key])
    assert not np.array_equal(image, light_networks.light_input(QUICK, 4)[key])


@pytest.mark.parametrize("make", [light_networks.seeded, light_networks.light_input])
def test_bad_name_and_seed_are_refused(make):
    with pytest.raises(InputError, match=r"'lenet'; need one of alexnet, .*densenet121"):
        make("lenet")
    with pytest.raises(InputError, match=r"seed -1; need 0 or more"):
        make(QUICK, -1)
