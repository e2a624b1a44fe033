import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper, numpy_helper
from some_models import SMALL, model, node, random, relu

from abele.backends.reference import run_reference
from abele.tools.debug.run_check import TOLERANCE, relative_error
from abele.tools.driver.arrays import seeded
from abele.tools.driver.compile import compile_model
from abele.tools.onnx_backend import AbeleBackend

OPERATORS = {
    "ConstantOfShape",
    "Conv",
    "Relu",
    "Unsqueeze",
    "BatchNormalization",
    "Mul",
    "Add",
    "Sum",
    "Concat",
    "Reshape",
    "MaxPool",
    "AveragePool",
    "GlobalAveragePool",
    "Transpose",
    "Gemm",
    "Softmax",
    "LRN",
    "Dropout",
}


def by_onnxruntime(proto: onnx.ModelProto, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    names = [each.name for each in session.get_outputs()]
    return dict(zip(names, session.run(names, inputs), strict=True))


def test_the_small_models_have_all_operators_of_the_light_networks():
    found = {each.op_type for make in SMALL.values() for each in make().graph.node}
    assert found == OPERATORS


@pytest.mark.parametrize("target", ["tiny:4", "tiny:5", "tiny:16"])
@pytest.mark.parametrize("name", SMALL)
def test_every_level_of_a_small_model_agrees_with_onnxruntime(name: str, target: str):
    proto = SMALL[name]()
    exe = compile_model(proto, target)
    inputs = seeded(exe.inputs, seed=1)
    expected = by_onnxruntime(proto, inputs)
    for level in exe.levels:
        results = exe.run(inputs, at=level)
        assert {k: v.shape for k, v in results.items()} == {k: v.shape for k, v in expected.items()}
        for key, value in expected.items():
            assert relative_error(results[key], value) < 1e-5, level
    strict = exe.run(inputs, strict=True)
    plain = exe.run(inputs)
    for key in expected:
        np.testing.assert_array_equal(strict[key], plain[key])


def test_two_runs_are_equal_to_the_bit():
    exe = compile_model(SMALL["convolutions"](), "tiny:5")
    inputs = seeded(exe.inputs)
    np.testing.assert_array_equal(exe.run(inputs)["y"], exe.run(inputs)["y"])


def test_swapped_channels_of_a_convolution_do_not_pass():
    proto = SMALL["convolutions"]()
    exe = compile_model(proto, "tiny:4")
    inputs = seeded(exe.inputs)
    weight = next(each for each in proto.graph.initializer if each.name == "w0")
    swapped = numpy_helper.to_array(weight)[[1, 0, 2, 3, 4, 5]]
    weight.CopyFrom(numpy_helper.from_array(swapped, "w0"))
    wrong = run_reference(compile_model(proto, "tiny:4").module_at("nn"), inputs).outputs
    assert relative_error(exe.run(inputs)["y"], wrong["y"]) > 10 * TOLERANCE


def test_prepare_and_run_take_lists():
    x = random((2, 3))
    (y,) = AbeleBackend.prepare(relu()).run([x])
    np.testing.assert_array_equal(y, np.maximum(x, 0))
    (again,) = AbeleBackend.run_model(relu(), [x])
    np.testing.assert_array_equal(again, y)


def test_a_wrong_number_of_inputs_is_refused():
    with pytest.raises(ValueError, match="2 inputs; need 1: x"):
        AbeleBackend.prepare(relu()).run([random((2, 3)), random((2, 3))])


def test_unsupported_operators_raise_not_implemented():
    proto = model([node("ImageDecoder", "x", "y")], {"x": [2, 2]}, ["y"])
    with pytest.raises(NotImplementedError, match="ImageDecoder"):
        AbeleBackend.prepare(proto)


def test_a_shape_that_is_an_input_is_compiled_for_each_of_its_values():
    graph = helper.make_graph(
        [node("Reshape", "x shape", "y")],
        "reshape",
        [
            helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 3]),
            helper.make_tensor_value_info("shape", onnx.TensorProto.INT64, [2]),
        ],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [None, None])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    prepared = AbeleBackend.prepare(proto)
    assert prepared.fixed == ("shape",)
    x = random((2, 3))
    for shape in ((3, 2), (6, 1), (3, 2)):
        (y,) = prepared.run([x, np.array(shape, np.int64)])
        np.testing.assert_array_equal(y, x.reshape(shape))
