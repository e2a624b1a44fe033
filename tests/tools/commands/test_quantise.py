from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import pytest
from typer.testing import CliRunner

from abele.tools.cli import app

ROOT = Path(__file__).parents[3]
DIGITS = str(ROOT / "examples" / "digits.onnx")


@pytest.fixture
def samples(tmp_path: Path) -> Path:
    images = np.load(ROOT / "examples" / "digits.npz")["x"]
    labels = np.load(ROOT / "examples" / "digit_labels.npy")
    path = tmp_path / "digits_with_labels.npz"
    np.savez(path, x=images, target=labels)
    return path


def quantise(*arguments: str | Path) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["quantise", DIGITS, *map(str, arguments)])
    return done.exit_code, done.output


def test_the_command_writes_the_model_and_prints_what_it_loses(tmp_path: Path, samples: Path):
    written, figures = tmp_path / "out.onnx", tmp_path / "out.json"
    code, text = quantise(
        *("--inputs", samples, "--target", "tiny:16", "--batch", "16"),
        *("-o", written, "--json", figures, "--keep", "linear", "--sensitivity", "16"),
    )
    assert code == 0, text
    assert "accuracy 98.65% -> 98.65%" in text
    assert "2 nodes quantised by mse, 1 kept in float" in text
    assert "one node quantised, the others in float" in text
    onnx.checker.check_model(onnx.load(written))
    found = json.loads(figures.read_text())
    assert found["kept"] == ["node_linear"]
    assert found["outputs"][0]["accuracy"] >= 0.98
    assert found["after"]["weight_bytes"] < found["before"]["weight_bytes"]


def test_a_refused_model_leaves_the_file_as_it_was(tmp_path: Path, samples: Path):
    written = tmp_path / "out.onnx"
    written.write_bytes(b"before")
    code, text = quantise("--inputs", samples, "--to", "fp8", "--target", "mk2", "-o", written)
    assert code == 2
    assert "--to fp8 --target mk2: it has no units for products of 8-bit floats" in text
    assert written.read_bytes() == b"before"
    assert {each.name for each in tmp_path.iterdir()} == {written.name, samples.name}


def test_samples_of_another_shape_are_refused(tmp_path: Path):
    path = tmp_path / "wrong.npz"
    np.savez(path, x=np.zeros((8, 1, 8, 9), np.float32))
    code, text = quantise("--inputs", path, "--target", "tiny:4")
    assert code == 2
    assert text.count("error") == 1


@pytest.mark.parametrize("name", ["out.txt", "nowhere/out.onnx"])
def test_a_file_that_cannot_be_written_is_refused_before_the_work(
    tmp_path: Path, samples: Path, name: str
):
    code, _ = quantise("--inputs", samples, "-o", tmp_path / name)
    assert code == 2
    assert list(tmp_path.iterdir()) == [samples]


def test_one_sample_is_a_warning(tmp_path: Path):
    path = tmp_path / "one.npz"
    np.savez(path, x=np.ones((1, 1, 8, 8), np.float32))
    code, text = quantise("--inputs", path, "--target", "tiny:4")
    assert code == 0
    assert "warning: one sample, and none to judge by" in text
