"""Training a model says what its exporter has folded away, and nothing about any other model."""

import lzma
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from abele.ir.context import AbeleContext
from abele.tools.cli import app
from abele.tools.importers.folded_modules import Called, folded_modules
from abele.tools.importers.front_end import Reading
from abele.tools.importers.onnx.reader import read_onnx
from abele.tools.importers.pt2.reader import read_pt2

FOLDER = Path(__file__).parent / "folded"
BATCH, DROPOUT = "torch.nn.modules.batchnorm.BatchNorm2d", "torch.nn.modules.dropout.Dropout"


def notes(name: str, *, training: bool = True) -> list[str]:
    """What is said about a file of the folder."""
    reading = Reading(AbeleContext(), name, training=training)
    if name.endswith(".onnx"):
        _ = read_onnx(onnx.load(FOLDER / name), reading)
    else:
        _ = read_pt2(lzma.decompress((FOLDER / f"{name}.xz").read_bytes()), reading)
    return reading.notes


@pytest.mark.parametrize(
    ("name", "what", "module"),
    [
        ("dynamo.onnx", "batch normalisation", "bn"),
        ("dynamo-unoptimised.onnx", "dropout", "drop"),
        ("script.onnx", "batch normalisation", "conv"),
        ("eval-decomposed.pt2", "dropout", "drop"),
    ],
)
def test_what_an_exporter_has_folded_away_is_said_with_its_modules(
    name: str, what: str, module: str
):
    (said,) = notes(name)
    assert said.startswith(
        f"warning: {name}: the exporter has folded {what} away in 1 module ({module}): training "
    )
    assert "torch.export.export(module.train(), (x,))" in said
    assert notes(name, training=False) == []


@pytest.mark.parametrize("name", ["dynamo-training.onnx", "script-training.onnx", "eval.pt2"])
def test_nothing_is_said_about_a_file_that_holds_both_layers(name: str):
    assert notes(name) == []


def test_a_module_that_computes_its_layer_in_parts_is_not_folded():
    parts = ["ReduceMean", "Sub", "aten.native_batch_norm", "MatMul"]
    calls = [Called("bn", BATCH, each) for each in parts]
    calls += [Called("drop", DROPOUT, each) for each in ("Bernoulli", "Identity")]
    calls += [Called("conv", "torch.nn.modules.conv.Conv2d", "Conv"), Called("odd", "", "Identity")]
    assert folded_modules(calls) == {}
    assert folded_modules([Called("bn", BATCH, "Mul"), Called("bn", BATCH, "Add")]) == {}


def test_train_warns_once(tmp_path: Path):
    random = np.random.default_rng(0)
    x = random.normal(size=(4, 3, 8, 8)).astype(np.float32)
    np.savez(tmp_path / "s.npz", x=x, target=np.array([0, 1, 2, 3], np.int32))
    asked = ["--data", str(tmp_path / "s.npz"), "--target", "tiny:2", "--steps", "1", "--no-cache"]
    found = CliRunner().invoke(app, ["train", str(FOLDER / "dynamo.onnx"), *asked])
    assert found.exit_code == 0
    assert found.stderr.count("folded batch normalisation away in 1 module (bn)") == 1
