"""The shapes of inputs are read without onnx, and are what onnx reads."""

import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper, parser

from abele.ir.errors import InputError
from abele.tools.importers.onnx.inputs import open_shapes_of
from abele.tools.importers.onnx.open_shapes import open_shapes

EXAMPLES = sorted((Path(__file__).parents[4] / "examples").glob("*.onnx"))


def dynamic() -> onnx.ModelProto:
    """A model with each kind of axis, an input that is a weight, and one that is no tensor."""
    model = parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        m (float[N, 3, s27, ?] x, float w, float[4] b, float[] unknown) => (y)
        <float[4] b = {1, 2, 3, 4}> { y = Add (x, b) }"""
    )
    free = helper.make_tensor_value_info("free", TensorProto.INT64, [None, -1, 2**40, 0])
    rankless = helper.make_tensor_value_info("rankless", TensorProto.FLOAT, None)
    model.graph.input[0].type.tensor_type.shape.dim[3].dim_param = "?"
    listed = helper.make_tensor_sequence_value_info("listed", TensorProto.FLOAT, [2])
    model.graph.input.extend([free, rankless, listed])
    return model


def test_each_kind_of_axis_is_read(tmp_path: Path):
    onnx.save(dynamic(), tmp_path / "m.onnx")
    found = open_shapes(tmp_path / "m.onnx")
    assert found["x"] == ("N", 3, "s27", "?")
    assert found["free"] == ("", "", 2**40, 0)
    assert (found["w"], found["rankless"], found["listed"]) == ((), None, None)
    assert [*found] == ["x", "w", "unknown", "free", "rankless", "listed"]
    assert found == open_shapes(dynamic())


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_the_shapes_are_those_that_onnx_reads(path: Path):
    assert open_shapes(path) == open_shapes_of(onnx.load(path))


def test_onnx_is_not_imported(tmp_path: Path):
    code = (
        "import sys; from abele.tools.importers.onnx.open_shapes import open_shapes; "
        f"assert open_shapes({str(EXAMPLES[0])!r}); sys.exit('onnx' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_message_of_several_pieces_is_left_to_protobuf(tmp_path: Path):
    """protobuf merges the pieces of a message that stands several times."""
    first, second = dynamic(), onnx.ModelProto()
    second.graph.input.append(helper.make_tensor_value_info("z", TensorProto.FLOAT, ["K"]))
    path = tmp_path / "m.onnx"
    path.write_bytes(first.SerializeToString() + second.SerializeToString())
    assert open_shapes(path)["z"] == ("K",)


@pytest.mark.parametrize("size", [1, 7, 40])
def test_a_damaged_file_is_refused(tmp_path: Path, size: int):
    path = tmp_path / "m.onnx"
    path.write_bytes(dynamic().SerializeToString()[:-size])
    with pytest.raises(InputError, match="damaged, or not an ONNX model"):
        open_shapes(path)
