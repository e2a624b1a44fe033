"""Published models, taken out of packages that are made here."""

import json
import zipfile
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper
from some_models import model, node, random

from abele.ir.errors import InputError
from abele.tools.bench.models import bench, published
from abele.tools.bench.models.inputs import below, constant, fed, one_hot, page, tone
from abele.tools.bench.models.published import Published, chosen, model_bytes

SMALL = Published("small", "a product", "Small-Package==1.2.0", "small/model.onnx")


def wheel(folder: Path) -> None:
    """Write a wheel that holds a product and a ReLU."""
    nodes = [node("MatMul", "x w", "m"), node("Relu", "m", "y")]
    made = model(nodes, {"x": [2, 3]}, ["y"], {"w": random((3, 4), 1)})
    with zipfile.ZipFile(folder / "small_package-1.2.0-py3-none-any.whl", "w") as archive:
        archive.writestr(SMALL.file, made.SerializeToString())


def test_a_model_is_read_from_a_wheel(tmp_path: Path):
    assert model_bytes(SMALL, tmp_path) is None
    wheel(tmp_path)
    assert model_bytes(SMALL, tmp_path) is not None


def test_a_model_of_an_installed_package_is_read_where_it_lies():
    file = "onnx/backend/test/data/light/light_resnet50.onnx"
    nowhere = Path("nowhere")
    assert model_bytes(Published("r", "", f"onnx=={version('onnx')}", file), nowhere) is not None
    assert model_bytes(Published("r", "", "onnx==0.1", file), nowhere) is None


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="there is no 'resnet'; need some of centerface, nudenet"):
        chosen("resnet")


def test_inputs_of_a_model_follow_its_sizes():
    nodes = [node("Relu", "x", "y")]
    made = model(nodes, {"x": ["n", 3]}, ["y"])
    (first,) = fed(made, {}, {"n": 2}).values()
    assert first.shape == (2, 3)
    (other,) = fed(made, {}, {"x:0": 5}).values()
    assert other.shape == (5, 3)
    (given,) = fed(made, {"x": one_hot(3, 4)}, {}).values()
    assert given.shape == (4, 3)
    assert given.sum(1).tolist() == [1] * 4
    random = np.random.default_rng(0)
    assert below(7, 100)(random).max() < 7
    assert tone(1, 800)(random).shape == (1, 800)
    lines = page(1, 3, 64, 40)(random)
    assert lines.shape == (1, 3, 64, 40)
    assert set(lines[0, 0, 0]) == {-1, 1}
    assert set(lines[0, 0, 20]) == {1}


def test_a_model_is_compared_operation_by_operation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    wheel(tmp_path)
    monkeypatch.setattr(published, "PUBLISHED", (SMALL,))
    monkeypatch.setattr(published, "NAMES", ("small",))
    path = tmp_path / "small.onnx"
    path.write_bytes(model_bytes(SMALL, tmp_path) or b"")
    result = bench.run_model("small", path, "tiny:4")
    assert result.verdict == "agrees"
    assert result.checked >= 1
    assert result.error < 1e-6
    assert result.cycles > 0
    assert bench.results_table([result]).row_count == 1


def test_a_model_that_cannot_be_compiled_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(published, "PUBLISHED", (SMALL,))
    monkeypatch.setattr(published, "NAMES", ("small",))
    path = tmp_path / "small.onnx"
    made = model([node("StringNormalizer", "x", "y")], {"x": [2]}, ["y"])
    path.write_bytes(made.SerializeToString())
    result = bench.run_model("small", path, "tiny:4")
    assert result.verdict == "refused"
    assert "StringNormalizer" in result.why
    assert bench.results_table([result]).row_count == 1


def test_a_value_is_bound_before_a_model_is_compiled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    small = Published(
        "small", "", "a==1", "a", values={"n": 2}, inputs={"n": constant(0, 1, dtype="int64")}
    )
    monkeypatch.setattr(published, "PUBLISHED", (small,))
    monkeypatch.setattr(published, "NAMES", ("small",))
    made = model([node("Tile", "x n", "y")], {"x": [3]}, ["y"])
    made.graph.input.append(helper.make_tensor_value_info("n", TensorProto.INT64, [1]))
    path = tmp_path / "small.onnx"
    path.write_bytes(made.SerializeToString())
    assert bench.run_model("small", path, "tiny:4").verdict == "agrees"


def test_models_run_on_an_executor_and_are_listed_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    wheel(tmp_path)
    absent = replace(SMALL, name="absent", package="Other-Package==1.0")
    monkeypatch.setattr(published, "PUBLISHED", (replace(SMALL, name="again"), absent, SMALL))
    monkeypatch.setattr(published, "NAMES", ("again", "absent", "small"))
    monkeypatch.setattr(bench, "download", lambda *_: None)
    out = tmp_path / "out.json"
    bench.models("", "tiny", tmp_path, out, "here")
    assert [each["name"] for each in json.loads(out.read_text())["models"]] == ["again", "small"]
    shown = capsys.readouterr().out
    assert "small: agrees" in shown
    assert "not installed: absent" in shown


def test_a_worker_that_lacks_a_model_says_so(tmp_path: Path):
    with pytest.raises(InputError, match=r"centerface: neither installed nor in .* on this worker"):
        bench.run_published(lambda _: None, "centerface", "tiny", str(tmp_path))
