"""abele train: a loss that falls, a curve, and checkpoints that go on to the same bits."""

from pathlib import Path

import numpy as np
import onnx
import pytest
from some_models import model, node, random
from typer.testing import CliRunner

from abele.ir.errors import InputError
from abele.tools.cli import app
from abele.tools.driver.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from abele.tools.driver.samples import batch_at

COUNT = 10


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """A model of a dense layer for batches of 4, and 10 samples."""
    nodes = [node("Gemm", "x w b", "y", transB=1)]
    weights = {"w": random((3, 5), 1, 0.5), "b": np.zeros(3, np.float32)}
    onnx.save(model(nodes, {"x": [4, 5]}, ["y"], weights), tmp_path / "net.onnx")
    x = random((COUNT, 5), 2)
    np.savez(tmp_path / "data.npz", x=x, target=x[:, :3].argmax(1))
    return str(tmp_path / "net.onnx"), str(tmp_path / "data.npz")


def train(files: tuple[str, str], *options: object) -> tuple[int, str]:
    chosen = ["--target", "tiny:2", "--optimizer", "adam", "--training", "learning-rate=0.05"]
    words = ["train", files[0], "--data", files[1], *chosen, *map(str, options)]
    result = CliRunner().invoke(app, words)
    return result.exit_code, result.output


def test_the_loss_falls_and_the_curve_has_every_step(files: tuple[str, str], tmp_path: Path):
    curve = tmp_path / "loss.csv"
    code, output = train(files, "--steps", 20, "--curve", curve)
    assert code == 0, output
    head, *rows = curve.read_text().splitlines()
    steps, losses = zip(*(map(float, row.split(",")) for row in rows), strict=True)
    assert head == "step,loss"
    assert steps == tuple(range(1, 21))
    assert losses[-1] < 0.5 * losses[0]
    assert f"loss {losses[0]:.6g} -> {losses[-1]:.6g}" in output


def test_a_checkpoint_goes_on_to_the_same_bits(files: tuple[str, str], tmp_path: Path):
    whole, half, rest = (tmp_path / f"{name}.safetensors" for name in ("whole", "half", "rest"))
    assert train(files, "--steps", 7, "--checkpoint", whole, "--seed", 3)[0] == 0
    assert train(files, "--steps", 4, "--checkpoint", half, "--seed", 3)[0] == 0
    code, output = train(files, "--steps", 7, "--checkpoint", rest, "--resume", half)
    assert code == 0, output
    assert whole.read_bytes() == rest.read_bytes()
    assert whole.read_bytes() != half.read_bytes()


def test_an_interrupted_step_leaves_the_checkpoint_of_the_step_before(
    files: tuple[str, str], tmp_path: Path
):
    two, stopped = tmp_path / "two.safetensors", tmp_path / "stopped.safetensors"
    assert train(files, "--steps", 2, "--checkpoint", two)[0] == 0
    with np.load(files[1]) as data:
        x, target = data["x"], data["target"].copy()
    # The first sample of the third step, and of no step before.
    order = batch_at({"i": np.arange(COUNT)}, COUNT, 4, 2, 0)["i"]
    target[order[0]] = 99
    np.savez(tmp_path / "bad.npz", x=x, target=target)
    bad = files[0], str(tmp_path / "bad.npz")
    code, output = train(bad, "--steps", 7, "--checkpoint", stopped)
    assert code != 0
    assert "99" in output
    assert stopped.read_bytes() == two.read_bytes()


def test_every_sample_comes_once_in_each_pass():
    samples = {"x": np.arange(COUNT)}
    taken = np.concatenate([batch_at(samples, COUNT, 4, step, 5)["x"] for step in range(5)])
    first, second = taken[:COUNT], taken[COUNT:]
    assert sorted(first) == sorted(second) == list(range(COUNT))
    assert list(first) != list(second)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--steps", "1", "--every", "1"], "--every without --checkpoint"),
        (["--steps", "0"], "greater than or equal to 1"),
        (["--steps", "1", "--loss", "mean_square"], "'target' has shape [10]; need [samples, 3]"),
        (["--steps", "1", "--training", "target=label"], "arrays target, x; need one for each"),
    ],
)
def test_what_does_not_fit_is_refused(files: tuple[str, str], options: list[str], problem: str):
    code, output = train(files, *options)
    assert code == 2
    assert problem in output


def test_a_checkpoint_of_another_optimizer_is_refused(files: tuple[str, str], tmp_path: Path):
    path = tmp_path / "sgd.safetensors"
    write_checkpoint(path, Checkpoint(1, 0, {"w": np.zeros((3, 5), np.float32)}))
    code, output = train(files, "--steps", 2, "--resume", path)
    assert code == 2
    assert "of another program, or of another optimizer" in output


def test_a_checkpoint_is_read_as_it_was_written(tmp_path: Path):
    states = {"a": random((2, 3)), "n": np.array(7, np.int64), "e": np.zeros((0, 2), np.float16)}
    write_checkpoint(tmp_path / "c", Checkpoint(5, 9, states))
    found = read_checkpoint(tmp_path / "c")
    assert (found.step, found.seed, set(found.states)) == (5, 9, set(states))
    for name, array in states.items():
        assert found.states[name].dtype == array.dtype
        assert np.array_equal(found.states[name], array)


@pytest.mark.parametrize("kept", [0, 4, 20, -3])
def test_a_damaged_checkpoint_is_refused(kept: int, tmp_path: Path):
    path = tmp_path / "c"
    write_checkpoint(path, Checkpoint(5, 9, {"a": random((2, 3))}))
    path.write_bytes(path.read_bytes()[:kept])
    with pytest.raises(InputError, match="damaged, or not a checkpoint"):
        read_checkpoint(path)
