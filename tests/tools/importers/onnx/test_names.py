from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx

MARK = "QQQQ"


def _node(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].name = MARK


def _operator(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].op_type = MARK


def _domain(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].domain = MARK


def _value(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].output[0] = proto.graph.output[0].name = MARK


def _attribute(proto: onnx.ModelProto) -> None:
    proto.graph.node[0].attribute.add(name=MARK, type=onnx.AttributeProto.INT, i=1)


def _dimension(proto: onnx.ModelProto) -> None:
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_param = MARK


def _weight(proto: onnx.ModelProto) -> None:
    proto.graph.initializer.append(helper.make_tensor(MARK, TensorProto.FLOAT, [1], [1.0]))


@pytest.mark.parametrize("lenient", [False, True])
@pytest.mark.parametrize(
    "damage", [_node, _operator, _domain, _value, _attribute, _dimension, _weight]
)
def test_a_name_that_is_not_text_is_refused(
    damage: Callable[[onnx.ModelProto], None], lenient: bool, tmp_path: Path
):
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"], "here")],
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [4])],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    damage(proto)
    path = tmp_path / "model.onnx"
    path.write_bytes(proto.SerializeToString().replace(MARK.encode(), b"\xff\xfe\xfd\xfc"))
    with pytest.raises(InputError, match="is not UTF-8 text"):
        import_onnx(path, AbeleContext(), lenient=lenient)
