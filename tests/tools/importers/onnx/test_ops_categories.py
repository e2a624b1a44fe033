"""Categories and labels that are strings, and scores by class."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools import cli, compile_model
from abele.tools.driver.arrays import read_arrays
from abele.tools.importers import UnsupportedError

from .one_node import computed, one_node

ML = "ai.onnx.ml"
CITIES = np.array([["Oslo", "Rome"], ["Lima", ""], ["Lima", "Rome\u00e9"]])


def run_both(model: onnx.ModelProto, inputs: dict[str, Any]) -> list[np.ndarray]:
    """The outputs of abele and of onnxruntime, which must be equal."""
    session = onnxruntime.InferenceSession(model.SerializeToString())
    given = {n: a.astype(object) if a.dtype.kind == "U" else a for n, a in inputs.items()}
    expected = session.run(None, given)
    found = list(compile_model(model, "tiny:2").run(inputs, at="nn").values())
    for mine, other in zip(found, expected, strict=True):
        assert mine.shape == other.shape
        np.testing.assert_array_equal(mine, other)
    return found


def text_model(nodes: list[Any], **inputs: Any) -> onnx.ModelProto:
    """A model of nodes with inputs of str or numbers, and outputs y0, y1, ..."""
    made = {name for node in nodes for name in node.output if name.startswith("y")}
    kinds = {n: helper.np_dtype_to_tensor_dtype(np.dtype(a.dtype)) for n, a in inputs.items()}
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info(n, kinds[n], a.shape) for n, a in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in sorted(made)],
    )
    opsets = [helper.make_opsetid("", 19), helper.make_opsetid(ML, 2)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def typed(model: onnx.ModelProto, **kinds: int) -> onnx.ModelProto:
    """The model with element types of its outputs, which onnxruntime wants."""
    for each in model.graph.output:
        each.type.tensor_type.elem_type = kinds[each.name]
    return model


def ml_node(operator: str, inputs: list[str], outputs: list[str], **attributes: Any):
    return helper.make_node(operator, inputs, outputs, domain=ML, **attributes)


def test_strings_become_other_strings_numbers_and_back():
    keys = ["Rome", "Oslo", "Rome\u00e9"]
    nodes = [
        ml_node(
            "LabelEncoder",
            ["x"],
            ["y0"],
            keys_strings=keys,
            values_strings=["IT", "NO", "FR"],
            default_string="??",
        ),
        ml_node("LabelEncoder", ["x"], ["y1"], keys_strings=keys, values_int64s=[7, 8, 9]),
        ml_node("LabelEncoder", ["y1"], ["y2"], keys_int64s=[8, 7], values_strings=["o", "r"]),
    ]
    texts, numbers = TensorProto.STRING, TensorProto.INT64
    model = typed(text_model(nodes, x=CITIES), y0=texts, y1=numbers, y2=texts)
    found = run_both(model, {"x": CITIES})
    assert found[0].tolist() == [["NO", "IT"], ["??", "??"], ["??", "FR"]]
    assert found[2].tolist() == [["o", "r"], ["_Unused", "_Unused"], ["_Unused", "_Unused"]]


def test_strings_are_moved_compared_and_chosen():
    nodes = [
        helper.make_node("Constant", [], ["rome"], value_string="Rome"),
        helper.make_node("Constant", [], ["names"], value_strings=["c", "a", "b"]),
        helper.make_node("Transpose", ["x"], ["turned"]),
        helper.make_node("Equal", ["turned", "rome"], ["y0"]),
        helper.make_node("Gather", ["names", "at"], ["some"]),
        helper.make_node("Concat", ["some", "names"], ["y1"], axis=0),
        helper.make_node("Identity", ["y1"], ["y2"]),
    ]
    at = np.array([2, 2, 0])
    texts = TensorProto.STRING
    model = typed(text_model(nodes, x=CITIES, at=at), y0=TensorProto.BOOL, y1=texts, y2=texts)
    found = run_both(model, {"x": CITIES, "at": at})
    assert found[2].tolist() == ["b", "b", "c", "c", "a", "b"]


@pytest.mark.parametrize("zeros", [0, 1])
def test_categories_become_columns(zeros: int):
    known = CITIES[:2, :1]
    attributes = {"cats_strings": ["Lima", "Oslo"], "zeros": zeros}
    nodes = [ml_node("OneHotEncoder", ["x"], ["y0"], **attributes)]
    model = typed(text_model(nodes, x=known), y0=TensorProto.FLOAT)
    assert run_both(model, {"x": known})[0].tolist() == [[[0, 1]], [[1, 0]]]
    exe = compile_model(model, "tiny:2")
    other = {"x": np.array([["Lima"], ["Bern"]])}
    if zeros:
        assert exe.run(other, at="nn")["y0"].tolist() == [[[1, 0]], [[0, 0]]]
    else:
        with pytest.raises(InputError, match="index 2"):
            exe.run(other, at="nn")


def test_numbers_are_categories_too():
    x = np.array([[4, 9], [-3, 4]])
    model, inputs = one_node("OneHotEncoder", x, domain=ML, cats_int64s=[9, 4])
    assert computed(model, inputs)[0].tolist() == [[[0, 1], [1, 0]], [[0, 0], [0, 1]]]


def test_a_category_mapper_goes_both_ways():
    pairs = {"cats_strings": ["Oslo", "Lima"], "cats_int64s": [5, 3]}
    nodes = [
        ml_node("CategoryMapper", ["x"], ["y0"], **pairs),
        ml_node("CategoryMapper", ["y0"], ["y1"], default_string="none", **pairs),
    ]
    model = typed(text_model(nodes, x=CITIES), y0=TensorProto.INT64, y1=TensorProto.STRING)
    assert run_both(model, {"x": CITIES})[0].tolist() == [[5, -1], [3, -1], [3, -1]]


@pytest.mark.parametrize(
    ("operator", "names"),
    [("StringConcat", ["x", "x"]), ("Unique", ["x"]), ("RegexFullMatch", ["x"])],
)
def test_an_operator_that_needs_letters_is_refused(operator: str, names: list[str]):
    nodes = [helper.make_node(operator, names, ["y0"])]
    model = text_model(nodes, x=CITIES)
    model.opset_import[0].version = 20
    with pytest.raises(UnsupportedError, match=operator):
        compile_model(model, "tiny:2")


def test_an_input_cannot_be_returned_or_compared_with_another_one():
    moved = text_model([helper.make_node("Transpose", ["x"], ["y0"])], x=CITIES)
    with pytest.raises(UnsupportedError, match="output 'y0' holds strings of an input"):
        compile_model(moved, "tiny:2")
    both = text_model([helper.make_node("Equal", ["x", "z"], ["y0"])], x=CITIES, z=CITIES)
    with pytest.raises(UnsupportedError, match="two inputs that are strings"):
        compile_model(both, "tiny:2")


def classifier(labels: dict[str, Any]) -> onnx.ModelProto:
    """What skl2onnx writes for a linear classifier with three classes."""
    ints = "ints" if "classlabels_int64s" in labels else "strings"
    given = {f"classlabels_{ints}": next(iter(labels.values()))}
    weights = [0.5, -1.0, 0.25, 2.0, -0.5, 1.5]
    nodes = [
        ml_node(
            "LinearClassifier",
            ["x"],
            ["label", "scores"],
            coefficients=weights,
            intercepts=[0.0, 0.1, 0.2],
            post_transform="SOFTMAX",
            **given,
        ),
        ml_node("ZipMap", ["scores"], ["by_class"], **labels),
    ]
    kind = TensorProto.INT64 if ints == "ints" else TensorProto.STRING
    key = helper.make_map_type_proto(kind, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    maps = helper.make_sequence_type_proto(key)
    graph = helper.make_graph(
        nodes,
        "graph",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (4, 2))],
        [
            helper.make_tensor_value_info("label", kind, (4,)),
            helper.make_value_info("by_class", maps),
        ],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(ML, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


X = np.random.default_rng(3).standard_normal((4, 2)).astype(np.float32)


@pytest.mark.parametrize(
    "labels", [{"classlabels_strings": ["no", "yes", "[b]?"]}, {"classlabels_int64s": [4, 2, 9]}]
)
def test_scores_by_class_are_a_table_with_named_columns(labels: dict[str, Any]):
    model = classifier(labels)
    exe = compile_model(model, "tiny:2")
    found = exe.run({"x": X}, at="nn")
    session = onnxruntime.InferenceSession(model.SerializeToString())
    label, maps = session.run(None, {"x": X})
    np.testing.assert_array_equal(found["label"], label)
    (names,) = labels.values()
    expected = np.array([[each[name] for name in names] for each in maps])
    np.testing.assert_allclose(found["by_class"], expected, rtol=1e-5)
    assert exe.outputs[1].columns == tuple(map(str, names))


def test_the_command_shows_labels_and_writes_them(tmp_path: Path):
    path = tmp_path / "m.onnx"
    onnx.save(classifier({"classlabels_strings": ["no", "yes", "[b]?"]}), path)
    np.savez(tmp_path / "x.npz", x=X)
    files = (
        str(path),
        "--outputs",
        str(tmp_path / "y.npz"),
        "--inputs",
        str(tmp_path / "x.npz"),
    )
    result = CliRunner().invoke(cli.app, ["run", *files, "--target", "tiny:2", "--check"])
    assert result.exit_code == 0, result.output
    assert "labels of label" in result.stdout
    assert "no, yes, [b]?" in result.stdout
    assert "columns of by_class" in result.stdout
    assert set(read_arrays(tmp_path / "y.npz")["label"]) <= {"no", "yes", "[b]?"}


def test_a_program_file_keeps_strings(tmp_path: Path):
    nodes = [
        ml_node("LabelEncoder", ["x"], ["y0"], keys_strings=["Oslo"], values_strings=["NO"]),
    ]
    exe = compile_model(text_model(nodes, x=CITIES), "tiny:2")
    exe.save(tmp_path / "p.abele")
    loaded = compile_model(tmp_path / "p.abele")
    assert str(loaded.inputs[0]) == "'x' (str[3, 2])"
    assert loaded.run({"x": CITIES}, at="nn")["y0"][0].tolist() == ["NO", "_Unused"]
    with pytest.raises(InputError, match=r"input 'x' \(str\[3, 2\]\): got float64"):
        loaded.run({"x": np.zeros((3, 2))}, at="nn")


def test_a_damaged_tensor_of_strings_is_named(tmp_path: Path):
    for change, message in (
        (lambda t: t.string_data.pop(), "5 strings of shape"),
        (lambda t: t.string_data.__setitem__(0, b"\xff"), "need UTF-8"),
    ):
        tensor = numpy_helper.from_array(CITIES.astype(object), "w")
        change(tensor)
        model = text_model([helper.make_node("Identity", ["w"], ["y0"])])
        model.graph.initializer.append(tensor)
        with pytest.raises(InputError, match=message):
            compile_model(model, "tiny:2")
