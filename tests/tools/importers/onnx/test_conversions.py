"""Casts of ONNX, run as conformance suites run them, against what the standard says of a value."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.tools.onnx_backend import AbeleBackend


def run(operator, given, *outputs, **attributes):
    """The results of a model of one node on some arrays. outputs: ONNX's types."""
    names = [f"x{i}" for i in range(len(given))]
    results = [f"y{i}" for i in range(len(outputs))]
    node = helper.make_node(operator, names, results, **attributes)
    graph = helper.make_graph(
        [node],
        "g",
        [
            helper.make_tensor_value_info(
                name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape
            )
            for name, array in zip(names, given, strict=True)
        ],
        [
            helper.make_tensor_value_info(name, kind, None)
            for name, kind in zip(results, outputs, strict=True)
        ],
    )
    opset = [helper.make_opsetid("", 26)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=13)
    return AbeleBackend.prepare(model).run(list(given))


def cast(values, kind, **attributes):
    """Floats cast to a type of ONNX, as float64."""
    (found,) = run("Cast", [np.array(values, np.float32)], kind, to=kind, **attributes)
    return found.astype(np.float64).tolist()


def test_a_cast_to_float8_saturates_unless_it_is_told_not_to():
    values = [1e6, -1e6, np.inf, 0.3]
    assert cast(values, TensorProto.FLOAT8E4M3FN) == [448, -448, 448, 0.3125]
    assert cast(values[:2], TensorProto.FLOAT8E5M2, saturate=0) == [np.inf, -np.inf]
    assert np.isnan(cast(values[:2], TensorProto.FLOAT8E4M3FN, saturate=0)).all()


@pytest.mark.parametrize(
    ("mode", "wanted"),
    [("up", [2, 2, 2, 0.25]), ("down", [1, 1, 1, 0.125]), ("nearest", [1, 2, 2, 0.125])],
)
def test_a_cast_to_exponents_rounds_as_it_is_told(mode, wanted):
    values = [1.4, 1.5, 1.6, 0.13]
    assert cast(values, TensorProto.FLOAT8E8M0, round_mode=mode) == wanted


def test_an_unknown_rounding_is_refused():
    with pytest.raises(ValueError, match="round_mode 'sideways'; need up, down, nearest"):
        cast([1.0], TensorProto.FLOAT8E8M0, round_mode="sideways")


def test_integers_of_few_bits_are_taken_modulo_their_width():
    assert cast([9.7, -9.7, 3], TensorProto.INT4) == [-7, 7, 3]
    assert cast([5, -1], TensorProto.UINT2) == [1, 3]


def test_packed_weights_are_read_one_element_a_byte():
    values = np.array([1, -2, 3, 7, -8], np.int8)
    packed = helper.make_tensor("w", TensorProto.INT4, [5], values)
    node = helper.make_node("Cast", ["w"], ["y"], to=TensorProto.INT32)
    out = helper.make_tensor_value_info("y", TensorProto.INT32, [5])
    graph = helper.make_graph([node], "g", [], [out], [packed])
    opset = [helper.make_opsetid("", 26)]
    model = helper.make_model(graph, opset_imports=opset, ir_version=13)
    (found,) = AbeleBackend.prepare(model).run([])
    assert found.tolist() == values.tolist()
    packed.raw_data = bytes(2)
    del packed.int32_data[:]
    graph.initializer[0].CopyFrom(packed)
    model = helper.make_model(graph, opset_imports=opset, ir_version=13)
    with pytest.raises(ValueError, match="damaged tensor: 2 bytes; int4.5. has 3"):
        AbeleBackend.prepare(model)


def test_bits_of_a_float_become_an_integer():
    (found,) = run("BitCast", [np.array([1.0, -2.5], np.float32)], TensorProto.INT32, to=6)
    assert found.tolist() == [0x3F800000, 0xC0200000 - (1 << 32)]


def test_an_array_of_onnx_is_taken_as_it_is_stored():
    x = np.array([1.0, 2.0], np.float32)
    tensor = numpy_helper.from_array(x)
    node = helper.make_node("Neg", ["x"], ["y"])
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2]) for name in "xy"]
    graph = helper.make_graph([node], "g", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    assert isinstance(tensor, onnx.TensorProto)
    assert AbeleBackend.run_model(model, [tensor])[0].tolist() == [-1, -2]
