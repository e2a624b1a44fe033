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


@pytest.mark.parametrize(
    ("images", "options", "message"),
    [
        (np.zeros((8, 1, 8, 9)), (), "the shape [1, 1, 8, 9], but the model declares"),
        (np.full((8, 1, 8, 8), np.nan), (), "nan in 'x' at [0, 0, 0, 0]; need finite numbers"),
        (np.full((8, 1, 8, 8), 1e34), ("--to", "fp8"), "numbers up to 1e+34; scales of fp8"),
    ],
)
def test_samples_that_nothing_can_be_calibrated_with_are_refused_with_one_message(
    tmp_path: Path, images: np.ndarray, options: tuple[str, ...], message: str
):
    path = tmp_path / "wrong.npz"
    np.savez(path, x=images.astype(np.float32))
    code, text = quantise("--inputs", path, "--target", "c600:4", *options)
    assert code == 2
    assert text.count("error") == 1
    assert message in text
    assert "Traceback" not in text


def test_precision_float8_is_refused_on_a_target_without_units_for_it(tmp_path: Path):
    written = tmp_path / "out.abele"
    options = ("--precision", "float8", "--target", "mk2", "--dim", "N=1", "-o", str(written))
    done = CliRunner().invoke(app, ["compile", DIGITS, *options])
    assert done.exit_code == 2
    assert "for which target mk2 has no units; need one of tiny, c600" in " ".join(
        done.output.split()
    )
    assert not written.exists()


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
