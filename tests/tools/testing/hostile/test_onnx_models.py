"""Damaged ONNX models are imported or refused with a message, strictly and leniently."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from abele.ir.context import AbeleContext
from abele.ir.errors import InputError
from abele.tools.importers import import_onnx
from abele.tools.testing.hostile.onnx_models import CHANGES, DEPTHS, onnx_model

SAMPLE = 120
LONGEST_MESSAGE = 1 << 18


@pytest.mark.parametrize("lenient", [False, True])
def test_damage_is_refused_with_a_message_or_imported(lenient: bool, tmp_path: Path):
    path = tmp_path / "model.onnx"
    imported = 0
    for number in range(SAMPLE):
        damaged = onnx_model(np.random.default_rng([28, number]))
        path.write_bytes(damaged.data)
        try:
            import_onnx(path, AbeleContext(), lenient=lenient)
            imported += 1
        except InputError as error:
            assert str(path) in str(error), damaged.description
            assert len(str(error)) < LONGEST_MESSAGE
        except Exception as error:
            error.add_note(f"example {number}: {damaged.description}")
            raise
    assert 0 < imported < SAMPLE


def test_what_onnx_refuses_is_refused(tmp_path: Path):
    """All but two things, which ONNX's checker refuses and abele does not need.

    Types of outputs may be missing; abele infers them. The operators in the body of a function may
    be of another version than the model's; abele reads a body by the function's own opsets.
    """
    path = tmp_path / "model.onnx"
    accepted = 0
    for number in range(SAMPLE):
        damaged = onnx_model(np.random.default_rng([29, number]))
        path.write_bytes(damaged.data)
        try:
            import_onnx(path, AbeleContext())
        except InputError:
            continue
        proto = onnx.ModelProto.FromString(damaged.data)
        for output in proto.graph.output:
            tensor = output.type.tensor_type
            tensor.elem_type = tensor.elem_type or onnx.TensorProto.FLOAT
            tensor.shape.SetInParent()
        for opset in (each for f in proto.functions for each in f.opset_import):
            here = [o.version for o in proto.opset_import if o.domain == opset.domain]
            opset.version = here[0] if here else opset.version
        onnx.checker.check_model(proto)
        accepted += 1
    assert accepted


def test_every_change_changes_some_model():
    found = {
        change.__name__
        for change in CHANGES
        for number in range(20)
        if _changes(change, np.random.default_rng(number))
    }
    assert found == {change.__name__ for change in CHANGES}


def test_every_change_takes_a_model_without_opsets():
    for change in CHANGES:
        for number in range(20):
            proto = _model()
            del proto.opset_import[:]
            change(proto, np.random.default_rng(number))


def _changes(change, random: np.random.Generator) -> bool:
    proto = _model()
    before = proto.SerializeToString()
    return bool(change(proto, random)) and proto.SerializeToString() != before


def _model() -> onnx.ModelProto:
    node = onnx.helper.make_node("Clip", ["x", "w"], ["h"], "n")
    cast = onnx.helper.make_node("Cast", ["h"], ["y"], "m", to=1)
    value = onnx.helper.make_tensor_value_info
    return onnx.helper.make_model(
        onnx.helper.make_graph(
            [node, cast],
            "graph",
            [value("x", 1, [4])],
            [value("y", 1, [4])],
            [onnx.numpy_helper.from_array(np.zeros(1, np.float32), "w")],
        )
    )


def test_nested_graphs_are_damage_that_protobuf_still_reads():
    graph = onnx.helper.make_graph([], "innermost", [], [])
    for _ in range(max(DEPTHS)):
        inner = onnx.helper.make_node("If", ["c"], ["q"], then_branch=graph)
        graph = onnx.helper.make_graph([inner], "branch", [], [])
    onnx.GraphProto.FromString(graph.SerializeToString())
