from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.importers.onnx import valid

FLOAT = TensorProto.FLOAT
EXAMPLES = Path(__file__).parents[4] / "examples"


def model(*nodes: onnx.NodeProto, opset: int = 17, ir_version: int = 9, **weights: np.ndarray):
    """A model of nodes, from x and z to y, all float32[1, 2, 4, 4]."""
    values = {
        name: helper.make_tensor_value_info(name, FLOAT, [1, 2, 4, 4]) for name in ("x", "z", "y")
    }
    graph = helper.make_graph(
        nodes,
        "graph",
        [values["x"], values["z"]],
        [values["y"]],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    opsets = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=ir_version)


def node(operator: str, inputs: str = "x", outputs: str = "y", **attributes: object):
    return helper.make_node(operator, inputs.split(), outputs.split(), "here", **attributes)


def with_attributes(made: onnx.NodeProto, *attributes: onnx.AttributeProto) -> onnx.NodeProto:
    made.attribute.extend(attributes)
    return made


def without_type(made: onnx.NodeProto) -> onnx.NodeProto:
    made.attribute[0].type = onnx.AttributeProto.UNDEFINED
    return made


ALPHA = helper.make_attribute("alpha", 0.5)
EYE = np.ones((2, 2, 1, 1), np.float32)

BROKEN: dict[str, tuple[onnx.ModelProto, str]] = {
    "an extra operand": (
        model(node("Relu", "x z")),
        r"node 'here' \(Relu\): operand 1 'z': the operator has 1",
    ),
    "a fourth operand of a convolution": (
        model(node("Conv", "x w b x"), w=EYE, b=np.ones(2, np.float32)),
        r"node 'here' \(Conv\): operand 3 'x': the operator has 3",
    ),
    "a missing operand": (model(node("Add")), r"node 'here' \(Add\): operand 1 is missing"),
    "an extra result": (
        model(node("Relu", outputs="y other")),
        r"node 'here' \(Relu\): result 1 'other': the operator has 1",
    ),
    "an unknown attribute": (
        model(node("LeakyRelu", alfa=0.5)),
        r"node 'here' \(LeakyRelu\): attribute alfa is unknown; LeakyRelu has alpha; did you mean "
        "alpha",
    ),
    "an attribute twice": (
        model(with_attributes(node("LeakyRelu"), ALPHA, ALPHA)),
        r"node 'here' \(LeakyRelu\): attribute alpha is given twice",
    ),
    "an attribute of another kind": (
        model(node("LeakyRelu", alpha=1)),
        r"node 'here' \(LeakyRelu\): attribute alpha is a int; need a float",
    ),
    "an attribute without a kind": (
        model(without_type(node("LeakyRelu", alpha=0.5))),
        r"node 'here' \(LeakyRelu\): attribute alpha is a undefined; need a float",
    ),
    "an attribute whose value is elsewhere": (
        model(
            with_attributes(
                node("LeakyRelu"),
                onnx.AttributeProto(name="alpha", type=onnx.AttributeProto.FLOAT, i=3),
            )
        ),
        r"node 'here' \(LeakyRelu\): type field and data field mismatch in attribute alpha",
    ),
    "a missing attribute": (
        model(node("Cast")),
        r"node 'here' \(Cast\): attribute to is missing",
    ),
    "an operator of a later opset": (
        model(node("HardSwish"), opset=13),
        r"node 'here' \(HardSwish\): opset 13 of ai.onnx has no HardSwish",
    ),
    "a result that has a name already": (
        model(node("Relu", outputs="z"), node("Relu", "z")),
        r"node 'here' \(Relu\): result 'z' is the name of an earlier value",
    ),
    "a weight twice": (
        model(node("Relu"), w=EYE),
        "weight 'w' is given twice",
    ),
    "a weight that is no input, in an old file": (
        model(node("Relu"), opset=9, ir_version=3, w=EYE),
        "weight 'w' is not an input, as IR version 3 asks",
    ),
    "a weight of another length": (
        model(node("Relu"), w=np.ones((64, 64), np.float32)),
        r"weight 'w': damaged tensor: 16384 bytes; float32\[65, 64\] has 16640",
    ),
    "a long weight of another length": (
        model(node("MatMul", "x w"), w=np.ones((4, 16384), np.float32)),
        r"weight 'w': damaged tensor: 262144 bytes; float32\[5, 16384\] has 327680",
    ),
    "a format from the future": (
        model(node("Relu"), ir_version=99),
        "ir_version 99 is higher than the checker's",
    ),
    "a graph without a name": (model(node("Relu")), "'name' of 'graph' is required"),
}


def _damage(name: str, proto: onnx.ModelProto) -> None:
    weights = proto.graph.initializer
    if name == "a weight twice":
        weights.append(weights[0])
    if name.endswith("of another length"):
        weights[0].dims[0] += 1
    if name == "a graph without a name":
        proto.graph.name = ""


def imported(proto: onnx.ModelProto, **options: bool):
    return import_onnx(proto, AbeleContext(), **options)


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_rule_is_an_error_that_names_the_node(name: str):
    proto, message = BROKEN[name]
    _damage(name, proto)
    with pytest.raises(onnx.checker.ValidationError):
        onnx.checker.check_model(proto)
    with pytest.raises(InputError, match=message):
        imported(proto)


@pytest.mark.parametrize(
    "name",
    [
        *("an extra operand", "a fourth operand of a convolution", "an unknown attribute"),
        *("an attribute twice", "an operator of a later opset", "a format from the future"),
        *("a weight that is no input, in an old file", "a graph without a name"),
    ],
)
def test_a_lenient_import_takes_what_makes_sense(name: str):
    proto, _ = BROKEN[name]
    _damage(name, proto)
    imported(proto, lenient=True)


@pytest.mark.parametrize(
    "name",
    ["an attribute of another kind", "an attribute whose value is elsewhere", "a missing operand"],
)
def test_a_lenient_import_does_not_guess(name: str):
    proto, _ = BROKEN[name]
    with pytest.raises(InputError, match="here"):
        imported(proto, lenient=True)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.onnx")), ids=lambda path: path.stem)
def test_the_examples_keep_the_rules(path: Path):
    import_onnx(path, AbeleContext(), {"N": 1})


def test_outputs_may_leave_their_types_to_abele():
    proto = model(node("Relu"))
    proto.graph.output[0].ClearField("type")
    imported(proto)


def test_the_checker_gets_no_large_weights(monkeypatch: pytest.MonkeyPatch):
    """Weights of gigabytes would be copied, and protobuf writes at most two."""
    seen: list[onnx.ModelProto] = []
    monkeypatch.setattr(valid.checker, "check_model", seen.append)
    large = np.ones((2048, 2, 1, 1), np.float32)
    constant = node("Constant", "", "c", value=numpy_helper.from_array(large))
    proto = model(
        constant, node("Conv", "x w", "h"), node("Conv", "h c", "k"), node("Relu"), w=large
    )
    with pytest.raises(InputError, match="image has 2048 channels"):
        imported(proto)
    (copy,) = seen
    assert copy.ByteSize() < 2000
    assert {value.name for value in copy.graph.input} == {"x", "z", "w", "c"}
    assert [each.op_type for each in copy.graph.node] == ["Conv", "Conv", "Relu"]


def test_an_attribute_of_a_function_has_no_value_in_a_graph():
    reference = onnx.AttributeProto(
        name="alpha", type=onnx.AttributeProto.FLOAT, ref_attr_name="slope"
    )
    proto = model(with_attributes(node("LeakyRelu"), reference))
    with pytest.raises(InputError, match="attribute alpha stands for 'slope' of a function"):
        imported(proto, lenient=True)
