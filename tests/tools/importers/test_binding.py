from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from xdsl.dialects.func import FuncOp

from abele.dialects import nn
from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools import compile_model
from abele.tools.importers import import_onnx


def model(x: list[Any], shape: list[Any] | None = None, operator: str = "Relu") -> onnx.ModelProto:
    """A model of one node of an input x of float32, and of an input `shape` of int64."""
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)]
    if shape is not None:
        inputs.append(helper.make_tensor_value_info("shape", TensorProto.INT64, shape))
    node = helper.make_node(operator, [each.name for each in inputs], ["y"], "node")
    output = helper.make_empty_tensor_value_info("y")
    graph = helper.make_graph([node], "graph", inputs, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def input_shapes(proto: onnx.ModelProto, **options: Any) -> list[tuple[int, ...]]:
    module = import_onnx(proto, AbeleContext(), **options)
    main = next(op for op in module.walk() if isinstance(op, FuncOp))
    return [nn.shape_of(each) for each in main.body.block.args]


@pytest.mark.parametrize(
    ("shape", "dims"),
    [
        ([-1, 3], {"x_0": 5}),
        ([-1, 3], {"x:0": 5}),
        ([None, 3], {"x:0": 5}),
        (["N", 3], {"x:0": 5}),
        (["N", "N"], {"N": 3, "x:0": 5}),
        (["N", "N"], {"x:0": 5, "x:1": 3}),
        ([5, "N"], {"x:0": 5, "N": 3}),
    ],
)
def test_a_free_size_is_bound_by_its_name_or_by_input_and_axis(shape: list[Any], dims):
    assert input_shapes(model(shape), dims=dims) == [(5, 3)]


def test_the_last_colon_separates_the_input_from_the_axis():
    proto = model([None, 3])
    proto.graph.input[0].name = proto.graph.node[0].input[0] = "images:0"
    assert input_shapes(proto, dims={"images:0:0": 5}) == [(5, 3)]


@pytest.mark.parametrize(
    ("dims", "message"),
    [
        ({"x:1": 4}, r"--dim x:1=4: axis 1 of input 'x' has the size 3"),
        ({"x:2": 4}, r"--dim x:2=4: input 'x' has 2 axes, from 0 on"),
        ({"y:0": 4}, r"--dim y:0=4: no such dimension; the model has N, and each axis as INPUT:"),
        ({"x:-1": 4}, r"--dim x:-1=4: no such dimension"),
        ({"x:0": -1}, r"--dim x:0=-1; need an integer, 0 or more"),
    ],
)
def test_a_size_that_contradicts_the_model_is_refused(dims: dict[str, int], message: str):
    with pytest.raises(InputError, match=message):
        input_shapes(model(["N", 3]), dims=dims)


# Values


@pytest.mark.parametrize("value", [[3, 2], np.array([3, 2]), np.array([3, 2], np.int32)])
def test_an_input_with_a_value_is_no_input_of_the_program(value: Any):
    exe = compile_model(
        model([6], [2], "Reshape"), "tiny:2,memory.bytes_per_tile=1000000", values={"shape": value}
    )
    assert [each.name for each in exe.inputs] == ["x"]
    assert exe.run({"x": np.ones(6, np.float32)})["y"].shape == (3, 2)


@pytest.mark.parametrize("shape", [[], [1], ["N"], [-1]])
def test_a_number_stands_for_a_tensor_of_one_element(shape: list[Any]):
    operator = "Gather"
    assert input_shapes(model([4, 3], shape, operator), values={"shape": 2}) == [(4, 3)]


def test_the_shape_of_a_value_gives_sizes_to_symbols():
    proto = model(["N", 3])
    proto.graph.input.append(helper.make_tensor_value_info("mask", TensorProto.BOOL, ["N"]))
    assert input_shapes(proto, values={"mask": [True] * 5}) == [(5, 3)]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"values": {"size": 1}}, r"no input 'size' to give a value; there are x, shape"),
        ({"values": {"shape": [1.5, 2]}}, r"input 'shape': the value has float64 elements; need"),
        ({"values": {"shape": [2**70]}}, r"input 'shape': .* need int64|a value that is no tensor"),
        (
            {"values": {"shape": [[1, 2], [3]]}},
            r"a value that is no tensor of int64",
        ),
        ({"values": {"shape": [1, 2, 3]}}, r"has shape \[3\]; axis 0 has the size 2"),
        ({"values": {"shape": [[1, 2]]}}, r"has shape \[1, 2\]; the model declares 1 axes"),
        (
            {"values": {"x": np.ones((4, 3))}, "dims": {"N": 4}},
            r"--dim N=4: no such dimension; the model has none",
        ),
    ],
)
def test_a_value_that_contradicts_the_model_is_refused(options: dict[str, Any], message: str):
    with pytest.raises(InputError, match=message):
        input_shapes(model(["N", 3], [2], "Reshape"), **options)
