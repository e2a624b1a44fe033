import onnx
import pytest
from onnx import TensorProto, helper

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx


def relu(declared: onnx.ValueInfoProto, *more: onnx.ValueInfoProto) -> onnx.ModelProto:
    """y = relu(relu(x)) of float32[batch, 3], by way of h."""
    graph = helper.make_graph(
        [
            helper.make_node("Relu", ["x"], ["h"], "first"),
            helper.make_node("Relu", ["h"], ["y"], "last"),
        ],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 3])],
        [declared],
        value_info=more,
    )
    opsets = [helper.make_opsetid("", 17)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def tensor(name: str, shape: list[int | str] | None, code: int = TensorProto.FLOAT):
    return helper.make_tensor_value_info(name, code, shape)


def imported(proto: onnx.ModelProto, batch: int = 2, **options: bool):
    return import_onnx(proto, AbeleContext(), {"batch": batch}, **options)


@pytest.mark.parametrize(
    "shape", [["batch", 3], [2, 3], ["other", 3], ["?", 3], [-1, 3], ["", 3], None], ids=str
)
def test_a_true_type_is_taken(shape: list[int | str] | None):
    imported(relu(tensor("y", shape)))


@pytest.mark.parametrize(
    ("declared", "text"),
    [
        (tensor("y", [2, 4]), r"float32\[2, 4\]"),
        (tensor("y", [2]), r"float32\[2\]"),
        (tensor("y", ["batch", "batch"]), r"float32\[2, 2\]"),
        (tensor("y", ["batch", 3], TensorProto.FLOAT16), r"float16\[2, 3\]"),
        (tensor("y", ["batch", 3], TensorProto.INT32), r"int32\[2, 3\]"),
        (helper.make_tensor_sequence_value_info("y", TensorProto.FLOAT, [2, 3]), "a sequence"),
    ],
    ids=str,
)
def test_a_false_output_type_names_the_node(declared: onnx.ValueInfoProto, text: str):
    message = (
        rf"node 'last' \(Relu\): result 'y' is float32\[2, 3\]; the model declares {text}; "
        "--lenient skips this check"
    )
    with pytest.raises(InputError, match=message):
        imported(relu(declared))
    imported(relu(declared), lenient=True)


def test_a_false_type_inside_the_graph_names_its_node():
    proto = relu(tensor("y", None), tensor("h", [7, 3]))
    with pytest.raises(InputError, match=r"node 'first' \(Relu\): result 'h' is float32\[2, 3\]"):
        imported(proto)


def test_a_size_that_is_given_replaces_the_declared_symbol():
    proto = relu(tensor("y", ["batch", 3]))
    imported(proto, 5)
    with pytest.raises(InputError, match=r"float32\[5, 3\]; the model declares float32\[2, 3\]"):
        imported(relu(tensor("y", [2, 3])), 5)


def test_an_output_that_is_an_input_has_the_input_type():
    proto = relu(tensor("y", None))
    proto.graph.output.append(tensor("x", ["batch", 4]))
    with pytest.raises(InputError, match=r"output 'x' is float32\[2, 3\]; the model declares"):
        imported(proto)


def test_a_weight_that_is_an_input_has_the_input_type():
    proto = relu(tensor("y", None))
    proto.graph.input.append(tensor("w", [4]))
    proto.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [2], [1.0, 2.0]))
    with pytest.raises(InputError, match=r"weight 'w' is float32\[2\]; the model declares"):
        imported(proto)
